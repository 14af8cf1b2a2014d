"""What a mapping's fingerprint notices, and what it doesn't: read by real Spark."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from migrator.model.table import Column, TableId, TableSchema
from migrator.model.target import TargetColumn
from transforms import Mapping
from transforms.analysis import fingerprint as module
from transforms.analysis.fingerprint import Fingerprint, fingerprint
from transforms.analysis.plan import analyse
from transforms.frames import constants

pytestmark = pytest.mark.spark


def table(name: str, **types: str) -> TableSchema:
    columns = tuple(Column(column, type_, True, type_) for column, type_ in types.items())
    return TableSchema(TableId("public", name), columns, (columns[0].name,))


SCHEMAS = {
    "flights": table("flights", id="int64", dest="string", delay="int32", price="decimal(12,4)"),
    "weather": table("weather", id="int64", temp="float64", dest="string"),
}
WIDER = {
    name: replace(schema, columns=(Column("added", "string", True, "text"), *schema.columns))
    for name, schema in SCHEMAS.items()
}
COLUMNS = tuple(
    TargetColumn(name, type_, type_, name != "id", False, False)
    for name, type_ in (("id", "bigint"), ("dest", "string"), ("n", "bigint"))
)


def of(spark: SparkSession, function: Any, schemas: dict[str, TableSchema] = SCHEMAS, **settings: Any) -> str:
    return taken(spark, function, schemas, **settings).text


def taken(
    spark: SparkSession, function: Any, schemas: dict[str, TableSchema], **settings: Any
) -> Fingerprint:
    mapping = Mapping()
    mapping.target("out", key="id", **settings)(function)
    return fingerprint(spark, analyse(spark, mapping["out"], schemas, COLUMNS))


def parts_of(fingerprint: Fingerprint) -> object:
    """The outline without the types of columns."""
    return {**json.loads(fingerprint.outline), "reads": None}


def regions(flights: DataFrame, *rows: tuple[str, str]) -> DataFrame:
    return constants(flights.sparkSession, "code string, region string", rows or [("SEA", "west")])


def udf(function: Callable[[Any], Any]) -> Callable[[DataFrame], DataFrame]:
    return lambda flights: flights.select("id", F.udf(function, "string")("dest").alias("dest"))


LIMIT = 5


def with_limit(text: str) -> str:
    return text[:LIMIT]


def shout(text: str) -> str:
    return text.upper()


def called(text: str) -> str:
    return shout(text)


DIFFERENT: dict[str, Callable[..., DataFrame]] = {
    "plain": lambda flights: flights.select("id", "dest"),
    "without a column": lambda flights: flights.select("id"),
    "swapped": lambda flights: flights.select(F.col("delay").cast("bigint").alias("id"), "dest"),
    "filter": lambda flights: flights.where("delay > 0").select("id", "dest"),
    "filter, other number": lambda flights: flights.where("delay > 1").select("id", "dest"),
    "filter, other sign": lambda flights: flights.where("delay >= 0").select("id", "dest"),
    "filter, other column": lambda flights: flights.where("id > 0").select("id", "dest"),
    "filter, other type": lambda flights: flights.where("delay > 0L").select("id", "dest"),
    "upper": lambda flights: flights.select("id", F.upper("dest").alias("dest")),
    "lower": lambda flights: flights.select("id", F.lower("dest").alias("dest")),
    "literal": lambda flights: flights.select("id", F.lit("a").alias("dest")),
    "other literal": lambda flights: flights.select("id", F.lit("b").alias("dest")),
    "bytes": lambda flights: flights.select("id", F.base64(F.lit(b"a")).alias("dest")),
    "other bytes": lambda flights: flights.select("id", F.base64(F.lit(b"b")).alias("dest")),
    "date": lambda flights: flights.select("id", F.expr("string(date'2020-01-01')").alias("dest")),
    "other date": lambda flights: flights.select("id", F.expr("string(date'2020-01-02')").alias("dest")),
    "array": lambda flights: flights.select("id", F.expr("array('a', dest)[0]").alias("dest")),
    "other place": lambda flights: flights.select("id", F.expr("array('a', dest)[1]").alias("dest")),
    "lambda": lambda flights: flights.select(
        "id", F.array_join(F.transform(F.split("dest", ","), lambda x: F.upper(x)), "").alias("dest")
    ),
    "other lambda": lambda flights: flights.select(
        "id", F.array_join(F.transform(F.split("dest", ","), lambda x: F.lower(x)), "").alias("dest")
    ),
    "regexp": lambda flights: flights.select("id", F.regexp_replace("dest", "a", "b").alias("dest")),
    "other regexp": lambda flights: flights.select("id", F.regexp_replace("dest", "a", "c").alias("dest")),
    "join": lambda flights: flights.join(regions(flights), F.col("dest") == F.col("code")).select(
        "id", "dest"
    ),
    "left join": lambda flights: flights.join(
        regions(flights), F.col("dest") == F.col("code"), "left"
    ).select("id", "dest"),
    "anti join": lambda flights: flights.join(
        regions(flights), F.col("dest") == F.col("code"), "left_anti"
    ).select("id", "dest"),
    "join with others": lambda flights: flights.join(
        regions(flights, ("SEA", "east")), F.col("dest") == F.col("code")
    ).select("id", "dest"),
    "join by another": lambda flights: flights.join(
        regions(flights), F.col("dest") == F.col("region")
    ).select("id", "dest"),
    "explode": lambda flights: flights.select(F.explode(F.array("id", F.col("id") + 1)).alias("id"), "dest"),
    "explode outer": lambda flights: flights.select(
        F.explode_outer(F.array("id", F.col("id") + 1)).alias("id"), "dest"
    ),
    "other table": lambda weather: weather.select("id", "dest"),
    "union": lambda flights, weather: flights.select("id", "dest").union(weather.select("id", "dest")),
    "union, turned": lambda flights, weather: weather.select("id", "dest").union(
        flights.select("id", "dest")
    ),
    "union by name": lambda flights, weather: flights.select("id", "dest").unionByName(
        weather.select(F.upper("dest").alias("dest"), "id")
    ),
    "cast": lambda flights: flights.select("id", F.expr("cast(dest AS bigint) AS n")),
    "try cast": lambda flights: flights.select("id", F.expr("try_cast(dest AS bigint) AS n")),
    "options": lambda flights: flights.select("id", F.to_json(F.struct("dest")).alias("dest")),
    "other options": lambda flights: flights.select(
        "id", F.to_json(F.struct("dest"), {"ignoreNullFields": "false"}).alias("dest")
    ),
    "from JSON": lambda flights: flights.select(
        "id", F.from_json("dest", "a string").getField("a").alias("dest")
    ),
    "from other JSON": lambda flights: flights.select(
        "id", F.from_json("dest", "a string", {"mode": "FAILFAST"}).getField("a").alias("dest")
    ),
    "udf": udf(lambda text: text and text.upper()),
    "other udf": udf(lambda text: text and text.lower()),
    "udf with a number": udf(lambda text: text[:1]),
    "udf with another number": udf(lambda text: text[:2]),
    "udf of a global": udf(with_limit),
    "udf that calls": udf(called),
}
PAIRS: dict[str, Any] = {
    "count": lambda flights: flights.groupBy(F.col("id")).agg(F.count("*").alias("n")),
    "sum": lambda flights: flights.groupBy(F.col("id")).agg(F.expr("sum(id) AS n")),
    "try sum": lambda flights: flights.groupBy(F.col("id")).agg(F.expr("try_sum(id) AS n")),
    "max": lambda flights: flights.groupBy(F.col("id")).agg(F.max("delay").cast("bigint").alias("n")),
    "max where": lambda flights: flights.groupBy(F.col("id")).agg(
        F.expr("max(delay) filter (where delay > 1)").cast("bigint").alias("n")
    ),
    "first": lambda flights: (
        flights.withColumn("r", F.row_number().over(Window.partitionBy("id").orderBy("delay")))
        .where("r = 1")
        .select("id", "dest")
    ),
    "last": lambda flights: (
        flights.withColumn("r", F.row_number().over(Window.partitionBy("id").orderBy(F.desc("delay"))))
        .where("r = 1")
        .select("id", "dest")
    ),
    "distinct": lambda flights: flights.select("id", "dest").distinct(),
}


@pytest.mark.slow
def test_each_change_of_a_mapping_is_another_fingerprint_and_an_unread_column_is_none(
    spark: SparkSession,
) -> None:
    found, outlines = {}, {}
    for name, function in (DIFFERENT | PAIRS).items():
        grain: dict[str, Any] = {"grain": "flights.id"} if name in PAIRS else {}
        one = of(spark, function, **grain)
        outlines[name] = parts_of(taken(spark, function, SCHEMAS, **grain))
        assert outlines[name] == parts_of(taken(spark, function, WIDER, **grain)), name
        assert one, name
        assert of(spark, function, **grain) == one, name
        assert of(spark, function, WIDER, **grain) == one, name
        found[name] = one
    found["counted by another"] = of(spark, PAIRS["count"], grain="flights.dest")
    outlines["counted by another"] = parts_of(taken(spark, PAIRS["count"], SCHEMAS, grain="flights.dest"))
    same = [(a, b) for a, b in itertools.combinations(found, 2) if found[a] == found[b]]
    assert same == []
    same = [(a, b) for a, b in itertools.combinations(outlines, 2) if outlines[a] == outlines[b]]
    assert same == [], "mappings of one outline are taken for the same"


REWRITTEN: dict[str, Callable[..., DataFrame]] = {
    "filter": lambda flights: flights.where(F.col("delay") > F.lit(0)).select("dest", "id"),
    "upper": lambda flights: flights.select(flights.id, F.expr("ucase(dest) AS dest")),
    "join": lambda flights: (
        flights.alias("f")
        .join(regions(flights).alias("r"), F.expr("f.dest = r.code"))
        .select("f.id", "f.dest")
    ),
    "udf": udf(lambda word: word and word.upper()),
    "udf that calls": udf(lambda text: shout(text)),
}


def test_a_mapping_written_in_other_words_keeps_its_fingerprint(spark: SparkSession) -> None:
    for name, function in REWRITTEN.items():
        assert of(spark, function) == of(spark, DIFFERENT[name]), name


def test_another_type_of_a_column_that_is_read_is_another_basis(spark: SparkSession) -> None:
    flights = SCHEMAS["flights"]
    wide = [replace(column, type="int64") if column.name == "delay" else column for column in flights.columns]
    schemas = {**SCHEMAS, "flights": replace(flights, columns=tuple(wide))}
    read, unread = DIFFERENT["filter"], DIFFERENT["plain"]
    assert taken(spark, read, schemas).basis != taken(spark, read, SCHEMAS).basis
    assert taken(spark, unread, schemas) == taken(spark, unread, SCHEMAS)


def test_nodes_are_asked_for_by_their_number_and_few_are(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each question to the JVM takes its time: a walk through all nodes took most of a long mapping's start."""
    asked, walked = list[int](), list[int]()
    numbered = module._nodes

    def both(expression: Any, nodes: Sequence[module.Node], wanted: Callable[[Any], bool]) -> Iterator[Any]:
        found = list(numbered(expression, nodes, wanted))
        every = list(module._all_of(expression))
        assert [str(node.getClass().getName()) for node in every] == [own["class"] for own in nodes]
        assert all(node is None or node.equals(other) for node, other in zip(found, every, strict=True))
        asked.append(sum(node is not None for node in found))
        walked.append(len(every))
        return iter(found)

    monkeypatch.setattr(module, "_nodes", both)
    for name in ("lambda", "try cast", "udf", "explode", "other options"):
        taken(spark, DIFFERENT[name], SCHEMAS)
    branches = F.when(F.col("delay") == 0, F.lit("0"))
    for number in range(1, 100):
        branches = branches.when(F.col("delay") == number, F.concat(F.lit(f"{number}"), F.col("dest")))
    summed = (F.col("delay") + 1).cast("string")
    taken(spark, lambda flights: flights.select("id", F.concat(branches, summed).alias("dest")), SCHEMAS)
    assert 0 < 20 * asked[-1] < walked[-1]
