"""Functions of bytes and of times, as MySQL and MariaDB store them."""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
import uuid
import zoneinfo
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

from hypothesis import strategies as st
from pyspark.sql import functions as F

from tests.integration.transforms.drawn_values.cases import (
    SPECIAL,
    UTC,
    Case,
    Refused,
    of_values,
    rows,
)
from transforms import columns as C
from transforms import representations as R


def right_uuid(data: bytes, swapped: bool = False) -> str:
    if len(data) != 16:
        raise Refused
    return str(uuid.UUID(bytes=data[4:8] + data[2:4] + data[:2] + data[8:] if swapped else data))


def right_uuid_bytes(text: str) -> bytes:
    digits = re.sub("[{}-]", "", text)
    if not re.fullmatch("[0-9A-Fa-f]{32}", digits):
        raise Refused
    return bytes.fromhex(digits)


def right_hex(text: str) -> bytes:
    digits = re.sub(r"^(0x|\\x)", "", text)
    if not re.fullmatch("([0-9A-Fa-f]{2})*", digits):
        raise Refused
    return bytes.fromhex(digits)


def right_bits(data: bytes) -> Decimal:
    if not 1 <= len(data) <= 8:
        raise Refused
    return Decimal(int.from_bytes(data, "big"))


def right_bit_flag(data: bytes) -> bool:
    if data not in (b"\0", b"\1"):
        raise Refused
    return data == b"\1"


def right_point(place: int) -> Callable[[bytes], float]:
    def right(data: bytes) -> float:
        if len(data) != 25 or data[4:9] != b"\1\1\0\0\0":
            raise Refused
        found: float = struct.unpack("<dd", data[9:])[place]
        if not math.isfinite(found):
            raise Refused
        return found + 0.0

    return right


