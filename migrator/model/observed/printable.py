"""Text of a database on a line: nothing in it ends the line, or tells a terminal anything."""

from __future__ import annotations


def printable(text: str, kept: str = "") -> str:
    """A text with escapes for all that doesn't print: line breaks, control characters, marks that turn the order of
    letters. ``kept``: characters that stay nevertheless."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in kept else ascii(one)[1:-1] for one in text)
