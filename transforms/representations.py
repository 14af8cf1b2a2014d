"""Column library, second part: what an old engine stores in one form and a new schema wants in another.

Bits, UUIDs, hexadecimal text, geometry, epochs, enums and sets, JSON, money, text that was encoded twice, and
texts that the old collation took for one. The rules of ``transforms.columns`` hold: native Spark expressions, NULL in
gives NULL out, and a value that no documented case covers fails, naming it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pyspark.sql import Column
from pyspark.sql import functions as F

from migrator.errors import MappingError
from transforms.collations import weights
from transforms.columns import Value, as_column, checked, lower_ascii

_CP1252 = "€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
_CP1252_BYTES = "".join(map(chr, _CP1252.encode("cp1252")))
_EPOCHS = {
    "seconds": "timestamp_seconds",
    "milliseconds": "timestamp_millis",
    "microseconds": "timestamp_micros",
}


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
    return checked(column, digits.rlike("^[0-9A-Fa-f]{32}$"), F.unhex(digits), "binary", "is no UUID")


def hex_text(data: Value) -> Column:
    """Bytes as hexadecimal text in lower case."""
    return F.lower(F.hex(as_column(data)))


def hex_bytes(text: Value) -> Column:
    r"""The bytes of hexadecimal text, with or without ``0x``, ``\x``."""
    column = as_column(text)
    digits = F.regexp_replace(column, r"^(0x|\\x)", "")
    return checked(
        column, digits.rlike("^([0-9A-Fa-f]{2})*$"), F.unhex(digits), "binary", "is no hexadecimal text"
    )


def wkb(geometry: Value) -> Column:
    """The WKB of a geometry of MySQL or MariaDB."""
    return F.substring(as_column(geometry), 5, 2**31 - 1)


def srid(geometry: Value) -> Column:
    """The SRID of a geometry of MySQL or MariaDB, as bigint."""
    digits = F.hex(as_column(geometry))
    turned = F.concat(*(F.substring(digits, place, 2) for place in (7, 5, 3, 1)))
    return F.conv(turned, 16, 10).cast("bigint")


def epoch(number: Value, unit: Literal["seconds", "milliseconds", "microseconds"] = "seconds") -> Column:
    """The instant so many units after 1970-01-01 00:00 UTC. 0 is that instant: ``F.nullif`` if it means unknown."""
    if unit not in _EPOCHS:
        raise MappingError(f"epoch: {unit!r} is no unit", remedy=f"use one of {', '.join(_EPOCHS)}")
    return F.call_function(_EPOCHS[unit], as_column(number))


def money(text: Value) -> Column:
    """The amount of PostgreSQL's ``money`` where ``lc_monetary`` is C or en_US: ``-$1,234.56`` as decimal(19,2)."""
    column = as_column(text)
    amount = F.regexp_replace(column, "[$,]", "").cast("decimal(19,2)")
    return checked(
        column, column.rlike(r"^-?\$[0-9,]+\.[0-9]{2}$"), amount, "decimal(19,2)", "is no amount in dollars"
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
    """An array of texts as PostgreSQL takes it, ``{"a b","c"}``; NULL among the values stays NULL."""
    quoted = F.transform(
        as_column(values),
        lambda value: F.coalesce(
            F.concat(F.lit('"'), F.regexp_replace(value.cast("string"), r'(["\\])', r"\\$1"), F.lit('"')),
            F.lit("NULL"),
        ),
    )
    return F.concat(F.lit("{"), F.array_join(quoted, ","), F.lit("}"))


def json_value(text: Value, path: str, spark_type: str) -> Column:
    """A value out of JSON text, exact up to 38 digits. NULL where there is none; text that is no JSON fails.

    Args:
        text: JSON.
        path: as in ``$.address.lines[0]``.
        spark_type: what it is to be; a value that can't be that fails.
    """
    column = as_column(text)
    document = F.try_parse_json(column)
    found = F.variant_get(document, path, spark_type)
    return checked(column, document.isNotNull(), found, spark_type, "is no JSON")


def json_object(**values: Value) -> Column:
    """Columns as one JSON object in text, NULLs included."""
    fields = [as_column(value).alias(name) for name, value in values.items()]
    return F.to_json(F.struct(*fields), {"ignoreNullFields": "false"})


def undoubled(text: Value) -> Column:
    """Text that was encoded twice (``CafÃ©``) as it was meant (``Café``); any other text unchanged.

    Twice means: UTF-8 that a program took for MySQL's latin1 (cp1252) and encoded again. Only text whose bytes in
    latin1 are valid UTF-8 is taken for such.
    """
    column = as_column(text)
    narrow = F.translate(column, _CP1252, _CP1252_BYTES)
    meant = F.encode(narrow, "ISO-8859-1").cast("string")
    twice = narrow.rlike("^[\\x00-\\xFF]*[\\x80-\\xFF][\\x00-\\xFF]*$")
    return F.when(twice, F.when(F.is_valid_utf8(meant), meant).otherwise(column)).otherwise(column)


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
