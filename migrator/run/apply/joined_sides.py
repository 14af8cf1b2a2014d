"""Maps the rows that the grains of joined targets depend on, as they were before a batch and as they are after it.

The few rows of several targets are handed to plans that are run together (``transforms.on_spark.few_rows``). Many
rows are put into slots of the target's own, and mapped by a Spark job of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.core.rdd import RDD
from pyspark.sql import DataFrame, SparkSession

from migrator.columnar.versions import with_nulls
from migrator.ports.mirror import JoinedTarget, Sides
from migrator.run.apply.spark_jobs import Job, SparkJobs
from transforms.analysis.kept import Prove, proved
from transforms.analysis.plan import MappingPlan
from transforms.on_spark.few_rows.flat import INTERPRETED
from transforms.on_spark.few_rows.mapped import FewRows
from transforms.on_spark.one_job import OneJob, share
from transforms.on_spark.pipeline import arrow_frame, map_delta
from transforms.on_spark.planned_ahead import PlannedAhead
from transforms.on_spark.standing import Slots, StandingMapping

_FEW_BYTES = 256 << 10
"""Rows of a target that a flat plan maps, at most: for more, compiled code is worth what it costs."""
_TOGETHER = 5
"""Targets that are mapped by one thread, at most. Of a job Spark keeps a graph of its steps, which costs the square
of their number."""
_JOBS = 2
"""Threads of many targets at a time: the target's server waits meanwhile."""

