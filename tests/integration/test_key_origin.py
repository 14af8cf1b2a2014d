"""Which source columns a target's key columns are: handed through, or not to be told."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from migrator.model.table import Column, TableId, TableSchema
from transforms.key_origin import key_origin
from transforms.registry import TargetMapping

pytestmark = [pytest.mark.integration, pytest.mark.spark]

THING = TableSchema(
    TableId("s", "thing"),
    (
        Column("a", "int32", False, "int"),
        Column("b", "string", False, "text"),
        Column("c", "int64", True, "bigint"),
    ),
    ("a", "b"),
)

HANDED: dict[str, Callable[[DataFrame], DataFrame]] = {
    "renamed": lambda thing: thing.select(F.col("a").alias("x"), F.col("b").alias("y")),
    "filtered and cast": lambda thing: (
        thing.where("c > 1")
        .withColumn("x", F.col("a").cast("long"))
        .withColumnRenamed("b", "y")
        .select("x", "y")
    ),
    "exploded": lambda thing: thing.select(F.col("a").alias("x"), "b", F.explode(F.array("c", "c"))).select(
        "x", F.col("b").alias("y")
    ),
    "united alike": lambda thing: (
        thing.where("c = 1")
        .select(F.col("a").alias("x"), F.col("b").alias("y"))
        .union(thing.where("c = 2").select("a", "b"))
    ),
}
COMPUTED: dict[str, Callable[[DataFrame], DataFrame]] = {
    "folded": lambda thing: thing.select(F.lower("b").alias("y"), F.col("a").alias("x")),
    "computed": lambda thing: thing.select((F.col("a") + 1).alias("x"), F.col("b").alias("y")),
    "text as number": lambda thing: thing.select(F.col("a").alias("x"), F.col("b").cast("int").alias("y")),
    "constant": lambda thing: thing.select(F.lit(1).alias("x"), F.col("b").alias("y")),
    "united otherwise": lambda thing: thing.select(F.col("a").alias("x"), F.col("b").alias("y")).union(
        thing.select("c", "b")
    ),
    "generated": lambda thing: thing.select("b", F.explode(F.array("a", "c")).alias("x")).select(
        "x", F.col("b").alias("y")
    ),
}


def origin(spark: SparkSession, function: Callable[[DataFrame], DataFrame]) -> tuple[str, ...] | None:
    return key_origin(spark, TargetMapping("made", ("x", "y"), None, function, ("thing",)), THING, ("x", "y"))


@pytest.mark.parametrize("name", HANDED)
def test_what_is_handed_through_is_told(spark: SparkSession, name: str) -> None:
    assert origin(spark, HANDED[name]) == ("a", "b")


@pytest.mark.parametrize("name", COMPUTED)
def test_what_is_made_of_values_has_no_origin(spark: SparkSession, name: str) -> None:
    """Taken for an origin, rows of other keys could map to the doubted one and be missed."""
    assert origin(spark, COMPUTED[name]) is None
