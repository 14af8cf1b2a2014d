"""Jobs of a batch that fail: a row at fault is named, and what no row is to blame for is tried again."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from migrator.errors import MappingError
from migrator.ports.eventlog import NetDelta
from migrator.run.apply import images
from migrator.run.apply.transform_job import TransformJob
from tests.integration.transforms.test_transforms_pipeline import FLIGHTS
from tests.integration.transforms.test_transforms_plan import SCHEMAS, target_column
from transforms import Mapping
from transforms.analysis.plan import MappingPlan, analyse
from transforms.on_spark.pipeline import arrow_frame, map_rows

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("adaptive")]


def plan_that_runs(spark: SparkSession, program: str, key: str = "id") -> MappingPlan:
    """A mapping whose Python function runs ``program`` for each value first; ``key`` is the SQL of its key."""

    def checked(text: str | None) -> str | None:
        exec(program)
        return text

    mapping = Mapping()

    @mapping.target("out", key="id")
    def out(flights: DataFrame) -> DataFrame:
        dest = F.udf(checked, "string", useArrow=False)("dest")
        return flights.select(F.expr(key).alias("id"), dest.alias("dest"))

    columns = [target_column("id", "bigint"), target_column("dest", "string")]
    return analyse(spark, mapping["out"], SCHEMAS, columns)


def collected(spark: SparkSession, plan: MappingPlan, slots: Path) -> pa.Table:
    job = TransformJob(spark, {"out": plan}, {}, slots)
    try:
        frame = arrow_frame(spark, FLIGHTS, SCHEMAS["flights"])
        return job._collect(
            plan, lambda: map_rows(spark, plan, {"flights": frame}).toArrow(), lambda: {"flights": FLIGHTS}
        )
    finally:
        job.close()


def test_a_batch_whose_worker_was_killed_is_mapped_again(spark: SparkSession, tmp_path: Path) -> None:
    """As the system's out-of-memory killer does it: at one moment, and at no fault of a row."""
    once = tmp_path / "killed"
    program = (
        f"import os, signal\n"
        f"if not os.path.exists({str(once)!r}):\n"
        f"    open({str(once)!r}, 'w').close()\n"
        f"    os.kill(os.getpid(), signal.SIGKILL)"
    )
    found = collected(spark, plan_that_runs(spark, program), tmp_path / "slots")
    assert os.path.exists(once)
    assert found.num_rows == FLIGHTS.num_rows


@pytest.mark.slow
def test_a_row_that_always_kills_its_worker_is_named(spark: SparkSession, tmp_path: Path) -> None:
    program = "import os\nif text and ',' in text:\n    os._exit(3)"
    with pytest.raises(MappingError, match="fails on a row"):
        collected(spark, plan_that_runs(spark, program), tmp_path / "slots")


def test_what_fails_twice_and_at_no_row_is_named(spark: SparkSession, tmp_path: Path) -> None:
    plan = plan_that_runs(spark, "pass")
    job = TransformJob(spark, {"out": plan}, {}, tmp_path / "slots")
    attempts = []

    def fail() -> pa.Table:
        attempts.append(1)
        raise PySparkRuntimeError("the cluster is gone")

    try:
        with pytest.raises(MappingError, match="the Spark job of target table 'out' fails"):
            job._collect(plan, fail, lambda: {"flights": FLIGHTS})
    finally:
        job.close()
    assert len(attempts) == 2


