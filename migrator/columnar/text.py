"""Columns of canonical server text to Arrow values, vectorised, and exact or an error.

The log path and the chunk path both hand over the server's text, so one decoder serves both: a value can't come
out differently on the two paths. The fast casts are Arrow's; what they can't take (``infinity``, BC dates, ``t``
and ``f``) is converted value by value.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from migrator.columnar.types import arrow_schema, arrow_type
from migrator.errors import SourceError
from migrator.model.event import Row, Value
from migrator.model.table import Column, TableSchema

_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
_DATE = re.compile(r"(\d{4,})-(\d\d)-(\d\d)( BC)?")
_MOMENT = re.compile(r"(\d{4,}-\d\d-\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?([+-]00(?::?00)?)?( BC)?")
_DAY_LIMIT, _MICRO_LIMIT = 2**31 - 1, 2**63 - 1


def rows_to_table(schema: TableSchema, rows: Sequence[Row]) -> pa.Table:
    """Rows of text to a table in the schema. Raises ``SourceError`` naming table, column, key and value."""
    columns: Sequence[Sequence[Value]] = list(zip(*rows, strict=True)) if rows else [()] * len(schema.columns)
    return columns_to_table(schema, columns)


def columns_to_table(schema: TableSchema, columns: Sequence[Sequence[Value]]) -> pa.Table:
    """Columns of text (one sequence a column, schema order) to a table. Raises ``SourceError``."""
    arrays = [_column(schema, index, values) for index, values in enumerate(columns)]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(schema))


def _column(schema: TableSchema, index: int, values: Sequence[Value]) -> pa.Array:
    column = schema.columns[index]
    target = arrow_type(column)
    try:
        if column.type == "binary":
            return pa.array(values, pa.binary())
        text = pa.array(values, pa.string())
        return text if column.type == "string" else _cast(column, text, target)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise _unrepresentable(schema, column, values, target, error) from error


def _cast(column: Column, text: pa.Array, target: pa.DataType) -> pa.Array:
    if column.type == "bool":
        return _booleans(text)
    try:
        if column.type in ("timestamp", "timestamptz"):
            return _timestamps(text, target)
        return text.cast(target)
    except pa.ArrowException:
        slow = _SLOW.get(column.type)
        if slow is None:
            raise
        numbers = [None if value is None else slow(value) for value in text.to_pylist()]
        storage = pa.int32() if column.type == "date" else pa.int64()
        return pa.array(numbers, storage).cast(target)


def _booleans(text: pa.Array) -> pa.Array:
    true = pc.is_in(text, pa.array(["t", "true", "1"]))
    known = pc.is_in(text, pa.array(["t", "true", "1", "f", "false", "0"]))
    if not pc.all(pc.or_(known, pc.is_null(text))).as_py() and len(text):
        raise ValueError("not a boolean")
    return pc.if_else(pc.is_null(text), pa.scalar(None, pa.bool_()), true)


def _timestamps(text: pa.Array, target: pa.DataType) -> pa.Array:
    if target.tz is None:
        return text.cast(target)
    # PostgreSQL prints "+00" in a UTC session; Arrow wants a zone with four digits or Z
    return pc.replace_substring_regex(text, r"\+00(:?00)?$", "Z").cast(target)


def _days(text: str) -> int:
    """Days since 1970; PostgreSQL's infinities are its own extreme numbers."""
    if text in ("infinity", "-infinity"):
        return _DAY_LIMIT if text == "infinity" else -_DAY_LIMIT - 1
    found = _DATE.fullmatch(text)
    if found is None:
        raise ValueError(f"not a date: {text!r}")
    year = 1 - int(found[1]) if found[4] else int(found[1])
    return _days_from_civil(year, int(found[2]), int(found[3]))


def _days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970 in the proleptic Gregorian calendar, for years that ``datetime`` can't hold too."""
    cycles = (year - 1) // 400 if not 1 <= year <= 9999 else 0
    shifted = year - cycles * 400
    return datetime.date(shifted, month, day).toordinal() - _EPOCH_DAY + cycles * 146_097


def _micros(text: str) -> int:
    """Microseconds since 1970 in UTC; infinities as the extreme numbers."""
    if text in ("infinity", "-infinity"):
        return _MICRO_LIMIT if text == "infinity" else -_MICRO_LIMIT - 1
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise ValueError(f"not a timestamp in UTC: {text!r}")
    days = _days(found[1] + (found[7] or ""))
    seconds = (days * 24 + int(found[2])) * 3600 + int(found[3]) * 60 + int(found[4])
    return seconds * 1_000_000 + int((found[5] or "").ljust(6, "0"))


_SLOW: dict[str, Callable[[str], int]] = {"date": _days, "timestamp": _micros, "timestamptz": _micros}


def _unrepresentable(
    schema: TableSchema, column: Column, values: Sequence[Value], target: pa.DataType, error: Exception
) -> SourceError:
    culprit = next(
        (value for value in values if value is not None and not _fits(column, value, target)), None
    )
    return SourceError(
        f"a value of {schema.id}.{column.name} can't be represented",
        where=f"column {column.name} ({column.source_type}), value {str(culprit)[:80]!r}",
        cause=str(error).splitlines()[0][:200],
        remedy="correct the value in the source; reading goes on from the same place when started again",
    )


def _fits(column: Column, value: Value, target: pa.DataType) -> bool:
    try:
        if column.type in ("string", "binary"):
            pa.array([value], target)
        else:
            _cast(column, pa.array([value], pa.string()), target)
    except (pa.ArrowException, ValueError, OverflowError):
        return False
    return True
