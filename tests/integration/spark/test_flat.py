"""Flat plans: joins, groups and windows of few rows by one task, batch after batch what planning anew gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from migrator.model.target import TargetColumn
from tests.integration.spark.test_standing import COLUMNS, SCHEMA, rows
from transforms import Mapping
from transforms.analysis.plan import analyse
from transforms.on_spark.few_rows.flat import INTERPRETED, flattened
from transforms.on_spark.few_rows.mapped import FewRows
from transforms.on_spark.one_job import OneJob, nowhere, share
from transforms.on_spark.planned import planned_with
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
    for number in range(3):
        other = table.select("k", F.concat("t", F.lit(f" {number}")).alias(f"t{number}"))
        found = found.join(other, "k", "inner" if number % 2 else "left")
    return found.select("k", F.concat_ws(",", "t", "t0", "t1", "t2").alias("t"))


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


@joined("failing")
def failing(table: DataFrame) -> DataFrame:
    """Fails on even keys."""
    again = table.select("k", (F.lit(1) / (F.col("k") % 2)).cast("string").alias("t"))
    return table.select("k").join(again, "k")


@joined("nested")
def nested(table: DataFrame) -> DataFrame:
    """Through functions that keep something while they run: places, patterns, elements one by one."""
    split = F.transform(F.split(F.coalesce("t", F.lit("a,b")), "[,x]"), lambda one, at: F.concat(one, at))
    placed = table.withColumn("t", F.regexp_replace(F.array_join(split, "-"), "(\\d)", "<$1>"))
    exploded = placed.select("k", F.posexplode(F.split("t", "-")).alias("at", "t"))
    parts = exploded.groupBy("k").agg(
        F.max_by("t", "at").alias("t"), F.array_sort(F.collect_set("at")).alias("places")
    )
    return parts.select("k", F.concat_ws(" ", "t", F.array_join("places", "")).alias("t"))


IN_JVM = {"many": True, "grouped": False, "apart": True, "in_python": False, "nested": True}
"""Whether a target's plan is run without a job: none of Python's functions, and no rows that Python made."""
FLAT = list(IN_JVM)
TEXT: tuple[TargetColumn, ...] = COLUMNS[:2]
ORDER = [("__side", "ascending"), ("k", "ascending")]
BATCHES = [
    (rows(1, 2, 3), rows(1, 2, 3, text="changed")),
    (rows(), rows(*range(400))),
    (rows(7), rows()),
    (rows(), rows()),
    (pa.concat_tables([rows(9), rows(11)]), rows(9, text="gone")),
]
"""The fourth has no rows, the fifth rows in two pieces."""


def planned(spark: SparkSession, target: str, number: int = 0) -> FewRows:
    return FewRows(spark, analyse(spark, mapping[target], {NAME: SCHEMA}, TEXT), number)


def anew(spark: SparkSession, folder: Path, target: str) -> Callable[[pa.Table, pa.Table], pa.Table]:
    """Gives what a plan gives that remembers nothing: one that is copied or made for these rows."""
    slots = Slots(folder / target, {NAME: SCHEMA})
    standing = StandingMapping(spark, analyse(spark, mapping[target], {NAME: SCHEMA}, TEXT), slots)

    def mapped(before: pa.Table, after: pa.Table) -> pa.Table:
        assert slots.fill({"before": {NAME: before}, "after": {NAME: after}})
        return standing.run().sort_by(ORDER)

    return mapped


def together(
    spark: SparkSession, made: dict[str, FewRows], here: Callable[[FewRows], bool]
) -> OneJob[FewRows]:
    return OneJob(spark, made, lambda one: one.flat.batches if one.flat else None, INTERPRETED, here=here)


def in_jvm(one: FewRows) -> bool:
    return one.flat is not None and one.flat.in_jvm


def test_flat_plans_give_what_planning_anew_gives(spark: SparkSession, tmp_path: Path) -> None:
    """As one job, then without one: what was run in the driver is no job any more."""
    made = {name: planned(spark, name, number) for number, name in enumerate(FLAT)}
    assert {name: in_jvm(one) for name, one in made.items()} == IN_JVM
    mapped = {name: anew(spark, tmp_path, name) for name in FLAT}
    expected = [{name: mapped[name](*batch) for name in FLAT} for batch in BATCHES]
    for here in (nowhere, in_jvm):
        job = together(spark, made, here)
        assert [job.takes(name) for name in FLAT] == [True] * len(FLAT)
        try:
            for (before, after), rows_of in zip(BATCHES, expected, strict=True):
                for one in made.values():
                    one.put({NAME: before}, {NAME: after})
                found = job.submit(FLAT, 2).result()
                for name in FLAT:
                    assert found[name].sort_by(ORDER).equals(rows_of[name]), name
                alone = job.submit(["grouped"], 1).result()
                assert alone["grouped"].sort_by(ORDER).equals(rows_of["grouped"])
        finally:
            job.close()


def test_no_spark_job_runs_in_the_driver(spark: SparkSession) -> None:
    """The control: the same plan as a job is one."""
    made = {"many": planned(spark, "many")}
    jobs = spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs
    counts = []
    for here in (nowhere, in_jvm):  # in this order: what was run in the driver is no job any more
        job = together(spark, made, here)
        before = jobs()
        job.submit(["many"], 1).result()
        counts.append(jobs() - before)
        job.close()
    assert counts == [1, 0]


def test_what_a_run_in_the_driver_opens_is_closed(spark: SparkSession) -> None:
    """Memory of Arrow and of Spark is given back, also by a run that fails."""
    made = {name: planned(spark, name, number) for number, name in enumerate(["many", "failing"])}
    allocated = spark._jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator().getAllocatedMemory  # type: ignore[union-attr]
    before = allocated()
    job = together(spark, made, in_jvm)
    try:
        for one in made.values():
            one.put({}, {NAME: rows(*range(100))})
        assert job.submit(["many"], 1).result()["many"].num_rows == 100
        with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
            job.submit(["many", "failing"], 1).result()
        assert allocated() == before
        assert job._task is not None
        assert job._task._memory.executionMemoryUsed() == 0
        for one in made.values():
            one.put({}, {NAME: rows(1, 3)})
        assert job.submit(["failing"], 1).result()["failing"].num_rows == 2
    finally:
        job.close()


@pytest.mark.parametrize("target", ["divided", "hinted"])
def test_a_plan_that_keeps_what_it_brought_is_not_flat(
    spark: SparkSession, tmp_path: Path, target: str
) -> None:
    """The control: run again as it is, such a plan would give the rows of the first batch."""
    assert planned(spark, target).flat is None
    mapped = anew(spark, tmp_path, target)
    for keys in ((1, 2), (3,)):
        found = mapped(rows(), rows(*keys))
        assert sorted(found["k"].to_pylist()) == list(keys)


def test_settings_of_a_plan_are_seen_by_no_other_thread(spark: SparkSession) -> None:
    """A job that begins meanwhile is planned and run by the session's own."""
    before = dict(spark.conf.getAll.items())
    seen: list[dict[str, str]] = []
    with planned_with(spark, {"spark.sql.of.this.test": "1", "spark.sql.caseSensitive": "true"}) as session:
        assert session.conf().get("spark.sql.of.this.test") == "1"
        assert active(spark).conf().get("spark.sql.caseSensitive") == "true"
        other = InheritableThread(
            target=lambda: seen.extend([dict(spark.conf.getAll.items()), {"id": str(spark.range(3).count())}])
        )
        other.start()
        other.join()
    assert seen == [before, {"id": "3"}]
    assert dict(spark.conf.getAll.items()) == before
    assert active(spark).conf().get("spark.sql.caseSensitive") == "false"


def test_a_flat_plan_is_made_by_the_settings_of_flat_plans(spark: SparkSession) -> None:
    before = dict(spark.conf.getAll.items())
    frame = spark.range(3)
    assert flattened(spark, frame.join(frame.select(F.col("id").alias("k")), F.col("id") == F.col("k")))
    assert dict(spark.conf.getAll.items()) == before


def active(spark: SparkSession) -> Any:
    """The session of the JVM by which this thread plans."""
    return spark._jvm.org.apache.spark.sql.classic.SparkSession.getActiveSession().get()  # type: ignore[union-attr]


def test_a_target_whose_job_fails_maps_alone(spark: SparkSession) -> None:
    """One bad row of one target doesn't take the others along."""
    made = {"failing": planned(spark, "failing")}
    job = together(spark, made, in_jvm)
    try:
        made["failing"].put({}, {NAME: rows(2)})
        running = job.submit(["failing"], 1)
        assert share("failing", running, lambda: pa.table({"k": [1]})).to_pydict() == {"k": [1]}
    finally:
        job.close()
