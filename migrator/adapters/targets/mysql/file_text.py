"""Columns of text as the lines of LOAD DATA, or as the parameters of INSERT."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

TEXT = pa.large_string()
_SLICE_BYTES = 8 << 20
_MOST_PARAMETERS = 20_000
_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\0", "\\0"))
_HEX = np.array([f"{byte:02x}".encode() for byte in range(256)], dtype="S2")


def lines(rows: pa.Table) -> Iterator[memoryview]:
    """Fields divided by tabs, lines by newlines, the escape a backslash, NULL as backslash N."""
    size = max(1, rows.num_rows * _SLICE_BYTES // max(1, rows.nbytes))
    for first in range(0, rows.num_rows, size):
        part = rows.slice(first, size).combine_chunks()
        fields = [_escaped(column) for column in part.columns]
        tab, nothing, newline = (pa.scalar(text, TEXT) for text in ("\t", "", "\n"))
        joined = pc.binary_join_element_wise(*fields, tab)
        ended = pc.binary_join_element_wise(joined, nothing, newline)
        for chunk in ended.chunks:
            if len(chunk):
                yield _content(chunk)[0]


def insert_parts(rows: pa.Table, most_bytes: int) -> Iterator[list[str | None]]:
    """The rows' values one after the other, row by row, in parts that fit into one statement."""
    width = rows.num_columns
    average = max(1, rows.nbytes // max(1, rows.num_rows))
    size = max(1, min(_MOST_PARAMETERS // width, most_bytes // (2 * average)))
    for first in range(0, rows.num_rows, size):
        columns = [column.to_pylist() for column in rows.slice(first, size).columns]
        values = [value for row in zip(*columns, strict=True) for value in row]
        if len(values) > width and sum(len(value.encode()) for value in values if value) > most_bytes:
            yield from _rowwise(values, width)
        else:
            yield values


def hexadecimal(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Bytes as lower-case hexadecimal digits, NULLs kept."""
    return pa.chunked_array([_hex(chunk) for chunk in values.cast(pa.large_binary()).chunks], TEXT)


def _rowwise(values: list[str | None], width: int) -> Iterator[list[str | None]]:
    for first in range(0, len(values), width):
        yield values[first : first + width]


def _escaped(column: pa.ChunkedArray) -> pa.ChunkedArray:
    for character, written in _ESCAPES:
        column = pc.replace_substring(column, character, written)
    return pc.fill_null(column, "\\N")


def _content(texts: pa.Array) -> tuple[memoryview, np.ndarray]:
    """The bytes of all values of a 64-bit text or binary array, one after the other, and where each begins."""
    _, places, data = texts.buffers()
    offsets = np.frombuffer(places, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    content = memoryview(data) if data is not None else memoryview(b"")
    return content[int(offsets[0]) : int(offsets[-1])], offsets - offsets[0]


def _hex(values: pa.Array) -> pa.Array:
    if not len(values):
        return pa.array([], TEXT)
    content, offsets = _content(values)
    digits = _HEX[np.frombuffer(content, np.uint8)].tobytes()
    places = pa.py_buffer((offsets * 2).astype(np.int64).tobytes())
    whole = pa.Array.from_buffers(TEXT, len(values), [None, places, pa.py_buffer(digits)])
    return whole if not values.null_count else pc.if_else(pc.is_valid(values), whole, pa.scalar(None, TEXT))
