"""Python source that the tool writes for its users: names and texts as literals, identifiers, comments. Pure."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence


def identifier(name: str, taken: Collection[str]) -> str:
    """A Python name for a table's name: the one that Python takes it for, so that no other table is meant.

    ``taken``: names that the file uses itself.
    """
    whole = unicodedata.normalize("NFKC", name)
    word = "".join(letter if f"_{letter}".isidentifier() else "_" for letter in whole)
    word = word if word.isidentifier() else f"t_{word}"
    return f"{word}_" if keyword.iskeyword(word) or word in taken else word


def column_literal(name: str) -> str:
    """A column's name as Spark takes it, as a literal: a dot or a star means something there."""
    return text_literal(name if re.fullmatch(r"\w+", name) else f"`{name.replace('`', '``')}`")


def text_literal(value: str) -> str:
    """A Python literal with double quotes."""
    shown = repr(value)
    return f'"{shown[1:-1]}"' if shown.startswith("'") and '"' not in shown else shown


def key_literal(columns: Sequence[str]) -> str:
    """Key columns as ``key=`` takes them."""
    key = [text_literal(column) for column in columns]
    return key[0] if len(key) == 1 else f"({', '.join(key)})"


def prose(name: str) -> str:
    """A name within a comment or a docstring, which it must not end."""
    return "".join(letter if letter.isprintable() and letter not in '\\"' else "_" for letter in name)


def skeleton(
    target: str, key: Sequence[str], words: tuple[str, str], source: str, columns: Iterable[tuple[str, str]]
) -> list[str]:
    """A function that takes a table over as it is, to begin with.

    Args:
        target: the table that it fills.
        key: its key.
        words: names of the function and of its parameter.
        source: the parameter's table.
        columns: names, with their types for a comment.
    """
    function, parameter = words
    options = "" if parameter == source else f", sources=[{text_literal(source)}]"
    return [
        f"@mapping.target({text_literal(target)}, key={key_literal(key)}{options})",
        f"def {function}({parameter}: DataFrame) -> DataFrame:",
        f'    """One row of {"?" if target == source else prose(target)} for each of'
        f' {prose(source) if target == source else "?"}."""',
        f"    return {parameter}.select(",
        *(f"        F.col({column_literal(name)}),  # {prose(kind)}" for name, kind in columns),
        "    )",
    ]
