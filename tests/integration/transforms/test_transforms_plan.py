"""Which mapping functions are row-wise, read by real Spark; everything else must be refused with its reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from migrator.errors import MappingError
from migrator.model.table import Column, TableId, TableSchema
from migrator.model.target import TargetColumn
from transforms import Mapping
from transforms.analysis.plan import MappingKind, MappingPlan, analyse
from transforms.frames import constants

pytestmark = pytest.mark.spark


def table(name: str, **types: str) -> TableSchema:
    columns = tuple(Column(column, type_, True, type_) for column, type_ in types.items())
    return TableSchema(TableId("public", name), columns, (columns[0].name,))


def target_column(name: str, type_: str, **settings: bool) -> TargetColumn:
    wanted = {"nullable": True, "has_default": False, "generated": False, **settings}
    return TargetColumn(name, type_, type_, wanted["nullable"], wanted["has_default"], wanted["generated"])


SCHEMAS = {
    "flights": table(
        "flights", id="int64", dest="string", delay="int32", at="timestamp", price="decimal(12,4)"
    ),
    "weather": table("weather", id="int64", temp="float64", dest="string"),
}
COLUMNS = (
    target_column("id", "bigint", nullable=False),
    target_column("dest", "string"),
    target_column("n", "bigint"),
)


def plan_of(
    spark: SparkSession,
    function: Callable[..., Any],
    columns: tuple[TargetColumn, ...] = COLUMNS,
    **settings: Any,
) -> MappingPlan:
    mapping = Mapping()
    mapping.target("out", key="id", **settings)(function)
    return analyse(spark, mapping["out"], SCHEMAS, columns)


def refusal(spark: SparkSession, function: Callable[..., Any], **settings: Any) -> MappingError:
    with pytest.raises(MappingError) as failure:
        plan_of(spark, function, **settings)
    assert failure.value.where
    assert failure.value.remedy
    return failure.value


def regions(flights: DataFrame) -> DataFrame:
    """A constant relation, as a mapping author writes one."""
    return constants(flights.sparkSession, "code string, region string", [("SEA", "west"), ("BOS", "east")])


def udf_row_wise(flights: DataFrame) -> DataFrame:
    upper = F.udf(lambda text: text and text.upper(), "string")
    return flights.select("id", upper("dest").alias("dest"))


ROW_WISE: dict[str, Callable[..., DataFrame]] = {
    "select": lambda flights: flights.select("id", "dest"),
    "filter": lambda flights: flights.filter("delay > 0").select("id", F.upper("dest").alias("dest")),
    "explode": lambda flights: flights.select(
        F.explode(F.array("id", F.col("id") + 1)).alias("id"), "dest"
    ).dropna(),
    "explode_outer": lambda flights: flights.select(
        "id", F.explode_outer(F.split("dest", ",")).alias("dest")
    ),
    "union of two": lambda flights, weather: flights.select("id", "dest").unionByName(
        weather.select("id", "dest")
    ),
    "union with itself": lambda flights: flights.select("id").union(flights.select(F.col("id") + 1)),
    "alias and cast": lambda flights: flights.alias("f").select(
        "f.id", F.col("f.delay").cast("long").alias("n")
    ),
    "left join constants": lambda flights: flights.join(
        F.broadcast(regions(flights)), F.col("dest") == F.col("code"), "left"
    ).select("id", F.col("region").alias("dest")),
    "inner join constants": lambda flights: (
        regions(flights).join(flights, F.col("dest") == F.col("code")).select("id")
    ),
    "right join onto source": lambda flights: (
        regions(flights).join(flights, F.col("dest") == F.col("code"), "right").select("id")
    ),
    "semi join": lambda flights: flights.join(
        regions(flights), F.col("dest") == F.col("code"), "left_semi"
    ).select("id"),
    "anti join": lambda flights: flights.join(
        regions(flights), F.col("dest") == F.col("code"), "left_anti"
    ).select("id"),
    "cross join range": lambda flights: flights.crossJoin(flights.sparkSession.range(2).toDF("n")).select(
        "id", "n"
    ),
    "constants aggregated": lambda flights: flights.crossJoin(
        regions(flights).agg(F.count("*").alias("n"))
    ).select("id", "n"),
    "repartition and sort": lambda flights: flights.repartition(3).orderBy("id").select("id"),
    "unpivot": lambda flights: flights.select("id", F.col("delay").cast("long").alias("a")).unpivot(
        "id", ["a"], "dest", "n"
    ),
    "sql with a constant subquery": lambda flights: flights.sparkSession.sql(
        "with f as (select * from {flights}) select id, dest from f where dest in (select code from {codes})",
        flights=flights,
        codes=regions(flights),
    ),
    "constants without a size": lambda flights: flights.join(
        F.broadcast(flights.sparkSession.createDataFrame([("SEA",)], "dest string")), "dest"
    ).select("id"),
    "python udf": udf_row_wise,
}


@pytest.mark.parametrize("name", ROW_WISE)
def test_row_wise_functions_are_recognised(spark: SparkSession, name: str) -> None:
    assert plan_of(spark, ROW_WISE[name]).kind is MappingKind.ROW_WISE


GRAINS: dict[str, tuple[Callable[..., DataFrame], str]] = {
    "aggregate": (
        lambda flights: flights.groupBy("id").agg(F.count("*").alias("n")),
        "Aggregate over flights",
    ),
    "global aggregate": (
        lambda flights: flights.agg(F.max("id").alias("id")),
        "Aggregate over all rows of flights",
    ),
    "window": (
        lambda flights: flights.select(
            "id", F.row_number().over(Window.orderBy("id")).cast("long").alias("n")
        ),
        "Window over all rows of flights",
    ),
    "distinct": (lambda flights: flights.select("id").distinct(), "Distinct over flights"),
    "drop duplicates": (
        lambda flights: flights.dropDuplicates(["dest"]).select("id"),
        "Distinct over flights",
    ),
    "self join": (
        lambda flights: (
            flights.alias("a").join(flights.alias("b"), F.col("a.id") == F.col("b.id")).select("a.id")
        ),
        "Join of flights with itself",
    ),
    "join of two": (
        lambda flights, weather: flights.join(weather, "dest").select(flights.id),
        "Join of flights with weather",
    ),
    "limit": (lambda flights: flights.select("id").limit(3), "Limit over flights"),
    "sorted limit": (
        lambda flights: flights.orderBy("id").limit(3).select("id"),
        "Limit over flights",
    ),
    "offset": (lambda flights: flights.select("id").offset(1), "Offset over flights"),
    "sample": (lambda flights: flights.select("id").sample(0.5, seed=1), "Sample over flights"),
    "except": (
        lambda flights, weather: flights.select("id").exceptAll(weather.select("id")),
        "Except over flights and weather",
    ),
    "intersect": (
        lambda flights: flights.select("id").intersect(flights.select("id")),
        "Intersect over flights",
    ),
    "union with constants": (
        lambda flights: flights.select("id").union(flights.sparkSession.range(3)),
        "Union of constant rows with flights",
    ),
    "join that keeps constants": (
        lambda flights: regions(flights).join(flights, F.col("dest") == F.col("code"), "left").select("id"),
        "LEFT OUTER Join that keeps constant rows",
    ),
    "full join": (
        lambda flights: flights.join(regions(flights), F.col("dest") == F.col("code"), "full").select("id"),
        "FULL OUTER Join that keeps constant rows",
    ),
    "anti join of constants": (
        lambda flights: (
            regions(flights)
            .withColumn("id", F.lit(1).cast("long"))
            .join(flights.select("dest"), F.col("dest") == F.col("code"), "left_anti")
            .select("id")
        ),
        "LEFT ANTI Join that keeps constant rows",
    ),
    "subquery": (
        lambda flights, weather: flights.sparkSession.sql(
            "select id from {flights} where dest in (select dest from {weather})",
            flights=flights,
            weather=weather,
        ),
        "subquery over weather",
    ),
    "scalar subquery": (
        lambda flights: flights.sparkSession.sql(
            "select id, (select max(id) from {flights}) n from {flights}", flights=flights
        ),
        "Aggregate over all rows of flights",
    ),
    "join through CTEs": (
        lambda flights: flights.sparkSession.sql(
            "with f as (select * from {flights}) select a.id from f a join f b on a.id = b.id",
            flights=flights,
        ),
        "Join of flights with itself",
    ),
    "whole partitions": (
        lambda flights: flights.select("id").mapInArrow(lambda batches: batches, "id bigint"),
        "MapInArrow over flights",
    ),
    "rows taken through an RDD": (
        lambda flights: flights.sparkSession.createDataFrame(flights.select("id").rdd, "id bigint").select(
            "id"
        ),
        "a copy of source rows",
    ),
    "checkpoint": (
        lambda flights: flights.select("id").localCheckpoint(eager=False),
        "a copy of source rows",
    ),
}


@pytest.mark.parametrize("name", GRAINS)
def test_other_functions_are_refused_with_node_and_table(spark: SparkSession, name: str) -> None:
    function, cause = GRAINS[name]
    error = refusal(spark, function)
    assert "neither row-wise nor has it a grain" in str(error)
    assert cause in error.cause
    assert "grain" in error.remedy


UNREPEATABLE: dict[str, tuple[Callable[[], Any], str]] = {
    "rand": (F.rand, "rand"),
    "uuid": (lambda: F.expr("uuid()"), "uuid"),
    "id": (F.monotonically_increasing_id, "monotonically_increasing_id"),
    "now": (F.now, "now"),
    "current_timestamp": (F.current_timestamp, "current_timestamp"),
    "current_date": (F.current_date, "current_date"),
    "localtimestamp": (F.localtimestamp, "localtimestamp"),
    "unix_timestamp": (lambda: F.unix_timestamp(), "current_timestamp"),
    "now as text": (lambda: F.lit("now").cast("timestamp"), "'now'"),
    "today elsewhere": (lambda: F.to_timestamp(F.lit("Today CET")), "'today cet'"),
    "today parsed": (lambda: F.to_date(F.lit("today")), "'today'"),
    "user": (F.current_user, "current_user"),
    "udf": (lambda: F.udf(lambda: 1, "int").asNondeterministic()(), "<lambda>"),
    "nested": (lambda: F.upper(F.concat(F.lit("a"), F.rand().cast("string"))), "rand"),
}


@pytest.mark.parametrize("name", UNREPEATABLE)
def test_expressions_that_differ_between_replays_are_refused_by_name(spark: SparkSession, name: str) -> None:
    expression, named = UNREPEATABLE[name]
    error = refusal(spark, lambda flights: flights.select("id", expression().cast("string").alias("dest")))
    assert "other values each time" in error.what
    assert named in error.cause


def test_an_unrepeatable_filter_is_refused(spark: SparkSession) -> None:
    assert "rand" in refusal(spark, lambda flights: flights.filter(F.rand() > 0.5).select("id")).cause


@pytest.mark.parametrize("action", ["collect", "count", "toPandas", "isEmpty"])
def test_a_function_that_runs_a_query_is_refused(spark: SparkSession, action: str) -> None:
    def function(flights: DataFrame) -> DataFrame:
        getattr(flights.filter("delay > 1"), action)()
        return flights.select("id")

    assert "runs queries itself" in refusal(spark, function).what


def test_source_columns_read_come_from_the_plan(spark: SparkSession) -> None:
    def function(flights: DataFrame, weather: DataFrame) -> DataFrame:
        wide = flights.withColumn("unused", F.col("price") * 2).filter("delay > 0")
        return wide.select("id").unionByName(weather.filter("temp > 1").select("id"))

    plan = plan_of(spark, function)
    assert plan.reads == {"flights": ("id", "delay"), "weather": ("id", "temp")}
    assert [column.name for column in plan.columns] == ["id"]


def test_columns_passed_straight_through_count_as_read(spark: SparkSession) -> None:
    assert plan_of(spark, lambda weather: weather.drop("temp")).reads == {"weather": ("id", "dest")}
    assert plan_of(spark, lambda flights, weather: flights.select("id", "dest")).reads == {
        "flights": ("id", "dest")
    }
    both = plan_of(spark, lambda weather: weather.drop("temp").union(weather.drop("temp")))
    assert both.reads == {"weather": ("id", "dest")}


def test_all_column_problems_are_reported_together(spark: SparkSession) -> None:
    columns = (
        *COLUMNS,
        target_column("must", "string", nullable=False),
        target_column("made", "string", generated=True),
        target_column("filled", "int", nullable=False, has_default=True),
        target_column("seen", "timestamp"),
    )

    def function(flights: DataFrame) -> DataFrame:
        return flights.select(
            F.col("dest").alias("Dest"),
            F.lit("x").alias("made"),
            F.col("dest").alias("n"),
            F.col("at").alias("seen"),
            F.col("delay").alias("filled"),
            F.lit(1).alias("filled"),
        )

    error = refusal(spark, function, columns=columns)
    text = str(error)
    assert "6 problems" not in error.what
    assert "7 problems" in error.what
    for part in (
        "'Dest', which the target does not have",
        "did you mean 'dest'",
        "generated column 'made'",
        "does not produce the key column 'id'",
        "does not produce column 'must'",
        "column 'filled' twice",
        "string does not become bigint by itself",
        "columns.instant(c, zone)",
    ):
        assert part in text


def test_an_unknown_column_names_function_line_and_neighbours(spark: SparkSession) -> None:
    def misspelt(flights: DataFrame) -> DataFrame:
        return flights.select("id", "destt")

    error = refusal(spark, misspelt)
    assert "unknown column 'destt'" in error.what
    assert "function " in error.where
    assert "misspelt, line " in error.where
    assert "dest" in error.remedy


def test_an_unknown_attribute_is_an_unknown_column(spark: SparkSession) -> None:
    assert "'nope'" in refusal(spark, lambda flights: flights.select(flights.nope)).what


@pytest.mark.parametrize(
    ("function", "cause"),
    [
        (lambda flights: None, "it returns nothing"),
        (lambda flights: 3, "it returns int"),
        (lambda flights: flights.select("id") / 0, "TypeError"),
        (lambda flights: flights.sparkSession.range(3), "no row of flights"),
    ],
    ids=["nothing", "int", "raises", "constants"],
)
def test_functions_that_make_no_usable_frame_are_refused(
    spark: SparkSession, function: Callable[..., Any], cause: str
) -> None:
    assert cause in refusal(spark, function).cause


def test_an_unknown_source_table_is_refused(spark: SparkSession) -> None:
    error = refusal(spark, lambda flight: flight)
    assert "no table 'flight'" in error.what
    assert "flights" in error.remedy
