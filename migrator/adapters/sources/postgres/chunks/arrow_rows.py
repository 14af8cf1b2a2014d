"""Turns what binary COPY brought into the schema's Arrow types; what doesn't fit is repaired exactly or refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from migrator.columnar.text import value_remedy
from migrator.columnar.types import arrow_schema
from migrator.errors import SourceError
from migrator.model.table import Column, TableSchema

_EPOCH_DAYS = 10_957
_EPOCH_MICROS = 946_684_800_000_000
_FIRST_DAY = -2_440_588
"""4714-11-24 BC, PostgreSQL's first date, as days since 1970."""
_FIRST_MICRO = _FIRST_DAY * 86_400_000_000


def to_schema(schema: TableSchema, rows: pa.Table) -> pa.Table:
    """The rows with the schema's Arrow types. Raises SourceError naming column, key and value."""
    wanted = arrow_schema(schema)
    arrays = [
        _convert(schema, column, rows, rows.column(place), wanted.field(place).type)
        for place, column in enumerate(schema.columns)
    ]
    return pa.Table.from_arrays(arrays, schema=wanted)


def _convert(schema: TableSchema, column: Column, rows: pa.Table, values: Any, target: pa.DataType) -> Any:
    if column.type == "date":
        return _unwrapped(schema, column, rows, values, target, pa.int32(), _EPOCH_DAYS, _FIRST_DAY)
    if column.type in ("timestamp", "timestamptz"):
        return _unwrapped(schema, column, rows, values, target, pa.int64(), _EPOCH_MICROS, _FIRST_MICRO)
    if values.type == target:
        return values
    try:
        return values.cast(target)
    except pa.ArrowInvalid as error:
        place = next(n for n, value in enumerate(values) if not _casts(value, target))
        raise _unrepresentable(schema, column, rows, place, str(values[place]), str(error)) from error


def _unwrapped(
    schema: TableSchema,
    column: Column,
    rows: pa.Table,
    values: Any,
    target: pa.DataType,
    storage: pa.DataType,
    epoch: int,
    first: int,
) -> Any:
    """Undoes the driver's silent wrap-around of dates and timestamps.

    The driver adds the distance of the two epochs (1970, 2000) without a check. PostgreSQL's infinities, its
    extreme numbers, come out as exactly two small numbers and get their own back; anything else below
    PostgreSQL's first date was too late for Arrow.
    """
    values = values.cast(target).combine_chunks()
    numbers = values.view(storage)
    lowest = pc.min(numbers).as_py()
    if lowest is None or lowest >= first:
        return values
    limit = (1 << (storage.bit_width - 1)) - 1
    later, earlier = limit + epoch - 2 * (limit + 1), -limit - 1 + epoch
    fixed = pc.if_else(pc.equal(numbers, pa.scalar(later, storage)), pa.scalar(limit, storage), numbers)
    fixed = pc.if_else(pc.equal(numbers, pa.scalar(earlier, storage)), pa.scalar(-limit - 1, storage), fixed)
    wrong = pc.and_(
        pc.less(fixed, pa.scalar(first, storage)), pc.greater(fixed, pa.scalar(-limit - 1, storage))
    )
    place = pc.index(wrong, True).as_py()
    if place >= 0:
        cause = "it is later than Arrow's last microsecond (294247-01-10 04:00:54.775807)"
        raise _unrepresentable(schema, column, rows, place, "", cause)
    return fixed.view(target)


def _casts(value: pa.Scalar, target: pa.DataType) -> bool:
    try:
        value.cast(target)
    except pa.ArrowInvalid:
        return False
    return True


def _unrepresentable(
    schema: TableSchema, column: Column, rows: pa.Table, place: int, value: str, cause: str
) -> SourceError:
    key = ", ".join(f"{name}={rows.column(name)[place]}" for name in schema.key)
    shown = f", value {value[:80]!r}" if value else ""
    return SourceError(
        f"a value of {schema.id}.{column.name} can't be represented",
        where=f"column {column.name} ({column.source_type}), row {key}{shown}",
        cause=cause.splitlines()[0][:200],
        remedy=value_remedy(column),
    )
