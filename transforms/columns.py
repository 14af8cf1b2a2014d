"""Column library for mapping authors: the conversions that legacy schemas need again and again.

All are native Spark expressions (no Python per row). A ``Column`` or a column's name is taken wherever
``Value`` stands. NULL in gives NULL out; a value that none of the documented cases covers fails the job,
naming the value.
"""

from __future__ import annotations

import re
import uuid
import zoneinfo
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F

from migrator.errors import MappingError

Value = Column | str
"""A column, or the name of one."""

_CAPITALS, _SMALL = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
_POINT = "0101000000"
_MANTISSA_BITS, _EXPONENT_VALUES, _EXPONENT_BIAS = 52, 2048, 1023
_OFFSET = re.compile(r"(Z|UTC|GMT|[+-](0\d|1[0-8]):[0-5]\d)")
_NO_OFFSET = ("UTC", "Z", "GMT", "+00:00")
_INFINITE_MICROS = (2**63 - 1, -(2**63))
"""The form in which the infinities of PostgreSQL arrive."""
_RATIO_DIGITS = 28
_ROUNDED_WHEN_COMPARED = r"^decimal\(\d+,(2[1-9]|3\d)\)$"
"""A pattern of decimals with so many digits behind the point that a comparison with another decimal drops some."""
_WHOLE_IN_TEXT = r"^ *[+-]?[0-9]+(\.0*)? *\z"
_CENTS_IN_TEXT = r"^ *[+-]?[0-9]*(\.[0-9]{0,2}0*)? *\z"
# `\z`, for `$` would let a line's end pass.
FULL_DATE = r"^\d{4}-\d{2}-\d{2}\z"
FULL_DATETIME = r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}(\.\d{1,6})?\z"
"""Patterns: the text of a date, the text of a datetime, and below, what is in it where a part of the date is zero."""
ZERO_PART = "^0000|-00"


def uuid5(namespace: str, *parts: Value) -> Column:
    """A stable UUID (RFC 9562, version 5) in canonical text: the same parts give the same id, on any machine.

    The name is the parts as text, joined by ``|``. So parts should not contain ``|``, or ``("a|b", "c")`` and
    ``("a", "b|c")`` share an id. Use integers, text, dates and decimals: other types have no one text form.

    Args:
        namespace: UUID that sets this kind of id apart from others, e.g. one you made once with ``uuidgen``.
        parts: at least one.

    Raises:
        MappingError: the namespace is no UUID, or there are no parts.
    """
    first, *groups = _uuid5_digits(namespace, parts)
    # Not concat_ws: that would make an empty text of a NULL.
    return F.concat(*first, *(piece for group in groups for piece in (F.lit("-"), *group))).alias("uuid5")


def uuid5_binary(namespace: str, *parts: Value) -> Column:
    """Makes the same UUID as :func:`uuid5`, as its 16 bytes."""
    return F.unhex(F.concat(*(piece for group in _uuid5_digits(namespace, parts) for piece in group))).alias(
        "uuid5_binary"
    )


def instant(naive: Value, zone: Value) -> Column:
    """The instant at which a clock in ``zone`` showed the naive timestamp.

    In the hour that a clock skips in spring, the time is read with the offset before the change (02:30
    becomes 03:30 summer time); in the hour that comes twice in autumn, the first is meant. Infinities stay
    infinities. The rules of a zone are those that come with Java: keep that up to date.

    Args:
        naive: timestamp without zone.
        zone: a zone name (``"Europe/Berlin"``) or offset (``"+02:00"``) as ``str``; a ``Column`` holds one
        a row.

    Raises:
        MappingError: the literal zone is unknown.
    """
    if isinstance(zone, str):
        _check_zone(zone)
    moment = as_column(naive).cast("timestamp")
    found = F.to_utc_timestamp(moment, F.lit(zone) if isinstance(zone, str) else zone)
    if isinstance(zone, str) and zone in _NO_OFFSET:
        return found
    return F.when(F.unix_micros(moment).isin(*_INFINITE_MICROS), moment).otherwise(found)


def from_parts(year: Value, month: Value, day: Value, hhmm: Value) -> Column:
    """A naive timestamp from a date in parts and a time of day as the integer ``hhmm``.

    517 is 05:17, 0 is 00:00, 2400 is 00:00 of the next day. Other numbers with minutes beyond 59 or past
    2400, and dates that don't exist, fail.
    """
    time = whole(hhmm, "int")
    minute = time % 100
    valid = time.between(0, 2400) & (minute < 60)
    minutes = F.floor(time / 100).cast("int") * 60 + minute
    passed = checked(time, valid, minutes, "int", "is no time of day as hhmm")
    midnight = F.make_date(*(whole(part, "int") for part in (year, month, day))).cast("timestamp_ntz")
    return midnight + F.make_dt_interval(mins=passed)


