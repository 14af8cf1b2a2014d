"""Canonical text for both sides: the listed equivalences, each with its reason.

A cell of the mapped side starts as a Spark value, a cell of the target starts as the server's text; both become the
canonical text of the **target column's** type. Two cells are equal exactly if both are NULL or their texts
are equal byte by byte. A mapped value that the target's type can't hold exactly never becomes equal by
rounding: it keeps a text that no target value has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from migrator.errors import VerifyError
from verify.readers.snapshot import TargetColumnText
from verify.tables.compare import json_text

cloudpickle.register_pickle_by_value(json_text)  # type: ignore[no-untyped-call]  # a worker's path needs not hold our package

_INEXACT = "not exactly "
_PLAIN_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)$"
_UUID = r"^\{?([0-9a-fA-F]{4}-?){7}[0-9a-fA-F]{4}\}?$"
_PLAIN_UUID = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"


@dataclass(frozen=True, slots=True)
class Equivalence:
    """One line of the table of equivalences.

    Attributes:
        kind: name of the rule.
        types: target types (names of ``pg_type``) it is for.
        rule: the canonical text.
        reason: why that text hides no difference that matters.
    """

    kind: str
    types: tuple[str, ...]
    rule: str
    reason: str


EQUIVALENCES: tuple[Equivalence, ...] = (
    Equivalence("integer", ("int2", "int4", "int8", "oid"), "decimal digits",
                "the same number has one such text; nothing passes through floating point"),
    Equivalence("numeric", ("numeric",), "plain digits, zeros after the last significant one removed, no -0",
                "1.50 and 1.5 are one number; a digit beyond the column's scale stays and differs"),
    Equivalence("float8", ("float8",), "the 64-bit value printed by one routine; -0.0 and 0.0 differ, NaN is NaN",
                "equal texts are equal bits; PostgreSQL keeps the sign of zero, so losing it is a change"),
    Equivalence("float4", ("float4",), "the 32-bit value printed by one routine; -0.0 and 0.0 differ, NaN is NaN",
                "equal texts are equal bits; a double that no 32-bit value equals differs"),
    Equivalence("double", ("double",), "as float8, and -0.0 is 0.0",
                "MariaDB's: it keeps no sign of zero, so that there is none to be lost"),
    Equivalence("float", ("float",), "as float4, and -0.0 is 0.0", "the same of its 32-bit values"),
    Equivalence("boolean", ("bool",), "true or false", "there are no other values"),
    Equivalence("date", ("date",), "days since 1970-01-01, infinities as PostgreSQL's extreme numbers",
                "one number per day, also before Christ and beyond year 9999"),
    Equivalence("timestamp", ("timestamp",), "microseconds since 1970-01-01 00:00:00, infinities as extreme numbers",
                "microseconds are all the target keeps"),
    Equivalence("timestamptz", ("timestamptz",), "microseconds since 1970-01-01 00:00:00 UTC",
                "an instant is the same however a time zone prints it"),
    Equivalence("uuid", ("uuid",), "lower case, 8-4-4-4-12", "the type reads braces and capitals alike"),
    Equivalence("json", ("json", "jsonb"), "sorted keys, no spaces, exact plain numbers, last of equal keys",
                "jsonb keeps neither order nor spaces; numbers are compared digit by digit, never as floats"),
    Equivalence("bytea", ("bytea",), "lower-case hexadecimal", "one text per byte string"),
    Equivalence("character", ("bpchar",), "trailing spaces removed",
                "character(n) pads with spaces that are no part of its value"),
    Equivalence("time", ("time", "timetz"), "trailing zeros of the fraction removed",
                "12:00:00 and 12:00:00.000000 are one time"),
    Equivalence("text", (), "as it is, no trimming, no folding; arrays and other types as the target prints them",
                "every byte counts, and of texts that stand for one value the target prints one"),
)  # fmt: skip

_ENDS: dict[type[T.DataType], tuple[int, int]] = {
    T.DateType: (2**31 - 1, -(2**31)),
    T.TimestampNTZType: (2**63 - 1, -(2**63)),
}
"""Numbers of days or microseconds that stand for PostgreSQL's infinities."""
_UNSIGNED_ZERO = {"double": "float8", "float": "float4"}
_KINDS = {name: line.kind for line in EQUIVALENCES for name in line.types}


