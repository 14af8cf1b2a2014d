"""Columns of canonical server text to Arrow values, vectorised, and exact or an error.

The log path and the chunk path both hand over the server's text, so one decoder serves both: a value can't come
out differently on the two paths. The fast casts are Arrow's; what they can't take (``infinity``, BC dates, ``t``
and ``f``) is converted value by value.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from migrator.columnar.types import arrow_schema, arrow_type
from migrator.errors import SourceError
from migrator.model.event import Row, Value
from migrator.model.table import Column, TableSchema

_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
_DATE = re.compile(r"(\d{4,})-(\d\d)-(\d\d)( BC)?")
_MOMENT = re.compile(r"(\d{4,}-\d\d-\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?([+-]00(?::?00)?)?( BC)?")
_MISFITS = (pa.ArrowException, ValueError, OverflowError)
_DAY_LIMIT, _MICRO_LIMIT = 2**31 - 1, 2**63 - 1


def rows_to_table(schema: TableSchema, rows: Sequence[Row]) -> pa.Table:
    """Rows of text to a table in the schema. Raises ``SourceError`` naming table, column, key and value."""
    columns: Sequence[Sequence[Value]] = list(zip(*rows, strict=True)) if rows else [()] * len(schema.columns)
    return columns_to_table(schema, columns)


def columns_to_table(schema: TableSchema, columns: Sequence[Sequence[Value]]) -> pa.Table:
    """Columns of text (one sequence a column, schema order) to a table. Raises ``SourceError``."""
    return texts_to_table(
        schema, [_converted(schema, columns, place, _text) for place in range(len(columns))]
    )


def texts_to_table(schema: TableSchema, texts: Sequence[pa.Array]) -> pa.Table:
    """Arrays of text (``binary`` for binary columns), schema order, to a table. Raises ``SourceError``."""
    arrays = [_converted(schema, texts, place, _cast) for place in range(len(texts))]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(schema))


def bytes_to_table(schema: TableSchema, batches: Sequence[Sequence[pa.Array]]) -> pa.Table:
    """The same of the texts' bytes: batches of ``binary`` arrays, not looked at yet. Raises ``SourceError``."""
    target = arrow_schema(schema)
    tables = [
        pa.Table.from_arrays(
            [_converted(schema, batch, place, _checked) for place in range(len(batch))], schema=target
        )
        for batch in batches
    ]
    return pa.concat_tables(tables) if tables else target.empty_table()


def _converted(
    schema: TableSchema, columns: Sequence[Any], place: int, convert: Callable[[Column, Any], pa.Array]
) -> pa.Array:
    column, values = schema.columns[place], columns[place]
    try:
        return convert(column, values)
    except _MISFITS as error:
        row = next(
            (row for row in range(len(values)) if not _fits(column, values[row : row + 1], convert)), 0
        )
        key = ", ".join(
            f"{schema.columns[at].name}={_shown(columns[at][row])}" for at in schema.key_indexes()
        )
        raise SourceError(
            f"a value of {schema.id}.{column.name} can't be represented",
            where=f"column {column.name} ({column.source_type}), row {key}, value {_shown(values[row])!r}",
            cause=str(error).splitlines()[0][:200],
            remedy=value_remedy(column),
        ) from error


def value_remedy(column: Column) -> str:
    """Returns the remedy for a value that the column's logical type can't hold."""
    remedy = "correct the value in the source; reading goes on from the same place when started again"
    if column.decimal() is None and column.type not in ("timestamp", "timestamptz"):
        return remedy
    return (
        f"{remedy}. Or name the column in source.text_columns, and start the migration anew"
        " (docs/how-to/start-anew.md)"
    )


def _fits(column: Column, values: Any, convert: Callable[[Column, Any], pa.Array]) -> bool:
    try:
        convert(column, values)
    except _MISFITS:
        return False
    return True


def _shown(value: Any) -> str:
    known = value.as_py() if isinstance(value, pa.Scalar) else value
    return (known.decode("utf-8", "backslashreplace") if isinstance(known, bytes) else str(known))[:80]


def _text(column: Column, values: Sequence[Value]) -> pa.Array:
    return pa.array(values, pa.binary() if column.type == "binary" else pa.string())


def _checked(column: Column, raw: pa.Array) -> pa.Array:
    return raw if column.type == "binary" else _cast(column, raw.cast(pa.string()))


def _cast(column: Column, text: pa.Array) -> pa.Array:
    if column.type in ("binary", "string"):
        return text
    target = arrow_type(column)
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
    if pc.all(pc.ends_with(text, "+00")).as_py():
        return pc.utf8_slice_codeunits(text, 0, -3).cast(pa.timestamp("us")).view(target)
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
