"""The group of all commands: their names and one line of each are known before any is imported."""
