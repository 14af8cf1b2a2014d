"""Arrow columns as the exact Arrow type whose binary COPY form the target column takes.

Most types go *direct*: the driver writes what the column's own binary input reads. The others are staged as
text and cast in the merge. What would be rounded or cut is refused here, because the server would do it
silently. Infinite timestamps and dates (the extreme integers, as PostgreSQL stores them) are staged as
integers: the driver would shift them into finite ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from migrator.adapters.targets.postgres.rows.kept import check_text, lost
from migrator.adapters.targets.postgres.structure import Storage
from migrator.adapters.targets.shared.encoded import encoded_exactly

_ARROW = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "text": pa.string(),
    "varchar": pa.string(),
    "bpchar": pa.string(),
    "name": pa.string(),
    "json": pa.string(),
    "enum": pa.string(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
_INT64 = (-(2**63), 2**63 - 1)
_INT32 = (-(2**31), 2**31 - 1)
_UUID_HEX_DIGITS = 32
_JSONB_VERSION = b"\x01"

# Integer sums keep microseconds exact: days and the rest of a day both stay far below 2^53.
_DATE_FROM_DAYS = (
    "CASE {0} WHEN 2147483647 THEN 'infinity'::date WHEN -2147483648 THEN '-infinity'::date"
    " ELSE '1970-01-01'::date + {0} END"
)
_TIMESTAMP_FROM_US = (
    "CASE {0} WHEN 9223372036854775807 THEN 'infinity'::{1} WHEN -9223372036854775808 THEN '-infinity'::{1}"
    " ELSE '1970-01-01 00:00:00Z'::{1} + ({0} / 86400000000) * interval '1 day'"
    " + ({0} % 86400000000) * interval '1 microsecond' END"
)


@dataclass(frozen=True, slots=True)
class Encoded:
    """One column ready to be loaded.

    Attributes:
        values: as loaded.
        staging_type: SQL type of its staging column.
        expression: SQL of the target value; ``{0}`` stands for the staging column.
        direct: whether the values may be loaded into the target column itself.
        lost: SQL that is true of a staged value of which the column would keep less; empty where that can't be.
    """

    values: pa.ChunkedArray
    staging_type: str
    expression: str = "{0}"
    direct: bool = True
    lost: str = ""


def encode(storage: Storage, values: pa.ChunkedArray, table: str) -> Encoded:
    """One column of mapped rows in its binary COPY form.

    Raises ``TargetError`` naming table and column when the values aren't of the column's type, or would be rounded.
    """
    return encoded_exactly(storage.column, values, table, lambda found: _encode(storage, found))


def _encode(storage: Storage, values: pa.ChunkedArray) -> Encoded:
    base = storage.base
    if base == "numeric" and storage.column.spark_type != "string":
        precision, scale = storage.column.spark_type.removeprefix("decimal(").removesuffix(")").split(",")
        return Encoded(values.cast(pa.decimal128(int(precision), int(scale))), storage.declared)
    if base in ("timestamp", "timestamptz"):
        return _timestamps(storage, values.cast(_ARROW[base]))
    if base == "date":
        return _dates(storage, values.cast(_ARROW[base]))
    if base == "uuid":
        return _uuids(storage, values.cast(pa.string()))
    if base == "jsonb":
        text = values.cast(pa.string()).cast(pa.binary())
        tagged = pc.binary_join_element_wise(pa.scalar(_JSONB_VERSION), text, pa.scalar(b""))
        return Encoded(tagged, storage.declared)
    if base in _ARROW:
        found = values.cast(_ARROW[base])
        if base in ("varchar", "name"):
            check_text(storage, found)
        if base == "float4":
            _check_float4(values, found)
        return Encoded(found, storage.declared)
    return _as_text(storage, values)


def _as_text(storage: Storage, values: pa.ChunkedArray) -> Encoded:
    texts = values.cast(pa.string())
    check_text(storage, texts)
    return Encoded(texts, "text", f"CAST({{0}} AS {storage.cast})", direct=False, lost=lost(storage, "{0}"))


def _check_float4(values: pa.ChunkedArray, found: pa.ChunkedArray) -> None:
    if not pa.types.is_float64(values.type):
        return
    again = found.cast(pa.float64())
    same = pc.or_(pc.equal(again, values), pc.and_(pc.is_nan(again), pc.is_nan(values)))
    if not pc.all(same, min_count=0).as_py():
        raise pa.ArrowInvalid("digits that a 32-bit float doesn't hold would be rounded")


def _timestamps(storage: Storage, values: pa.ChunkedArray) -> Encoded:
    numbers = values.cast(pa.int64())
    unit = 10 ** (6 - storage.precision)
    if unit > 1:
        rest = pc.subtract(numbers, pc.multiply(pc.divide(numbers, unit), unit))
        if pc.any(pc.and_(pc.not_equal(rest, 0), _finite(numbers, _INT64))).as_py():
            raise pa.ArrowInvalid(f"fractions of seconds beyond {storage.precision} digits would be rounded")
    if not _has_infinity(numbers, _INT64):
        return Encoded(values, storage.declared)
    cast = "timestamptz" if storage.base == "timestamptz" else "timestamp"
    expression = _TIMESTAMP_FROM_US.replace("{1}", f"pg_catalog.{cast}")
    return Encoded(numbers, "bigint", expression, direct=False)


def _dates(storage: Storage, values: pa.ChunkedArray) -> Encoded:
    days = values.cast(pa.int32())
    if not _has_infinity(days, _INT32):
        return Encoded(values, storage.declared)
    return Encoded(days, "integer", _DATE_FROM_DAYS, direct=False)


def _finite(numbers: pa.ChunkedArray, ends: tuple[int, int]) -> pa.ChunkedArray:
    return pc.and_(pc.not_equal(numbers, ends[0]), pc.not_equal(numbers, ends[1]))


def _has_infinity(numbers: pa.ChunkedArray, ends: tuple[int, int]) -> bool:
    extremes = pc.min_max(numbers).as_py()
    return bool(extremes["min"] == ends[0] or extremes["max"] == ends[1])


def _uuids(storage: Storage, values: pa.ChunkedArray) -> Encoded:
    chunks = []
    for chunk in values.chunks:
        decoded = _uuid_bytes(chunk)
        if decoded is None:  # an unusual spelling, or no UUID at all: the server decides
            return _as_text(storage, values)
        chunks.append(decoded)
    return Encoded(pa.chunked_array(chunks, pa.binary(16)), storage.declared)


def _uuid_bytes(texts: pa.StringArray) -> pa.Array | None:
    """UUID texts as 16 bytes each, or None when one of them isn't plain hexadecimal with or without hyphens."""
    digits = pc.replace_substring(texts, "-", "")
    plain = pc.match_substring_regex(digits, f"^[0-9a-fA-F]{{{_UUID_HEX_DIGITS}}}$")
    if not pc.all(plain, min_count=0).as_py():
        return None
    filled = pc.fill_null(digits, "0" * _UUID_HEX_DIGITS)
    if not len(filled):
        return pa.array([], pa.binary(16))
    letters = np.frombuffer(
        pc.binary_join(pa.ListArray.from_arrays([0, len(filled)], filled), "")[0].as_buffer(), np.uint8
    )
    values = np.where(letters >= ord("a"), letters - (ord("a") - 10), 0)
    values = np.where((letters >= ord("A")) & (letters <= ord("F")), letters - (ord("A") - 10), values)
    values = np.where(letters <= ord("9"), letters - ord("0"), values).astype(np.uint8)
    packed = (values[0::2] << 4) | values[1::2]
    whole = pa.Array.from_buffers(pa.binary(16), len(texts), [None, pa.py_buffer(packed.tobytes())])
    return (
        whole
        if not texts.null_count
        else pc.if_else(pc.is_valid(texts), whole, pa.scalar(None, pa.binary(16)))
    )
