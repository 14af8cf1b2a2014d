"""Column library, second part: what an old engine stores in one form and a new schema wants in another.

Bits, UUIDs, hexadecimal text, geometry, epochs, enums and sets, JSON, money, text that was encoded twice, and
texts that the old collation took for one. The rules of ``transforms.columns`` hold: native Spark expressions,
NULL in gives NULL out, and a value that no documented case covers fails, naming it.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

from pyspark.sql import Column
from pyspark.sql import functions as F

from migrator.errors import MappingError
from transforms.collations import weights
from transforms.columns import Value, as_column, checked, lower_ascii, no_rest, whole
from transforms.json_values import json_value

__all__ = [
    "bit_flag",
    "bit_number",
    "code_of",
    "epoch",
    "folded",
    "hex_bytes",
    "hex_text",
    "json_object",
    "json_value",
    "members",
    "money",
    "pg_array",
    "srid",
    "undoubled",
    "uuid_bytes",
    "uuid_text",
    "wkb",
]

_CP1252 = "€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
_CP1252_BYTES = "".join(map(chr, _CP1252.encode("cp1252")))
_EPOCHS = {
    "seconds": "timestamp_seconds",
    "milliseconds": "timestamp_millis",
    "microseconds": "timestamp_micros",
}
_QUOTED_IN_ARRAY = r'^\z|^(?i:null)\z|[{}",\\\s\x0B]'
"""Members of an array that PostgreSQL prints between quotes."""
_JSON_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_INFINITE = (
    "+5881580-07-11", "-5877641-06-23", "+294247-01-10 04:00:54.775807", "-290308-12-21 19:59:05.224192"
)  # fmt: skip
"""The dates and times in which PostgreSQL's infinities arrive, as Spark prints them."""
_NO_NUMBERS = ("NaN", "Infinity", "-Infinity")


def bit_flag(bits: Value) -> Column:
    """A boolean from a ``BIT(1)`` of MySQL or MariaDB, which arrives as one byte. Other bits fail."""
    digits = F.hex(as_column(bits))
    return checked(digits, digits.isin("00", "01"), digits == "01", "boolean", "is no BIT(1)")


def bit_number(bits: Value) -> Column:
    """The number that a ``BIT(n)`` of MySQL or MariaDB stands for, as decimal(20,0): 64 bits have no sign."""
    digits = F.hex(as_column(bits))
    number = F.conv(digits, 16, 10).cast("decimal(20,0)")
    return checked(digits, F.length(digits).between(2, 16), number, "decimal(20,0)", "is no BIT(n)")


def uuid_text(data: Value, swapped: bool = False) -> Column:
    """A UUID in canonical text from its 16 bytes. ``swapped``: as MySQL's ``UUID_TO_BIN(u, 1)`` stores it."""
    digits = F.lower(F.hex(as_column(data)))
    starts = (
        ((9, 8), (5, 4), (1, 4), (17, 4), (21, 12))
        if swapped
        else ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    )
    first, *rest = (F.substring(digits, start, length) for start, length in starts)
    text = F.concat(first, *(piece for group in rest for piece in (F.lit("-"), group)))
    return checked(digits, F.length(digits) == 32, text, "string", "is no UUID of 16 bytes")


def uuid_bytes(text: Value) -> Column:
    """The 16 bytes of a UUID in text, with or without dashes and braces."""
    column = as_column(text)
    digits = F.regexp_replace(column, "[{}-]", "")
    return checked(column, digits.rlike(r"^[0-9A-Fa-f]{32}\z"), F.unhex(digits), "binary", "is no UUID")


def hex_text(data: Value) -> Column:
    """Bytes as hexadecimal text in lower case."""
    return F.lower(F.hex(as_column(data)))


def hex_bytes(text: Value) -> Column:
    r"""The bytes of hexadecimal text, with or without ``0x``, ``\x``."""
    column = as_column(text)
    digits = F.regexp_replace(column, r"^(0x|\\x)", "")
    return checked(
        column, digits.rlike(r"^([0-9A-Fa-f]{2})*\z"), F.unhex(digits), "binary", "is no hexadecimal text"
    )


def wkb(geometry: Value) -> Column:
    """The WKB of a geometry of MySQL or MariaDB."""
    column = as_column(geometry)
    body = F.substring(column, 5, 2**31 - 1)
    return checked(F.hex(column), F.octet_length(column) >= 9, body, "binary", "is no geometry")


def srid(geometry: Value) -> Column:
    """The SRID of a geometry of MySQL or MariaDB, as bigint."""
    digits = F.hex(as_column(geometry))
    turned = F.concat(*(F.substring(digits, place, 2) for place in (7, 5, 3, 1)))
    number = F.conv(turned, 16, 10).cast("bigint")
    return checked(digits, F.length(digits) >= 18, number, "bigint", "is no geometry")


