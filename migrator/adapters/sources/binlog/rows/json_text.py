"""Binary JSON of MySQL's log as the text that the server prints for it.

Format: MySQL ``sql-common/json_binary.h``. A value is a type byte and its data; objects and arrays hold their
members' types, and offsets counted from their own beginning, or small members themselves; keys stand as printed.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable, Iterator
from functools import lru_cache

from migrator.adapters.sources.binlog.rows import value_text

_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY = 0, 1, 2, 3
_LITERAL, _INT16, _UINT16, _INT32, _UINT32, _INT64, _UINT64, _DOUBLE, _STRING, _OPAQUE = (
    4,
    5,
    6,
    7,
    8,
    9,
    10,
    11,
    12,
    15,
)
_LITERALS = {0: "null", 1: "true", 2: "false"}
_NUMBERS = {_INT16: "<h", _UINT16: "<H", _INT32: "<i", _UINT32: "<I", _INT64: "<q", _UINT64: "<Q"}
_TIMESTAMP, _DATE, _TIME, _DATETIME, _NEWDECIMAL = 7, 10, 11, 12, 246
_FRACTION_BITS = 24
_LINE = 76
"""Characters after which the server breaks a line of base64."""

_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def json_text(raw: bytes) -> str:
    """The text of a document. Raises ``ValueError``, ``LookupError``, ``struct.error`` for a damaged one."""
    return _value(raw[0], raw, 1) if raw else "null"


def _value(kind: int, data: bytes, at: int) -> str:
    if kind in (_SMALL_OBJECT, _LARGE_OBJECT):
        return "{" + ", ".join(_members(data, at, kind == _LARGE_OBJECT)) + "}"
    if kind in (_SMALL_ARRAY, _LARGE_ARRAY):
        return "[" + ", ".join(_elements(data, at, kind == _LARGE_ARRAY)) + "]"
    if kind == _LITERAL:
        return _LITERALS[data[at]]
    if kind in _NUMBERS:
        return str(struct.unpack_from(_NUMBERS[kind], data, at)[0])
    if kind == _DOUBLE:
        return _double(struct.unpack_from("<d", data, at)[0])
    if kind == _STRING:
        size, at = _size(data, at)
        return _quoted(_slice(data, at, size).decode())
    if kind == _OPAQUE:
        size, start = _size(data, at + 1)
        return _opaque(data[at], _slice(data, start, size))
    raise ValueError(f"JSON of type {kind}")


def _members(data: bytes, start: int, large: bool) -> Iterator[str]:
    width = 4 if large else 2
    count = int.from_bytes(data[start : start + width], "little")
    keys = start + 2 * width
    values = keys + count * (width + 2)
    for number in range(count):
        at = keys + number * (width + 2)
        offset = int.from_bytes(data[at : at + width], "little")
        size = int.from_bytes(data[at + width : at + width + 2], "little")
        name = _slice(data, start + offset, size).decode()
        yield f"{_quoted(name)}: {_member(data, start, values + number * (width + 1), large)}"


def _elements(data: bytes, start: int, large: bool) -> Iterator[str]:
    width = 4 if large else 2
    count = int.from_bytes(data[start : start + width], "little")
    entries = start + 2 * width
    for number in range(count):
        yield _member(data, start, entries + number * (width + 1), large)


def _member(data: bytes, start: int, at: int, large: bool) -> str:
    """A member by its entry: a type, then the value itself if it fits, else where it stands."""
    kind = data[at]
    if kind in (_LITERAL, _INT16, _UINT16) or (large and kind in (_INT32, _UINT32)):
        return _value(kind, data, at + 1)
    offset = int.from_bytes(data[at + 1 : at + (5 if large else 3)], "little")
    return _value(kind, data, start + offset)


def _size(data: bytes, at: int) -> tuple[int, int]:
    """A length in groups of seven bits, the lowest first, and the place after it."""
    size = shift = 0
    while True:
        byte = data[at]
        size |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return size, at


def _slice(data: bytes, at: int, size: int) -> bytes:
    piece = data[at : at + size]
    if len(piece) != size:
        raise IndexError("a JSON document ends too early")
    return piece


def _quoted(text: str) -> str:
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def _escape(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04x}"


def _double(value: float) -> str:
    text = value_text.double_text(value)
    if text == "0":
        return "-0.0" if str(value)[0] == "-" else "0.0"
    return text if "." in text or "e" in text else f"{text}.0"


def _opaque(kind: int, data: bytes) -> str:
    """A value that SQL has and JSON lacks: decimals as numbers, times as strings, the rest as base64."""
    if kind == _NEWDECIMAL:
        return _decimal(data[0], data[1])(data[2:])
    if kind in (_DATE, _TIME, _DATETIME, _TIMESTAMP):
        return _quoted(_moment(kind, int.from_bytes(data, "little", signed=True)))
    encoded = base64.b64encode(data).decode()
    lines = "\n".join(encoded[at : at + _LINE] for at in range(0, len(encoded), _LINE))
    return _quoted(f"base64:type{kind}:{lines}")


@lru_cache(maxsize=64)
def _decimal(precision: int, scale: int) -> Callable[[bytes], str]:
    return value_text.decimal_text(precision, scale)


def _moment(kind: int, packed: int) -> str:
    """Fraction in the lower 24 bits, above it the fields as TIME and DATETIME are stored."""
    sign, packed = ("-", -packed) if packed < 0 else ("", packed)
    fraction, fields = packed & (1 << _FRACTION_BITS) - 1, packed >> _FRACTION_BITS
    clock = f"{fields >> 6 & 63:02d}:{fields & 63:02d}.{fraction:06d}"
    if kind == _TIME:
        return f"{sign}{fields >> 12 & 1023:02d}:{clock}"
    year, month = divmod(fields >> 22, 13)
    day = f"{year:04d}-{month:02d}-{fields >> 17 & 31:02d}"
    return day if kind == _DATE else f"{day} {fields >> 12 & 31:02d}:{clock}"
