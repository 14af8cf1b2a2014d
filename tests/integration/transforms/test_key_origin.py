"""Which source columns a target's key columns are: handed through, or not to be told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from migrator.model.table import Column, TableId, TableSchema
from transforms import columns
from transforms.analysis import key_origin as key_origin_module
from transforms.analysis.expressions import Expression
from transforms.analysis.key_origin import HandedColumns, handed_columns, key_origin
from transforms.analysis.row_wise import PlanWalk
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


MOMENTS = TableSchema(
    TableId("s", "thing"),
    (
        Column("day", "string", False, "date"),
        Column("at", "string", False, "datetime(6)"),
        Column("stamp", "string", False, "timestamp(3)"),
        Column("word", "string", False, "varchar(20)"),
    ),
    ("day",),
)


READ: dict[str, tuple[Callable[[], Any], str | None]] = {
    "a date": (lambda: F.col("day").cast("date"), "day"),
    "a date by its function": (lambda: F.to_date("day"), "day"),
    "a moment": (lambda: F.col("at").cast("timestamp_ntz"), "at"),
    "an instant": (lambda: F.col("stamp").cast("timestamp"), "stamp"),
    "a date of ours": (lambda: columns.mysql_date(F.col("day")), "day"),
    "a moment of ours": (lambda: columns.mysql_datetime(F.col("at")), "at"),
    "two moments of one day": (lambda: F.col("at").cast("date"), None),
    "a day's first moment": (lambda: F.col("day").cast("timestamp_ntz"), None),
    "texts for one date": (lambda: F.col("word").cast("date"), None),
    "a date in another order": (lambda: F.to_date("day", "yyyy-dd-MM"), None),
    "a date for others": (lambda: F.when(F.col("word") == "x", F.col("day").cast("date")), "day"),
    "one day for some": (
        lambda: F.when(F.col("word") == "x", F.col("day").cast("date")).otherwise(F.current_date()),
        None,
    ),
}


@pytest.mark.parametrize("name", READ)
def test_moments_that_a_server_printed_are_told_where_they_are_read(spark: SparkSession, name: str) -> None:
    read, told = READ[name]
    target = TargetMapping("target", ("x",), None, lambda thing: thing.select(read().alias("x")), ("thing",))
    assert key_origin(spark, target, MOMENTS, ("x",)) == (None if told is None else (told,))


def handed(spark: SparkSession, function: Callable[[DataFrame], DataFrame]) -> HandedColumns:
    return handed_columns(spark, TargetMapping("made", ("x", "y"), None, function, ("thing",)), THING)


SIMPLE: dict[str, Callable[[DataFrame], DataFrame]] = {
    "as it is": lambda thing: thing,
    "all columns": lambda thing: thing.select("*"),
    "under a name": lambda thing: thing.alias("t").select("t.a", "t.b", F.col("c").cast("short").alias("c")),
    "in some order": lambda thing: thing.repartition("a").sort("b").select("a", "b", "c"),
    "twice": lambda thing: thing.select("a", "b", "c", F.lit(1).alias("d"), F.lit(2).alias("d")),
}


@pytest.mark.parametrize("name", SIMPLE)
def test_a_simple_plan_is_read_in_one_call(
    spark: SparkSession, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a walk over the plan finds is the same; it isn't made."""
    visit = PlanWalk.visit
    monkeypatch.setattr(PlanWalk, "visit", lambda *_: pytest.fail("each look at a node takes a message"))
    read = handed(spark, SIMPLE[name])
    monkeypatch.setattr(PlanWalk, "visit", visit)
    monkeypatch.setattr(key_origin_module, "projection", lambda _: None)
    walked = handed(spark, SIMPLE[name])
    assert (read.columns, read.computed, read.row_wise) == (walked.columns, walked.computed, walked.row_wise)
    assert read.columns == {"a": "a", "b": "b", "c": "c"}
    assert read.row_wise
    assert read.one_to_one
    assert not walked.one_to_one


@pytest.mark.slow
def test_a_column_of_hundreds_of_steps_is_told_of_without_being_followed(spark: SparkSession) -> None:
    """Whoever follows it calls itself for each step, until Python ends that. The others are what they were."""

    def stepwise(thing: DataFrame) -> DataFrame:
        for _ in range(400):
            thing = thing.withColumn("c", F.col("c") + 1)
        return thing.withColumn("d", F.col("c") * 2).withColumn("e", F.lower("b"))

    read = handed(spark, stepwise)
    assert (read.columns, read.computed, read.one_to_one) == ({"a": "a", "b": "b"}, ("c", "d", "e"), True)
    followed = {name: kinds(each) for name, each in read.expressions.items()}
    assert {name for name, found in followed.items() if "TooDeep" in found} == {"c", "d"}
    assert followed["e"] == {"Lower", "AttributeReference"}
    assert max(each.depth for each in read.expressions.values()) <= 100


def kinds(expression: Expression) -> set[str]:
    return {expression.kind}.union(*map(kinds, expression.children))


UNREPEATABLE: dict[str, Callable[[DataFrame], DataFrame]] = {
    "chance": lambda thing: thing.select("a", "b", F.rand().alias("c")),
    "a clock": lambda thing: thing.select("a", "b", F.current_timestamp().alias("c")),
    "today in a text": lambda thing: thing.select("a", "b", F.lit("today").cast("date").alias("c")),
    "an order by chance": lambda thing: thing.sort(F.rand()).select("a", "b"),
}


@pytest.mark.parametrize("name", UNREPEATABLE)
def test_what_is_another_value_each_time_is_seen_in_a_simple_plan(spark: SparkSession, name: str) -> None:
    assert not handed(spark, UNREPEATABLE[name]).row_wise


def test_names_that_look_like_clocks_are_only_looked_at_twice(spark: SparkSession) -> None:
    read = handed(spark, lambda thing: thing.select("a", "b", F.lower("b").alias("last_known")))
    assert (read.row_wise, read.one_to_one, read.computed) == (True, True, ("last_known",))


def test_constants_and_copies_are_not_taken_for_the_source(spark: SparkSession) -> None:
    """Their leaves look like its leaf, and have its columns."""
    rows = [(1, "x", 2)]
    made = handed(spark, lambda thing: thing.sparkSession.createDataFrame(rows, thing.schema))
    assert (made.columns, made.one_to_one) == ({}, False)
    copied = handed(spark, lambda thing: thing.sparkSession.createDataFrame(thing.rdd, thing.schema))
    assert (copied.columns, copied.one_to_one, copied.row_wise) == ({}, False, False)
