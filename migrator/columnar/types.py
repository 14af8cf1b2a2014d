"""Logical column types as Arrow types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from migrator.model.table import Column, TableSchema

_ARROW: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
}

POSITION, INDEX, SIGN = "__position", "__index", "__sign"
"""Columns in front of the source columns in a table of log images."""

IMAGE_FIELDS = (
    pa.field(POSITION, pa.int64(), nullable=False),
    pa.field(INDEX, pa.int64(), nullable=False),
    pa.field(SIGN, pa.int8(), nullable=False),
)


def arrow_type(column: Column) -> pa.DataType:
    """The Arrow type of a column. Raises ``ValueError`` for a logical type that doesn't exist."""
    decimal = column.decimal()
    if decimal is not None:
        return pa.decimal128(*decimal)
    if column.type not in _ARROW:
        raise ValueError(f"column {column.name}: no logical type {column.type!r}")
    return _ARROW[column.type]


def arrow_schema(schema: TableSchema) -> pa.Schema:
    """The Arrow schema of a table's rows (everything nullable: the source's constraints are the source's
    affair)."""
    return pa.schema([pa.field(column.name, arrow_type(column)) for column in schema.columns])


def image_schema(schema: TableSchema) -> pa.Schema:
    """The Arrow schema of a table of log images: position, index, sign, then the source columns."""
    return pa.schema([*IMAGE_FIELDS, *arrow_schema(schema)])


def image_table(schema: TableSchema, positions: Any, indexes: Any, signs: Any, rows: pa.Table) -> pa.Table:
    """Row images (in ``arrow_schema``) with their version and sign, laid out as ``image_schema``."""
    head = [pa.array(positions, pa.int64()), pa.array(indexes, pa.int64()), pa.array(signs, pa.int8())]
    return pa.Table.from_arrays([*head, *rows.columns], schema=image_schema(schema))
