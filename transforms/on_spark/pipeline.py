"""Runs a target mapping over rows: DataFrames in, DataFrames out, no databases.

Frames are keyed by source table name. Output has exactly the plan's columns, in the plan's order and types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType

from migrator.errors import MappingError
from transforms.analysis.plan import MappingKind, MappingPlan, call
from transforms.casts import cast_column, spark_type
from transforms.cause import spark_cause
from transforms.frames import arrow_frame, empty_frame, parquet_frame, spark_schema
from transforms.on_spark.session import named_jvm_end

__all__ = [
    "SIDE",
    "FailingRow",
    "arrow_frame",
    "empty_frame",
    "failing_row",
    "map_delta",
    "map_rows",
    "parquet_frame",
    "spark_cause",
    "spark_schema",
]

SIDE = "__side"
"""First column of :func:`map_delta`; its lowest bit: 0 if a target row was made from before images, 1 from
after."""


@dataclass(frozen=True, slots=True)
class FailingRow:
    """A source row on which a mapping fails: its index in the table searched, and the short cause."""

    index: int
    cause: str


def map_rows(spark: SparkSession, plan: MappingPlan, frames: Mapping[str, DataFrame]) -> DataFrame:
    """Calls the mapping and casts the result to the plan's columns. A source without a frame has no rows.

    Nothing runs until the result is collected; a value that does not fit its target column fails that job.

    Raises:
        MappingError: a frame for a table that the function doesn't take, or the function fails when called.
    """
    strange = sorted(set(frames) - set(plan.schemas))
    if strange:
        raise MappingError(
            f"target table {plan.target.name!r} takes no rows of {', '.join(strange)}",
            where=plan.target.where(),
            remedy="this is a fault of the tool: report it",
        )
    inputs = {
        name: frames[name] if name in frames else empty_frame(spark, schema)
        for name, schema in plan.schemas.items()
    }
    result = call(plan.target, inputs)
    types = {field.name: field.dataType for field in result.schema.fields}
    quoted = {column.name: F.col(f"`{column.name.replace('`', '``')}`") for column in plan.columns}
    row = F.concat_ws(", ", *(_named(name, quoted[name], types[name]) for name in plan.target.key))
    return result.select(
        *(
            cast_column(
                quoted[column.name], column.name, types[column.name], spark_type(column.spark_type), row
            )
            for column in plan.columns
        )
    )


def _named(name: str, column: Column, found: DataType) -> Column:
    """``name=value``, for messages."""
    text = F.hex(column) if isinstance(found, BinaryType) else column.cast("string")
    return F.concat(F.lit(f"{name}="), F.coalesce(text, F.lit("NULL")))


def map_delta(
    spark: SparkSession,
    plan: MappingPlan,
    before: Mapping[str, DataFrame] | None,
    after: Mapping[str, DataFrame],
    number: int = 0,
) -> DataFrame:
    """Maps before and after images into one DataFrame with a column :data:`SIDE`, so that one Spark job serves both.

    Rows of before images are only deleted from the target. So of a row-wise mapping's before images only the target's
    key is computed, and the other columns are NULL. That saves half the work of an update.

    Args:
        spark: a running session.
        plan: the checked mapping.
        before: net before images by source table; absent means none. None if they aren't mapped
            (``handed_keys``).
        after: net after images by source table; absent means none.
        number: the mapping's number; ``SIDE`` holds it above the lowest bit, to tell rows of several mappings apart.
    """
    there = _on_side(map_rows(spark, plan, after), 2 * number + 1)
    if before is None:
        return there
    gone = map_rows(spark, plan, before)
    return _on_side(
        _keys_alone(gone, plan) if plan.kind is MappingKind.ROW_WISE else gone, 2 * number
    ).unionAll(there)


def _on_side(rows: DataFrame, side: int) -> DataFrame:
    return rows.select(F.lit(side).cast("smallint").alias(SIDE), "*")


def _keys_alone(rows: DataFrame, plan: MappingPlan) -> DataFrame:
    return rows.select(
        *(
            F.col(f"`{column.name.replace('`', '``')}`")
            if column.name in plan.target.key
            else F.lit(None).cast(spark_type(column.spark_type)).alias(column.name)
            for column in plan.columns
        )
    )


def failing_row(spark: SparkSession, plan: MappingPlan, source: str, rows: pa.Table) -> FailingRow | None:
    """One row of ``rows`` on which the mapping fails, or None if it fails on none of them.

    Halves the rows until one is left: at most ``log2(rows) + 2`` Spark jobs. Row-wise functions fail on
    some rows exactly if they fail on one of them alone.

    Args:
        spark: a running session.
        plan: the checked mapping.
        source: the table that the rows belong to.
        rows: source rows, with at least the columns of that table's schema.
    """
    first, count = 0, rows.num_rows
    cause = _failure(spark, plan, source, rows)
    while cause is not None and count > 1:
        half = count // 2
        found = _failure(spark, plan, source, rows.slice(first, half))
        if found is not None:
            cause, count = found, half
        else:
            first, count = first + half, count - half
    if cause is None or count == 0:
        return None
    alone = _failure(spark, plan, source, rows.slice(first, 1))
    return FailingRow(first, alone) if alone is not None else None


def _failure(spark: SparkSession, plan: MappingPlan, source: str, rows: pa.Table) -> str | None:
    frame = arrow_frame(spark, rows, plan.schemas[source])
    try:
        with named_jvm_end():  # else the row would be blamed
            map_rows(spark, plan, {source: frame}).write.format("noop").mode("overwrite").save()
    except (PySparkException, Py4JError) as error:
        return spark_cause(error)
    return None