def test_a_module_that_workers_do_not_have_is_named_before_the_first_batch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver has it: a module beside none of the files that are shipped."""
    ghost = ModuleType("only_on_the_driver")
    exec("def same(text):\n    return text", ghost.__dict__)
    monkeypatch.setitem(sys.modules, ghost.__name__, ghost)
    mapping = Mapping()

    @mapping.target("out", key="id")
    def out(flights: DataFrame) -> DataFrame:
        return flights.select("id", F.udf(ghost.same, "string", useArrow=False)("dest").alias("dest"))

    columns = [target_column("id", "bigint"), target_column("dest", "string")]
    plan = analyse(spark, mapping["out"], SCHEMAS, columns)
    job = TransformJob(spark, {"out": plan}, {}, tmp_path / "slots")
    try:
        with pytest.raises(MappingError, match="can't be run where Spark's tasks run") as refused:
            job.warm_up(dumping=False)
    finally:
        job.close()
    assert "only_on_the_driver" in refused.value.cause


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "jobs"), [("id + 0", 2 + 5), ("id", 1 + 3)], ids=["of both sides", "of what is there"]
)
def test_a_batch_too_large_for_the_slots_is_mapped_in_pieces(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, jobs: int
) -> None:
    """However many: the same rows, told apart as before and after. Before rows need none where the key is known."""
    plan = plan_that_runs(spark, "pass", key)
    job = TransformJob(spark, {"out": plan}, {}, tmp_path / "slots")
    batch: Any = SimpleNamespace(
        deltas=[NetDelta(SCHEMAS["flights"], FLIGHTS.slice(0, 2), FLIGHTS.slice(1, 3))]
    )
    asked: list[int] = []
    piece = TransformJob._piece

    def noted(*given: Any) -> Any:
        asked.append(1)
        return piece(*given)

    monkeypatch.setattr(TransformJob, "_piece", noted)
    try:
        whole = [side.to_pylist() for side in job._delta(plan, batch, 0) if side is not None]
        monkeypatch.setattr(images, "_PIECE_BYTES", 1)
        pieces = [side.to_pylist() for side in job._delta(plan, batch, 0) if side is not None]
    finally:
        job.close()
    assert pieces == whole
    assert [len(side) for side in pieces] == [2, 3]
    assert len(asked) == jobs, "one a side, then one a row"


def test_of_targets_mapped_in_one_job_the_one_that_fails_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    """With its row. The control: without that row both have theirs."""
    mapping = Mapping()
    mapping.target("good", key="id", sources=["flights"])(lambda flights: flights.select("id", "dest"))
    mapping.target("bad", key="id", sources=["flights"])(
        lambda flights: flights.select(
            "id", F.when(F.col("id") == 4, F.raise_error("no")).otherwise(F.col("dest")).alias("dest")
        )
    )
    columns = [target_column("id", "bigint"), target_column("dest", "string")]
    plans = {name: analyse(spark, mapping[name], SCHEMAS, columns) for name in ("good", "bad")}
    job = TransformJob(spark, plans, {}, tmp_path / "slots")

    def mapped(images: pa.Table) -> list[int]:
        batch: Any = SimpleNamespace(deltas=[NetDelta(SCHEMAS["flights"], images.slice(0, 0), images)])
        running = job._deltas(list(plans.values()), batch, job._fill_slots(batch))
        return [
            after.num_rows for _, after in (each.result() for each in running.values()) if after is not None
        ]

    try:
        assert all(job._one_job.takes(name) for name in plans)
        assert mapped(FLIGHTS.slice(0, 3)) == [3, 3]
        with pytest.raises(MappingError, match="'bad' fails on a row") as refused:
            mapped(FLIGHTS)
    finally:
        job.close()
    assert "id=4" in str(refused.value.where)


@pytest.mark.parametrize("changes_only", [False, True])
@pytest.mark.parametrize("asked", [None, "", "7"], ids=["first dumps alone", "first dump", "requested"])
def test_rows_dumped_for_a_mirror_are_not_a_target_s_that_has_its_rows(
    spark: SparkSession, tmp_path: Path, asked: str | None, changes_only: bool
) -> None:
    """On the way back the old tables have theirs: only what somebody asked to be read again is written there."""
    schema = SCHEMAS["flights"]
    file = tmp_path / "chunk.parquet"
    pq.write_table(FLIGHTS, file)
    passes = None if asked is None else ((schema.id, asked),)
    batch: Any = SimpleNamespace(
        chunks=((schema, (str(file),), FLIGHTS.num_rows),),
        checkpoint=SimpleNamespace(passes=passes),
        doubts=(),
        chunk_rows=FLIGHTS.num_rows,
    )
    plan = plan_that_runs(spark, "pass")
    job = TransformJob(spark, {"out": plan}, {}, tmp_path / "slots", changes_only=changes_only)
    try:
        found = job._chunk(plan, batch)
    finally:
        job.close()
    if changes_only and not asked:
        assert found is None
    else:
        assert isinstance(found, pa.Table)
        assert found.num_rows == FLIGHTS.num_rows
