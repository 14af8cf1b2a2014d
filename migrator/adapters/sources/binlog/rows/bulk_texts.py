"""Texts, times and bytes of many row images at once: character for character what ``value_text`` makes of each.

What the server has no text for, such as a year of five digits, is left to the way over single values: it then gets
the text, or the error, that it always had.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from migrator.adapters.sources.binlog.events import table_map as types
from migrator.adapters.sources.binlog.events.table_map import LoggedColumn
from migrator.adapters.sources.binlog.rows import value_text
from migrator.adapters.sources.binlog.rows.bulk_numbers import Convert
from migrator.adapters.sources.binlog.rows.cells import Cells, Numbers
from migrator.adapters.sources.binlog.rows.charsets import BINARY, UNICODE_CODECS, Charsets
from migrator.model.table import Column

_TWO_DIGITS = np.array([f"{number:02d}".encode() for number in range(100)], "S2").view("<u2")
_FOUR_DIGITS = np.array([f"{number:04d}".encode() for number in range(10_000)], "S4").view("<u4")
_ASCII = bytes(range(128)).decode()
_DATETIME_OFFSET = 1 << 39
_BYTES = (types.BIT, types.GEOMETRY, types.VECTOR)


def text_of(logged: LoggedColumn, column: Column, charsets: Charsets) -> Convert | None:
    """Returns the conversion of a column of bytes, text or time in bulk; None when only value by value."""
    kind, digits = logged.type, logged.meta
    if kind == types.YEAR and column.type == "int16":
        return _years()
    if column.type == "binary":
        return _binary(logged, charsets)
    if column.type != "string":
        return None
    if kind in (types.ENUM, types.SET):
        return _labelled(logged, charsets)
    if kind in (types.VARCHAR, types.STRING, types.BLOB):
        return _text(charsets, charsets.name(logged.collation))
    if kind in (types.DATE, types.NEWDATE):
        return _dates
    if kind == types.DATETIME2:
        return lambda cells: _moments(cells, _datetime_fields(cells), 5, digits)
    if kind == types.TIMESTAMP2:
        return lambda cells: _moments(cells, _timestamp_fields(cells, digits), 4, digits)
    return None


def _years() -> Convert:
    years = np.array([int(value_text.year_text(number)) for number in range(256)], np.int16)
    return lambda cells: cells.fixed(years[cells.little(0, 1)], pa.int16())


# -- bytes and characters


def _binary(logged: LoggedColumn, charsets: Charsets) -> Convert | None:
    if logged.type in _BYTES:
        return Cells.binaries
    if logged.type not in (types.VARCHAR, types.STRING, types.BLOB):
        return None
    if charsets.name(logged.collation) != BINARY:
        return None
    if logged.type == types.STRING:  # the log leaves out the zeros at the end
        return lambda cells: cells.binaries() if (cells.stop - cells.at == logged.meta).all() else None
    return Cells.binaries


def _text(charsets: Charsets, charset: str) -> Convert | None:
    if UNICODE_CODECS.get(charset) == "utf-8":
        return _utf8
    table = charsets.tables.get(charset, "")
    if charset == BINARY or table[:128] != _ASCII:
        return None
    widths = np.array([len(character.encode("utf-8", "surrogatepass")) for character in table], np.int64)

    def convert(cells: Cells) -> pa.Array | None:
        raw = cells.binaries()
        if not len(cells.at):
            return raw.cast(pa.string())
        bounds = np.frombuffer(raw.buffers()[1], np.int32)[: len(raw) + 1]
        codes = np.frombuffer(raw.buffers()[2], np.uint8)[: bounds[-1]]
        if not (codes >= 0x80).any():
            return raw.cast(pa.string())
        text, _ = codecs.charmap_decode(codes.tobytes(), "strict", table)
        ends = np.concatenate(([0], np.cumsum(widths[codes])))[bounds]
        return pa.Array.from_buffers(
            pa.string(),
            cells.rows,
            [raw.buffers()[0], pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(text.encode())],
        )

    return convert


def _utf8(cells: Cells) -> pa.Array | None:
    try:
        return cells.binaries().cast(pa.string())
    except pa.ArrowInvalid:
        return None


def _labelled(logged: LoggedColumn, charsets: Charsets) -> Convert:
    charset = charsets.name(logged.collation)
    decode = bytes.decode if charset == BINARY else charsets.decoder(charset)
    labels = tuple(decode(label) for label in logged.labels)
    width = logged.meta
    if logged.type == types.ENUM:
        texts = pa.array(("", *labels), pa.string())
        most = len(texts)

        def enum(cells: Cells) -> pa.Array | None:
            places = cells.little(0, 1 if width == 1 else 2)
            return cells.taken(texts, places) if (places < most).all() else None

        return enum
    text: Callable[[int], str] = value_text.set_text(labels)

    def chosen(cells: Cells) -> pa.Array | None:
        found, places = np.unique(cells.little(0, width), return_inverse=True)
        return cells.taken(pa.array([text(int(bits)) for bits in found], pa.string()), places)

    return chosen


# -- dates and times


def _dates(cells: Cells) -> pa.Array | None:
    bits = cells.little(0, 3, signed=False).astype(np.int64)
    characters = np.empty((len(bits), 10), np.uint8)
    return cells.texts(characters) if _write_day(characters, bits >> 9, bits >> 5 & 15, bits & 31) else None


def _write_day(characters: Numbers, year: Numbers, month: Numbers, day: Numbers) -> bool:
    """``2024-02-29`` into the first ten columns; False if a year has more digits."""
    if (year > 9999).any():
        return False
    characters[:, 0:4] = _FOUR_DIGITS[year].view(np.uint8).reshape(-1, 4)
    characters[:, 4] = characters[:, 7] = ord("-")
    _write_two(characters, 5, month)
    _write_two(characters, 8, day)
    return True


def _write_two(characters: Numbers, place: int, numbers: Numbers) -> None:
    characters[:, place : place + 2] = _TWO_DIGITS[numbers].view(np.uint8).reshape(-1, 2)


Fields = tuple[Numbers, Numbers, Numbers, Numbers]
"""Year, month, day, and hour << 12 | minute << 6 | second."""


def _datetime_fields(cells: Cells) -> Fields:
    bits = cells.big(0, 5) - _DATETIME_OFFSET
    months = bits >> 22
    return months // 13, months % 13, bits >> 17 & 31, bits & 0x1FFFF


def _timestamp_fields(cells: Cells, digits: int) -> Fields:
    """Second 0 without a fraction is the zero date."""
    seconds = cells.big(0, 4)
    days = (seconds // 86_400).astype("M8[D]")
    months = days.astype("M8[M]")
    number = months.astype(np.int64)
    day = (days - months.astype("M8[D]")).astype(np.int64) + 1
    second = seconds % 86_400
    clock = second // 3600 << 12 | second // 60 % 60 << 6 | second % 60
    real = seconds > 0
    if digits:
        real |= cells.big(4, (digits + 1) // 2) > 0
    return (number // 12 + 1970) * real, (number % 12 + 1) * real, day * real, clock


def _moments(cells: Cells, fields: Fields, width: int, digits: int) -> pa.Array | None:
    """``2024-02-29 12:34:56.123456``; the fraction stands ``width`` bytes behind the beginning of the value."""
    year, month, day, clock = fields
    even = (digits + 1) // 2
    characters = np.empty((len(clock), 20 + 2 * even if digits else 19), np.uint8)
    if (year < 0).any() or not _write_day(characters, year, month, day):
        return None
    characters[:, 10] = ord(" ")
    characters[:, 13] = characters[:, 16] = ord(":")
    for place, part in ((11, clock >> 12), (14, clock >> 6 & 63), (17, clock & 63)):
        _write_two(characters, place, part)
    if not digits:
        return cells.texts(characters)
    fraction = cells.big(width, even)
    if (fraction >= 100**even).any():
        return None
    characters[:, 19] = ord(".")
    for place in range(even - 1, -1, -1):
        fraction, pair = np.divmod(fraction, 100)
        _write_two(characters, 20 + 2 * place, pair)
    return cells.texts(characters[:, : 20 + digits])
