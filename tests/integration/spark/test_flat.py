"""Flat plans: joins, groups and windows of few rows by one task, batch after batch what planning anew gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from migrator.model.target import TargetColumn
from tests.integration.spark.test_standing import COLUMNS, SCHEMA, rows
from transforms import Mapping
from transforms.analysis.plan import analyse
from transforms.on_spark.flat import INTERPRETED, flat_batches, planned_with
from transforms.on_spark.one_job import OneJob, share
from transforms.on_spark.standing import Slots, StandingMapping

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("adaptive")]

NAME = SCHEMA.id.name
GRAIN = f"{NAME}.k"
mapping = Mapping()
Mapped = Callable[[DataFrame], DataFrame]


def joined(name: str) -> Callable[[Mapped], Mapped]:
    """Declares a target of the keys and a text."""
    return mapping.target(name, key="k", grain=GRAIN, sources=[NAME])


@joined("many")
def many(table: DataFrame) -> DataFrame:
    """Inner and outer joins one after the other, whose sizes Spark multiplies."""
    found = table
    for number in range(4):
        other = table.select("k", F.concat("t", F.lit(f" {number}")).alias(f"t{number}"))
        found = found.join(other, "k", "inner" if number % 2 else "left")
    return found.select("k", F.concat_ws(",", "t", "t0", "t1", "t2", "t3").alias("t"))


@joined("grouped")
def grouped(table: DataFrame) -> DataFrame:
    """A union, grouped, beside a window and constants."""
    both = table.select("k", "t").unionByName(table.select("k", F.lit("again").alias("t")))
    texts = both.groupBy("k").agg(F.array_join(F.array_sort(F.collect_list("t")), "+").alias("t"))
    last = table.withColumn("n", F.row_number().over(Window.partitionBy("k").orderBy("at"))).where("n = 1")
    kinds = table.sparkSession.createDataFrame([(0, "even"), (1, "odd")], "rest int, kind string")
    kept = texts.join(last.select("k"), "k").withColumn("rest", (F.abs("k") % 2).cast("int"))
    return kept.join(kinds, "rest").select("k", F.concat_ws(" ", "kind", "t").alias("t"))


@joined("apart")
def apart(table: DataFrame) -> DataFrame:
    """Rows by what no other row has, and a join that isn't by equality."""
    lone = table.join(table.where("t = 'gone'").select("k"), "k", "left_anti")
    return lone.join(table.select(F.col("k").alias("other")), F.col("k") == F.col("other")).select("k", "t")


@joined("in_python")
def in_python(table: DataFrame) -> DataFrame:
    """Through a Python worker, grouped."""
    named = F.udf(lambda text: f"<{text}>", "string", useArrow=False)
    return table.groupBy("k").agg(F.max("t").alias("t")).select("k", named("t").alias("t"))


@joined("divided")
def divided(table: DataFrame) -> DataFrame:
    """Asks for a shuffle itself."""
    return table.repartition(2).groupBy("k").agg(F.max("t").alias("t"))


@joined("hinted")
def hinted(table: DataFrame) -> DataFrame:
    """Asks for a broadcast itself."""
    return table.join(F.broadcast(table.groupBy("k").agg(F.max("t").alias("u"))), "k").select("k", "t")


FLAT = ["many", "grouped", "apart", "in_python"]
TEXT: tuple[TargetColumn, ...] = COLUMNS[:2]


def standing(spark: SparkSession, folder: Path, target: str, number: int) -> tuple[Slots, StandingMapping]:
    slots = Slots(folder / target, {NAME: SCHEMA})
    plan = analyse(spark, mapping[target], {NAME: SCHEMA}, TEXT)
    return slots, StandingMapping(spark, plan, slots, number)


def test_one_job_of_flat_plans_gives_what_planning_anew_gives(spark: SparkSession, tmp_path: Path) -> None:
    made = {name: standing(spark, tmp_path, name, number) for number, name in enumerate(FLAT)}
    job = OneJob(spark, {name: one for name, (_, one) in made.items()}, lambda one: one.flat, INTERPRETED)
    assert [job.takes(name) for name in FLAT] == [True] * len(FLAT)
    order = [("__side", "ascending"), ("k", "ascending")]
    batches = [(rows(1, 2, 3), rows(1, 2, 3, text="changed")), (rows(), rows(*range(400))), (rows(7), rows())]
    try:
        for before, after in [*batches, (rows(), rows()), (rows(9), rows(9, text="gone"))]:
            for slots, _ in made.values():
                assert slots.fill({"before": {NAME: before}, "after": {NAME: after}})
            together = job.submit(FLAT, 2)
            alone = job.submit(["grouped"], 1)
            for name, (_, one) in made.items():
                assert together.result()[name].sort_by(order).equals(one.run().sort_by(order)), name
            assert (
                alone.result()["grouped"].sort_by(order).equals(together.result()["grouped"].sort_by(order))
            )
    finally:
        job.close()


@pytest.mark.parametrize("target", ["divided", "hinted"])
def test_a_plan_that_keeps_what_it_brought_is_not_flat(
    spark: SparkSession, tmp_path: Path, target: str
) -> None:
    """The control: run again as it is, such a plan would give the rows of the first batch."""
    slots, one = standing(spark, tmp_path, target, 0)
    assert one.flat is None
    for keys in ((1, 2), (3,)):
        assert slots.fill({"before": {}, "after": {NAME: rows(*keys)}})
        assert sorted(one.run()["k"].to_pylist()) == list(keys)


def test_planning_leaves_the_sessions_settings_as_they_were(spark: SparkSession) -> None:
    before = dict(spark.conf.getAll.items())
    frame = spark.range(3)
    assert flat_batches(spark, frame.join(frame.select(F.col("id").alias("k")), F.col("id") == F.col("k")))
    assert dict(spark.conf.getAll.items()) == before
    with planned_with(spark, {"spark.sql.of.this.test": "1", "spark.sql.caseSensitive": "true"}):
        assert spark.conf.get("spark.sql.of.this.test") == "1"
    assert spark.conf.get("spark.sql.of.this.test", None) is None
    assert spark.conf.get("spark.sql.caseSensitive") == "false"


def test_a_target_whose_job_fails_maps_alone(spark: SparkSession, tmp_path: Path) -> None:
    """One bad row of one target doesn't take the others along."""
    slots, one = standing(spark, tmp_path, "many", 0)
    job = OneJob(spark, {"many": one}, lambda found: found.flat, INTERPRETED)
    try:
        assert slots.fill({"before": {}, "after": {NAME: rows(1)}})
        for path in (tmp_path / "many").iterdir():
            path.write_bytes(b"no Parquet file")
        running = job.submit(["many"], 1)
        assert share("many", running, lambda: pa.table({"k": [1]})).to_pydict() == {"k": [1]}
    finally:
        job.close()