def blank_to_null(text: Value) -> Column:
    """NULL for text that is empty or only spaces; any other text unchanged, its own spaces kept."""
    column = as_column(text)
    return F.when(F.trim(column) != "", column)


def lower_ascii(text: Value) -> Column:
    """Text with A to Z in lower case and every other character as it is, unlike ``F.lower``."""
    return F.translate(as_column(text), _CAPITALS, _SMALL)


def slug(text: Value) -> Column:
    """Text in lower case where each run of other characters than a-z and 0-9 is one ``-``, none at the ends.

    May be empty: of ``"!"`` nothing is left.
    """
    dashed = F.regexp_replace(lower_ascii(text), "[^a-z0-9]+", "-")
    return F.regexp_replace(dashed, "^-|-$", "")


def point_x(geometry: Value) -> Column:
    """X of a point of MySQL or MariaDB, as double; zero has no sign. Other geometries fail."""
    return _ordinate(geometry, 0)


def point_y(geometry: Value) -> Column:
    """Y of a point of MySQL or MariaDB, as double; zero has no sign. Other geometries fail."""
    return _ordinate(geometry, 1)


def zero_date_to_null(text: Value) -> Column:
    """NULL for MariaDB's zero date or datetime (``0000-00-00...``) in text; any other text unchanged."""
    column = as_column(text)
    return F.when(~_is_zero(column), column)


def mysql_date(text: Value) -> Column:
    """A date from the text ``YYYY-MM-DD``. The zero date (``0000-00-00...``) is NULL; partial ones fail."""
    return _calendar(text, FULL_DATE, "date")


def mysql_datetime(text: Value) -> Column:
    """A naive timestamp from MariaDB's text ``YYYY-MM-DD hh:mm:ss[.ffffff]``, for DATETIME columns.

    The zero datetime is NULL; partial ones fail. TIMESTAMP columns arrive in UTC: wrap them in
    ``instant(mysql_datetime(c), "UTC")``.
    """
    return _calendar(text, FULL_DATETIME, "timestamp_ntz")


def flag(number: Value) -> Column:
    """A boolean from an integer flag: 0 false, 1 true. Others fail; ``c != 0`` is how to allow them."""
    column = as_column(number)
    known = column.isin(0, 1)
    exact = F.when(F.typeof(column).rlike(_ROUNDED_WHEN_COMPARED), no_rest(column % 1) & known).otherwise(
        known
    )
    return checked(column, exact, column == 1, "boolean", "is no flag (0 or 1)")


def cents(amount: Value) -> Column:
    """An amount of money in whole cents, as bigint. Fractions of a cent and amounts beyond bigint fail."""
    column = as_column(amount)
    rounded = column.cast("decimal(20,2)")
    # A comparison with a text is made between doubles.
    exact = (
        F.when(F.typeof(column).rlike(_ROUNDED_WHEN_COMPARED), no_rest(column % F.lit(Decimal("0.01"))))
        .when(F.typeof(column) == "string", column.cast("string").rlike(_CENTS_IN_TEXT))
        .otherwise(rounded == column)
    )
    return checked(column, exact, (rounded * 100).cast("bigint"), "bigint", "is no whole number of cents")


def ratio(dividend: Value, divisor: Value, digits: int) -> Column:
    """The quotient of two whole numbers, rounded to so many decimals, exact halves away from zero.

    Computed exactly, as a decimal of 28 digits before the point. NULL where the divisor is 0. A dividend or a
    divisor of more than 28 digits, or with a fraction, fails.

    Args:
        dividend: integers, or decimals without fraction.
        divisor: the same.
        digits: 0 to 6.

    Raises:
        MappingError: other digits.
    """
    if digits not in range(7):
        raise MappingError(f"ratio: {digits!r} decimals can't be had", remedy="ask for 0 to 6")
    above, below = (whole(value, f"decimal({_RATIO_DIGITS},0)") for value in (dividend, divisor))
    size, unit = F.nullif(F.abs(below), F.lit(0)), F.lit(Decimal(10**digits))
    before_point, rest = _divided(F.abs(above), size)
    after_point, left = _divided(rest * unit, size)
    rounded = before_point * unit + after_point + F.when(left * 2 >= size, 1).otherwise(0)
    signed = F.when((above < 0) != (below < 0), -rounded).otherwise(rounded)
    wanted = _RATIO_DIGITS + digits
    return (signed.cast(f"decimal({wanted},0)") * F.lit(Decimal(1).scaleb(-digits))).cast(
        f"decimal({wanted},{digits})"
    )


def _divided(number: Column, size: Column) -> tuple[Column, Column]:
    """Quotient and rest. Spark's own integral division is one of 64 bits; what is divided here divides exactly."""
    rest = number % size
    return ((number - rest) / size).cast(f"decimal({_RATIO_DIGITS},0)"), rest


