"""Values as only MariaDB logs them: uuid and inet types, compressed columns, times in the format before MySQL 5.6.

The log names few of these types: a uuid looks like BINARY(16), and an old DATETIME(3) like one without a fraction.
So the decoder goes by the type that the catalog declares.

Formats: MariaDB ``sql_type_uuid.h``, ``sql_type_inet.cc``, ``field_comp.cc``, ``compat56.cc`` and ``field.cc``
(``Field_timestamp_hires``, ``Field_datetime_hires``, ``Field_time_hires``).
"""

from __future__ import annotations

import ipaddress
import zlib
from collections.abc import Callable
from itertools import groupby

from migrator.adapters.sources.binlog.rows import value_text

_ZLIB = 8
_TIME_LIMIT_S = 838 * 3600 + 59 * 60 + 60
"""Seconds: the old TIME with a fraction is stored relative to this, so that it sorts as bytes."""
_OLD_DATETIME_BYTES = (8, 6, 6, 7, 7, 7, 8)
_OLD_TIME_BYTES = (3, 4, 4, 5, 5, 5, 6)


def uuid_text(raw: bytes) -> str:
    """UUID: in the log its bytes stand as in the text (in the table they may not), without zeros at the end."""
    digits = raw.ljust(16, b"\0").hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def inet4_text(raw: bytes) -> str:
    """INET4, without zeros at the end."""
    return ".".join(map(str, raw.ljust(4, b"\0")))


def inet6_text(raw: bytes) -> str:
    """INET6, without zeros at the end: the first longest run of zero words is left out, even one word.

    The last two words are printed as an IPv4 address behind six zero words, or five and ffff.
    """
    address = raw.ljust(16, b"\0")
    words = [int.from_bytes(address[at : at + 2], "big") for at in range(0, 16, 2)]
    gap, length = _longest_gap(words)
    if gap == 0 and (length == 6 or (length == 5 and words[5] == 0xFFFF)):
        return f"::{'' if length == 6 else 'ffff:'}{ipaddress.IPv4Address(address[12:])}"
    printed = [f"{word:x}" for word in words]
    if not length:
        return ":".join(printed)
    return f"{':'.join(printed[:gap])}::{':'.join(printed[gap + length :])}"


def _longest_gap(words: list[int]) -> tuple[int, int]:
    """Place and length of the first longest run of zeros; length 0 when there is none."""
    best, at = (0, 0), 0
    for zero, run in groupby(word == 0 for word in words):
        length = len(list(run))
        if zero and length > best[1]:
            best = at, length
        at += length
    return best


def uncompressed(raw: bytes) -> bytes:
    """A value of a COMPRESSED column: nothing, or a byte that says how it is stored, and the stored bytes.

    Raises ``ValueError`` for another method than zlib, and for damaged bytes.
    """
    if not raw:
        return raw
    method, width = raw[0] >> 4, raw[0] & 7
    if method == 0:
        return raw[1:]
    if method != _ZLIB:
        raise ValueError(f"column compression method {method} is not known")
    size = int.from_bytes(raw[1 : 1 + width], "big")
    stream = zlib.decompressobj(-zlib.MAX_WBITS if raw[0] & 8 else zlib.MAX_WBITS)
    try:
        value = stream.decompress(raw[1 + width :], size + 1)
    except zlib.error as error:
        raise ValueError(f"a compressed value is damaged: {error}") from error
    if len(value) != size or not stream.eof:
        raise ValueError(f"a compressed value has {len(value)} bytes instead of {size}")
    return value


Fixed = tuple[int, Callable[[bytes], str]]
"""Bytes in the log, and the text made of them."""


def old_timestamp(digits: int) -> Fixed:
    """TIMESTAMP: seconds since 1970, little-endian; with a fraction big-endian, and the fraction after it."""
    if not digits:
        return 4, lambda raw: value_text.timestamp_text(int.from_bytes(raw, "little"))

    def text(raw: bytes) -> str:
        seconds, part = int.from_bytes(raw[:4], "big"), int.from_bytes(raw[4:], "big")
        moment = value_text.timestamp_text(seconds) if seconds or not part else "1970-01-01 00:00:00"
        return f"{moment}.{part:0{digits}d}"

    return 4 + (digits + 1) // 2, text


def old_datetime(digits: int) -> Fixed:
    """DATETIME: its decimal digits as one number; with a fraction a mixed-radix number, big-endian."""
    if not digits:
        return 8, _decimal_datetime

    def text(raw: bytes) -> str:
        rest, part = divmod(int.from_bytes(raw, "big"), 10**digits)
        fields = []
        for radix in (60, 60, 24, 32, 13):
            rest, field = divmod(rest, radix)
            fields.append(field)
        second, minute, hour, day, month = fields
        return f"{rest:04d}-{month:02d}-{day:02d} {hour:02d}:{minute:02d}:{second:02d}.{part:0{digits}d}"

    return _OLD_DATETIME_BYTES[digits], text


def _decimal_datetime(raw: bytes) -> str:
    digits = f"{int.from_bytes(raw, 'little'):014d}"
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:8]} {digits[8:10]}:{digits[10:12]}:{digits[12:]}"


def old_time(digits: int) -> Fixed:
    """TIME: its decimal digits as a signed number; with a fraction the number of its units, big-endian, offset."""
    if not digits:
        return 3, _decimal_time
    units = 10**digits

    def text(raw: bytes) -> str:
        value = int.from_bytes(raw, "big") - _TIME_LIMIT_S * units
        sign, (seconds, part) = "-" if value < 0 else "", divmod(abs(value), units)
        return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{part:0{digits}d}"

    return _OLD_TIME_BYTES[digits], text


def _decimal_time(raw: bytes) -> str:
    value = int.from_bytes(raw, "little", signed=True)
    sign, value = "-" if value < 0 else "", abs(value)
    return f"{sign}{value // 10000:02d}:{value // 100 % 100:02d}:{value % 100:02d}"