Side = Mapping[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Collected:
    """A target of which the rows of a first slice were put where they are mapped.

    Attributes:
        job: maps the slice alone.
        few: whether the slice is small enough to be mapped with those of other targets.
        slices: those that follow.
    """

    target: JoinedTarget
    plan: MappingPlan
    sides: Sides
    job: Job
    few: bool
    slices: Iterator[Sides]


@dataclass(frozen=True, slots=True)
class Begun:
    """A target whose first slice is being mapped by a job that runs."""

    first: Collected
    job: Job
    running: Future[pa.Table]


class JoinedSides:
    """Maps both sides of joined targets.

    Args:
        spark: the session.
        plans: checked mappings with a grain, by target table.
        folder: that driver and executors share, for the slots.
        prove: raises where a plan isn't the function's, before a first row is mapped by it.

    ``jobs``: runs the jobs; whoever maps batches runs its own there too.
    """

    def __init__(
        self, spark: SparkSession, plans: Mapping[str, MappingPlan], folder: Path, prove: Prove = proved
    ):
        self._spark = spark
        self._plans = plans
        self._folder = folder
        self._alone: dict[str, tuple[Slots, StandingMapping]] = {}
        numbers = {name: number for number, name in enumerate(plans)}

        def planned(name: str) -> FewRows:
            prove(plans[name])
            return FewRows(spark, plans[name], numbers[name])

        self.prove = prove
        self._few = PlannedAhead(planned, tuple(plans))
        self._one_job = OneJob(spark, self._few, _batches, INTERPRETED, _JOBS, _in_jvm)
        self.jobs = SparkJobs()

    def warm_up(self) -> list[Callable[[], object]]:
        """Jobs that make the first batch not wait for plans and compilers."""
        together = [name for name in self._plans if self._one_job.takes(name)]
        alone = [self._standing(name)[1].run for name in self._plans if name not in together]
        parts = [together[first : first + _TOGETHER] for first in range(0, len(together), _TOGETHER)]
        return [*(partial(self._run_together, part) for part in parts), *alone]

    def plan_ahead(self) -> None:
        """Begins to plan the targets that nobody has asked for yet, beside the first batches."""
        self._few.begin(self._one_job.takes)

    def _run_together(self, names: Sequence[str]) -> object:
        return self._one_job.submit(names, 1).result()

    def close(self) -> None:
        """Waits for jobs under way."""
        self._few.close()
        self._one_job.close()
        self.jobs.close()

    def collected(
        self, target: JoinedTarget, plan: MappingPlan, sides: Sides, slices: Iterator[Sides]
    ) -> Collected:
        """Puts the rows of a first slice where they are mapped. Jobs of the target before must be over: they read the
        rows where they are."""
        before, after = _conformed(plan, sides)
        rows = sum(table.nbytes for side in (before, after) for table in side.values())
        few = rows <= _FEW_BYTES and self._one_job.takes(plan.target.name)
        if few:
            self._few[plan.target.name].put(before, after)
            job: Job = partial(self._slotted, plan, before, after)
        else:
            job = self._through_slots(plan, before, after)
        return Collected(target, plan, sides, job, few, slices)

    def put(self, plan: MappingPlan, sides: Sides) -> Job:
        """Puts rows into the target's slots; returns the job that maps them. The job before must be over."""
        return self._through_slots(plan, *_conformed(plan, sides))

    def _through_slots(self, plan: MappingPlan, before: Side, after: Side) -> Job:
        self.prove(plan)
        slots, standing = self._standing(plan.target.name)
        size = slots.fill({"before": before, "after": after})
        if size:
            return partial(standing.run, size)
        frames = self.frames(plan, before), self.frames(plan, after)
        return map_delta(self._spark, plan, *frames).toArrow

    def _slotted(self, plan: MappingPlan, before: Side, after: Side) -> pa.Table:
        return self._through_slots(plan, before, after)()

    def _standing(self, target: str) -> tuple[Slots, StandingMapping]:
        """The target's slots and the plan over them, made when they are first needed."""
        if target not in self._alone:
            plan, number = self._plans[target], list(self._plans).index(target)
            slots = Slots(self._folder / f"joined-{number}", plan.schemas)
            self._alone[target] = slots, StandingMapping(self._spark, plan, slots, number)
        return self._alone[target]

    def start(self, collected: Sequence[Collected]) -> list[Begun]:
        """Starts to map the slices that are in slots."""
        begun = [Begun(one, one.job, self.jobs.submit(one.job)) for one in collected if not one.few]
        few = [one for one in collected if one.few]
        for first in range(0, len(few), _TOGETHER):
            part = few[first : first + _TOGETHER]
            running = self._one_job.submit([one.plan.target.name for one in part], 1)
            for one in part:
                job = partial(share, one.plan.target.name, running, one.job)
                begun.append(Begun(one, job, self.jobs.submit(job)))
        return begun

    def frames(self, plan: MappingPlan, tables: Mapping[str, pa.Table]) -> dict[str, DataFrame]:
        """Mirrored rows as frames, by table name."""
        return {
            name: arrow_frame(self._spark, conform(plan, name, rows), plan.schemas[name])
            for name, rows in tables.items()
        }


class Starting:
    """Starts to map targets while the server collects the rows of the next: many rows at once, few rows as soon as
    there are as many targets as one thread maps.

    Args:
        sides: maps them.
    """

    def __init__(self, sides: JoinedSides):
        self._sides = sides
        self._few: list[Collected] = []
        self._begun: list[Begun] = []

    def add(self, collected: Collected) -> None:
        """Takes a target whose first slice is in its slots."""
        if collected.few:
            self._few.append(collected)
        else:
            self._begun += self._sides.start([collected])
        if len(self._few) == _TOGETHER:
            self._start()

    def rest(self) -> list[Begun]:
        """Starts those that wait; returns all that were started."""
        self._start()
        return self._begun

    def _start(self) -> None:
        self._begun += self._sides.start(self._few)
        self._few.clear()


def conform(plan: MappingPlan, name: str, rows: pa.Table) -> pa.Table:
    """Mirrored rows with NULL for columns that the mirror doesn't have: no mapping reads them."""
    schema = plan.schemas[name]
    return with_nulls(rows, [c for c in schema.columns if c.name not in rows.column_names])


def _conformed(plan: MappingPlan, sides: Sides) -> tuple[Side, Side]:
    before, after = (
        {table: conform(plan, table, rows) for table, rows in side.items()}
        for side in (sides.before, sides.after)
    )
    return before, after


def _batches(few: FewRows) -> RDD[bytes] | None:
    return None if few.flat is None else few.flat.batches


def _in_jvm(few: FewRows) -> bool:
    return few.flat is not None and few.flat.in_jvm