def _uuid5_digits(namespace: str, parts: tuple[Value, ...]) -> list[list[Column]]:
    """The five groups of digits, each in pieces."""
    try:
        prefix = uuid.UUID(namespace).bytes
    except ValueError as error:
        raise MappingError(
            f"uuid5: {namespace!r} is no UUID",
            cause=str(error),
            remedy="make one with uuidgen and keep it for good",
        ) from error
    if not parts:
        raise MappingError("uuid5: no parts", remedy="name the columns that identify the row")
    texts = [piece for part in parts for piece in (F.lit("|"), as_column(part).cast("string"))][1:]
    digest = F.sha1(F.concat(F.lit(prefix), F.concat(*texts).cast("binary")))
    # Version 5 in the high half of byte 6; variant 10 in the top two bits of byte 8 (RFC 9562, 5.5). Each time the
    # digest is written down here makes a plan with several ids longer to compile.
    variant = F.translate(F.substring(digest, 17, 1), "0123456789abcdef", "89ab89ab89ab89ab")
    return [
        [F.substring(digest, 1, 8)],
        [F.substring(digest, 9, 4)],
        [F.lit("5"), F.substring(digest, 14, 3)],
        [variant, F.substring(digest, 18, 3)],
        [F.substring(digest, 21, 12)],
    ]


def _calendar(text: Value, pattern: str, spark_type: str) -> Column:
    column = as_column(text)
    full = column.rlike(pattern) & ~column.rlike(ZERO_PART)
    parsed = checked(column, full, column.cast(spark_type), spark_type, f"is no full {spark_type}")
    return F.when(~_is_zero(column), parsed)


def _is_zero(column: Column) -> Column:
    return column.startswith("0000-00-00")


def _ordinate(geometry: Value, place: int) -> Column:
    """A number of a point as both servers store it: four bytes of SRID, then WKB with its least byte first.

    No function of Spark reads a double from its bytes (IEEE 754), so its parts are multiplied: every step is exact.
    """
    digits = F.hex(as_column(geometry))
    first = 19 + 16 * place
    bits = F.concat(*(F.substring(digits, first + 2 * byte, 2) for byte in reversed(range(8))))
    head = F.conv(F.substring(bits, 1, 3), 16, 10).cast("bigint")
    exponent = head % _EXPONENT_VALUES
    valid = (F.length(digits) == 50) & (F.substring(digits, 9, 10) == _POINT)
    finite = exponent < _EXPONENT_VALUES - 1
    # below the least exponent the leading bit, which is not stored, is 0
    leading = F.when(exponent > 0, 1 << _MANTISSA_BITS).otherwise(0)
    significand = F.conv(F.substring(bits, 4, 13), 16, 10).cast("bigint") + leading
    scale = F.greatest(exponent, F.lit(1)) - (_EXPONENT_BIAS + _MANTISSA_BITS)
    size = significand.cast("double") * F.pow(F.lit(2.0), scale.cast("double"))
    signed = F.when((head >= _EXPONENT_VALUES) & (significand > 0), -size).otherwise(size)
    return checked(digits, valid & finite, signed, "double", "is no point of finite numbers")


def checked(value: Column, valid: Column, result: Column, spark_type: str, complaint: str) -> Column:
    """The result; where ``value`` is there and not valid, the job fails, saying what it ``is``."""
    message = F.concat(F.lit("value "), value.cast("string"), F.lit(f" {complaint}"))
    return F.when(value.isNull() | valid, result).otherwise(F.raise_error(message).cast(spark_type))


def whole(value: Value, spark_type: str) -> Column:
    """A number in a type without fraction; one that has a fraction fails instead of being rounded."""
    column = as_column(value)
    return checked(column, _is_whole(column), column.cast(spark_type), spark_type, "is no whole number")


def _is_whole(number: Column) -> Column:
    """Tells whether a number has no fraction, or a text is one of that kind: its rest would be that of a double."""
    in_text = F.typeof(number) == "string"
    return F.when(in_text, number.cast("string").rlike(_WHOLE_IN_TEXT)).otherwise(no_rest(number % 1))


def no_rest(rest: Column) -> Column:
    """True for 0 alone: beside a number of another type the last of 38 digits behind the point is rounded."""
    return (rest == 0) & (rest == -rest)


def as_column(value: Value) -> Column:
    """The column itself, or that of the name."""
    return F.col(value) if isinstance(value, str) else value


def _check_zone(zone: str) -> None:
    if _OFFSET.fullmatch(zone):
        return
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise MappingError(
            f"unknown time zone {zone!r}",
            cause=str(error),
            remedy='use an IANA name such as "Europe/Berlin" or an offset such as "+02:00"',
        ) from error
