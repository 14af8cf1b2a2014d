"""Runs the user's mapping on Spark over one batch of the event log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from migrator.columnar.versions import widened
from migrator.core.passes import FIRST
from migrator.errors import RowUnmapped
from migrator.model.progress import Checkpoint
from migrator.model.requests.request import Doubt
from migrator.model.table import TableId
from migrator.model.target import TargetTable
from migrator.ports.eventlog import Batch
from migrator.ports.target import StagedRows, Stager, TargetBatch, TargetRows
from migrator.run.apply.emptied import emptied
from migrator.run.apply.images import Images, Sides, all_images, pieces
from migrator.run.apply.joined_job import JoinedJob
from migrator.run.apply.spark_jobs import SPARK_ERRORS, SparkJobs, tried_twice, warmed_up
from migrator.run.apply.unmapped import UnmappedRows, row_at_fault
from transforms.analysis.plan import MappingPlan
from transforms.casts import parsed, spark_type
from transforms.cause import spark_cause
from transforms.frames import computed_late
from transforms.on_spark.one_job import OneJob, share
from transforms.on_spark.pipeline import (
    SIDE,
    arrow_frame,
    map_delta,
    map_rows,
    parquet_frame,
)
from transforms.on_spark.session_settings import is_cluster
from transforms.on_spark.staged import staged_parts
from transforms.on_spark.standing import SLOT_BYTES, Slots, StandingMapping


@dataclass(frozen=True, slots=True)
class Staging:
    """The way by which executors load the dump rows of large batches.

    Attributes:
        stager: where they put them.
        rows: from how many dump rows on a batch is large.
        say: takes a word about the way of loading, for whoever watches the run.
    """

    stager: Stager
    rows: int
    say: Callable[[str], None]


class TransformJob:
    """Maps batches. Pure as far as rows go: the same batch gives the same target rows.

    Args:
        spark: the session.
        plans: checked row-wise mappings by target table, in the order of the mapping.
        tables: reflected target tables by name.
        slots: folder where small batches are put for the standing plans.
        staging: lets executors load the dump rows of large batches; None leaves all to the driver.
        joined: maps the other targets, inside the target transaction.
        changes_only: whether the targets have their rows already, as on the way back: a source table is dumped for
            a mirror then, and those rows aren't a row-wise target's. Mapped by a function that loses something they
            would overwrite rows that nobody has changed.

    ``unmapped``: keeps the rows that a mapping fails on, where they are set aside; None: the first stops the run.
    """

    def __init__(
        self,
        spark: SparkSession,
        plans: Mapping[str, MappingPlan],
        tables: Mapping[str, TargetTable],
        slots: Path,
        staging: Staging | None = None,
        joined: JoinedJob | None = None,
        changes_only: bool = False,
    ):
        self.unmapped: UnmappedRows | None = None
        self._spark = spark
        self._changes_only = changes_only
        self._joined = joined
        self._staging = staging
        self._plans = plans
        self._tables = tables
        self._schemas = {source: plan.schemas[source] for plan in plans.values() for source in plan.reads}
        self._slots = Slots(slots, self._schemas)
        self._images = Images(spark, plans)
        self._standing = {
            name: StandingMapping(spark, plan, self._slots, number, after_only=not self._images.both(name))
            for number, (name, plan) in enumerate(plans.items())
        }
        self._one_job = OneJob(spark, self._standing, StandingMapping.batches)
        self._jobs = SparkJobs() if joined is None else joined.jobs

    @property
    def fills(self) -> JoinedJob | None:
        """The joined targets, which may have to be filled piece by piece between batches; None if there are none."""
        return self._joined

    def warm_up(self, dumping: bool) -> None:
        """Runs the plans once over empty slots, so that the first batch doesn't wait for compilers.

        ``dumping``: also the way of dump rows, straight from Parquet files.
        """
        together = [name for name in self._plans if self._one_job.takes(name)]
        jobs: list[Future[Any]] = [self._one_job.submit(together, 1)] if together else []
        jobs += [
            self._jobs.start(standing.run)
            for name, standing in self._standing.items()
            if name not in together
        ]
        if dumping:
            jobs += [self._jobs.start(partial(self._map_empty_files, plan)) for plan in self._plans.values()]
        # What executors elsewhere lack is to be met at once. Otherwise joined targets can be planned beside batches.
        elsewhere = is_cluster(str(self._spark.sparkContext.master))
        if self._joined is not None and (dumping or elsewhere):
            jobs += [self._jobs.start(job) for job in self._joined.warm_up()]
        warmed_up(jobs, [plan.target.where() for plan in self._plans.values()])
        if self._joined is not None:
            self._joined.plan_ahead()

    def _map_empty_files(self, plan: MappingPlan) -> pa.Table:
        frames = {
            name: parquet_frame(self._spark, [self._slots.path("before", name)], plan.schemas[name])
            for name in plan.reads
        }
        return map_rows(self._spark, plan, frames).toArrow()

    def close(self) -> None:
        """Waits for jobs under way, those of joined targets too."""
        self._one_job.close()
        if self._joined is not None:
            self._joined.close()
        self._jobs.close()

    def map(self, batch: Batch, known: Checkpoint | None) -> TargetBatch:
        """The target rows of a batch.

        Args:
            batch: what to map.
            known: the checkpoint of the batch before, to tell whether a table's dump was over by then.

        Raises:
            MappingError: the mapping fails on a row; names table, key and cause.
        """
        if batch.echo:
            return self._followed(batch)
        touched = {table.name for table in batch.tables()}
        doubts = self._doubts(batch.doubts)
        affected = [
            plan for plan in self._plans.values() if touched & set(plan.reads) or plan.target.name in doubts
        ]
        if self.unmapped is not None:
            self.unmapped.forget()
        size = self._fill_slots(batch)
        chunks = {plan.target.name: self._jobs.start(partial(self._chunk, plan, batch)) for plan in affected}
        deltas = self._deltas(affected, batch, size)
        rows = []
        for plan in affected:
            chunk, (before, after) = chunks[plan.target.name].result(), deltas[plan.target.name].result()
            doubted = doubts.get(plan.target.name)
            empty = emptied(plan, batch, known)
            bad = self.unmapped is not None and self.unmapped.met(plan.target.name)
            if (
                empty
                or bad
                or any(part is not None and part.num_rows for part in (chunk, before, after, doubted))
            ):
                table = self._tables[plan.target.name]
                strict = chunk is None and doubted is None and _dumped(plan, known)
                share = TargetRows(table, chunk, before, after, strict, doubted=doubted, emptied=empty)
                rows.append(self.unmapped.aside(plan, share, batch) if bad and self.unmapped else share)
        joined = self._joined
        if joined is None:
            return TargetBatch(
                batch.last, batch.checkpoint, tuple(rows), link=batch.link, foreign=batch.row_changes
            )
        return TargetBatch(
            batch.last,
            batch.checkpoint,
            tuple(rows),
            joined.mirror_rows(batch),
            lambda mirror: joined.map(batch, mirror),
            batch.link,
            batch.row_changes,
        )

    def _followed(self, batch: Batch) -> TargetBatch:
        """A batch of changes that came from the target's side: nothing of them goes back there, mirrors have them."""
        joined = self._joined
        if joined is None:
            return TargetBatch(batch.last, batch.checkpoint, (), link=batch.link, echo=True)
        return TargetBatch(
            batch.last,
            batch.checkpoint,
            (),
            joined.mirror_rows(batch),
            lambda mirror: joined.follow(batch, mirror),
            batch.link,
            echo=True,
        )

    def _doubts(self, doubts: Sequence[Doubt]) -> dict[str, pa.Table]:
        """Doubted keys by target table, as its key columns hold them; a text that is no key of it matches
        nothing."""
        found: dict[str, pa.Table] = {}
        for name in {doubt.target for doubt in doubts} & set(self._plans):
            table = self._tables[name]
            keys = [key for doubt in doubts if doubt.target == name for key in dict.fromkeys(doubt.keys)]
            texts = self._spark.createDataFrame(
                keys, ", ".join(f"k{n} string" for n in range(len(table.key)))
            )
            columns = [column for key in table.key if (column := table.column(key)) is not None]
            cast = [
                parsed(F.col(f"k{n}"), spark_type(column.spark_type)).alias(column.name)
                for n, column in enumerate(columns)
            ]
            found[name] = texts.select(*cast).dropna().toArrow()
        return found

    def _chunk(self, plan: MappingPlan, batch: Batch) -> pa.Table | StagedRows | None:
        paths: dict[str, list[Path]] = {}
        for schema, files, _ in batch.chunks:
            mirrors = self._changes_only and _first(batch, schema.id)
            if schema.id.name in plan.reads and not mirrors:
                paths.setdefault(schema.id.name, []).extend(Path(file) for file in files)
        if not paths:
            return None
        frames = {
            name: parquet_frame(self._spark, files, plan.schemas[name]) for name, files in paths.items()
        }
        rows = map_rows(self._spark, plan, frames)

        def here() -> pa.Table:
            if self.unmapped is None:
                return self._collect(plan, rows.toArrow, lambda: _read_files(paths))
            try:
                return rows.toArrow()
            except SPARK_ERRORS:
                # Rows at fault are looked for once: to name one costs as much as to spare it.
                return self.unmapped.spared(
                    plan, _read_files(paths), partial(self._mapped, plan), dumped=True
                )

        staging = self._staging
        if staging is not None and not batch.doubts and batch.chunk_rows >= staging.rows:
            staged = self._staged(staging, plan, batch.last, rows, here)
            if staged is not None:
                return staged
        return here()

    def _staged(
        self, staging: Staging, plan: MappingPlan, segment: int, rows: DataFrame, here: Callable[[], pa.Table]
    ) -> pa.Table | StagedRows | None:
        """Dump rows put beside the target by executors; None where the driver loads them.

        A job that fails is done again on the driver, which names the row that is at fault. If there is none, the
        executors can't do it, and aren't asked again.
        """
        stage = staging.stager.staging(self._tables[plan.target.name], segment)
        if stage is None:
            return None
        try:
            parts, number = staged_parts(rows, stage)
        except SPARK_ERRORS as error:
            brought = here()
            if self.unmapped is not None and self.unmapped.met(plan.target.name):
                return brought  # they could, but for a row
            self._staging = None
            staging.say(f"executors can't load dump rows, the driver does: {spark_cause(error)}")
            return brought
        return StagedRows(parts, number, here) if number else rows.limit(0).toArrow()

    def _fill_slots(self, batch: Batch) -> int:
        """The size of the slots that the batch's images were put into; 0: too large, and planned anew."""
        deltas = {
            delta.schema.id.name: delta for delta in batch.deltas if delta.schema.id.name in self._schemas
        }
        return self._slots.fill(
            {
                "before": {
                    name: self._conform(name, delta.before)
                    for name, delta in deltas.items()
                    if name in self._images.before
                },
                "after": {name: self._conform(name, delta.after) for name, delta in deltas.items()},
            }
        )

    def _deltas(
        self, affected: Sequence[MappingPlan], batch: Batch, size: int
    ) -> dict[str, Future[tuple[pa.Table | None, pa.Table | None]]]:
        """Each target's share of the images being mapped, those of small batches together."""
        small = [plan for plan in affected if size == SLOT_BYTES and any(self._images.sides(plan, batch))]
        together = [plan.target.name for plan in small if self._one_job.takes(plan.target.name)]
        tasks = self._slots.filled_bytes // SLOT_BYTES
        running = self._one_job.submit(together, tasks) if together else None
        return {
            plan.target.name: self._jobs.start(
                partial(self._delta, plan, batch, size, running if plan.target.name in together else None)
            )
            for plan in affected
        }

    def _delta(
        self, plan: MappingPlan, batch: Batch, size: int, running: Future[dict[str, pa.Table]] | None = None
    ) -> tuple[pa.Table | None, pa.Table | None]:
        sides, name = self._images.sides(plan, batch), plan.target.name
        standing = self._standing[name]
        laid_out = standing.schema.remove(standing.schema.get_field_index(SIDE))
        gone = None if self._images.both(name) else self._images.gone(plan, batch, laid_out)
        if not any(sides):
            return gone, None
        try:
            if size:
                alone = partial(standing.run, size)
                job = alone if running is None else partial(share, plan.target.name, running, alone)
                mapped = self._collect(plan, job, lambda: all_images(plan, batch))
            else:
                mapped = pa.concat_tables([self._piece(plan, *piece) for piece in pieces(sides)])
        except RowUnmapped:
            if self.unmapped is None:
                raise
            return self._spared(self.unmapped, plan, sides, gone)
        side, rows = mapped[SIDE], mapped.drop_columns([SIDE])
        if not self._images.both(name):
            return gone, rows
        return rows.filter(pc.equal(side, 0)), rows.filter(pc.equal(side, 1))

    def _spared(
        self, unmapped: UnmappedRows, plan: MappingPlan, sides: Sides, gone: pa.Table | None
    ) -> tuple[pa.Table | None, pa.Table | None]:
        """The same as ``_delta`` without the rows that the mapping fails on."""
        before, after = sides
        if before:  # of these only keys are mapped
            gone = pa.concat_tables(
                [self._piece(plan, piece, {}).drop_columns([SIDE]) for piece, _ in pieces((before, {}))]
            )
        mapped = partial(self._mapped, plan)
        there = [unmapped.spared(plan, piece, mapped, dumped=False) for _, piece in pieces(({}, after))]
        return gone, pa.concat_tables(there) if there else None

    def _mapped(self, plan: MappingPlan, tables: Mapping[str, pa.Table]) -> pa.Table:
        return map_rows(self._spark, plan, self._frames(plan, tables)).toArrow()

    def _piece(
        self, plan: MappingPlan, before: Mapping[str, pa.Table], after: Mapping[str, pa.Table]
    ) -> pa.Table:
        job = map_delta(self._spark, plan, self._frames(plan, before), self._frames(plan, after)).toArrow
        return self._collect(plan, job, lambda: {**before, **after})

    def _frames(self, plan: MappingPlan, tables: Mapping[str, pa.Table]) -> dict[str, DataFrame]:
        return {
            name: computed_late(arrow_frame(self._spark, self._conform(name, rows), plan.schemas[name]))
            for name, rows in tables.items()
        }

    def _conform(self, source: str, rows: pa.Table) -> pa.Table:
        """Rows with NULL for the columns that they lack: no mapping reads those (see ``fitting``)."""
        return widened(rows, self._schemas[source])

    def _collect(self, plan: MappingPlan, job: Callable[[], pa.Table], rows: Any) -> pa.Table:
        return tried_twice(plan, job, job, lambda: row_at_fault(self._spark, plan, rows()))


def _first(batch: Batch, table: TableId) -> bool:
    """Tells whether a batch's dump rows of a table are of its first dump: a batch has those of one dump only."""
    passes = batch.checkpoint.passes
    return passes is None or dict(passes).get(table, FIRST) == FIRST


def _dumped(plan: MappingPlan, known: Checkpoint | None) -> bool:
    if known is None:
        return False
    done = {dump.table.name for dump in known.dumps if dump.done}
    return set(plan.reads) <= done


def _read_files(paths: Mapping[str, Sequence[Path]]) -> dict[str, pa.Table]:
    return {
        name: pa.concat_tables([pq.read_table(file) for file in files], promote_options="default")
        for name, files in paths.items()
    }
