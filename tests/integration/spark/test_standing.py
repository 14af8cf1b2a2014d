"""Standing plans: a plan made once gives, for every batch put into its slots, what planning anew gives."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from migrator.model.table import Column, TableId, TableSchema
from migrator.model.target import TargetColumn
from transforms.analysis.plan import analyse
from transforms.frames import arrow_frame, arrow_schema
from transforms.on_spark.pipeline import map_delta
from transforms.on_spark.standing import (
    LARGE_SLOT_BYTES,
    SIZES,
    SLOT_BYTES,
    Slots,
    StandingMapping,
)
from transforms.registry import Mapping

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("adaptive")]

SCHEMA = TableSchema(
    TableId("s", "odd name/%"),
    (
        Column("k", "int64", False, "bigint"),
        Column("t", "string", True, "text"),
        Column("d", "decimal(38,10)", True, "numeric"),
        Column("at", "timestamptz", True, "timestamptz"),
        Column("b", "binary", True, "bytea"),
    ),
    ("k",),
)
COLUMNS = tuple(
    TargetColumn(name, kind, kind, True, False, False)
    for name, kind in (
        ("k", "bigint"),
        ("t", "string"),
        ("d", "decimal(38,10)"),
        ("at", "timestamp"),
        ("b", "binary"),
    )
)

mapping = Mapping()


@mapping.target("copy", key="k", sources=["odd name/%"])
def copy(rows: DataFrame) -> DataFrame:
    """Two target rows for each row above zero."""
    return rows.where(F.col("k") > 0).unionAll(rows.where(F.col("k") > 0).withColumn("k", -F.col("k")))


def rows(*keys: int, text: str = "x") -> pa.Table:
    values = [
        {
            "k": key,
            "t": text if key % 2 else None,
            "d": None,
            "at": 2**63 - 1 - abs(key),
            "b": bytes([key % 256]),
        }
        for key in keys
    ]
    schema = arrow_schema(SCHEMA)
    raw = pa.Table.from_pylist(values, schema=schema.set(3, pa.field("at", pa.int64())))
    return raw.cast(schema)


def test_every_batch_through_one_plan_equals_planning_anew(spark: SparkSession, tmp_path: Path) -> None:
    name = SCHEMA.id.name
    plan = analyse(spark, mapping["copy"], {name: SCHEMA}, COLUMNS)
    slots = Slots(tmp_path / "slots", {name: SCHEMA})
    standing = StandingMapping(spark, plan, slots)
    batches = [
        (rows(1, 2, 3), rows(1, 2, 3, text="changed")),
        (rows(), rows(*range(1, 2000))),
        (rows(7), rows()),
        (rows(), rows()),
        (rows(-1, 0), rows(5, 2**62)),
        (rows(*range(1, 3000), text="y" * 5000), rows(*range(1, 20))),  # the larger slots
        (rows(), rows(*range(1, 70), text="y" * 200_000)),
        (rows(), rows(4)),
        (rows(), rows(*range(1, 3000), text="y" * 3000)),
        (rows(), rows(2)),
    ]
    sizes = []
    for before, after in batches:
        size = slots.fill({"before": {name: before}, "after": {name: after}})
        sizes.append(size)
        anew = map_delta(
            spark, plan, {name: arrow_frame(spark, before, SCHEMA)}, {name: arrow_frame(spark, after, SCHEMA)}
        )
        order = [("__side", "ascending"), ("k", "ascending")]
        assert standing.run(size).sort_by(order).equals(anew.toArrow().sort_by(order))
    assert sizes == [*([SLOT_BYTES] * 5), *([LARGE_SLOT_BYTES] * 2), SLOT_BYTES, LARGE_SLOT_BYTES, SLOT_BYTES]
    found = [path.stat() for path in (tmp_path / "slots").iterdir()]
    assert {each.st_size for each in found} == set(SIZES)
    assert sum(each.st_blocks * 512 for each in found) < SLOT_BYTES, "holes take room"


def test_what_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    name = SCHEMA.id.name
    slots = Slots(tmp_path, {name: SCHEMA})
    assert slots.fill({"before": {}, "after": {name: rows(1)}})
    kept = slots.path("after", name).read_bytes()
    assert not slots.fill({"before": {}, "after": {name: rows(1, text="y" * LARGE_SLOT_BYTES)}})
    assert slots.path("after", name).read_bytes() == kept


def test_a_large_slot_is_divided_among_tasks(spark: SparkSession, tmp_path: Path) -> None:
    name = SCHEMA.id.name
    plan = analyse(spark, mapping["copy"], {name: SCHEMA}, COLUMNS)
    slots = Slots(tmp_path, {name: SCHEMA})
    many = rows(*range(1, 4000), text="y" * 3000)
    assert slots.fill({"before": {}, "after": {name: many}}) == LARGE_SLOT_BYTES
    frame = StandingMapping(spark, plan, slots)._planned(LARGE_SLOT_BYTES)[0].where("k > 0")
    filled = [
        row["n"] for row in frame.groupBy(F.spark_partition_id()).agg(F.count("*").alias("n")).collect()
    ]
    assert sum(filled) == many.num_rows
    assert len(filled) >= spark.sparkContext.defaultParallelism, "not all cores have something to do"


def test_a_small_slot_costs_one_task_for_both_sides(spark: SparkSession, tmp_path: Path) -> None:
    name = SCHEMA.id.name
    plan = analyse(spark, mapping["copy"], {name: SCHEMA}, COLUMNS)
    standing = StandingMapping(spark, plan, Slots(tmp_path, {name: SCHEMA}))
    tasks = {size: standing._planned(size)[0].rdd.getNumPartitions() for size in SIZES}
    assert tasks[SLOT_BYTES] == 1
    assert tasks[LARGE_SLOT_BYTES] > 1, "the control: this says how many tasks there are"


def test_slots_of_another_run_are_emptied(tmp_path: Path) -> None:
    name = SCHEMA.id.name
    assert Slots(tmp_path, {name: SCHEMA}).fill({"before": {name: rows(1)}, "after": {}})
    slots = Slots(tmp_path, {name: SCHEMA})
    assert slots.path("before", name).read_bytes() == slots.path("after", name).read_bytes()


@mapping.target("sorted", key="k", sources=["odd name/%"])
def sorted_copy(rows: DataFrame) -> DataFrame:
    """Row-wise, with shuffles in its plan."""
    return rows.repartition(2).orderBy("k")


@mapping.target("counted", key="k", grain="odd name/%.k", sources=["odd name/%"])
def counted(rows: DataFrame) -> DataFrame:
    """Joined with itself and aggregated."""
    return rows.join(rows.groupBy("k").agg(F.max("t").alias("top")), "k").select("k", F.col("top").alias("t"))


@mapping.target("listed", key="k", sources=["odd name/%"])
def listed(rows: DataFrame) -> DataFrame:
    """Row-wise, joined with constants that Spark takes for larger than a slot: it broadcasts the source's rows."""
    return rows.join(rows.sparkSession.range(2_000_000).withColumnRenamed("id", "k"), "k").select("k", "t")


