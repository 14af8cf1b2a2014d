"""The values of one column in many row images, and the ways in which they become Arrow arrays.

Images of one layout are joined into one buffer; a column's values are then read by one gather of numpy, or
copied by one ``take`` of Arrow, however many rows there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

PAD = bytes(8)
"""Stands in front of the joined images, so that the eight bytes that end with a value can always be read."""
Numbers = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Cells:
    """The values of one column.

    Attributes:
        data: the joined images, ``PAD`` before them.
        at, stop: where in ``data`` each value begins and ends, ascending; rows that have NULL are left out.
        valid: which rows have a value; None when all have.
        rows: how many rows there are.
    """

    data: bytes | bytearray
    at: Numbers
    stop: Numbers
    valid: Numbers | None
    rows: int

    def little(self, offset: int, width: int, signed: bool = False) -> Numbers:
        """The little-endian numbers of ``width`` <= 8 bytes, ``offset`` bytes behind the beginning of each
        value."""
        words: Numbers = _words(self.data, "<i8" if signed else "<u8")[self.at + (offset + width - 8)]
        words >>= words.dtype.type(64 - 8 * width)
        return words

    def big(self, offset: int, width: int) -> Numbers:
        """The same, big-endian and unsigned, as ``int64``; for ``width`` < 8."""
        words: Numbers = _words(self.data, ">u8")[self.at + (offset + width - 8)].astype(np.int64)
        words &= (1 << 8 * width) - 1
        return words

    def floats(self, kind: str) -> Numbers:
        """Numbers of a numpy type, as they stand in the log."""
        found: Numbers = _words(self.data, kind)[self.at]
        return found

    # -- to Arrow

    def fixed(self, numbers: Numbers, target: pa.DataType) -> pa.Array:
        """An array of a type of fixed width, from one number (or one row of them) for each value."""
        if self.valid is not None:
            spread = np.zeros((self.rows, *numbers.shape[1:]), numbers.dtype)
            spread[self.valid] = numbers
            numbers = spread
        return pa.Array.from_buffers(
            target, self.rows, [self._bitmap(), pa.py_buffer(np.ascontiguousarray(numbers))]
        )

    def texts(self, characters: Numbers) -> pa.Array:
        """Texts of one width: a row of ASCII codes for each value."""
        width = characters.shape[1]
        if self.valid is None:
            ends = np.arange(0, (self.rows + 1) * width, width, dtype=np.int32)
        else:
            ends = np.concatenate(([0], np.cumsum(self.valid) * width)).astype(np.int32)
        return pa.Array.from_buffers(
            pa.string(),
            self.rows,
            [self._bitmap(), pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(characters))],
        )

    def taken(self, values: pa.Array, places: Numbers) -> pa.Array:
        """Takes for each value the one of ``values`` at its place. Raises ``IndexError`` for a place beyond them."""
        if self.valid is None:
            return values.take(pa.array(places.astype(np.int64)))
        spread = np.zeros(self.rows, np.int64)
        spread[self.valid] = places
        return values.take(pa.array(spread, mask=~self.valid))

    def binaries(self) -> pa.Array:
        """The bytes themselves.

        Seen as one binary array, the buffer holds values and what stands between them in turn; every second one is
        taken.
        """
        count = len(self.at)
        if not count:
            return pa.nulls(self.rows, pa.binary())
        bounds = np.empty(2 * count, np.int32)
        bounds[0::2], bounds[1::2] = self.at, self.stop
        turns = pa.Array.from_buffers(
            pa.binary(), 2 * count - 1, [None, pa.py_buffer(bounds), pa.py_buffer(self.data)]
        )
        return self.taken(turns, np.arange(0, 2 * count, 2))

    def _bitmap(self) -> pa.Buffer | None:
        return None if self.valid is None else pa.py_buffer(np.packbits(self.valid, bitorder="little"))


def prefixed(data: bytes | bytearray, at: Numbers, width: int) -> Numbers:
    """The little-endian lengths of ``width`` bytes at these places."""
    words: Numbers = _words(data, "<u8")[at + (width - 8)] >> np.uint64(64 - 8 * width)
    return words.astype(np.int64)


def _words(data: bytes | bytearray, kind: str) -> Numbers:
    """A number of a numpy type at every byte of the data."""
    return np.ndarray((len(data) - np.dtype(kind).itemsize + 1,), kind, data, strides=(1,))
