"""Values of source tables as the mirror holds them in MySQL and MariaDB: exactly, and compared as the mapping does.

Text is held as its UTF-8 bytes: no collation, no padding, every character. Dates are days and timestamps
microseconds since 1970 (infinities too); floats are held by their bits, as these servers know neither NaN nor
infinity.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from migrator.adapters.targets.mysql.file_text import TEXT, hexadecimal
from migrator.columnar.types import arrow_type
from migrator.connections.mysql.result_set import Columns
from migrator.model.table import Column, TableSchema

_TYPES = {
    "bool": "TINYINT", "int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT",
    "float32": "INT", "float64": "BIGINT", "date": "INT", "timestamp": "BIGINT", "timestamptz": "BIGINT",
}  # fmt: skip
_HELD = {
    "bool": pa.int8(), "float32": pa.int32(), "float64": pa.int64(), "date": pa.int32(), "timestamp": pa.int64(),
    "timestamptz": pa.int64(),
}  # fmt: skip
BYTES = "LONGBLOB"
_MOST_SCALE = 30
"""MySQL's; decimals with more digits behind the point are held as whole numbers."""


def sql_type(column: Column) -> str:
    """The type in which a mirrored column is held."""
    decimal = column.decimal()
    if decimal is not None:
        return f"DECIMAL({decimal[0]},{decimal[1] if decimal[1] <= _MOST_SCALE else 0})"
    return BYTES if column.type in ("string", "binary") else _TYPES[column.type]


def column_of(schema: TableSchema, name: str) -> Column:
    """The column of that name."""
    return next(column for column in schema.columns if column.name == name)


def texts(
    rows: pa.Table, schema: TableSchema, names: Sequence[str]
) -> tuple[list[pa.ChunkedArray], list[str]]:
    """Source rows as text to be loaded, and the SQL that makes the held value of it; a column they lack is NULL."""
    found, loads = [], []
    for name in names:
        column = column_of(schema, name)
        if name not in rows.column_names:
            found.append(pa.chunked_array([pa.nulls(rows.num_rows, TEXT)]))
            loads.append("{0}")
            continue
        values = rows[name].cast(arrow_type(column))
        if column.type == "binary":
            found.append(hexadecimal(values))
            loads.append("UNHEX({0})")
            continue
        found.append(_number(column, values).cast(TEXT))
        loads.append("{0}")
    return found, loads


def restored(columns: Columns, schema: TableSchema, names: Sequence[str]) -> pa.Table:
    """Mirrored rows as the server gives them (columns ``names``, by place) as source rows."""
    found = [
        _restored(column_of(schema, name), pa.array(values, pa.binary()))
        for name, values in zip(names, columns, strict=True)
    ]
    return pa.table(found, names=list(names))


def _number(column: Column, values: pa.ChunkedArray) -> pa.ChunkedArray:
    decimal = column.decimal()
    if decimal is not None and decimal[1] > _MOST_SCALE:
        return _scaled(values, decimal[0], 0)
    if column.type in ("float32", "float64"):
        return pa.chunked_array([_bits(chunk) for chunk in values.chunks], _HELD[column.type])
    return values.cast(_HELD[column.type]) if column.type in _HELD else values


def _restored(column: Column, values: pa.Array) -> pa.Array:
    if column.type == "binary":
        return values
    texts, decimal = values.cast(pa.string()), column.decimal()
    if column.type == "string":
        return texts
    if decimal is not None and decimal[1] > _MOST_SCALE:
        return _scaled(pa.chunked_array([texts.cast(pa.decimal128(decimal[0], 0))]), *decimal)
    if column.type in ("float32", "float64"):
        bits = texts.cast(_HELD[column.type])
        whole = bits.fill_null(0).to_numpy().view(f"f{bits.type.bit_width // 8}")
        return pa.array(whole, arrow_type(column), mask=bits.is_null().to_numpy(zero_copy_only=False))
    return texts.cast(_HELD.get(column.type, arrow_type(column))).cast(arrow_type(column))


def _bits(values: pa.Array) -> pa.Array:
    """Floats as the integers that have their bits; one NaN for all."""
    whole = np.array(values.fill_null(0.0).to_numpy(zero_copy_only=False))
    whole[np.isnan(whole)] = np.nan
    return pa.array(whole.view(f"i{whole.itemsize}"), mask=pc.is_null(values).to_numpy(zero_copy_only=False))


def _scaled(values: pa.ChunkedArray, precision: int, scale: int) -> pa.ChunkedArray:
    """Decimals of the same digits with the point elsewhere."""
    kind = pa.decimal128(precision, scale)
    chunks = [
        pa.Array.from_buffers(kind, len(one), one.buffers(), offset=one.offset) for one in values.chunks
    ]
    return pa.chunked_array(chunks, kind)
