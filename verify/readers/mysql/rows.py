"""Rows of a SELECT on MySQL or MariaDB: from the text protocol's bytes into Arrow columns, batch by batch.

PyMySQL makes an object of every row and of every value, which costs more than all the rest of a read. So once
it has read a result's head, its connection's bytes are taken as they come: a packet a row, and in it each
value behind its length. Where the first value of each row begins is walked row by row; the rest is arithmetic
on whole columns, and Arrow gathers their bytes.

Format: MySQL client protocol, "Text Resultset Row".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pymysql
from numpy.typing import NDArray
from pymysql.constants import CR

from verify.readers.mysql.warnings import heed

_BATCH_ROWS = 65_536
_BATCH_BYTES = 8 << 20
_BUFFER_BYTES = 1 << 20
"""More than PyMySQL's connection keeps in its buffer."""
_LARGEST = 0xFFFFFF
"""Bytes of a packet at most: a row that has more goes on in the next one."""
_NULL, _TWO, _THREE, _EIGHT = 0xFB, 0xFC, 0xFD, 0xFE
"""First byte of a value: NULL, or how many bytes its length has. Smaller ones are the length itself."""
_END, _ERROR = 0xFE, 0xFF
"""First byte of a packet that is no row."""
_END_SIZE = 8
"""Bytes of the last packet at most; a row that begins with the same byte has more."""
_LENGTHS = ((_TWO, 2), (_THREE, 3), (_EIGHT, 8))

Numbers = NDArray[np.int64]


def row_batches(session: Any, query: str) -> Iterator[list[pa.Array]]:
    """The rows in batches bounded by count and by bytes: one binary array a column, of the server's own bytes.

    To be read to its end: a session whose rows are left unread is closed. Raises PyMySQL's errors, and
    ``VerifyError`` at the end where the server warns of a value.
    """
    session.query(query, unbuffered=True)
    result, session._result = session._result, None
    # PyMySQL would read the rest itself before the next statement.
    result.unbuffered_active, result.connection = False, None
    packets = _Packets(session)
    try:
        yield from packets.batches(result.field_count)
    finally:
        if not packets.ended:
            session._force_close()
    heed(session, packets.warnings)


