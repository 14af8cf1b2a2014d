"""What a declared grain lets a mapping function do, and what it doesn't, read by real Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from tests.integration.transforms.test_transforms_plan import GRAINS, plan_of, refusal
from transforms.analysis.plan import MappingKind

pytestmark = pytest.mark.spark


def test_a_row_wise_function_with_a_grain_stays_row_wise(spark: SparkSession) -> None:
    plan = plan_of(spark, lambda flights: flights.select("id"), grain="flights.id")
    assert (plan.kind, plan.reaches) == (MappingKind.ROW_WISE, ())


def test_with_a_grain_other_functions_are_taken(spark: SparkSession) -> None:
    plan = plan_of(spark, GRAINS["aggregate"][0], grain="flights.id")
    assert plan.kind is MappingKind.GRAIN
    assert [reach.grain for reach in plan.reaches] == [("id",)]


@pytest.mark.parametrize(
    "name",
    [
        "global aggregate",
        "window",
        "limit",
        "offset",
        "sample",
        "drop duplicates",
        "checkpoint",
        "scalar subquery",
    ],
)
def test_what_depends_on_all_rows_is_refused_with_a_grain_too(spark: SparkSession, name: str) -> None:
    error = refusal(spark, GRAINS[name][0], grain="flights.id")
    assert "can't be kept in step change by change" in error.what


def test_collected_rows_are_repeatable_once_sorted(spark: SparkSession) -> None:
    def function(flights: DataFrame, sort: bool) -> DataFrame:
        found = F.collect_list("dest")
        return flights.groupBy("id").agg(
            F.concat_ws(",", F.sort_array(found) if sort else found).alias("dest")
        )

    assert (
        plan_of(spark, lambda flights: function(flights, True), grain="flights.id").kind is MappingKind.GRAIN
    )
    error = refusal(spark, lambda flights: function(flights, False), grain="flights.id")
    assert "collect_list" in error.cause


@pytest.mark.parametrize(
    ("name", "expression"),
    [
        ("listagg", "listagg(dest, ',')"),
        ("mode", "mode(dest)"),
        ("first", "first(dest) OVER (PARTITION BY id)"),
        ("row_number", "cast(row_number() OVER (PARTITION BY id ORDER BY 1) AS string)"),
        ("lag", "lag(dest) OVER (PARTITION BY id ORDER BY 'x')"),
        ("", "listagg(dest, ',') WITHIN GROUP (ORDER BY dest)"),
        ("", "first(dest) OVER (PARTITION BY id ORDER BY delay, dest)"),
        ("", "sort_array(collect_list(dest) OVER (PARTITION BY id))[0]"),
    ],
)
def test_what_shows_the_order_of_rows_needs_an_order(spark: SparkSession, name: str, expression: str) -> None:
    def function(flights: DataFrame) -> DataFrame:
        made = F.expr(expression).alias("dest")
        return flights.select("id", made) if "OVER" in expression else flights.groupBy("id").agg(made)

    if not name:
        assert plan_of(spark, function, grain="flights.id").kind is MappingKind.GRAIN
        return
    assert refusal(spark, function, grain="flights.id").cause == f"uses {name}"


def test_a_grain_without_a_link_is_refused_by_table(spark: SparkSession) -> None:
    error = refusal(spark, GRAINS["join of two"][0], grain="flights.id")
    assert "nothing links table weather" in error.what
    assert "links=" in error.remedy


def test_a_computed_grain_is_called_and_checked(spark: SparkSession) -> None:
    aggregate = GRAINS["aggregate"][0]
    plan = plan_of(spark, aggregate, grain=lambda flights: [F.lower(flights.dest)])
    assert [reach.grain for reach in plan.reaches] == [()]
    assert "computed grain" in refusal(spark, aggregate, grain=lambda flights: flights.nothing).what
    assert "other values" in refusal(spark, aggregate, grain=lambda flights: [F.rand()]).what


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (lambda flights: flights.nothing, "fails when called"),
        (lambda flights: "dest", "fails when called"),
        (lambda flights: F.max(flights.dest), "computed from several rows"),
        (lambda flights: F.explode(F.split(flights.dest, "/")), "several values of one row"),
        (lambda flights: F.row_number().over(Window.orderBy("id")), "computed from several rows"),
        (lambda flights: F.rand(), "another one each time"),
        (lambda flights: flights.id.cast("double"), "is a double"),
    ],
)
def test_a_computed_value_is_called_and_checked(
    spark: SparkSession, value: Callable[[DataFrame], object], what: str
) -> None:
    error = refusal(spark, GRAINS["aggregate"][0], grain="flights.id", values={"flights.code": value})
    assert what in error.what
    assert "flights.code" in error.what


def test_values_that_are_linked_have_one_type(spark: SparkSession) -> None:
    def declared(other: str) -> dict[str, Any]:
        values = {"flights.code": lambda flights: flights.id, "weather.code": lambda weather: F.expr(other)}
        return {"grain": "flights.id", "values": values, "links": ["weather.code = flights.code"]}

    join = GRAINS["join of two"][0]
    assert "different types" in refusal(spark, join, **declared("'x'")).what
    assert (
        "with values="
        in refusal(
            spark,
            join,
            grain="flights.id",
            links=["weather.code = flights.id"],
            values={"weather.code": lambda weather: F.lit(1)},
        ).remedy
    )
