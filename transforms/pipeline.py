"""Runs a target mapping over rows: DataFrames in, DataFrames out, no databases.

Frames are keyed by source table name. All output has exactly the plan's columns, in the plan's order and types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from migrator.model.table import TableSchema
from transforms.plan import MappingPlan

SIDE = "__side"
"""Column of :func:`map_delta` saying which image a target row was made from: 0 before, 1 after (tinyint, first)."""


@dataclass(frozen=True, slots=True)
class FailingRow:
    """A source row on which a mapping fails: its index in the table searched, and the short cause."""

    index: int
    cause: str


def spark_schema(schema: TableSchema) -> StructType:
    """The Spark type of a source table's rows; every column nullable."""
    raise SystemExit("being written")


def arrow_frame(spark: SparkSession, rows: pa.Table, schema: TableSchema) -> DataFrame:
    """A DataFrame of rows held in memory (small path). Columns of ``rows`` beyond the schema are dropped."""
    raise SystemExit("being written")


def parquet_frame(spark: SparkSession, paths: Sequence[Path], schema: TableSchema) -> DataFrame:
    """A DataFrame over Parquet files that all have that schema (large path). No paths means no rows."""
    raise SystemExit("being written")


def map_rows(spark: SparkSession, plan: MappingPlan, frames: Mapping[str, DataFrame]) -> DataFrame:
    """f(frames), cast to the plan's columns. A source without a frame has no rows."""
    raise SystemExit("being written")


def map_delta(
    spark: SparkSession, plan: MappingPlan, before: Mapping[str, DataFrame], after: Mapping[str, DataFrame]
) -> DataFrame:
    """f(before) and f(after) in one DataFrame, told apart by the first column :data:`SIDE`."""
    raise SystemExit("being written")


def failing_row(spark: SparkSession, plan: MappingPlan, source: str, rows: pa.Table) -> FailingRow | None:
    """One row of ``rows`` on which mapping fails, by bisection; None if it fails on none of them."""
    raise SystemExit("being written")
