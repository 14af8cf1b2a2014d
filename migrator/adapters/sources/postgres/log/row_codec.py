"""Row changes as pgoutput's own messages, decoded many at once.

A message is read column by column, all messages in step: each numpy operation finds where the values of one
column of all rows lie, and Arrow gathers and casts them. That costs some tens of nanoseconds a value; a loop
of Python over the values costs ten times as much. Source of the layout: see ``pgoutput``.
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from migrator.adapters.sources.postgres.log.pgoutput import (
    UNCHANGED,
    Delete,
    Insert,
    RawRow,
    RowMessage,
    parse,
)
from migrator.adapters.sources.postgres.whole_images import incomplete_image
from migrator.columnar.text import texts_to_table
from migrator.columnar.types import arrow_schema
from migrator.errors import SourceError
from migrator.model.event import Images, Key, Operation, Row, RowChange, Value
from migrator.model.table import TableSchema

FEW = 24
"""Changes that are read one by one sooner than all in step."""
_STEP_BYTES, _STEP_CHANGES = 64 << 20, 16_384
HEAD_BYTES = 8
"""Message type, relation, tuple type and number of columns."""
_INSERT, _UPDATE, _DELETE = b"IUD"
_TEXT, _NULL, _UNCHANGED = b"tnu"
_NEW = ord("N")
_PADDING = bytes(8)
_HEX = b"\\x"
"""bytea_output is pinned to hex: this, then two digits a byte."""


@dataclass(frozen=True, slots=True)
class RowCodec:
    """A ``ChangeCodec`` whose items are Insert, Update and Delete messages with whole images.

    Args:
        schema: the row schema that the relation of the messages has.
    """

    schema: TableSchema
    _width: int = field(init=False, compare=False, repr=False)
    _key: tuple[int, ...] = field(init=False, compare=False, repr=False)
    _binary: tuple[int, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        columns = self.schema.columns
        object.__setattr__(self, "_width", len(columns))
        object.__setattr__(self, "_key", self.schema.key_indexes())
        places = tuple(place for place, column in enumerate(columns) if column.type == "binary")
        object.__setattr__(self, "_binary", places)

    def heads(self, relation_oid: int) -> tuple[bytes, ...]:
        """The beginnings of messages that the codec reads: what begins otherwise is for somebody else to judge."""
        tail = struct.pack("!H", self._width)
        return tuple(
            struct.pack("!cI", kind, relation_oid) + image + tail
            for kind, image in ((b"I", b"N"), (b"U", b"O"), (b"D", b"O"))
        )

    def changes(self, items: Sequence[bytes]) -> list[RowChange]:
        """See ``ChangeCodec``. Raises ``SourceError`` for what isn't whole."""
        return [self._change(parse(item)) for item in items]  # type: ignore[arg-type]

    def keys(self, items: Sequence[bytes]) -> list[tuple[Key, ...]]:
        """See ``ChangeCodec``. Raises ``SourceError`` for what isn't whole."""
        if len(items) <= FEW:
            found = [(change.before, change.after) for change in self.changes(items)]
            return [tuple(self._key_of(image) for image in images if image is not None) for images in found]
        keys: list[tuple[Key, ...]] = []
        for some in _steps(items):
            walk = self._walk(some)
            columns = [self._texts(walk, place).to_pylist() for place in self._key]
            flat = list(zip(*columns, strict=True))
            ends = np.append(walk.firsts, len(flat)).tolist()
            keys += [tuple(flat[start:end]) for start, end in pairwise(ends)]
        return keys

    def images(self, items: Sequence[bytes]) -> Images:
        """See ``ChangeCodec``. Raises ``SourceError`` for what isn't whole too."""
        places, signs, tables, first = [], [], [], 0
        for some in _steps(items):
            walk = self._walk(some)
            places.append(walk.places + first)
            signs.append(walk.signs)
            texts = [self._texts(walk, place) for place in range(self._width)]
            tables.append(texts_to_table(self.schema, texts))
            first += len(some)
        if not tables:
            nothing = np.zeros(0, dtype=np.int64)
            return Images(nothing, nothing.astype(np.int8), arrow_schema(self.schema).empty_table())
        return Images(np.concatenate(places), np.concatenate(signs), pa.concat_tables(tables))

    def _walk(self, items: Sequence[bytes]) -> _Walk:
        """Raises ``SourceError`` unless every message is whole, to the last byte."""
        try:
            return _walk(items, self._width)
        except _OldIncomplete:
            raise incomplete_image(self.schema.id, "UPDATE", "the log") from None
        except (IndexError, ValueError) as error:
            raise _malformed(str(error)) from error

    def _texts(self, walk: _Walk, place: int) -> pa.Array:
        """One column of all images: text, or the bytes of a binary one."""
        try:
            if place in self._binary:
                return _unhexed(walk.digits(place))
            return walk.values(place).cast(pa.string())
        except (pa.ArrowInvalid, ValueError) as error:  # text that isn't UTF-8, or no digits
            raise _malformed(str(error)) from error

    def _change(self, message: RowMessage) -> RowChange:
        table = self.schema.id
        if isinstance(message, Insert):
            return RowChange(table, Operation.INSERT, None, self._row(message.new))
        if message.old is None or UNCHANGED in message.old:
            raise incomplete_image(table, "UPDATE", "the log")
        before = self._row(message.old)
        if isinstance(message, Delete):
            return RowChange(table, Operation.DELETE, before, None)
        filled = (old if new is UNCHANGED else new for new, old in zip(message.new, message.old, strict=True))
        return RowChange(table, Operation.UPDATE, before, self._row(tuple(filled)))

    def _row(self, raw: RawRow) -> Row:
        if UNCHANGED in raw or len(raw) != self._width:
            raise _malformed("an image that isn't whole")
        values: list[Any] = list(raw)
        for place in self._binary:
            if values[place] is not None:
                values[place] = _of_hex(values[place])
        return tuple(values)

    def _key_of(self, image: Row) -> tuple[Value, ...]:
        return tuple([image[place] for place in self._key])


