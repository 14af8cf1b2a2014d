"""Ranges and lists of keys: what a chunk holds, said to each server in its own words.

A table is cut at keys of the source. The first range has no lower end and the last no upper one, and each begins
where the one before ends, so that every key that either side could hold is in exactly one of them, wherever
the table is cut and whatever is written meanwhile. Where both sides are cut at the same keys, a key column is
of a kind whose order both servers agree upon, never text; a table that is cut by itself may have any order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from migrator.errors import VerifyError

Key = tuple[str, ...]
"""Canonical texts (``verify.tables.compare.normalise``), in the order of the source's primary key."""

INTEGER, DATE, UUID, BYTES = "integer", "date", "uuid", "bytea"
NUMBER, TIMESTAMP, TIMESTAMPTZ = "numeric", "timestamp", "timestamptz"
TEXT = "text"
"""The kind of a key that a server reads as it prints it, in an order that no other server shares: good for the keys
of one side alone."""
_WRITTEN = {
    INTEGER: re.compile(r"-?\d+|NaN"),
    DATE: re.compile(r"-?\d+"),
    UUID: re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    BYTES: re.compile(r"([0-9a-f]{2})*"),
    NUMBER: re.compile(r"-?\d+(\.\d+)?|NaN|-?Infinity"),
    TIMESTAMP: re.compile(r"-?\d+"),
    TIMESTAMPTZ: re.compile(r"-?\d+"),
    TEXT: re.compile(r"[^\0]*"),
}


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One column of the key: its names on both sides, and the kind of its values."""

    source: str
    target: str
    kind: str


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys in (after, upto]; None is no end at all."""

    after: Key | None = None
    upto: Key | None = None


@dataclass(frozen=True, slots=True)
class KeyList:
    """Single keys; at least one."""

    keys: tuple[Key, ...]


Piece = KeyRange | KeyList


@dataclass(frozen=True, slots=True)
class Dialect:
    """The syntax in which an engine writes keys.

    Attributes:
        quoted: an identifier.
        literal: a canonical text of a kind.
        rows: whether ``(a, b) > (1, 2)`` finds its place in an index.
        nul: whether its text may hold U+0000.
    """

    quoted: Callable[[str], str]
    literal: Callable[[str, str], str]
    rows: bool
    nul: bool = False


def cut(end: Callable[[Key | None], Key | None], within: KeyRange | None = None) -> Iterator[KeyRange]:
    """Ranges, one after the other, that together are all keys, or those of a range.

    Args:
        end: gives the last key of the chunk that begins after a key, None where no full chunk is left.
        within: what is cut.
    """
    whole = within or KeyRange()
    after = whole.after
    while True:
        upto = end(after)
        if upto is None or upto == whole.upto:
            yield KeyRange(after, whole.upto)
            return
        yield KeyRange(after, upto)
        after = upto


def is_written(key: Key, kinds: Sequence[str], dialect: Dialect) -> bool:
    """Returns whether a key can be written in a query: each value as a literal of its kind."""
    return all(_is_written(value, kind, dialect) for value, kind in zip(key, kinds, strict=True))


def _is_written(value: str, kind: str, dialect: Dialect) -> bool:
    return (kind == TEXT and dialect.nul) or _WRITTEN[kind].fullmatch(value) is not None


def lists_of(keys: Sequence[Key], size: int) -> list[KeyList]:
    """All the keys, at most ``size`` in a list."""
    return [KeyList(tuple(keys[n : n + size])) for n in range(0, len(keys), size)]


def condition(piece: Piece, names: Sequence[str], kinds: Sequence[str], dialect: Dialect) -> str:
    """The piece as a condition. Raises ``VerifyError`` for a key that isn't of its kind."""
    columns = [dialect.quoted(name) for name in names]
    if isinstance(piece, KeyList):
        keys = [_literals(key, kinds, dialect) for key in piece.keys]
        if len(columns) == 1:
            return f"{columns[0]} IN ({', '.join(key[0] for key in keys)})"
        same = (" AND ".join(f"{c} = {v}" for c, v in zip(columns, key, strict=True)) for key in keys)
        return "(" + " OR ".join(f"({equality})" for equality in same) + ")"
    parts = []
    if piece.after is not None:
        parts.append(_beyond(columns, _literals(piece.after, kinds, dialect), ">", ">", dialect))
    if piece.upto is not None:
        parts.append(_beyond(columns, _literals(piece.upto, kinds, dialect), "<", "<=", dialect))
    return " AND ".join(parts) or "1 = 1"


def _literals(key: Key, kinds: Sequence[str], dialect: Dialect) -> list[str]:
    for value, kind in zip(key, kinds, strict=True):
        if not _is_written(value, kind, dialect):
            raise VerifyError(
                f"a key isn't what its type says: {value!r} is no {kind}",
                remedy="verify with --whole, and report it",
            )
    return [dialect.literal(kind, value) for value, kind in zip(key, kinds, strict=True)]


def _beyond(columns: Sequence[str], values: Sequence[str], strict: str, last: str, dialect: Dialect) -> str:
    """Beyond a key in the order of all its columns; ``last`` is the comparison of the last one."""
    if len(columns) == 1:
        return f"{columns[0]} {last} {values[0]}"
    if dialect.rows:
        return f"({', '.join(columns)}) {last} ({', '.join(values)})"
    cases = []
    for n, column in enumerate(columns):
        sign = last if n == len(columns) - 1 else strict
        before = [f"{columns[i]} = {values[i]}" for i in range(n)]
        cases.append(" AND ".join([*before, f"{column} {sign} {values[n]}"]))
    return "(" + " OR ".join(f"({case})" for case in cases) + ")"
