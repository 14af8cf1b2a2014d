"""Texts that were put together, taken apart: only where the parts can't run into each other. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

from transforms.analysis.expressions import Expression
from transforms.python_source import text_literal
from transforms.reverse.texts import literal, whole_digits

_NUMBER, _DATE, _ANY = r"-?[0-9]+", r"[0-9]{4}-[0-9]{2}-[0-9]{2}", r".*"
_LETTERS = frozenset("0123456789-")
"""The characters of numbers and dates: a text between two of them must begin with another one."""


def parted(
    one: Expression, code: str, type_of: Callable[[Expression], str]
) -> list[tuple[Expression, str]] | str:
    """The parts of a concatenation, each with the code of its value; else why they can't be told apart."""
    pieces = _pieces(one)
    if isinstance(pieces, str):
        return pieces
    patterns = [None if isinstance(piece, str) else _pattern(piece, type_of) for piece in pieces]
    if patterns.count(_ANY) > 1:
        return "where one text ends and the next begins can't be known"
    for place, pattern in enumerate(patterns[:-1]):
        after = pieces[place + 1]
        if pattern is not None and not isinstance(after, str):
            return "nothing stands between two parts"
        followed = any(later is not None for later in patterns[place + 2 :])
        bounded = pattern not in (None, _ANY) and followed
        if bounded and isinstance(after, str) and after[0] in _LETTERS:
            return f"{after!r} may be a part of the number before it"
        behind = _ANY in patterns[: place + 2]
        later = patterns[place + 2] if place + 2 < len(patterns) else None
        if isinstance(after, str) and behind and later not in (None, _ANY) and after[-1] in _LETTERS:
            return f"{after!r} may be a part of the number behind it"
    found = []
    for place, piece in enumerate(pieces):
        if isinstance(piece, str):
            continue
        whole = "".join(
            _escaped(other)
            if isinstance(other, str)
            else f"({patterns[at]})"
            if at == place
            else patterns[at] or ""
            for at, other in enumerate(pieces)
        )
        part = f"F.regexp_extract({code}, {_raw(f'(?s)^{whole}$')}, 1)"
        kind = type_of(piece)
        found.append((piece, part if kind == "string" else f'{part}.cast("{kind}")'))
    return found


def prefix(one: Expression) -> str:
    """The constant text with which a concatenation begins; empty where it has none."""
    while one.kind in ("ExactCast", "Typed"):
        one = one.children[0]
    if one.kind != "Concat":
        return ""
    pieces = _pieces(one)
    return pieces[0] if not isinstance(pieces, str) and pieces and isinstance(pieces[0], str) else ""


def _pieces(one: Expression) -> list[str | Expression] | str:
    """Constant texts, neighbours in one, and the expressions between them, without their casts to text."""
    children = list(one.children)
    if one.kind == "ConcatWs":
        between, *members = children
        children = [part for member in members for part in (between, member)][1:]
    found: list[str | Expression] = []
    for child in children:
        if child.kind == "Literal":
            if child.value is None or child.type != "string":
                return "a constant in it is no text"
            if child.value and found and isinstance(found[-1], str):
                found[-1] += child.value
            elif child.value:
                found.append(child.value)
        elif literal(child) is not None:
            return "a constant in it is no text"
        else:
            found.append(child.children[0] if child.kind == "Cast" and child.children else child)
    return found


def _pattern(piece: Expression, type_of: Callable[[Expression], str]) -> str:
    kind = type_of(piece)
    return _NUMBER if whole_digits(kind) else _DATE if kind == "date" else _ANY


def _escaped(text: str) -> str:
    return re.sub(r"([\\.\[\]{}()*+?^$|])", r"\\\1", text)


def _raw(pattern: str) -> str:
    return f'r"{pattern}"' if '"' not in pattern and "\n" not in pattern else text_literal(pattern)
