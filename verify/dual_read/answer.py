"""A query's answer as typed texts: the same value has the same text whichever driver brought it.

Equivalences, each with its reason: 1, 1.0 and Decimal("1.00") are one number (drivers choose among int, Decimal and
float by declared type); TRUE and 1 are one value (MySQL and MariaDB have no boolean type); a UUID and its text, a
moment without a zone and the same one in UTC, a TIME as ``timedelta`` and as ``time`` are what two drivers make of
one value. Everything else is compared byte by byte.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from migrator.errors import VerifyError
from verify.tables.compare.json_text import canonical_json

_EPOCH = datetime(1970, 1, 1)
_US = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Value:
    """One cell. ``kind`` names the rule (as in ``verify.tables.compare.normalise``), ``text`` is canonical,
    None for NULL."""

    kind: str
    text: str | None


Row = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows in the order in which they came. ``columns`` may be empty where the caller gave no names."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    def unordered(self) -> Answer:
        """The same rows in an order of their own."""
        return Answer(self.columns, tuple(sorted(self.rows, key=row_order)))


def row_order(row: Row) -> list[tuple[bool, str, str]]:
    """A total order of rows, without meaning."""
    return [(value.text is not None, value.text or "", value.kind) for value in row]


def answer_of(result: Any) -> Answer:
    """Turns what a callable returned into an answer: rows of mappings or sequences, one mapping, or one value.

    Raises ``VerifyError`` for a value that has no canonical text.
    """
    if isinstance(result, Answer):
        return result
    if isinstance(result, Mapping):
        rows: list[Any] = [result]
    elif isinstance(result, Sequence) and not isinstance(result, str | bytes | bytearray):
        rows = list(result)
    else:
        rows = [(result,)]
    columns: tuple[str, ...] = ()
    if rows and isinstance(rows[0], Mapping):
        columns = tuple(str(name) for name in rows[0])
    return Answer(columns, tuple(tuple(map(value_of, _cells(row, columns))) for row in rows))


def _cells(row: Any, columns: tuple[str, ...]) -> Sequence[Any]:
    if isinstance(row, Mapping):
        named = {str(name): value for name, value in row.items()}
        return [named[name] for name in columns] if set(named) == set(columns) else list(named.values())
    if isinstance(row, Sequence) and not isinstance(row, str | bytes | bytearray):
        return row
    return (row,)


def value_of(value: Any) -> Value:
    """One driver value. Raises ``VerifyError`` for a type that has no rule."""
    if value is None:
        return Value("null", None)
    for types, rule in _RULES:
        if isinstance(value, types):
            kind, text = rule(value)
            return Value(kind, text)
    raise VerifyError(
        f"a value of type {type(value).__name__} can't be compared",
        where="the answer of a query",
        remedy="return rows of plain values: numbers, texts, bytes, dates and times, UUIDs, JSON documents",
    )


def number_text(value: Decimal) -> str:
    """All digits, no exponent, no zeros after the last significant one, no -0."""
    if not value.is_finite():
        return str(value)
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _float(value: float) -> tuple[str, str]:
    return "float8", repr(value + 0.0) if value == value else "NaN"


def _moment(value: datetime) -> tuple[str, str]:
    if value.tzinfo is not None:
        return "timestamptz", str((value.astimezone(UTC).replace(tzinfo=None) - _EPOCH) // _US)
    return "timestamp", str((value - _EPOCH) // _US)


def _time(value: time) -> tuple[str, str]:
    of_day = timedelta(
        hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond
    )
    return "time", str((of_day - (value.utcoffset() or timedelta())) // _US)


def _json(value: Any) -> tuple[str, str]:
    document = json.dumps(value, default=lambda leaf: value_of(leaf).text, allow_nan=False)
    return "json", canonical_json(document) or ""


# In this order: bool is an int, datetime is a date.
_RULES: tuple[tuple[type | tuple[type, ...], Callable[[Any], tuple[str, str]]], ...] = (
    (bool, lambda value: ("numeric", str(int(value)))),
    (int, lambda value: ("numeric", str(value))),
    (float, _float),
    (Decimal, lambda value: ("numeric", number_text(value))),
    (str, lambda value: ("text", value)),
    ((bytes, bytearray, memoryview), lambda value: ("bytea", bytes(value).hex())),
    (datetime, _moment),
    (date, lambda value: ("date", str(value.toordinal() - _EPOCH.toordinal()))),
    (time, _time),
    (timedelta, lambda value: ("time", str(value // _US))),
    (uuid.UUID, lambda value: ("uuid", str(value))),
    ((dict, list, tuple), _json),
)
