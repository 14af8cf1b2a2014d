"""Columns of the binary log in every type, with strategies for their values as the log stores them."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from hypothesis import strategies as st

from migrator.adapters.sources.binlog.events import table_map as types
from migrator.adapters.sources.binlog.events.table_map import LoggedColumn
from migrator.adapters.sources.binlog.rows import value_text
from migrator.adapters.sources.binlog.rows.charsets import Charsets
from migrator.model.table import Column

LATIN = "".join(map(chr, range(256))).replace("\x80", "€")
CYRILLIC = bytes(range(256)).decode("koi8-r")
CHARSETS = Charsets(
    {45: "utf8mb4", 8: "latin1", 7: "koi8r", 63: "binary", 35: "ucs2", 54: "utf16"},
    {"latin1": LATIN, "koi8r": CYRILLIC},
)
UTF8, LATIN1, KOI8R, BINARY, UCS2, UTF16 = 45, 8, 7, 63, 35, 54


@dataclass(frozen=True)
class Kind:
    """A column's layout, its logical and declared type, and its values with their length prefix."""

    type: int
    logical: str
    values: st.SearchStrategy[bytes]
    meta: int = 0
    scale: int = 0
    unsigned: bool = False
    collation: int = UTF8
    labels: tuple[bytes, ...] = ()
    declared: str = ""

    def logged(self, name: str) -> LoggedColumn:
        return LoggedColumn(
            name, self.type, self.meta, self.scale, self.unsigned, self.collation, self.labels
        )

    def column(self, name: str) -> Column:
        return Column(name, self.logical, True, self.declared)


def raw(width: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=width, max_size=width)