def _of_hex(text: str) -> bytes:
    """A bytea's value: ``bytea_output`` is pinned to hex."""
    value = bytes.fromhex(text[2:])
    if text[:2] != _HEX.decode() or len(text) != 2 + 2 * len(value):  # fromhex passes over blanks
        raise _malformed("a bytea that isn't written in hex")
    return value


class _OldIncomplete(Exception):
    """An old or inserted row leaves a value out."""


class _Column(NamedTuple):
    """The places of one column's values, and of which kind each is: a numpy array each, one entry an image."""

    starts: Any
    ends: Any
    kinds: Any


class _Walk(NamedTuple):
    """The places of everything in many messages.

    Attributes:
        buffer: the messages.
        firsts: the first image of each message (one entry a message).
        places: which message an image belongs to.
        signs: -1 for an old row, 1 for a new one.
        columns: one a column.
    """

    buffer: bytes
    firsts: Any
    places: Any
    signs: Any
    columns: list[_Column]

    def values(self, place: int) -> pa.Array:
        """The values of a column as they stand there; an unchanged one is that of the row's old image."""
        return self._gathered(self.columns[place])

    def digits(self, place: int) -> pa.Array:
        """The values of a bytea column without the sign before the digits. Raises ``ValueError`` if one lacks
        it."""
        starts, ends, kinds = column = self.columns[place]
        printed = kinds == _TEXT
        first, data = starts[printed], np.frombuffer(self.buffer, dtype=np.uint8)
        signs = data[first], data[first + 1], ends[printed] - first
        if ((signs[0] != _HEX[0]) | (signs[1] != _HEX[1]) | (signs[2] % 2 != 0) | (signs[2] < 2)).any():
            raise ValueError("a bytea that isn't printed in hexadecimal digits")
        return self._gathered(column._replace(starts=starts + 2 * printed))

    def _gathered(self, column: _Column) -> pa.Array:
        starts, ends, kinds = column
        picks, missing = np.arange(len(kinds)), None
        if not (kinds == _TEXT).all():
            picks -= kinds == _UNCHANGED
            missing = kinds[picks] == _NULL
        return gather(self.buffer, starts, ends, picks, missing)


