"""Drawn joined mappings and rows: what the driver makes of few rows is what Spark's own job over partitions makes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from migrator.errors import MappingError
from tests.drawn import drawn
from tests.integration.spark.drawn_plans import COLUMNS, SCHEMAS, Mapped, batches, chains, mapping_of
from transforms.analysis.plan import MappingPlan, analyse
from transforms.on_spark.few_rows.flat import INTERPRETED
from transforms.on_spark.few_rows.handed import HandedRows
from transforms.on_spark.few_rows.mapped import FewRows
from transforms.on_spark.one_job import OneJob
from transforms.on_spark.standing import Slots, StandingMapping

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("adaptive")]

FEW, MANY = 12, 40
FAILED = "failed"


def outcome(mapped: pa.Table) -> Counter[str]:
    """Rows in no order, as text: NaN is itself there, -0.0 isn't 0.0, and times keep what Python has no date for."""
    numbers = mapped.set_column(
        mapped.column_names.index("at"), "at", mapped["at"].cast(pa.timestamp("us")).cast(pa.int64())
    )
    return Counter(map(repr, numbers.to_pylist()))


def tried(mapped: Mapped, before: dict[str, pa.Table], after: dict[str, pa.Table]) -> Counter[str] | str:
    """What comes of a batch."""
    try:
        return outcome(mapped(before, after))
    except (PySparkException, Py4JError):
        return FAILED


def in_driver(spark: SparkSession, plan: MappingPlan) -> tuple[OneJob[FewRows], Mapped] | None:
    """Maps few rows in the driver; None for a plan that is left to jobs."""
    few = FewRows(spark, plan, 3)
    if few.flat is None or not few.flat.in_jvm:
        return None
    flat = few.flat
    job = OneJob(
        spark,
        dict.fromkeys("abc", few) | {"drawn": few},
        lambda _: flat.batches,
        INTERPRETED,
        here=lambda _: True,
    )

    def mapped(before: dict[str, pa.Table], after: dict[str, pa.Table]) -> pa.Table:
        few.put(before, after)
        return job.submit(["drawn"], 1).result()["drawn"]

    return job, mapped


def as_jobs(spark: SparkSession, plan: MappingPlan, folder: Path) -> Mapped:
    """Maps through slots, by jobs of plans that remember nothing."""
    slots = Slots(folder, plan.schemas)
    standing = StandingMapping(spark, plan, slots)

    def mapped(before: dict[str, pa.Table], after: dict[str, pa.Table]) -> pa.Table:
        assert slots.fill({"before": before, "after": after})
        return standing.run()

    return mapped


def disagreements(spark: SparkSession, folder: Path, many: int) -> tuple[list[str], Counter[str]]:
    """Batches of drawn plans of which the driver makes other rows, or rows where a job fails; and what was seen, in
    numbers.

    A job may give rows where the driver fails: over an empty side of a join it computes nothing of the other side.
    """
    found: list[str] = []
    seen: Counter[str] = Counter()
    for number, (chain, rows) in enumerate(drawn(st.tuples(chains, batches), many)):
        try:
            plan = analyse(spark, mapping_of(chain), SCHEMAS, COLUMNS)
        except MappingError as error:
            seen["refused" if "fails when called" not in error.what else f"wrong: {error.cause}"] += 1
            continue
        made = in_driver(spark, plan)
        if made is None:
            seen["left to jobs"] += 1
            continue
        job, here = made
        try:
            there = as_jobs(spark, plan, folder / f"slots {number}")
            for before, after in rows:
                sides = [{name: side[name] for name in plan.reads} for side in (before, after)]
                expected, came = tried(there, *sides), tried(here, *sides)
                seen["failed" if expected == FAILED else "mapped" if expected else "nothing"] += 1
                if came == FAILED:  # a job maps them then, see ``share``
                    seen["failed here alone"] += expected != FAILED
                elif came != expected:
                    told = [(step.query, step.other) for step in chain]
                    read = [(name, outcome(side[name])) for side in sides for name in side]
                    found.append(f"{told}\n{read}\n{came}\n{expected}")
        finally:
            job.close()
    return found, seen


@pytest.mark.parametrize("many", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_the_driver_makes_of_few_rows_what_a_job_makes(
    spark: SparkSession, tmp_path: Path, many: int
) -> None:
    """Each plan over several batches: nothing of a batch is left in the next, nor of one that failed."""
    found, seen = disagreements(spark, tmp_path, many)
    assert found == []
    assert not [one for one in seen if one.startswith("wrong")], seen
    assert seen["mapped"] > many // 2, seen
    assert seen["failed"] or many == FEW, seen
    assert seen["failed here alone"] * 2 < seen["mapped"], seen


@pytest.mark.slow
def test_rows_that_are_left_from_the_batch_before_are_noticed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control."""
    put = HandedRows.put

    def kept(handed: HandedRows, rows: pa.Table | None) -> None:
        if rows is not None and rows.num_rows:
            put(handed, rows)

    monkeypatch.setattr(HandedRows, "put", kept)
    assert disagreements(spark, tmp_path, FEW)[0]