def epoch(number: Value, unit: Literal["seconds", "milliseconds", "microseconds"] = "seconds") -> Column:
    """The instant so many units after 1970-01-01 00:00 UTC. 0 is that instant: ``F.nullif`` if it means unknown.

    Whole units, or seconds as a decimal of up to six decimals. More decimals, and floating-point numbers with a
    fraction, fail: which microsecond is meant isn't known.
    """
    if unit not in _EPOCHS:
        raise MappingError(f"epoch: {unit!r} is no unit", remedy=f"use one of {', '.join(_EPOCHS)}")
    column = as_column(number)
    if unit != "seconds":
        return F.call_function(_EPOCHS[unit], whole(column, "bigint"))
    floating = F.typeof(column).isin("float", "double")
    valid = F.when(floating, column % 1 == 0).otherwise(no_rest(column % F.lit(Decimal("0.000001"))))
    return checked(column, valid, F.timestamp_seconds(column), "timestamp", "is no exact number of seconds")


def money(text: Value) -> Column:
    """The amount of PostgreSQL's ``money`` where ``lc_monetary`` is C or en_US: ``-$1,234.56`` as decimal(19,2)."""
    column = as_column(text)
    amount = F.regexp_replace(column, "[$,]", "").cast("decimal(19,2)")
    return checked(
        column,
        column.rlike(r"^-?\$[0-9]{1,3}(,[0-9]{3})*\.[0-9]{2}\z"),
        amount,
        "decimal(19,2)",
        "is no amount in dollars",
    )


def code_of(label: Value, codes: Mapping[str, int], invalid: int | None = None) -> Column:
    """The number of an enum's label. MySQL's invalid value, the empty text, is ``invalid``; other labels fail.

    Args:
        label: text.
        codes: label -> number, at least one.
        invalid: what the empty text becomes, unless it is a label.
    """
    column = as_column(label)
    found = F.when(column == "", F.lit(invalid).cast("int"))
    for name, number in codes.items():
        found = F.when(column == name, F.lit(number)).otherwise(found)
    return checked(column, column.isin("", *codes), found, "int", f"is none of {', '.join(codes)}")


def members(text: Value) -> Column:
    """The members of MySQL's ``SET`` as an array, in the order of its declaration; none of the empty text."""
    column = as_column(text)
    return F.when(column == "", F.array().cast("array<string>")).otherwise(F.split(column, ","))


def pg_array(values: Value) -> Column:
    """An array of texts as PostgreSQL itself prints it, ``{"a b",c}``; NULL among the values stays NULL."""

    def member(value: Column) -> Column:
        text = value.cast("string")
        quoted = F.concat(F.lit('"'), F.regexp_replace(text, r'(["\\])', r"\\$1"), F.lit('"'))
        return F.coalesce(F.when(text.rlike(_QUOTED_IN_ARRAY), quoted).otherwise(text), F.lit("NULL"))

    return F.concat(F.lit("{"), F.array_join(F.transform(as_column(values), member), ","), F.lit("}"))


def json_object(**values: Value) -> Column:
    """Columns as one JSON object in text, NULLs included; times with all six decimals. Infinities and NaN fail."""
    columns = {name: as_column(value) for name, value in values.items()}
    written = F.to_json(
        F.struct(*(column.alias(name) for name, column in columns.items())),
        {"ignoreNullFields": "false", **_JSON_TIMES},
    )
    for name, column in columns.items():
        time = F.typeof(column).isin("date", "timestamp", "timestamp_ntz")
        number = F.typeof(column).isin("float", "double")
        printed = column.cast("string")
        endless = (time & printed.isin(*_INFINITE)) | (number & printed.isin(*_NO_NUMBERS))
        message = F.lit(f"{name} is infinity or no number, which JSON has no word for")
        written = F.when(endless, F.raise_error(message).cast("string")).otherwise(written)
    return written


_NOT_TAKEN = "[\\x80\\x82-\\x8C\\x8E\\x91-\\x9C\\x9E\\x9F]"
"""Characters that no byte is in MySQL's latin1, which has others for these bytes."""


def undoubled(text: Value) -> Column:
    """Text that was encoded twice (``CafÃ©``) as it was meant (``Café``); any other text unchanged.

    Twice means: UTF-8 that a program took for MySQL's latin1 (cp1252) and encoded again. Only text whose bytes in
    latin1 are valid UTF-8 is taken for such.
    """
    column = as_column(text)
    narrow = F.translate(column, _CP1252, _CP1252_BYTES)
    meant = F.encode(narrow, "ISO-8859-1").cast("string")
    twice = narrow.rlike("^[\\x00-\\xFF]*[\\x80-\\xFF][\\x00-\\xFF]*\\z")  # $ passes a line's end over
    taken = ~column.rlike(_NOT_TAKEN)
    return F.when(twice & taken, F.when(F.is_valid_utf8(meant), meant).otherwise(column)).otherwise(column)


def folded(text: Value, collation: str) -> Column:
    """Text that is the same for all texts that a collation of MySQL or MariaDB takes for one: join and group by it.

    Trailing spaces don't count, as on the server. Not for display: ``É`` becomes ``E``.

    Args:
        text: text.
        collation: ``utf8mb4_general_ci``, ``utf8mb3_general_ci``, ``latin1_swedish_ci``, or ``ascii_general_ci``.

    Raises:
        MappingError: another collation.
    """
    column = F.rtrim(as_column(text))
    if collation == "ascii_general_ci":
        return lower_ascii(column)
    plain = F.regexp_replace(column, "[\\x{10000}-\\x{10FFFF}]", "\ufffd")  # these all count as one
    return F.translate(plain, *weights(collation))
