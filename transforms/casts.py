"""Conversion from the type a mapping produces to the type of its target column, without ever changing a value.

The rule for mapping authors: a conversion that keeps every value is done for you, one that keeps most
values is done and checked row by row, and any other must be written in the mapping, where a reader sees it.
"""

from __future__ import annotations

import functools

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

_PRINTABLE = (T.BooleanType, T.IntegralType, T.DecimalType, T.DateType, T.TimestampNTZType)
_FLOATING = (T.FloatType, T.DoubleType)
_DIGITS: dict[type[T.DataType], int] = {T.ByteType: 3, T.ShortType: 5, T.IntegerType: 10, T.LongType: 19}
_LONG_END = float(2**63)
"""Spark casts this number to the greatest bigint, which is one less, and back."""
_DAYS = (("infinity", 2**31 - 1), ("-infinity", -(2**31)))
_MICROS = (("infinity", 2**63 - 1), ("-infinity", -(2**63)))
"""The form in which PostgreSQL's infinities travel."""
_HINTS: dict[tuple[type[T.DataType], type[T.DataType]], str] = {
    (T.TimestampNTZType, T.TimestampType): "say in which zone the naive time is: columns.instant(c, zone)",
    (
        T.TimestampType,
        T.TimestampNTZType,
    ): "say in which zone: F.convert_timezone(F.lit('UTC'), F.lit(zone), ...)",
    (T.ByteType, T.BooleanType): "use columns.flag(c)",
    (T.StringType, T.DateType): "use columns.mysql_date(c) or F.to_date(c, format)",
    (T.StringType, T.TimestampNTZType): "use columns.mysql_datetime(c) or F.to_timestamp_ntz(c, format)",
}


@functools.lru_cache(maxsize=1024)
def spark_type(text: str) -> T.DataType:
    """The type that a Spark SQL type name stands for, e.g. ``decimal(12,2)``. Needs a running session."""
    return T.DataType.fromDDL(text)


def parsed(text: Column, wanted: T.DataType) -> Column:
    """A value from its text as servers print it, binary ones as hexadecimal digits; NULL where it isn't one."""
    if isinstance(wanted, T.BinaryType):
        return F.unhex(F.regexp_replace(text, r"^(\\x|0x)", ""))
    return text.try_cast(wanted)


def cast_problem(found: T.DataType, wanted: T.DataType) -> str | None:
    """Returns why values of one type can't become another unchanged, with what to write instead; None if they can."""
    if _exact(found, wanted) or _checked(found, wanted):
        return None
    hint = _HINTS.get(
        (type(found), type(wanted)), f"convert it in the mapping: c.cast({wanted.simpleString()!r})"
    )
    return f"{found.simpleString()} does not become {wanted.simpleString()} by itself; {hint}"


def cast_column(
    column: Column, name: str, found: T.DataType, wanted: T.DataType, row: Column | None = None
) -> Column:
    """The column in the wanted type, named ``name``; a value that doesn't fit raises in the Spark job.

    Meant for pairs that :func:`cast_problem` allows. ``row``: text that tells the row apart, for the message.
    """
    if found == wanted:
        return column.alias(name)
    if isinstance(found, (T.DateType, T.TimestampNTZType)):
        return _time(column, found, wanted).alias(name)
    if _exact(found, wanted) or _widens(found, wanted):
        return column.cast(wanted).alias(name)
    cast = column.try_cast(wanted)
    text = F.concat(
        F.lit(f"column {name}: "),
        column.cast("string"),
        F.lit(f" is no exact {wanted.simpleString()}"),
        *([] if row is None else [F.lit(", in the row with "), row]),
    )
    kept = column.isNull() | ((cast.cast(found) == column) & _below_long_end(column, cast, found, wanted))
    return F.when(kept, cast).otherwise(F.raise_error(text).cast(wanted)).alias(name)


def _below_long_end(column: Column, cast: Column, found: T.DataType, wanted: T.DataType) -> Column:
    """Returns the condition that no floating-point number on either side is what Spark takes for the greatest
    bigint."""
    if isinstance(found, T.LongType) and isinstance(wanted, _FLOATING):
        return cast < _LONG_END
    if isinstance(found, _FLOATING) and isinstance(wanted, T.LongType):
        return column < _LONG_END
    return F.lit(True)


def _time(column: Column, found: T.DataType, wanted: T.DataType) -> Column:
    """A date or time as text, or a date as a time; an infinity stays one."""
    is_date = isinstance(found, T.DateType)
    number = F.unix_date(column) if is_date else F.unix_micros(column.cast("timestamp"))
    result = column.cast(wanted)
    for (word, infinity), (_, micros) in zip(_DAYS if is_date else _MICROS, _MICROS, strict=True):
        in_text = isinstance(wanted, T.StringType)
        endless = F.lit(word) if in_text else F.timestamp_micros(F.lit(micros)).cast(wanted)
        result = F.when(number == infinity, endless).otherwise(result)
    return result


def _exact(found: T.DataType, wanted: T.DataType) -> bool:
    if found == wanted or isinstance(found, T.NullType):
        return True
    if isinstance(wanted, T.StringType):
        return isinstance(found, (T.StringType, *_PRINTABLE))
    if isinstance(found, T.DateType):
        return isinstance(wanted, T.TimestampNTZType)
    if isinstance(found, T.FloatType):
        return isinstance(wanted, T.DoubleType)
    return False


def _checked(found: T.DataType, wanted: T.DataType) -> bool:
    """Numbers into exact numbers: range by ANSI mode, digits after the point by a comparison."""
    return (
        isinstance(found, T.NumericType)
        and isinstance(wanted, T.NumericType)
        and not (isinstance(found, T.DoubleType) and isinstance(wanted, T.FloatType))
    )


def _widens(found: T.DataType, wanted: T.DataType) -> bool:
    """Tells whether every value of one kind of number is one of the other."""
    if isinstance(wanted, T.DecimalType):
        if isinstance(found, T.IntegralType):
            return wanted.precision - wanted.scale >= _DIGITS[type(found)]
        return (
            isinstance(found, T.DecimalType)
            and found.scale <= wanted.scale
            and found.precision - found.scale <= wanted.precision - wanted.scale
        )
    sizes = list(_DIGITS)
    return (
        type(found) in sizes
        and type(wanted) in sizes
        and sizes.index(type(found)) < sizes.index(type(wanted))
    )
