"""Keys of target rows told from source rows: only where each source row makes one row with its own key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from migrator.ports.eventlog import NetDelta
from migrator.run.apply.transform_job import TransformJob
from tests.integration.transforms.test_transforms_pipeline import FLIGHTS
from tests.integration.transforms.test_transforms_plan import SCHEMAS, target_column
from transforms import Mapping
from transforms.analysis.handed_keys import handed_key
from transforms.analysis.plan import MappingPlan, analyse
from transforms.frames import arrow_frame
from transforms.on_spark.pipeline import SIDE, map_delta
from transforms.on_spark.standing import LARGE_SLOT_BYTES, SLOT_BYTES

pytestmark = pytest.mark.spark

Function = Callable[[DataFrame], DataFrame]
HANDED: dict[str, Function] = {
    "as it is": lambda flights: flights.select("id", F.upper("dest").alias("dest")),
    "of another name": lambda flights: flights.withColumnRenamed("id", "n").select(
        F.col("n").alias("id"), F.col("n").cast("string").alias("dest")
    ),
}
TOLD_BY_SPARK_ALONE: dict[str, Function] = {
    "of some rows": lambda flights: flights.where("delay > 0").select("id", "dest"),
    "computed": lambda flights: flights.select((F.col("id") + 1).alias("id"), "dest"),
    "of another type": lambda flights: flights.select(F.col("delay").alias("id"), "dest"),
    "of several rows": lambda flights: flights.select("id", F.explode(F.array("dest", "dest")).alias("dest")),
    "of united rows": lambda flights: flights.select("id", "dest").unionAll(flights.select("id", "dest")),
}


def planned(spark: SparkSession, function: Function) -> MappingPlan:
    mapping = Mapping()
    mapping.target("out", key="id", sources=["flights"])(function)
    return analyse(
        spark, mapping["out"], SCHEMAS, [target_column("id", "bigint"), target_column("dest", "string")]
    )


@pytest.mark.parametrize("name", [*HANDED, *TOLD_BY_SPARK_ALONE])
def test_a_key_is_handed_where_each_row_makes_one_with_it(spark: SparkSession, name: str) -> None:
    found = handed_key(spark, planned(spark, (HANDED | TOLD_BY_SPARK_ALONE)[name]))
    assert (found is not None and found.columns == {"id": "id"}) == (name in HANDED)


@pytest.mark.parametrize("size", [SLOT_BYTES, LARGE_SLOT_BYTES, 0])
@pytest.mark.parametrize("function", [HANDED["of another name"], TOLD_BY_SPARK_ALONE["of some rows"]])
def test_rows_are_those_of_the_mapping(
    spark: SparkSession, tmp_path: Path, function: Function, size: int
) -> None:
    """In slots of each size and in none: what Spark makes of both images, and the tables look alike."""
    plan = planned(spark, function)
    before, after = FLIGHTS.slice(0, 3), FLIGHTS.slice(1)
    old, new = ({"flights": arrow_frame(spark, rows, SCHEMAS["flights"])} for rows in (before, after))
    whole = map_delta(spark, plan, old, new).toArrow().to_pylist()
    job = TransformJob(spark, {"out": plan}, {}, tmp_path / "slots")
    batch: Any = SimpleNamespace(deltas=[NetDelta(SCHEMAS["flights"], before, after)])
    try:
        job._fill_slots(batch)
        if size == LARGE_SLOT_BYTES:
            images = {side: {"flights": rows} for side, rows in (("before", before), ("after", after))}
            for side, tables in images.items():
                job._slots._put(
                    job._slots.path(side, "flights", size),
                    job._slots._contents({side: tables}, size)[job._slots.path(side, "flights", size)],  # type: ignore[index]
                )
        gone, there = job._delta(plan, batch, size)
    finally:
        job.close()
    assert gone is not None
    assert there is not None
    assert gone.column_names == there.column_names
    assert gone.select(["id"]).schema == there.select(["id"]).schema
    for number, rows in enumerate((gone, there)):
        wanted = [{k: v for k, v in row.items() if k != SIDE} for row in whole if row[SIDE] == number]
        assert sorted(rows.to_pylist(), key=lambda row: row["id"]) == sorted(
            wanted, key=lambda row: row["id"]
        )


@pytest.mark.parametrize("name", ["as it is", "computed"])
def test_rows_that_vanish_need_no_job_where_their_keys_are_known(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The control is a key that Spark computes."""
    plan = planned(spark, (HANDED | TOLD_BY_SPARK_ALONE)[name])
    job = TransformJob(spark, {"out": plan}, {}, tmp_path / "slots")
    batch: Any = SimpleNamespace(deltas=[NetDelta(SCHEMAS["flights"], FLIGHTS, FLIGHTS.slice(0, 0))])
    asked: list[object] = []
    submit = job._one_job.submit

    def noted(names: Sequence[str], tasks: int) -> Future[dict[str, pa.Table]]:
        asked.append(names)
        return submit(names, tasks)

    monkeypatch.setattr(job._one_job, "submit", noted)
    try:
        running = job._deltas([plan], batch, job._fill_slots(batch))
        gone, there = running["out"].result()
    finally:
        job.close()
    assert gone is not None
    assert gone.num_rows == FLIGHTS.num_rows
    assert there is None or not there.num_rows
    assert bool(asked) == (name == "computed")


def test_a_key_column_that_is_no_source_column_of_its_type_is_left_to_spark(spark: SparkSession) -> None:
    """One of two is enough."""
    mapping = Mapping()
    mapping.target("out", key=("id", "dest"), sources=["flights"])(
        lambda flights: flights.select("id", F.trim("dest").alias("dest"))
    )
    columns = [target_column("id", "bigint"), target_column("dest", "string")]
    assert handed_key(spark, analyse(spark, mapping["out"], SCHEMAS, columns)) is None


def test_images_are_brought_to_the_sources_types() -> None:
    """A segment's images may be dictionary-encoded or wider than Spark's view of the table: keys are cast."""
    from transforms.analysis.handed_keys import HandedKey

    handed = HandedKey(SCHEMAS["flights"], {"id": "id"})
    laid_out = pa.schema([pa.field("id", pa.int64(), False), pa.field("dest", pa.string(), False)])
    rows = handed.rows(pa.table({"id": pa.array([7], pa.int32())}), laid_out)
    assert rows.to_pylist() == [{"id": 7, "dest": None}]
    assert rows.schema.field("dest").nullable
