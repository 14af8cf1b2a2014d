"""The words for each small edit of a mapping, as a start says them; harmless edits have none. Read by real Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from migrator.model.progress import Mapped
from migrator.model.table import TableSchema
from migrator.model.target import TargetColumn
from migrator.run.lead.carried import mapped_now
from migrator.run.lead.differing import Differing, differing
from tests.integration.transforms.test_fingerprint import SCHEMAS, regions, table
from transforms import Mapping
from transforms.analysis.fingerprint import fingerprint
from transforms.analysis.plan import analyse
from transforms.load import load_mapping

pytestmark = pytest.mark.spark

COLUMNS = tuple(
    TargetColumn(name, type_, type_, name != "id", False, False)
    for name, type_ in (("id", "bigint"), ("dest", "string"), ("n", "bigint"), ("kind", "string"))
)
Function = Callable[..., DataFrame]


def noted(spark: SparkSession, mapping: Mapping, schemas: dict[str, TableSchema] = SCHEMAS) -> Mapped:
    plan = analyse(spark, mapping["out"], schemas, COLUMNS)
    [found] = mapped_now({"out": plan}, {"out": "new"}, lambda one: fingerprint(spark, one), {})
    return found


def of(spark: SparkSession, function: Function, **settings: Any) -> Mapped:
    mapping = Mapping()
    mapping.target("out", **{"key": "id", **settings})(function)
    return noted(spark, mapping)


def source(schemas: dict[str, TableSchema] = SCHEMAS) -> set[str]:
    return {f"{name}.{column}" for name, schema in schemas.items() for column in schema.names()}


def compared(old: Mapped, new: Mapped) -> Differing:
    return differing(old, new, source())


def plain(flights: DataFrame) -> DataFrame:
    return flights.where("delay > 0").select("id", F.upper("dest").alias("dest"), F.lit("x").alias("kind"))


def short(text: str) -> str:
    return text[:3]


def shorter(text: str) -> str:
    return text[:2]


def by_function(function: Callable[[Any], Any]) -> Function:
    return lambda flights: flights.select("id", F.udf(function, "string")("dest").alias("dest"))


def joined(how: str = "inner", *rows: tuple[str, str]) -> Function:
    return lambda flights: flights.join(regions(flights, *rows), F.col("dest") == F.col("code"), how).select(
        "id", "dest"
    )


def struct(*names: str) -> Function:
    return lambda flights: flights.select("id", F.to_json(F.struct(*names)).alias("dest"))


def numbered(order: str) -> Function:
    return lambda flights: (
        flights.withColumn("r", F.row_number().over(Window.partitionBy("id").orderBy(F.expr(order).desc())))
        .where("r = 1")
        .select("id", "dest")
    )


def counted(by: str) -> Function:
    return lambda flights: flights.groupBy(F.col(by).cast("bigint").alias("id")).agg(F.count("*").alias("n"))


def within(function: str) -> Function:
    def made(flights: DataFrame, weather: DataFrame) -> DataFrame:
        named = flights.withColumn("u", F.upper("dest")).withColumn("l", F.lower("dest"))
        found = weather.where(F.col("dest") == F.col(function[0]).outer()).exists()
        return named.where(found).select("id", "dest")

    return made


EDITS: dict[str, tuple[Function, Function, tuple[str, ...]]] = {
    "a literal of a filter": (
        plain,
        lambda flights: flights.where("delay > 1").select(
            "id", F.upper("dest").alias("dest"), F.lit("x").alias("kind")
        ),
        ("a filter (a literal)",),
    ),
    "a filter on a column that nothing read": (
        plain,
        lambda flights: flights.where("price > 0").select(
            "id", F.upper("dest").alias("dest"), F.lit("x").alias("kind")
        ),
        ("a filter",),
    ),
    "a filter gone": (
        plain,
        lambda flights: flights.select("id", F.upper("dest").alias("dest"), F.lit("x").alias("kind")),
        ("a filter that is gone",),
    ),
    "a column gone": (
        plain,
        lambda flights: flights.where("delay > 0").select("id", F.upper("dest").alias("dest")),
        ("column kind is gone",),
    ),
    "a column computed otherwise": (
        plain,
        lambda flights: flights.where("delay > 0").select(
            "id", F.lower("dest").alias("dest"), F.lit("x").alias("kind")
        ),
        ("column dest is computed otherwise",),
    ),
    "a literal of a column": (
        plain,
        lambda flights: flights.where("delay > 0").select(
            "id", F.upper("dest").alias("dest"), F.lit("y").alias("kind")
        ),
        ("column kind is computed otherwise (a literal)",),
    ),
    "a column in between": (
        plain,
        lambda flights: (
            flights.where("delay > 0")
            .withColumn("d", F.trim("dest"))
            .select("id", F.upper("d").alias("dest"), F.lit("x").alias("kind"))
        ),
        ("column dest is computed otherwise",),
    ),
    "bytes": (
        lambda flights: flights.select("id", F.base64(F.lit(b"a")).alias("dest")),
        lambda flights: flights.select("id", F.base64(F.lit(b"b")).alias("dest")),
        ("column dest is computed otherwise (a literal)",),
    ),
    "a function's body": (
        by_function(short),
        by_function(shorter),
        ("column dest is computed otherwise (what a Python function does)",),
    ),
    "order of a struct": (
        struct("dest", "delay"),
        struct("delay", "dest"),
        ("column dest is computed otherwise (the order of a struct's fields)",),
    ),
    "another field of a struct": (
        struct("dest", "delay"),
        struct("dest", "price"),
        ("column dest is computed otherwise",),
    ),
    "constant rows": (joined(), joined("inner", ("SEA", "east")), ("constant rows",)),
    "a join's kind": (joined(), joined("left"), ("a join",)),
    "a join added": (
        lambda flights: flights.select("id", "dest"),
        joined(),
        ("a join that wasn't there", "constant rows that wasn't there"),
    ),
    "what is exploded": (
        lambda flights: flights.select(F.explode(F.array("id", F.col("id") + 1)).alias("id"), "dest"),
        lambda flights: flights.select(F.explode(F.array("id", F.col("id") + 2)).alias("id"), "dest"),
        ("column id is computed otherwise (a literal)", "what it explodes (a literal)"),
    ),
    "one part of a union": (
        lambda flights, weather: flights.select("id", "dest").union(weather.select("id", "dest")),
        lambda flights, weather: flights.select("id", "dest").union(
            weather.select("id", F.upper("dest").alias("dest"))
        ),
        ("column dest is computed otherwise",),
    ),
    "a source table": (
        lambda flights: flights.select("id", "dest"),
        lambda weather: weather.select("id", "dest"),
        (
            "its source tables was flights and is weather",
            "column dest is computed otherwise",
            "column id is computed otherwise",
            "the order of its steps",
        ),
    ),
}
JOINED: dict[str, tuple[Function, Function, tuple[str, ...]]] = {
    "what is taken for a duplicate": (
        lambda flights: flights.select("id", "dest").distinct().select("id"),
        lambda flights: flights.select("id").distinct().select("id"),
        ("what it takes for duplicates",),
    ),
    "what has to be the same": (
        lambda flights, weather: (
            flights.select("id", "dest").intersect(weather.select("id", "dest")).select("id")
        ),
        lambda flights, weather: flights.select("id").intersect(weather.select("id")).select("id"),
        ("what it intersects",),
    ),
    "a column of a subquery": (
        within("upper"),
        within("lower"),
        ("a filter",),
    ),
    "an order within a window": (
        numbered("delay"),
        numbered("delay + 1"),
        ("a filter", "a window"),
    ),
    "what it groups by": (
        counted("id"),
        lambda flights: flights.groupBy("id", "dest").agg(F.count("*").alias("n")),
        ("column dest is new", "column id is computed otherwise", "what it groups by"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("edits", [EDITS, JOINED], ids=["row-wise", "joined"])
def test_each_edit_is_named(spark: SparkSession, edits: dict[str, Any]) -> None:
    links = ["weather.dest = flights.dest"]
    said = {}
    for name, (before, after, _) in edits.items():
        settings: dict[str, Any] = {} if edits is EDITS else {"grain": "flights.id"}
        if name in ("a column of a subquery", "what has to be the same"):
            settings["links"] = links
        old, new = (of(spark, function, **settings) for function in (before, after))
        found = compared(old, new)
        assert not found.doubt, name
        assert found.others or name == "a column gone", name
        said[name] = found.words
        assert compared(new, new) == Differing(), name
    assert said == {name: words for name, (_, _, words) in edits.items()}


def computed(length: int) -> Any:
    return lambda flights: F.substring(flights.dest, 1, length)


@pytest.mark.slow
def test_what_a_mapping_declares_is_named(spark: SparkSession) -> None:
    function = counted("id")
    old = of(spark, function, grain="flights.id")
    assert compared(old, of(spark, function, grain="flights.dest")).words == ("its grain",)
    assert compared(old, of(spark, function, grain="flights.id", surrogates={"id": "flight"})).words == (
        "its surrogates was none and is id by flight",
    )
    by_three, by_two = (of(spark, function, grain=computed(length)) for length in (3, 2))
    assert compared(by_three, by_two).words == ("its computed grain (a literal)",)
    assert compared(
        of(spark, by_function(short)), of(spark, by_function(short), key=["id", "dest"])
    ).words == ("its key was id and is id, dest",)


HARMLESS: dict[str, Function] = {
    "another order, and other words": lambda flights: flights.where(F.col("delay") > F.lit(0)).select(
        F.lit("x").alias("kind"), F.expr("ucase(dest) AS dest"), flights.id
    ),
    "a step in between": lambda flights: (
        flights.where("delay > 0")
        .withColumn("d", F.upper("dest"))
        .withColumn("nothing", F.trim("dest"))
        .select("id", F.col("d").alias("dest"), F.lit("x").alias("kind"))
    ),
    "names in between": lambda flights: (
        flights.alias("f")
        .where("f.delay > 0")
        .select("f.id", F.upper("f.dest").alias("dest"), F.lit("x").alias("kind"))
    ),
}


def test_harmless_edits_are_quiet(spark: SparkSession) -> None:
    old = of(spark, plain)
    for name, function in HARMLESS.items():
        assert compared(old, of(spark, function)) == Differing(), name


def test_a_query_file_is_compared_like_a_function(spark: SparkSession, tmp_path: Any) -> None:
    def written(query: str) -> Mapped:
        file = tmp_path / "mapping" / "out.sql"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"-- target: out\n-- key: id\n{query}")
        (file.parent / "mapping.py").write_text("from transforms import Mapping\nmapping = Mapping()\n")
        return noted(spark, load_mapping(file.parent / "mapping.py", lambda: spark))

    old = written("SELECT id, dest FROM flights WHERE delay > 0")
    assert compared(old, written("-- quiet\nselect  dest, id from flights where delay>0")) == Differing()
    assert compared(old, written("SELECT id, dest FROM flights WHERE delay > 3")).words == (
        "a filter (a literal)",
    )


def test_what_could_not_be_compared_is_said(spark: SparkSession) -> None:
    old = of(spark, plain)
    later = replace(old, basis=old.basis.replace("Spark ", "Spark 9."))
    assert compared(old, later) == Differing(), "the outline says the same"
    other = of(spark, EDITS["a literal of a column"][1])
    found = compared(old, replace(other, basis=later.basis))
    assert found.doubt.startswith("it was made with Spark ")
    assert found.words == ("column kind is computed otherwise (a literal)",)
    assert not found.others
    no_outline = replace(old, outline="")
    assert "what else isn't known" in compared(no_outline, other).said()
    assert compared(no_outline, other).others
    assert compared(no_outline, later).doubt.startswith("it was made with Spark ")
    assert compared(old, replace(old, content="", basis="", outline="")).doubt


def test_another_type_of_a_column_is_a_doubt_and_a_renamed_one_too(spark: SparkSession) -> None:
    """Rows of a renamed column needn't come again; who reads another one that was there all the time must say so."""
    mapping = Mapping()
    mapping.target("out", key="id")(lambda flights: flights.where("delay > 0").select("id", "dest"))
    old = noted(spark, mapping)
    flights = SCHEMAS["flights"]
    wide = table("flights", id="int64", dest="string", delay="int64", price="decimal(12,4)")
    found = compared(old, noted(spark, mapping, {**SCHEMAS, "flights": wide}))
    assert (found.doubt, found.others) == ("the type of flights.delay is another one", False)
    renamed = tuple(
        replace(column, name="goal") if column.name == "dest" else column for column in flights.columns
    )
    schemas = {**SCHEMAS, "flights": replace(flights, columns=renamed)}
    adapted = Mapping()
    adapted.target("out", key="id")(
        lambda flights: flights.where("delay > 0").select("id", F.col("goal").alias("dest"))
    )
    found = differing(old, noted(spark, adapted, schemas), source(schemas))
    assert (found.doubt, found.others) == ("flights.dest isn't in the source any more", False)


def test_an_outline_is_bounded(spark: SparkSession) -> None:
    wide = table("flights", **{f"c{number}": "string" for number in range(400)})
    columns = tuple(
        TargetColumn(column.name, "string", "text", True, False, False) for column in wide.columns
    )
    mapping = Mapping()
    mapping.target("out", key="c0")(
        lambda flights: flights.select(*(F.upper(c).alias(c) for c in flights.columns))
    )
    plan = analyse(spark, mapping["out"], {"flights": wide}, columns)
    found = fingerprint(spark, plan).outline
    assert len(found) < 400 * 25