def right_geometry(part: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    def right(data: bytes) -> Any:
        if len(data) < 9:
            raise Refused
        return part(data)

    return right


BITS = st.binary(max_size=9)
HEX = st.text(st.sampled_from("0123456789abcdefABCDEF"), max_size=10)
UUIDS = st.binary(min_size=16, max_size=16)
POINTS = st.one_of(
    st.tuples(st.integers(0, 2**32 - 1), st.floats(), st.floats()).map(
        lambda p: struct.pack("<IBIdd", p[0], 1, 1, p[1], p[2])
    ),
    st.tuples(st.integers(0, 9), st.integers(0, 2), st.integers(0, 3)).map(
        lambda p: struct.pack("<IBIdd", p[0], p[1], p[2], 0.5, -1)
    ),
    st.binary(max_size=30),
)
BYTES: Mapping[str, list[Case]] = {
    "bit_flag": [
        Case(
            "a binary",
            lambda: R.bit_flag("a"),
            rows(st.one_of(st.binary(min_size=1, max_size=1), st.sampled_from([b"\0", b"\1"]), BITS)),
            of_values(right_bit_flag),
        )
    ],
    "bit_number": [Case("a binary", lambda: R.bit_number("a"), rows(BITS), of_values(right_bits))],
    "uuid_text": [
        Case("a binary", lambda: R.uuid_text("a"), rows(st.one_of(UUIDS, BITS)), of_values(right_uuid)),
        Case(
            "a binary",
            lambda: R.uuid_text("a", swapped=True),
            rows(st.one_of(UUIDS, BITS)),
            of_values(lambda b: right_uuid(b, True)),
        ),
    ],
    "uuid_bytes": [
        Case(
            "a string",
            lambda: R.uuid_bytes("a"),
            rows(
                st.one_of(
                    st.uuids().map(str),
                    st.uuids().map(lambda u: "{" + str(u).upper() + "}"),
                    st.uuids().map(lambda u: u.hex + "\n"),
                    HEX,
                )
            ),
            of_values(right_uuid_bytes),
        )
    ],
    "hex_text": [
        Case("a binary", lambda: R.hex_text("a"), rows(st.binary(max_size=30)), of_values(bytes.hex))
    ],
    "hex_bytes": [
        Case(
            "a string",
            lambda: R.hex_bytes("a"),
            rows(st.one_of(HEX, HEX.map("0x".__add__), HEX.map("\\x".__add__), SPECIAL)),
            of_values(right_hex),
        )
    ],
    "wkb": [Case("a binary", lambda: R.wkb("a"), rows(POINTS), of_values(right_geometry(lambda b: b[4:])))],
    "srid": [
        Case(
            "a binary",
            lambda: R.srid("a"),
            rows(POINTS),
            of_values(right_geometry(lambda b: struct.unpack("<I", b[:4])[0])),
        )
    ],
    "point_x": [Case("a binary", lambda: C.point_x("a"), rows(POINTS), of_values(right_point(0)))],
    "point_y": [Case("a binary", lambda: C.point_y("a"), rows(POINTS), of_values(right_point(1)))],
}


def right_date(text: str) -> dt.date | None:
    if text.startswith("0000-00-00"):
        return None
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise Refused
    try:
        return dt.date.fromisoformat(text)
    except ValueError as error:
        raise Refused from error


def right_datetime(text: str) -> dt.datetime | None:
    if text.startswith("0000-00-00"):
        return None
    found = re.fullmatch(r"([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,6}))?", text)
    if not found:
        raise Refused
    try:
        return dt.datetime.fromisoformat(found[1]).replace(microsecond=int((found[2] or "0").ljust(6, "0")))
    except ValueError as error:
        raise Refused from error


def right_instant(zone: str, naive: dt.datetime) -> dt.datetime:
    """The first of two, where a clock showed the time twice: a column has no ``fold`` as what is drawn has."""
    if zone[0] in "+-":
        offset = dt.timedelta(hours=int(zone[1:3]), minutes=int(zone[4:]))
        return naive.replace(tzinfo=dt.timezone(offset if zone[0] == "+" else -offset)).astimezone(UTC)
    return naive.replace(tzinfo=zoneinfo.ZoneInfo(zone), fold=0).astimezone(UTC)


TWO = st.integers(0, 61).map("{:02}".format)
DATES = st.one_of(
    st.dates().map(dt.date.isoformat),
    st.tuples(st.integers(0, 9999).map("{:04}".format), TWO, TWO).map("-".join),
    st.sampled_from(["0000-00-00", "0000-00-00 x", "2024-01-01\n", "2024-02-30", "2023-02-29", ""]),
)
TIMES = st.tuples(TWO, TWO, TWO).map(":".join)
FRACTIONS = st.text(st.sampled_from("0123456789"), max_size=7).map(
    lambda digits: f".{digits}" if digits else ""
)
# None whose past was corrected lately, as Iran's of 1978 was: Java and this machine may have data of two years.
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Europe/Dublin",
    "Africa/Casablanca",
    "America/Sao_Paulo",
    "Pacific/Apia",
    "America/St_Johns",
    "+05:30",
    "-03:00",
    "+14:00",
    "-11:59",
    "UTC",
)
CLOCKS = st.one_of(
    st.datetimes(dt.datetime(1971, 1, 1), dt.datetime(2037, 12, 31)),
    st.datetimes(dt.datetime(2024, 3, 30), dt.datetime(2024, 4, 8)),
    st.datetimes(dt.datetime(2024, 10, 5), dt.datetime(2024, 11, 4)),
)
MOMENTS: Mapping[str, list[Case]] = {
    "mysql_date": [Case("a string", lambda: C.mysql_date("a"), rows(DATES), of_values(right_date))],
    "mysql_datetime": [
        Case(
            "a string",
            lambda: C.mysql_datetime("a"),
            rows(
                st.one_of(
                    st.tuples(DATES, st.just(" "), TIMES, FRACTIONS).map("".join),
                    st.datetimes().map(lambda m: m.isoformat(" ")),
                    DATES,
                )
            ),
            of_values(right_datetime),
        )
    ],
    "zero_date_to_null": [
        Case(
            "a string",
            lambda: C.zero_date_to_null("a"),
            rows(DATES),
            of_values(lambda t: None if t.startswith("0000-00-00") else t),
        )
    ],
    "instant": [
        Case(
            "a timestamp_ntz, b string",
            lambda: C.instant("a", F.col("b")),
            rows(CLOCKS, st.sampled_from(ZONES)),
            of_values(lambda t, zone: right_instant(zone, t)),
        )
    ]
    + [
        Case(
            "a timestamp_ntz",
            partial(C.instant, "a", zone),
            rows(CLOCKS),
            of_values(partial(right_instant, zone)),
        )
        for zone in ("Europe/Berlin", "Australia/Lord_Howe", "-09:30", "UTC")
    ],
}