def _walk(items: Sequence[bytes], width: int) -> _Walk:
    """Raises ``ValueError`` or ``IndexError`` unless every message is whole, to the last byte."""
    count = len(items)
    buffer = b"".join((*items, _PADDING))
    data = np.frombuffer(buffer, dtype=np.uint8)
    numbers = np.ndarray((len(buffer) - 3,), dtype=">u4", buffer=buffer, strides=(1,))  # one at every byte
    ends = np.cumsum(np.fromiter(map(len, items), np.int64, count))
    at = np.append(0, ends[:-1])
    types = data[at]
    updates = np.flatnonzero(types == _UPDATE)
    first, at = _columns(data, numbers, at + HEAD_BYTES, width, may_lack=False)
    if len(updates):
        second_at = at[updates]
        if (data[second_at] != _NEW).any() or (numbers[second_at + 1] >> 16 != width).any():
            raise ValueError("an update without its new row")
        second, second_end = _columns(data, numbers, second_at + 3, width, may_lack=True)
        at = at.copy()
        at[updates] = second_end
    if (at != ends).any():
        raise ValueError("a message doesn't end where its contents say")
    images = np.ones(count, dtype=np.int64)
    images[updates] = 2
    firsts = np.cumsum(images) - images
    places = np.repeat(np.arange(count), images)
    signs = np.where(types == _INSERT, 1, -1).astype(np.int8)[places]
    if len(updates):
        seconds = firsts[updates] + 1
        signs[seconds] = 1
        first = [_woven(old, new, firsts, seconds) for old, new in zip(first, second, strict=True)]
    return _Walk(buffer, firsts, places, signs, first)


def _woven(old: _Column, new: _Column, firsts: Any, seconds: Any) -> _Column:
    """The first images' values and the second ones', each at its place."""
    woven = []
    for first, second in zip(old, new, strict=True):
        values = np.empty(len(first) + len(second), dtype=first.dtype)
        values[firsts], values[seconds] = first, second
        woven.append(values)
    return _Column(*woven)


def _columns(data: Any, numbers: Any, at: Any, width: int, *, may_lack: bool) -> tuple[list[_Column], Any]:
    """The columns of the rows that begin ``at``, and where the rows end. Raises ``ValueError``, ``IndexError``."""
    columns = []
    for _ in range(width):
        kinds = data[at]
        is_text = kinds == _TEXT
        starts = at + 1 + 4 * is_text
        if is_text.all():
            at = starts + numbers[at + 1]
        else:
            if not np.isin(kinds, (_TEXT, _NULL, _UNCHANGED)).all():
                raise ValueError("a column of an unknown kind")
            if not may_lack and (kinds == _UNCHANGED).any():
                raise _OldIncomplete
            at = starts + np.where(is_text, numbers[np.minimum(at + 1, len(numbers) - 1)], 0)
        columns.append(_Column(starts, at, kinds))
    return columns, at


def _unhexed(digits: pa.Array) -> pa.Array:
    """Bytes from what bytea's output function prints, two digits a byte. Raises ``ValueError``."""
    valid, ends, content = digits.buffers()
    offsets = np.frombuffer(ends, dtype=np.int32)[: len(digits) + 1]
    whole = binascii.unhexlify(memoryview(content)[: offsets[-1]] if content is not None else b"")
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(digits), [valid, pa.py_buffer(offsets // 2), pa.py_buffer(whole)]
    )


def _steps(items: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Pieces that fit the processor's caches, and Arrow's 32-bit offsets."""
    for first in range(0, len(items), _STEP_CHANGES):
        yield from _light(items[first : first + _STEP_CHANGES])


def _light(items: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    if len(items) == 1 or sum(map(len, items)) <= _STEP_BYTES:
        yield items
    else:
        half = len(items) // 2
        yield from _light(items[:half])
        yield from _light(items[half:])


def _malformed(cause: str) -> SourceError:
    return SourceError(
        "a row change of the source log is malformed",
        cause=cause,
        remedy="reading resumes from the last stored position; report this if it repeats at the same place",
        retryable=True,
    )


def gather(buffer: Any, starts: Any, ends: Any, picks: Any, missing: Any) -> pa.Array:
    """The byte slices of ``buffer`` as a ``binary`` array, copied by Arrow rather than one by one.

    Args:
        buffer: ``bytes``.
        starts, ends: int64 numpy arrays; the slices must not overlap and must come in the order they lie in.
        picks: which slice each value of the result is (int64 numpy array, any order, any number of times).
        missing: where the result is NULL (bool numpy array), or None for nowhere.
    """
    # A binary array whose values are the slices and the gaps between them, in turns: no byte is moved for it.
    count = len(starts)
    offsets = np.empty(2 * count + 1, dtype=np.int64)
    offsets[0:-1:2], offsets[1::2], offsets[-1] = starts, ends, ends[-1] if count else 0
    both = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(buffer)]
    )
    return both.take(pa.array(picks * 2, mask=missing)).cast(pa.binary())
