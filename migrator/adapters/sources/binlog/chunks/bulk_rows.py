"""Rows of a chunk in bulk: the text protocol's rows straight from received bytes into Arrow arrays.

Row by row only their lengths are looked at. Where each value of a batch of rows lies is then computed by numpy, a
column at a time, and Arrow copies the values out: both let other threads run meanwhile. One buffer takes all
that is received and is used again, so that it stays in the processor's cache.

Format: MySQL client protocol, "Text Resultset Row".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from migrator.adapters.sources.binlog.rows.cells import PAD, Cells, prefixed
from migrator.connections.mysql.packet_buffer import BufferedConnection, PacketBuffer
from migrator.connections.mysql.result_set import (
    LARGEST_PACKET,
    Signature,
    begin,
    check_end,
    heed,
    is_end,
    joined_row,
)

Batch = list[pa.Array]
"""``binary`` arrays of one length, one a column."""

_BATCH_BYTES = 1 << 21
"""Bytes of rows that are cut at once: few enough to stay in the cache, and so many that thousands share a call's
price."""
_START = len(PAD)
_HEAD = struct.Struct("<I")
_NULL = 251
_WIDE = ((252, 2), (253, 3), (254, 8))
"""First bytes of longer values, and how many bytes of length follow them."""


class BulkResult:
    """Columns of one result.

    Attributes:
        batches: its rows in their order, as the server's bytes; none is empty.
        signature: see ``ResultSet``.
    """

    def __init__(self, batches: list[Batch], signature: Signature):
        self.batches = batches
        self.signature = signature

    def __len__(self) -> int:
        return sum(len(batch[0]) for batch in self.batches)

    def last_row(self) -> list[bytes | None]:
        """Values of the last row. Raises ``IndexError`` where there is none."""
        return [column[-1].as_py() for column in self.batches[-1]]


def read_batches(connection: BufferedConnection, sql: str) -> BulkResult:
    """Runs a SELECT and reads its whole result. Raises PyMySQL's errors."""
    signature = begin(connection, sql)
    reception = Reception(connection.buffer)
    batches = list(reception.batches(len(signature)))
    heed(connection, reception.warnings)
    return BulkResult(batches, signature)


class Reception:
    """The bytes that were received of a result and aren't cut yet; the head of the result was read.

    Args:
        source: gives the bytes.
        batch_bytes: how many are cut at once.

    ``warnings``: how many the server gave, once all rows were read.
    """

    def __init__(self, source: PacketBuffer, batch_bytes: int = _BATCH_BYTES):
        self._source = source
        self._least = batch_bytes
        self._data = bytearray()
        self.warnings = 0
        self._hold(source.drain())

    def batches(self, count: int) -> Iterator[Batch]:
        """All rows of ``count`` columns, up to the result's end. Raises PyMySQL's errors, and ``OSError``."""
        rows: list[int] = []  # where complete packets begin
        at = _START
        while True:
            at = _walk(self._data, at, self._stop, rows)
            ended = bool(rows) and is_end(self._data, rows[-1])
            end = rows.pop() if ended else 0
            size = self._size(at)
            if rows and (ended or size == LARGEST_PACKET or at + 4 + size > len(self._data)):
                yield cut(self._data, rows, count)
                rows.clear()
            if ended:
                self.warnings = check_end(self._data, end)
                return
            if size == LARGEST_PACKET:
                yield self._several_packets(at, count)
                at = _START
                continue  # what came with its end may be all there is
            if at + 4 + size > len(self._data):
                self._hold(bytes(memoryview(self._data)[at : self._stop]), 4 + size)
                at = _START
            self._receive()

    def _size(self, at: int) -> int:
        """Returns the payload size of the packet at ``at``, which isn't complete; 0 while even that is unknown."""
        known = self._stop - at >= _HEAD.size
        return _HEAD.unpack_from(self._data, at)[0] & LARGEST_PACKET if known else 0

    def _hold(self, rest: bytes, needed: int = 0) -> None:
        """Goes on with these bytes, in a larger buffer if so many as will be needed don't fit into this one."""
        needed = _START + max(needed, len(rest), self._least)
        if len(self._data) < needed:
            self._data = bytearray(needed)
        self._stop = _START + len(rest)
        self._data[_START : self._stop] = rest

    def _receive(self) -> None:
        with memoryview(self._data) as view, view[self._stop :] as free:
            self._stop += self._source.receive_into(free)

    def _several_packets(self, at: int, count: int) -> Batch:
        """A row of 16 MiB or more, which the server sends in several packets."""
        row, rest = joined_row(self._source, bytes(memoryview(self._data)[at : self._stop]), count)
        self._hold(rest)
        return [pa.array([value], pa.binary()) for value in row]


def _walk(data: bytearray, at: int, stop: int, rows: list[int]) -> int:
    """Notes where complete packets begin, up to the first one that isn't (or is one of several); its place."""
    add, head, last = rows.append, _HEAD.unpack_from, stop - _HEAD.size
    while at <= last:
        size = head(data, at)[0] & LARGEST_PACKET  # above it is the number of the packet
        after = at + 4 + size
        if after > stop or size == LARGEST_PACKET:
            break
        add(at)
        at = after
    return at


def cut(data: bytearray | bytes, rows: Sequence[int], count: int) -> Batch:
    """The values of rows whose packets begin at these places, none in the first eight bytes of ``data``."""
    codes = np.frombuffer(data, np.uint8)
    at = np.array(rows, np.int64) + _HEAD.size
    found = []
    for _ in range(count):
        heads = codes[at]
        at = at + 1
        if int(heads.max()) < _NULL:
            stop = at + heads
            found.append(Cells(data, at, stop, None, len(rows)).binaries())
        else:
            sizes = heads.astype(np.int64)
            for mark, width in _WIDE:
                wide = np.flatnonzero(heads == mark)
                sizes[wide] = prefixed(data, at[wide], width)
                at[wide] += width
            valid = heads != _NULL
            sizes[~valid] = 0
            stop = at + sizes
            found.append(Cells(data, at[valid], stop[valid], valid, len(rows)).binaries())
        at = stop
    return found
