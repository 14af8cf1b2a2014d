"""The rules that every engine's fence follows: notes first, short tries, undone where it fails."""
