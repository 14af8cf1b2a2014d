"""Gaps that a mapping still has: places that ``migrator init`` leaves to its author."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

METADATA = "gap"


def gap(table: str, column: str, why: str) -> Column:
    """Stands for a target column that nobody has mapped yet.

    A mapping with a gap is refused before it runs, by table and column; run all the same (in a unit test), it fails
    on every row with the same words.

    Args:
        table: the target table.
        column: its column.
        why: what is missing.
    """
    text = f"gap: {table}.{column} is not mapped yet ({why})"
    return F.raise_error(F.lit(text)).alias(column, metadata={METADATA: why})
