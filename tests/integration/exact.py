"""Arrow columns compared bit by bit."""

from __future__ import annotations

import pyarrow as pa


def exactly(column: pa.ChunkedArray) -> list[object]:
    """Primitive values as raw bytes, so that -0.0 isn't 0.0 and infinities of dates can be compared at all."""
    array = column.combine_chunks()
    if pa.types.is_fixed_size_binary(array.type) or not pa.types.is_primitive(array.type):
        return list(array.to_pylist())
    if pa.types.is_boolean(array.type):
        return list(array.to_pylist())
    width = array.type.bit_width // 8
    data = array.buffers()[1].to_pybytes()
    start = array.offset
    valid = array.is_valid().to_pylist()
    return [data[(start + n) * width : (start + n + 1) * width] if ok else None for n, ok in enumerate(valid)]


def assert_same(one: pa.Table, other: pa.Table, what: str = "") -> None:
    """The same schema and, bit by bit, the same values; the first value that differs is named."""
    assert one.schema == other.schema
    assert one.num_rows == other.num_rows, f"{what}: {one.num_rows} and {other.num_rows} rows"
    for name in one.column_names:
        pairs = zip(exactly(one.column(name)), exactly(other.column(name)), strict=True)
        for row, (value, another) in enumerate(pairs):
            assert value == another, f"{what} {name}, row {row}: {value!r} is not {another!r}"
