"""Characters by class: which ones may stand for which, in the order of their code points."""

from __future__ import annotations

import string
import unicodedata
from functools import lru_cache

_BLOCK = 64
_DIGITS, _LOWER = tuple(string.digits), tuple(string.ascii_lowercase)


def folded(character: str) -> str:
    """The small form of a letter that has exactly one small and one capital form; any other character itself."""
    small = character.lower()
    return small if len(small) == 1 and small.upper() == character else character


def in_case_of(character: str, small: str) -> str:
    """A small letter, as a capital where ``character`` is one."""
    return small.upper() if folded(character) != character else small


@lru_cache(maxsize=4096)
def alphabet(character: str) -> tuple[str, ...]:
    """The characters that may stand for a folded one, in order, itself among them; only itself for what is neither
    letter nor digit.

    Of letters beyond ASCII: those of the same category near it, with as many bytes in UTF-8, each with one small and
    one capital form where it has them itself.
    """
    if character in _DIGITS:
        return _DIGITS
    if character in _LOWER:
        return _LOWER
    category = unicodedata.category(character)
    if not category.startswith(("L", "N", "S")) or ord(character) < 128:
        return (character,)
    first = ord(character) - ord(character) % _BLOCK
    cased = folded(character.upper()) == character != character.upper()
    if not cased and character.upper() != character:
        return (character,)
    found = tuple(
        one
        for one in map(chr, range(first, first + _BLOCK))
        if unicodedata.category(one) == category
        and folded(one) == one
        and (_like(one, character) if cased else one.upper() == one)
        and len(one.encode()) == len(character.encode())
        and unicodedata.normalize("NFKC", one) == unicodedata.normalize("NFC", one) == one
    )
    return found if character in found else (character,)


def speaks(text: str) -> bool:
    """Tells whether any character of a text can be replaced."""
    return any(len(alphabet(folded(one))) > 1 for one in text)


def _like(one: str, character: str) -> bool:
    """Tells whether two small letters stand as far behind their capital ones: then order is that of capitals, too."""
    large, other = one.upper(), character.upper()
    return (
        len(large) == 1
        and large.lower() == one
        and len(large.encode()) == len(one.encode())
        and ord(one) - ord(large) == ord(character) - ord(other)
    )