def sized(prefix: int, values: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return values.map(lambda value: len(value).to_bytes(prefix, "little") + value)


def packed(form: str, values: st.SearchStrategy[float]) -> st.SearchStrategy[bytes]:
    return values.map(lambda value: struct.pack(form, value))


@st.composite
def times_of_day(draw: st.DrawFn, digits: int) -> bytes:
    """The fraction behind a moment, or nothing; its last digit may be one that isn't declared."""
    even = (digits + 1) // 2
    return draw(st.integers(0, 100**even - 1)).to_bytes(even, "big")


@st.composite
def datetimes(draw: st.DrawFn, digits: int) -> bytes:
    year = draw(st.sampled_from([0, 1, 1970, 2024, 9999]) | st.integers(0, 9999))
    month, day = draw(st.integers(0, 12)), draw(st.integers(0, 31))
    clock = draw(st.integers(0, 23)) << 12 | draw(st.integers(0, 59)) << 6 | draw(st.integers(0, 59))
    bits = (((year * 13 + month) << 5 | day) << 17 | clock) + (1 << 39)
    return bits.to_bytes(5, "big") + draw(times_of_day(digits))


@st.composite
def timestamps(draw: st.DrawFn, digits: int) -> bytes:
    seconds = draw(st.sampled_from([0, 1, 951_782_400, 2**31 - 1, 2**32 - 1]) | st.integers(0, 2**32 - 1))
    return seconds.to_bytes(4, "big") + draw(times_of_day(digits))


@st.composite
def clocks(draw: st.DrawFn, digits: int) -> bytes:
    width = (digits + 1) // 2
    bits = draw(st.integers(0, 838)) << 12 | draw(st.integers(0, 59)) << 6 | draw(st.integers(0, 59))
    value = bits << 8 * width | int.from_bytes(draw(times_of_day(digits)), "big")
    value = value if draw(st.booleans()) else -value
    return (value + (0x800000 << 8 * width)).to_bytes(3 + width, "big")


@st.composite
def decimals(draw: st.DrawFn, precision: int, scale: int) -> bytes:
    """Written from the description of the format: groups of nine digits, complement for negative numbers."""
    pieces = []
    for digits in value_text.decimal_groups(precision, scale):
        group = draw(st.sampled_from([0, 10**digits - 1]) | st.integers(0, 10**digits - 1))
        pieces.append(group.to_bytes(value_text.DIGIT_BYTES[digits], "big"))
    stored = b"".join(pieces)
    stored = bytes([stored[0] ^ 0x80]) + stored[1:]
    return stored if draw(st.booleans()) else bytes(byte ^ 0xFF for byte in stored)


def compressed_column(value: bytes) -> bytes:
    return bytes([0x80 | 1, len(value)]) + zlib.compress(value) if value else b""


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
DOCUMENTS = st.sampled_from([b"", b"\x04\x00", b"\x05\xff\xff", b"\x0c\x02hi", b"\x02\x00\x00\x04\x00"])


def _integers() -> dict[str, Kind]:
    found = {}
    for name, kind, width in (
        ("tiny", types.TINY, 1),
        ("small", types.SHORT, 2),
        ("medium", types.INT24, 3),
        ("plain", types.LONG, 4),
        ("big", types.LONGLONG, 8),
    ):
        bits = 32 if width == 3 else 8 * width
        found[name] = Kind(kind, f"int{bits}", raw(width))
        wider = {1: "int16", 2: "int32", 3: "int32", 4: "int64", 8: "decimal(20,0)"}[width]
        found[f"{name}_u"] = Kind(kind, wider, raw(width), unsigned=True)
    return found


def _decimals() -> dict[str, Kind]:
    found = {}
    for precision, scale in (
        (12, 2),
        (9, 9),
        (5, 0),
        (18, 9),
        (19, 4),
        (36, 17),
        (38, 0),
        (38, 30),
        (65, 30),
    ):
        logical = f"decimal({precision},{scale})" if precision <= 38 else "string"
        found[f"decimal_{precision}_{scale}"] = Kind(
            types.NEWDECIMAL, logical, decimals(precision, scale), precision, scale
        )
    return found


def _times() -> dict[str, Kind]:
    found = {
        "day": Kind(
            types.NEWDATE,
            "string",
            st.tuples(st.integers(0, 9999), st.integers(0, 12), st.integers(0, 31)).map(
                lambda parts: (parts[0] << 9 | parts[1] << 5 | parts[2]).to_bytes(3, "little")
            ),
        ),
        "years": Kind(types.YEAR, "int16", raw(1)),
    }
    for digits in range(7):
        found[f"datetime{digits}"] = Kind(types.DATETIME2, "string", datetimes(digits), digits)
        found[f"timestamp{digits}"] = Kind(types.TIMESTAMP2, "string", timestamps(digits), digits)
        found[f"time{digits}"] = Kind(types.TIME2, "string", clocks(digits), digits)
    return found


KINDS: dict[str, Kind] = {
    **_integers(),
    **_decimals(),
    **_times(),
    "single": Kind(
        types.FLOAT, "float32", packed("<f", st.floats(allow_nan=False, allow_infinity=False, width=32)), 4
    ),
    "double": Kind(
        types.DOUBLE, "float64", packed("<d", st.floats(allow_nan=False, allow_infinity=False)), 8
    ),
    "bit3": Kind(types.BIT, "binary", raw(1), 3),
    "bit64": Kind(types.BIT, "binary", raw(8), 64),
    "label": Kind(
        types.ENUM, "string", raw(1).map(lambda b: bytes([b[0] % 3])), 1, labels=(b"a", b"\xc3\xa9")
    ),
    "labels300": Kind(
        types.ENUM,
        "string",
        st.integers(0, 300).map(lambda n: n.to_bytes(2, "little")),
        2,
        collation=LATIN1,
        labels=tuple(b"\xe9%d" % n for n in range(300)),
    ),
    "flags": Kind(types.SET, "string", raw(1), 1, labels=tuple(b"abcdefgh"[i : i + 1] for i in range(8))),
    "text": Kind(types.VARCHAR, "string", sized(1, TEXTS.map(str.encode)), 200),
    "longer": Kind(types.VARCHAR, "string", sized(2, TEXTS.map(str.encode)), 300),
    "char": Kind(types.STRING, "string", sized(1, TEXTS.map(str.encode)), 200),
    "latin": Kind(types.VARCHAR, "string", sized(1, st.binary(max_size=30)), 200, collation=LATIN1),
    "cyrillic": Kind(types.BLOB, "string", sized(2, st.binary(max_size=30)), 2, collation=KOI8R),
    "utf16": Kind(
        types.VARCHAR, "string", sized(1, TEXTS.map(lambda t: t.encode("utf-16-be"))), 200, collation=UTF16
    ),
    "texts": Kind(types.BLOB, "string", sized(3, TEXTS.map(str.encode)), 3),
    "padded": Kind(
        types.STRING,
        "binary",
        sized(1, st.binary(max_size=6).map(lambda b: b.rstrip(b"\0"))),
        6,
        collation=BINARY,
    ),
    "bytes": Kind(types.VARCHAR, "binary", sized(2, st.binary(max_size=40)), 300, collation=BINARY),
    "blob": Kind(types.BLOB, "binary", sized(4, st.binary(max_size=600)), 4, collation=BINARY),
    "shape": Kind(types.GEOMETRY, "binary", sized(4, st.binary(max_size=40)), 4, collation=BINARY),
    "vector": Kind(types.VECTOR, "binary", sized(4, st.binary(max_size=40)), 4, collation=BINARY),
    "document": Kind(types.JSON, "string", sized(4, DOCUMENTS), 4),
    "uuid": Kind(types.STRING, "string", sized(1, raw(16)), 16, collation=BINARY, declared="uuid"),
    "inet6": Kind(types.STRING, "string", sized(1, raw(16)), 16, collation=BINARY, declared="inet6"),
    "packed": Kind(
        types.VARCHAR_COMPRESSED, "string", sized(1, TEXTS.map(str.encode).map(compressed_column)), 200
    ),
    "old_moment": Kind(
        types.TIMESTAMP,
        "string",
        raw(6).map(lambda b: b[:4] + b"\1\2"),
        declared="timestamp(3) /* mariadb-5.3 */",
    ),
}
