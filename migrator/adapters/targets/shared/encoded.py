"""Encoding of mapped columns as the target's columns take them, and the error where they can't."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa

from migrator.errors import CORRECTED_MAPPING, TargetError
from migrator.model.target import TargetColumn

EncodedT = TypeVar("EncodedT")


def encoded_exactly(
    column: TargetColumn,
    values: pa.ChunkedArray,
    table: str,
    encode: Callable[[pa.ChunkedArray], EncodedT],
) -> EncodedT:
    """Encodes a mapped column's values; ``encode`` raises Arrow's errors for what would be changed.

    Raises ``TargetError`` naming table and column when the values aren't of the column's type, or would be changed.
    """
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    try:
        return encode(values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError) as error:
        raise TargetError(
            f"values of type {values.type} can't be stored in column {column.name} of {table}"
            f" ({column.native_type}) without loss",
            where=f"{table}.{column.name}",
            cause=str(error).replace("\n", " "),
            remedy=f"cast the column to {column.spark_type} in the mapping, rounding there if that is meant"
            f"{CORRECTED_MAPPING}",
        ) from None
