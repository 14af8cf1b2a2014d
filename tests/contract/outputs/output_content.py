"""Events for the tests of outputs, in one comparable form, and rows of every logical type."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from migrator.columnar.types import arrow_schema, arrow_type
from migrator.model.table import Column, TableId, TableSchema
from migrator.ports.eventlog import TableData
from tests.contract.event_log.eventlog_content import images

TYPES = (
    *("bool", "int8", "int16", "int32", "int64", "float32", "float64", "decimal(9,3)", "decimal(38,38)"),
    *("decimal(38,0)", "string", "binary", "date", "timestamp", "timestamptz"),
)
WIDE = TableSchema(
    TableId("public", 'wide "table"/ñ'),
    (Column("k", "int64", False, "bigint"), *(Column(f"c {t}", t, True, t) for t in TYPES)),
    ("k",),
)
Image = dict[str, Any] | None


@dataclass(frozen=True)
class Event:
    """One event as any output gives it back; values as ``plain`` makes them."""

    segment: int
    number: int
    op: str
    table: str
    before: Image
    after: Image
    order: int | None
    index: int | None


def plain(column: Column, value: Any) -> Any:
    """A value so that only equal bits are equal: numbers of days and microseconds, bits of floats, text of
    decimals.

    ``value`` is an Arrow scalar. All NaN are one value: text can't tell them apart, and no database does.
    """
    if not value.is_valid:
        return None
    if column.type in ("date", "timestamp", "timestamptz"):
        return value.cast(pa.int32() if column.type == "date" else pa.int64()).as_py()
    if column.type.startswith("float"):
        return double(value.as_py())
    return str(f"{value.as_py():f}") if column.decimal() else value.as_py()


def double(number: float) -> Any:
    return "NaN" if number != number else struct.pack(">d", number)


def image(schema: TableSchema, row: Any) -> Image:
    """A struct scalar's fields in plain form."""
    if not row.is_valid:
        return None
    return {column.name: plain(column, row[column.name]) for column in schema.columns}


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    largest = 10**precision - 1
    return st.integers(-largest, largest).map(lambda n: Decimal((int(n < 0), _digits(abs(n)), -scale)))


def _digits(number: int) -> tuple[int, ...]:
    return tuple(map(int, str(number)))


def _values(column: Column) -> st.SearchStrategy[Any]:
    found = column.decimal()
    if found is not None:
        return decimals(*found)
    return {
        "bool": st.booleans(),
        "int8": integers(8),
        "int16": integers(16),
        "int32": integers(32),
        "int64": integers(64),
        "float32": st.floats(width=32),
        "float64": st.floats(),
        "string": st.text(st.characters(exclude_categories=["Cs"])),
        "binary": st.binary(),
        "date": integers(32),
        "timestamp": integers(64),
        "timestamptz": integers(64),
    }[column.type]


def wide_rows() -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Rows of ``WIDE`` without the key."""
    return st.lists(st.tuples(*(st.none() | _values(column) for column in WIDE.columns[1:])), max_size=6)


def wide_table(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Rows with keys 0, 1, ... as an Arrow table; dates and moments are given as numbers."""
    arrays = [pa.array(range(len(rows)), pa.int64())]
    for place, column in enumerate(WIDE.columns[1:]):
        values, kind = [row[place] for row in rows], arrow_type(column)
        storage = {"date": pa.int32(), "timestamp": pa.int64(), "timestamptz": pa.int64()}.get(column.type)
        arrays.append(pa.array(values, kind) if storage is None else pa.array(values, storage).cast(kind))
    return pa.Table.from_arrays(arrays, schema=arrow_schema(WIDE))


def changes(order: int, *rows: tuple[int, int, int, str]) -> TableData:
    """Log images of the table ``item``: index, sign, id, name."""
    return images(*((order, *row) for row in rows))


def numbered(found: Sequence[Event]) -> Iterator[tuple[int, int]]:
    return ((event.segment, event.number) for event in found)
