"""Rows of the text protocol as Arrow arrays: from any slicing, of any size, whatever comes after them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import pyarrow as pa
import pymysql
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.adapters.sources.binlog.chunks.bulk_rows import Reception
from migrator.columnar.text import bytes_to_table, columns_to_table
from migrator.connections.mysql.packet_buffer import PacketBuffer
from migrator.errors import SourceError
from migrator.model.table import Column, TableId, TableSchema

Row = tuple[bytes | None, ...]
_END = b"\xfe\0\0\2\0"
_LARGEST = 0xFFFFFF


class Server:
    """A socket that hands out bytes in pieces of at most the given sizes, then hangs up."""

    def __init__(self, data: bytes, sizes: Sequence[int]):
        self._data = data
        self._sizes = cycle(sizes)

    def recv(self, most: int) -> bytes:
        size = min(most, next(self._sizes))
        piece, self._data = self._data[:size], self._data[size:]
        return piece

    def recv_into(self, view: memoryview) -> int:
        piece = self.recv(len(view))
        view[: len(piece)] = piece
        return len(piece)


def packets(payload: bytes) -> bytes:
    """A payload as the server sends it: 16 MiB and more in several packets, the last of them not full."""
    pieces = [payload[at : at + _LARGEST] for at in range(0, len(payload) + 1, _LARGEST)]
    return b"".join(len(piece).to_bytes(3, "little") + b"\7" + piece for piece in pieces)


def encoded(value: bytes | None) -> bytes:
    if value is None:
        return b"\xfb"
    if len(value) < 251:
        return bytes([len(value)]) + value
    mark, width = next((m, w) for m, w in ((252, 2), (253, 3), (254, 8)) if len(value) < 1 << 8 * w)
    return bytes([mark]) + len(value).to_bytes(width, "little") + value


def sent(rows: Sequence[Row], ending: bytes = _END) -> bytes:
    return b"".join(packets(b"".join(map(encoded, row))) for row in rows) + packets(ending)


def received(data: bytes, count: int, sizes: Sequence[int], batch_bytes: int) -> list[list[pa.Array]]:
    return list(Reception(PacketBuffer(Server(data, sizes)), batch_bytes).batches(count))


def rows_of(batches: list[list[pa.Array]]) -> list[Row]:
    assert all(len(batch[0]) for batch in batches)
    return [row for batch in batches for row in zip(*(column.to_pylist() for column in batch), strict=True)]


def values() -> st.SearchStrategy[bytes | None]:
    long = st.sampled_from([249, 250, 251, 252, 255, 256, 300, 65_535, 65_536]).map(
        lambda size: b"\xfe" * size
    )
    return st.none() | st.binary(max_size=12) | long


@given(st.data(), st.integers(1, 4), st.sampled_from([1, 20, 300, 5_000, 1 << 21]))
def test_rows_survive_any_slicing(data: st.DataObject, count: int, batch_bytes: int) -> None:
    rows = data.draw(st.lists(st.tuples(*[values()] * count), max_size=12))
    sizes = data.draw(st.lists(st.integers(1, 400) | st.just(1 << 20), min_size=1))
    assert rows_of(received(sent(rows), count, sizes, batch_bytes)) == rows


def test_batches_are_bounded_and_keep_what_they_were_given() -> None:
    """The buffer is used again: what was handed out must not change with it."""
    rows: list[Row] = [(b"%d" % number, b"x" * (number % 40)) for number in range(5_000)]
    batches = received(sent(rows), 2, [700], 2_000)
    assert len(batches) > 50
    assert rows_of(batches) == rows


@pytest.mark.each_value
@pytest.mark.parametrize("more", [-7, -6, -5, 0, 70_000])
@pytest.mark.parametrize("size", [1 << 14, 1 << 26], ids=["in pieces", "with all that follows it"])
def test_a_row_of_sixteen_megabytes_among_others(more: int, size: int) -> None:
    rows = [(b"1", b"a"), (b"2", b"y" * (_LARGEST + more)), (b"3", None), (None, b"z" * 300)]
    assert rows_of(received(sent(rows), 2, [size], 1 << 16)) == rows
    assert rows_of(received(sent(rows[:2]), 2, [size], 1 << 16)) == rows[:2]


@pytest.mark.parametrize("size", [1, 100, 1 << 20])
def test_an_error_behind_rows_is_raised_with_its_own_words(size: int) -> None:
    rows: list[Row] = [(b"some value that is longer than the error is", b"1")] * 50
    data = sent(rows, b"\xff\x25\x05#70100gone")
    with pytest.raises(pymysql.err.MySQLError) as raised:
        received(data, 2, [size], 500)
    assert raised.value.args == (1317, "gone")


def test_a_server_that_hangs_up_half_way_is_told() -> None:
    with pytest.raises(ConnectionResetError):
        received(sent([(b"1",), (b"2",)])[:-3], 1, [4], 500)


_SCHEMA = TableSchema(
    TableId("old", "t"),
    (
        Column("id", "int64", False, "bigint"),
        Column("name", "string", True, "varchar(9)"),
        Column("price", "decimal(8,2)", True, "decimal(8,2)"),
        Column("raw", "binary", True, "blob"),
    ),
    ("id",),
)
_ROWS: list[Row] = [
    (b"1", "Zoë".encode(), b"1.50", b"\xff\0"),
    (b"-2", None, None, None),
    (b"3", b"", b"-0.01", b""),
]


def test_bytes_become_what_their_texts_become() -> None:
    table = bytes_to_table(_SCHEMA, received(sent(_ROWS), 4, [100], 20))
    assert table.equals(columns_to_table(_SCHEMA, list(zip(*_ROWS, strict=True))))
    table.validate(full=True)
    assert bytes_to_table(_SCHEMA, []).schema == table.schema


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [(1, b"\xff?", r"'\\xff?'"), (2, b"1.505", "'1.505'"), (2, b"?", "'?'")],
    ids=["no character", "too many digits", "no number"],
)
def test_a_value_that_does_not_fit_is_named(column: int, value: bytes, shown: str) -> None:
    bad = list(_ROWS[1])
    bad[column] = value
    rows = [_ROWS[0], tuple(bad), _ROWS[2]]
    with pytest.raises(SourceError) as raised:
        bytes_to_table(_SCHEMA, received(sent(rows), 4, [100], 1 << 21))
    assert raised.value.where == (
        f"column {_SCHEMA.columns[column].name} ({_SCHEMA.columns[column].source_type}), row id=-2, value {shown}"
    )
