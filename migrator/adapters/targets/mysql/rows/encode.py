"""Arrow columns as the exact text from which the target column gets the same value.

Every value goes as text, on one way: into a staging column of the target column's own type. What the server would
round, cut, pad or read otherwise without a word is refused here; what it warns of is refused by ``session``.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from migrator.adapters.targets.mysql.file_text import TEXT, hexadecimal
from migrator.adapters.targets.mysql.rows.json_numbers import check_numbers
from migrator.adapters.targets.mysql.structure import Storage
from migrator.adapters.targets.mysql.types import BINARY, WRITTEN
from migrator.adapters.targets.shared.encoded import encoded_exactly

_INTEGERS = {
    "tinyint": pa.int16(),
    "smallint": pa.int32(),
    "mediumint": pa.int32(),
    "int": pa.int64(),
}
_MICROSECONDS = pa.timestamp("us")
_TIME = r"^-?(\d\d|[1-8]\d\d):[0-5]\d:[0-5]\d(\.\d{1,6})?$"
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, days since 1970
_DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Encoded:
    """One column ready to be loaded.

    Attributes:
        values: as text, NULLs kept.
        load: SQL of the staged value; ``{0}`` stands for the text.
    """

    values: pa.ChunkedArray
    load: str = "{0}"


def encode(storage: Storage, values: pa.ChunkedArray, table: str) -> Encoded:
    """One column of mapped rows as text.

    Raises ``TargetError`` naming table and column when the values aren't of the column's type, or would be changed.
    """
    return encoded_exactly(storage.column, values, table, lambda found: _encode(storage, found))


def _encode(storage: Storage, values: pa.ChunkedArray) -> Encoded:
    base, spark = storage.base, storage.column.spark_type
    if base not in WRITTEN:
        raise pa.ArrowInvalid(f"the type {base} is not written")
    if spark == "boolean":
        flags = _text(values.cast(pa.bool_()).cast(pa.int8()))
        return Encoded(flags, "CAST({0} AS UNSIGNED)" if base == "bit" else "{0}")
    if base == "bit":
        return _bits(storage, values)
    if base in BINARY:
        return _bytes(storage, values)
    if spark.startswith("decimal"):
        precision, scale = spark.removeprefix("decimal(").removesuffix(")").split(",")
        return Encoded(_text(values.cast(pa.decimal128(int(precision), int(scale)))))
    if base in _INTEGERS or base == "bigint":
        return Encoded(_text(values.cast(_INTEGERS.get(base, pa.int64()))))
    return Encoded(_written(storage, values))


def _written(storage: Storage, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The types whose text is loaded as it is."""
    base = storage.base
    if base in ("float", "double"):
        return _floats(storage, values)
    if base == "date":
        days = values.cast(pa.date32())
        _check_range(
            days.cast(pa.int32()), _FIRST_DAY, _LAST_DAY, "dates before 0001-01-01 or after 9999-12-31"
        )
        return _text(days)
    if base in ("datetime", "timestamp"):
        return _timestamps(storage, values)
    if base == "year":
        return _years(values.cast(pa.int16()))
    texts = _text(values)
    if base == "time":
        _check_times(texts, storage.precision)
    if base == "json":
        check_numbers(texts)
    if storage.members:
        _check_members(storage, texts)
    return texts


def _text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return values.cast(TEXT)


def _refuse(found: pa.ChunkedArray, what: str) -> None:
    if pc.any(found).as_py():
        raise pa.ArrowInvalid(what)


def _check_range(numbers: pa.ChunkedArray, first: int, last: int, what: str) -> None:
    outside = pc.or_(pc.less(numbers, first), pc.greater(numbers, last))
    _refuse(outside, f"{what} can't be stored")


def _floats(storage: Storage, values: pa.ChunkedArray) -> pa.ChunkedArray:
    if "," in storage.column.native_type:
        raise pa.ArrowInvalid(f"{storage.column.native_type} rounds to its own number of digits")
    numbers = values.cast(pa.float32() if storage.base == "float" else pa.float64())
    if storage.base == "float" and pa.types.is_float64(values.type):
        again = numbers.cast(pa.float64())
        _refuse(pc.not_equal(again, values), "digits that a 32-bit float doesn't hold would be rounded")
    _refuse(pc.invert(pc.is_finite(numbers)), "NaN and infinity can't be stored")
    # All digits of the double that equals the float: the server reads doubles exactly, then rounds nothing.
    return _text(numbers.cast(pa.float64()))


def _timestamps(storage: Storage, values: pa.ChunkedArray) -> pa.ChunkedArray:
    exact = pa.timestamp("us", "UTC") if storage.base == "timestamp" else _MICROSECONDS
    numbers = values.cast(exact).cast(pa.int64())
    unit = 10 ** (6 - storage.precision)
    rest = pc.subtract(numbers, pc.multiply(pc.divide(numbers, unit), unit))
    _refuse(pc.not_equal(rest, 0), f"fractions of seconds beyond {storage.precision} digits would be rounded")
    last = (_LAST_DAY + 1) * _DAY_US - 1
    _check_range(numbers, _FIRST_DAY * _DAY_US, last, "times before the year 1 or after the year 9999")
    return _text(numbers.cast(_MICROSECONDS))


def _years(years: pa.ChunkedArray) -> pa.ChunkedArray:
    """Four digits: fewer would be read as 19.. or 20.. ."""
    outside = pc.and_(pc.not_equal(years, 0), pc.or_(pc.less(years, 1901), pc.greater(years, 2155)))
    _refuse(outside, "years other than 0 and 1901 to 2155 can't be stored")
    return pc.utf8_lpad(_text(years), 4, "0")


def _check_times(texts: pa.ChunkedArray, digits: int) -> None:
    _refuse(
        pc.invert(pc.match_substring_regex(texts, _TIME)),
        "a time must be [-]HH:MM:SS[.ffffff], with three digits from 100 hours on",
    )
    beyond = pc.match_substring_regex(texts, rf"\.\d{{{digits}}}\d*[1-9]")
    _refuse(beyond, f"fractions of seconds beyond {digits} digits would be rounded")


def _check_members(storage: Storage, texts: pa.ChunkedArray) -> None:
    """The server takes digits for a place in the list, and spells a member as the list does."""
    distinct = pc.unique(pc.drop_null(texts)).to_pylist()
    for text in distinct:
        parts = [text] if storage.base == "enum" else text.split(",") if text else []
        unknown = [part for part in parts if part not in storage.members]
        if unknown:
            raise pa.ArrowInvalid(f"{unknown[0]!r} is none of the column's members")
        if parts != [member for member in storage.members if member in parts]:
            raise pa.ArrowInvalid(f"{text!r} doesn't name its members once and in the column's order")


def _bytes(storage: Storage, values: pa.ChunkedArray) -> Encoded:
    binary = values.cast(pa.binary())
    if storage.length:
        shorter = pc.less(pc.binary_length(binary), storage.length)
        _refuse(shorter, f"fewer than {storage.length} bytes would be filled up with zeros")
    return Encoded(hexadecimal(binary), "UNHEX({0})")


def _bits(storage: Storage, values: pa.ChunkedArray) -> Encoded:
    binary = values.cast(pa.binary())
    _refuse(
        pc.not_equal(pc.binary_length(binary), storage.length),
        f"the column's bits are {storage.length} bytes",
    )
    return Encoded(hexadecimal(binary), "CAST(CONV({0}, 16, 10) AS UNSIGNED)")