@mapping.target("reused", key="k", grain="odd name/%.k", sources=["odd name/%"])
def reused(rows: DataFrame) -> DataFrame:
    """The same exchange twice: the second is a reference that a copy of the plan doesn't copy."""
    top = rows.groupBy("k").agg(F.max("t").alias("t"))
    other = rows.groupBy("k").agg(F.max("t").alias("u"))
    return top.join(other, "k").select("k", F.coalesce("t", "u").alias("t"))


@mapping.target("subquery", key="k", grain="odd name/%.k", sources=["odd name/%"])
def subquery(rows: DataFrame) -> DataFrame:
    """Rows that a subquery over the source finds, under a constant one, which is run once."""
    found = rows.groupBy("k").agg(F.max("t").alias("t"))
    one = rows.sparkSession.range(3).agg(F.max("id").alias("most")).scalar()
    return found.where((one == 2) | (F.col("k") > 10**6)).select("k", "t")


@pytest.mark.parametrize("target", ["sorted", "counted", "listed", "reused", "subquery"])
def test_a_plan_that_would_remember_its_rows_gives_each_batch_its_own_rows(
    spark: SparkSession, tmp_path: Path, target: str
) -> None:
    name = SCHEMA.id.name
    plan = analyse(spark, mapping[target], {name: SCHEMA}, COLUMNS)
    slots = Slots(tmp_path / "slots", {name: SCHEMA})
    standing = StandingMapping(spark, plan, slots)
    assert (standing._to_be_copied() is None) == (target in ("reused", "subquery")), (
        "of which plans copies are run"
    )
    for keys in ((1, 2), (3,), ()):
        assert slots.fill({"before": {}, "after": {name: rows(*keys)}})
        with ThreadPoolExecutor(1) as elsewhere:  # a thread that Spark doesn't know yet
            assert sorted(elsewhere.submit(standing.run).result()["k"].to_pylist()) == list(keys)
