"""Awkward values by type: the ends of ranges, empty texts, days that calendars trip over. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from scenarios.rehearsal.rows import kind_of, largest, longest
from scenarios.rehearsal.tables import Column

_TEXTS = (
    "",
    " ",
    "  two  spaces  ",
    'O\'Brien "q" \\ %s',
    "NULL",
    "0",
    "straße",
    "tab\tline\nend",
    "日本 🙂",
    "é",
)
_FIXED: Mapping[str, tuple[object, ...]] = {
    "float": ("0", "-0.5", "1e-7", "123456789.125"),
    "date": ("1970-01-01", "2000-02-29", "1999-12-31", "9999-12-31", "1582-10-15"),
    "timestamp": ("1970-01-01 00:00:01", "2000-02-29 23:59:59", "2024-03-31 02:30:00", "2037-12-31 23:59:59"),
    "time": ("00:00:00", "23:59:59"),
    "year": ("1901", "2155"),
    "interval": ("0", "-1 day", "1 year 2 months"),
    "json": ("{}", "[]", "null", '{"a": [1, 2.5, null, "é"]}'),
    "uuid": ("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    "inet": ("0.0.0.0", "255.255.255.255"),
}


def awkward(column: Column) -> tuple[object, ...]:
    """Values of the column's type that programs trip over; none for a type that has none here."""
    if column.chosen:
        return ()
    kind = kind_of(column)
    if kind == "text":
        length = longest(column, 255)
        fitting = tuple(one for one in _TEXTS if len(one) <= length)
        return (*fitting, "x" * min(length, 2_000))
    if kind == "number":
        return _numbers(column)
    if kind == "binary":
        return b"", b"\x00", bytes(range(min(longest(column, 256), 256)))
    return _FIXED.get(kind, ())


def _numbers(column: Column) -> tuple[object, ...]:
    unsigned = "unsigned" in column.type
    most = largest(column)
    base = column.type.split("(")[0].split(" ")[0]
    if base in ("bigint", "int8") and not unsigned:
        most = 2**63 - 1
    found = ("0", "1", str(most))
    return found if unsigned else (*found, "-1", str(-most))