def kind_of(column: TargetColumnText) -> str:
    """The rule for a target column."""
    return _KINDS.get(column.base, "text")


def target_text(columns: Sequence[TargetColumnText]) -> list[Column]:
    """Canonical texts of the target's cells, from the server's text, in the order of ``columns``."""
    texts = []
    for column in columns:
        value, kind = F.col(_quoted(column.name)), kind_of(column)
        if kind in _UNSIGNED_ZERO:
            texts.append(_unsigned_zero(_canonical(value, _UNSIGNED_ZERO[kind])))
        elif kind == "numeric":
            texts.append(_without_trailing_zeros(value))
        elif kind in ("integer", "uuid"):  # the server prints them canonically
            texts.append(value)
        else:
            texts.append(_canonical(value, kind))
    return texts


def mapped_text(frame: DataFrame, columns: Sequence[TargetColumnText]) -> list[Column]:
    """Canonical texts of the mapped cells, in the order of ``columns``.

    Raises ``VerifyError`` when a mapped column has a type that has no text.
    """
    types = {field.name: field.dataType for field in frame.schema.fields}
    return [
        _mapped(_read(F.col(_quoted(c.name)), types[c.name], c), types[c.name], kind_of(c), c.name)
        for c in columns
    ]


def source_kind(found: T.DataType) -> str:
    """The rule whose canonical text shows a source value of that Spark type best."""
    kinds: dict[type[T.DataType], str] = {
        T.DateType: "date",
        T.TimestampNTZType: "timestamp",
        T.TimestampType: "timestamptz",
    }
    return kinds.get(type(found), "text")


def readable_text(value: Column, found: T.DataType) -> Column:
    """A source value as canonical text of ``source_kind``; safe for times that Python can't hold."""
    return _mapped(value, found, source_kind(found), "")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _read(value: Column, found: T.DataType, column: TargetColumnText) -> Column:
    """A text as the target prints it, where its type reads several texts as one value."""
    return value if column.printed is None or not isinstance(found, T.StringType) else column.printed(value)


def _mapped(value: Column, found: T.DataType, kind: str, name: str) -> Column:
    if isinstance(found, T.NullType):
        return F.lit(None).cast("string")
    if isinstance(found, (T.ArrayType, T.MapType, T.StructType, T.VariantType)):
        raise VerifyError(
            f"mapped column {name} has the nested type {found.simpleString()}, which no target column holds",
            where=f"column {name}",
            remedy="turn it into text in the mapping, e.g. with F.to_json",
        )
    if kind in _UNSIGNED_ZERO:
        return _unsigned_zero(_mapped(value, found, _UNSIGNED_ZERO[kind], name))
    special = _mapped_special(value, found, kind)
    if special is not None:
        return special
    if isinstance(found, T.BinaryType):
        return F.lower(F.hex(value))
    return _canonical(_printed(value, found), kind)


def _printed(value: Column, found: T.DataType) -> Column:
    """The text of a value; Spark itself has no text for an infinite time."""
    text = value.cast("string")
    if type(found) not in _ENDS:
        return text
    number = F.unix_date(value) if isinstance(found, T.DateType) else _micros(value)
    most, least = _ENDS[type(found)]
    return F.when(number == most, "infinity").when(number == least, "-infinity").otherwise(text)


def _mapped_special(value: Column, found: T.DataType, kind: str) -> Column | None:
    """Rules that need the Spark value itself, or None where its text is enough."""
    if kind in ("integer", "numeric") and isinstance(found, T.IntegralType):
        return value.cast("string")
    if kind in ("integer", "numeric") and isinstance(found, T.DecimalType):
        return _without_trailing_zeros(value.cast("string"))
    if kind == "float8" and isinstance(found, T.NumericType):
        return _exactly(value, found, "double")
    if kind == "float4" and isinstance(found, T.NumericType):
        return _exactly(value, found, "float")
    if kind in ("integer", "numeric") and isinstance(found, (T.DoubleType, T.FloatType)):
        return _canonical(_exactly(value, found, "decimal(38,18)"), kind)
    if kind == "date":
        return _parsed(value, found, T.DateType, "date", F.unix_date)
    if kind == "timestamp" and isinstance(found, T.DateType):
        return _start_of_day(value)
    if kind == "timestamp":
        return _parsed(value, found, T.TimestampNTZType, "timestamp_ntz", _micros)
    if kind == "timestamptz":
        return _parsed(value, found, T.TimestampType, "timestamp", F.unix_micros)
    return None


