"""One job for many targets gives each what its own job would give."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from migrator.model.target import TargetColumn
from tests.integration.spark.test_standing import COLUMNS, SCHEMA, rows
from transforms import Mapping
from transforms.analysis.plan import analyse
from transforms.on_spark import one_job
from transforms.on_spark.one_job import OneJob
from transforms.on_spark.standing import SLOT_BYTES, Slots, StandingMapping

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("adaptive")]

NAME = SCHEMA.id.name
TARGETS = {"copy": COLUMNS, "texts": COLUMNS[1:2] + COLUMNS[:1], "joined": COLUMNS[:2], "sorted": COLUMNS}
mapping = Mapping()


@mapping.target("copy", key="k", sources=[NAME])
def copy(table: DataFrame) -> DataFrame:
    """All columns, some rows."""
    return table.where(F.col("k") > 0)


@mapping.target("texts", key="k", sources=[NAME])
def texts(table: DataFrame) -> DataFrame:
    """Other columns, other types, two rows for one."""
    return table.select(
        F.coalesce("t", F.lit("none")).alias("t"), F.explode(F.array("k", -F.col("k"))).alias("k")
    )


@mapping.target("joined", key="k", sources=[NAME])
def joined(table: DataFrame) -> DataFrame:
    """Over a broadcast of constants, and Python."""
    named = F.udf(lambda text: f"<{text}>", "string", useArrow=False)
    return table.join(table.sparkSession.range(3).withColumnRenamed("id", "k"), "k").select(
        "k", named("t").alias("t")
    )


@mapping.target("sorted", key="k", sources=[NAME])
def sorted_copy(table: DataFrame) -> DataFrame:
    """With a shuffle."""
    return table.repartition(2)


@mapping.target("dated", key="k", sources=[NAME])
def dated(table: DataFrame) -> DataFrame:
    """Its parser is made while it runs, as a setting says, because the format depends on the row."""
    parsed = F.expr("to_date(t, concat('yyyy-MM-', if(k > 0, 'dd', 'd')))")
    return table.select("k", parsed.cast("string").alias("t"))


def made(
    spark: SparkSession, folder: Path, targets: dict[str, tuple[TargetColumn, ...]]
) -> tuple[Slots, dict[str, StandingMapping]]:
    slots = Slots(folder, {NAME: SCHEMA})
    plans = [analyse(spark, mapping[name], {NAME: SCHEMA}, columns) for name, columns in targets.items()]
    return slots, {
        plan.target.name: StandingMapping(spark, plan, slots, number) for number, plan in enumerate(plans)
    }


@pytest.mark.slow
def test_one_job_gives_each_target_what_its_own_gives(spark: SparkSession, tmp_path: Path) -> None:
    slots, standing = made(spark, tmp_path, TARGETS)
    job = OneJob(spark, standing, StandingMapping.batches)
    assert [job.takes(name) for name in standing] == [True, True, True, False]
    large = rows(*range(1, 3000), text="y" * 2000)
    batches = [
        (rows(1, 2, 3), rows(1, 2, 3, text="changed")),
        (rows(), rows(*range(70_000))),
        (large, large.slice(5)),
        (rows(-1), rows()),
        (rows(), rows()),
    ]
    order = [("__side", "ascending"), ("k", "ascending")]
    try:
        for before, after in batches:
            assert slots.fill({"before": {NAME: before}, "after": {NAME: after}}) == SLOT_BYTES
            for names in (["copy", "texts", "joined"], ["joined"], ["joined", "copy"]):
                found = job.submit(names, 2).result()
                assert list(found) == names
                for name in names:
                    assert found[name].sort_by(order).equals(standing[name].run().sort_by(order)), name
    finally:
        job.close()


@pytest.mark.parametrize("handed_on", [True, False])
def test_functions_that_ask_for_settings_see_the_sessions(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handed_on: bool
) -> None:
    """The control: not handed on, tasks have Spark's defaults, and refuse what the old parser took."""
    if not handed_on:
        monkeypatch.setattr(one_job, "hand_settings_on", lambda spark: None)
    spark.conf.set("spark.sql.legacy.timeParserPolicy", "LEGACY")
    try:
        slots, standing = made(spark, tmp_path, {"dated": COLUMNS[:2]})
        slots.fill({"before": {}, "after": {NAME: rows(1, text="2024-1-5")}})
        assert standing["dated"].run()["t"].to_pylist() == ["2024-01-05"]
        job = OneJob(spark, standing, StandingMapping.batches)
        running = job.submit(["dated"], 1)
        if handed_on:
            assert running.result()["dated"].equals(standing["dated"].run())
        else:
            with pytest.raises(PySparkException, match="2024-1-5"):
                running.result()
        job.close()
    finally:
        spark.conf.unset("spark.sql.legacy.timeParserPolicy")