class _Packets:
    """Packets of a result, after its head. What has come and isn't used yet is ``_data[_at:_filled]``."""

    def __init__(self, session: Any):
        self._file, self._sequence = session._rfile, session._next_seq_id
        self._data = bytearray(_BATCH_BYTES)
        self._at = self._filled = 0
        self._drained = False
        self.ended = False
        self.warnings = 0

    def batches(self, columns: int) -> Iterator[list[pa.Array]]:
        """See ``row_batches``."""
        while not self.ended:
            self._room(0)
            rows = self._gathered()
            if rows:
                yield _columns(self._data, rows, self._after(rows[-1]), columns)
            if not self.ended and self._size(self._at) == _LARGEST:
                row = self._joined()
                yield _columns(row, [0], len(row), columns)

    def _gathered(self) -> list[int]:
        """Returns where rows begin, for many rows at once; afterwards ``_at`` is behind them."""
        starts: list[int] = []
        at = self._at
        while True:
            at = self._walk(at, starts)
            if starts and self._is_last(starts[-1]):
                end = starts.pop()
                if starts:  # they come first, however much came at once: an error may end them
                    at = end
                else:
                    self._finish(end)
                break
            size, full = self._size(at), self._filled == len(self._data)
            if size == _LARGEST or len(starts) >= _BATCH_ROWS or (full and starts):
                break
            if full and size is not None:  # with one row, and not all of it
                self._room(4 + size)
                at = self._at
            self._receive()
        self._check_sequence(starts)
        self._at = at
        return starts

    def _walk(self, at: int, starts: list[int]) -> int:
        """Notes where the packets begin that are here in full; gives where the next one does."""
        header, data, note = struct.Struct("<I").unpack_from, self._data, starts.append
        last = self._filled - 4
        while at <= last:
            size = header(data, at)[0] & _LARGEST
            after = at + 4 + size
            if after > last + 4 or size == _LARGEST:
                break
            note(at)
            at = after
        return at

    def _size(self, at: int) -> int | None:
        """Returns the size of the packet that begins at ``at``; None if its header isn't here yet."""
        return int.from_bytes(self._data[at : at + 3], "little") if at + 4 <= self._filled else None

    def _after(self, start: int) -> int:
        return start + 4 + int.from_bytes(self._data[start : start + 3], "little")

    def _is_last(self, start: int) -> bool:
        first, size = self._data[start + 4], self._after(start) - start - 4
        return first == _ERROR or (first == _END and size <= _END_SIZE)

    def _finish(self, start: int) -> None:
        self.ended = True
        if self._data[start + 4] == _ERROR:
            pymysql.err.raise_mysql_exception(bytes(self._data[start + 4 : self._after(start)]))
        self.warnings = int.from_bytes(self._data[start + 5 : start + 7], "little")

    def _check_sequence(self, rows: Sequence[int]) -> None:
        """Packets are numbered, so that none can be missing."""
        found = np.frombuffer(self._data, np.uint8)[np.array(rows, np.int64) + 3]
        expected = np.arange(self._sequence, self._sequence + len(rows)).astype(np.uint8)
        if not np.array_equal(found, expected):
            raise pymysql.err.InternalError("packets of a result are out of sequence")
        self._sequence += len(rows)

    def _joined(self) -> bytearray:
        """The row that begins here in a packet of the largest size, as if it were in one packet."""
        row, size = bytearray(4), _LARGEST
        while size == _LARGEST:
            self._have(4)
            size = self._after(self._at) - self._at - 4
            self._have(4 + size)
            self._check_sequence([self._at])
            row += memoryview(self._data)[self._at + 4 : self._at + 4 + size]
            self._at += 4 + size
        return row

    def _have(self, size: int) -> None:
        """Receives until so many bytes are here."""
        if self._filled - self._at < size:
            self._room(size)
        while self._filled - self._at < size:
            self._receive()

    def _room(self, size: int) -> None:
        """Moves what is here to the front, and makes room for so many bytes."""
        left = self._data[self._at : self._filled]
        size = max(size, len(left), _BATCH_BYTES)
        if size != len(self._data):
            self._data = bytearray(size)
        self._data[: len(left)] = left
        self._at, self._filled = 0, len(left)

    def _receive(self) -> None:
        """Receives the bytes that have come, at least one, into the room that is left."""
        room = memoryview(self._data)[self._filled :]
        try:
            if self._drained:
                count = self._file.raw.readinto(room)
            else:  # what has come with the result's head
                first = self._file.read1(min(len(room), _BUFFER_BYTES))
                count = len(first)
                room[:count] = first
                self._drained = True
        except OSError as error:
            raise _lost(str(error)) from error
        if not count:
            raise _lost("the server has closed the connection")
        self._filled += count


def _columns(data: bytearray, rows: Sequence[int], end: int, columns: int) -> list[pa.Array]:
    """Values of the rows that begin there, the last one ending at ``end``."""
    try:
        found, after = _values(data, np.array(rows, np.int64), columns)
    except IndexError:
        found, after = [], np.empty(0, np.int64)
    if not np.array_equal(after, np.array([*rows[1:], end])):
        raise pymysql.err.InternalError("values of a result's row don't fill their packet")
    return found


def _values(data: bytearray, rows: Numbers, columns: int) -> tuple[list[pa.Array], Numbers]:
    """Values by column, and where the rows end."""
    found, count = [], len(rows)
    octets, buffer = np.frombuffer(data, np.uint8), pa.py_buffer(data)
    at = rows + 4
    picked = np.arange(0, 2 * count, 2)
    bounds = np.empty(2 * count, np.int32)
    for _ in range(columns):
        starts, ends, null = _bounds(octets, at)
        # To Arrow all bytes from the first value on are values of one array: cells and what lies between them.
        bounds[0::2], bounds[1::2] = starts, ends
        array = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(bounds), buffer])
        found.append(array.take(pa.array(picked, mask=null)))
        at = ends
    return found, at


def _bounds(octets: NDArray[np.uint8], at: Numbers) -> tuple[Numbers, Numbers, NDArray[np.bool_] | None]:
    """Returns where the values begin and end that have their length at ``at``, and which are NULL."""
    first = octets[at]
    starts = at + 1
    if first.max() < _NULL:
        return starts, starts + first, None
    lengths = first.astype(np.int64)
    null = first == _NULL
    lengths[null] = 0
    for code, size in _LENGTHS:
        some = np.flatnonzero(first == code)
        lengths[some] = sum(octets[at[some] + 1 + i].astype(np.int64) << 8 * i for i in range(size))
        starts[some] += size
    return starts, starts + lengths, null


def _lost(cause: str) -> pymysql.err.OperationalError:
    return pymysql.err.OperationalError(CR.CR_SERVER_LOST, f"lost the connection during a query ({cause})")