def _unsigned_zero(text: Column) -> Column:
    return F.when(text == "-0.0", F.lit("0.0")).otherwise(text)


def _micros(naive: Column) -> Column:
    return F.unix_micros(naive.cast("timestamp"))  # the session is in UTC


def _start_of_day(value: Column) -> Column:
    day = F.unix_date(value)
    micros = F.unix_micros(value.try_cast("timestamp")).cast("string")
    for days, end in zip(_ENDS[T.DateType], _ENDS[T.TimestampNTZType], strict=True):
        micros = F.when(day == days, F.lit(str(end))).otherwise(micros)
    return micros


def _exactly(value: Column, found: T.DataType, wanted: str) -> Column:
    """The value's text as the wanted type, or a text no value of that type has when the cast would change it."""
    cast = value.try_cast(wanted)
    kept = cast.try_cast(found).eqNullSafe(value)
    if isinstance(found, T.LongType):  # Spark takes 2^63 for the greatest bigint, which is one less
        kept = kept & (cast < float(2**63))
    return F.when(kept, cast.cast("string")).otherwise(F.concat(F.lit(_INEXACT), value.cast("string")))


def _parsed(
    value: Column, found: T.DataType, native: type[T.DataType], name: str, number: Callable[[Column], Column]
) -> Column:
    """Time values as numbers; text is read as that type first, anything else keeps its own text and differs."""
    if isinstance(found, native):
        return number(value).cast("string")
    text = value.cast("string")
    if isinstance(found, T.StringType):
        return F.coalesce(number(value.try_cast(name)).cast("string"), text)
    return F.concat(F.lit(_INEXACT), text)


def _canonical(text: Column, kind: str) -> Column:
    """The canonical text of a value given as text."""
    if kind in ("integer", "numeric"):
        return _number(text)
    if kind == "float8":
        return F.coalesce(text.try_cast("double").cast("string"), text)
    if kind == "float4":
        return F.coalesce(text.try_cast("float").cast("string"), text)
    if kind == "uuid":
        digits = F.lower(F.regexp_replace(text, "[{}-]", ""))
        spread = F.regexp_replace(digits, "^(.{8})(.{4})(.{4})(.{4})(.{12})$", "$1-$2-$3-$4-$5")
        written = F.when(text.rlike(_UUID), spread).otherwise(text)
        return F.when(text.rlike(_PLAIN_UUID), text).otherwise(
            written
        )  # usually one pattern is matched instead of four
    if kind == "json":
        return _canonical_json(text)
    if kind == "bytea":
        return F.lower(F.regexp_replace(text, r"^\\x", ""))
    if kind == "character":
        return F.regexp_replace(text, " +$", "")
    if kind == "time":
        return F.regexp_replace(F.regexp_replace(text, r"(\.\d*?)0+(?!\d)", "$1"), r"\.(?!\d)", "")
    return text


def _canonical_json(text: Column) -> Column:
    function: Callable[[Column], Column] = F.udf(json_text.canonical_json, T.StringType(), useArrow=True)
    return function(text)


def _number(text: Column) -> Column:
    """Any plain number: no plus sign, no leading or trailing zeros, no bare point, no negative zero."""
    plain = _without_trailing_zeros(F.regexp_replace(text, r"^\+", ""))
    plain = F.regexp_replace(plain, r"^(-?)0+(?=\d)", "$1")
    plain = F.regexp_replace(plain, r"^(-?)(?=\.|$)", "$10")
    return F.when(text.rlike(_PLAIN_NUMBER), F.regexp_replace(plain, "^-0$", "0")).otherwise(text)


def _without_trailing_zeros(text: Column) -> Column:
    """A decimal without zeros at its end. Servers and Spark add no plus signs and no leading zeros to decimals."""
    shorter = F.regexp_replace(F.regexp_replace(text, r"(\.\d*?)0+$", "$1"), r"\.$", "")
    may_shrink = text.contains(".") & (text.endswith("0") | text.endswith("."))
    return F.when(may_shrink, shorter).otherwise(
        text
    )  # other texts can't match, and to look for the pattern is what costs
