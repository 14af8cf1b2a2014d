"""Maps joined targets inside a batch's target transaction: only the grains that the batch touches.

A mapping with a grain is a sum over grains, ``f(rows) = sum of f(rows linked to one grain value)``. The rows
read for some grains, in the state before the batch and after it, hold versions of the same keys. Grains that
the batch doesn't touch, and that are there by half because a row is linked to several, give the same on both
sides. So what differs between ``f(before)`` and ``f(after)`` is exactly what has to change in the target:
rows of before alone are deleted, rows of after alone are written.

A target is filled from the mirror once the last table that it reads is dumped: set-wise, in the transaction that
completes that dump; or, where its grains' tables are large, piece by piece, each in a transaction of its own. Between
pieces batches go on. They write those grains that are covered; what others will have is derived later, from the
mirror as it is then. So in every committed state the rows of covered grains are the mapping of the source at the
ledger's position, and others have none.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from migrator.errors import CORRECTED_MAPPING, MappingError
from migrator.model.progress import Checkpoint, Filling
from migrator.model.reach import Reach, entangled, united
from migrator.model.table import TableId
from migrator.model.target import TargetTable
from migrator.ports.eventlog import Batch, NetDelta
from migrator.ports.mirror import JoinedTarget, Mirror, MirrorRows, Sides
from migrator.ports.target import TargetRows
from migrator.run.apply.difference import difference
from migrator.run.apply.joined_sides import Begun, Collected, JoinedSides, conform
from migrator.run.apply.joined_values import JoinedValues
from migrator.run.apply.sliced import Change, sliced
from migrator.run.steps import Step, no_step
from transforms.analysis.grain_numbers import numbered
from transforms.analysis.kept import Prove, proved
from transforms.analysis.plan import MappingPlan
from transforms.declared_grain import grain_tables
from transforms.frames import file_uri
from transforms.on_spark.pipeline import SIDE, map_rows, parquet_frame

_PART_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class Manner:
    """The manner in which joined targets are kept.

    Attributes:
        slice_grains: grains that are read and mapped at a time.
        changes_only: whether the targets have their rows already: once the mirror is whole they are in step.
        prove: raises where a plan isn't the function's, before a first row is mapped by it.
    """

    slice_grains: int
    changes_only: bool = False
    prove: Prove = proved


class JoinedJob:
    """The joined targets of a migration.

    Args:
        spark: the session.
        plans: checked mappings with a grain, by target table.
        tables: reflected target tables by name.
        folder: that driver and executors share, for rows on their way.
        manner: how much is done at a time, and whether anything is filled.
        say: takes a word about what is being done, for whoever watches the run.
        step: hook at named points.

    ``jobs``: runs its jobs; whoever maps batches runs its own there too, and closes it. ``filling``: the targets that
    are being filled piece by piece, as the last transaction that was tried left them.
    """

    def __init__(
        self,
        spark: SparkSession,
        plans: Mapping[str, MappingPlan],
        tables: Mapping[str, TargetTable],
        folder: Path,
        manner: Manner,
        say: Callable[[str], None] = lambda _: None,
        step: Step = no_step,
    ):
        self._spark = spark
        self._plans = plans
        self._folder = folder
        self._slice_grains, self._changes_only = manner.slice_grains, manner.changes_only
        self._say = say
        self._step = step
        laid_out = united([plan.reaches for plan in plans.values()])
        self.targets = tuple(
            JoinedTarget(tables[name], reaches, plan.reads)
            for (name, plan), reaches in zip(plans.items(), laid_out, strict=True)
        )
        self._values = JoinedValues(spark, tuple(plans.values()), folder / "values")
        self._sides = JoinedSides(spark, plans, folder, manner.prove)
        self.jobs = self._sides.jobs
        self._mirrored = {s.id: s for target in self.targets for s in target.sources.values()}
        self.filling: tuple[Filling, ...] = ()

    def warm_up(self) -> list[Callable[[], object]]:
        """Jobs that make the first batch not wait for plans and compilers."""
        return self._sides.warm_up()

    def plan_ahead(self) -> None:
        """Begins to plan the targets that nobody has asked for yet, beside the first batches."""
        self._sides.plan_ahead()

    def close(self) -> None:
        """Waits for jobs under way."""
        self._sides.close()

    def mirror_rows(self, batch: Batch) -> tuple[MirrorRows, ...]:
        """Returns the changes that a batch makes to the mirror.

        Raises ``MappingError`` when a value that a mapping computes from rows fails.
        """
        chunks: dict[TableId, list[str]] = {}
        deltas: dict[TableId, NetDelta] = {}
        for schema, files, rows in batch.chunks:
            if schema.id in self._mirrored and rows:
                chunks.setdefault(schema.id, []).extend(files)
        for delta in batch.deltas:
            if delta.schema.id in self._mirrored:
                deltas[delta.schema.id] = delta
        found = []
        for table in dict.fromkeys([*chunks, *deltas]):
            before, after = (deltas[table].before, deltas[table].after) if table in deltas else (None, None)
            paths = tuple(chunks.get(table, ()))
            emptied = table in batch.emptied()
            found.append(MirrorRows(self._mirrored[table], paths, before, after, emptied))
        return self._values.added(found)

    def map(self, batch: Batch, mirror: Mirror) -> Iterator[TargetRows]:
        """The rows that a batch changes in joined targets, the mirror having been moved.

        Raises ``MappingError`` when a mapping fails; whatever the mirror raises.
        """
        self.jobs.settle()  # those of a transaction that failed still read the slots that are filled now
        touched = {table.name for table in batch.tables()}
        followed = {*mirror.filled(), *mirror.covering()}
        begun: list[Begun] = []
        few: list[Collected] = []
        for target in self.targets:
            if (target.table.id.name, target.digest()) in followed:
                if touched & set(target.sources) and mirror.touches(target):
                    for found in self._collected(target, mirror):
                        if found.few:
                            few.append(found)
                        else:  # many rows are mapped while the server collects those of the next target
                            begun += self._sides.start([found])
            elif _dumped(target, batch.checkpoint):
                if self._changes_only:
                    self._prepare(target, mirror)
                    mirror.mark_filled(target)
                elif self._in_pieces(target, mirror):
                    self._prepare(target, mirror)
                    mirror.begin_pieces(target)
                else:
                    yield from self._fill(target, mirror)
        begun += self._sides.start(few)
        for work in sorted(begun, key=lambda work: self.targets.index(work.first.target)):
            yield from self._finish(work, mirror)
        self.filling = self._under_way(mirror)

    def follow(self, batch: Batch, mirror: Mirror) -> Iterator[TargetRows]:
        """Keeps in step what the mirror has beside rows, for changes that came from the target's side: no rows."""
        self.jobs.settle()
        touched = {table.name for table in batch.tables()}
        followed = {*mirror.filled(), *mirror.covering()}
        for target in self.targets:
            if (target.table.id.name, target.digest()) in followed:
                if touched & set(target.sources):
                    self._renumbered(target, mirror)
            elif self._changes_only and _dumped(target, batch.checkpoint):
                self._prepare(target, mirror)
                mirror.mark_filled(target)
        self.filling = self._under_way(mirror)
        return iter(())

    # -- changes

    def _renumbered(self, target: JoinedTarget, mirror: Mirror) -> None:
        """Computes the numbers of grains that no server knows, of the rows that the batch touches."""
        for reach in target.reaches:
            if not reach.grain:
                self._renumber(self._plans[target.table.id.name], reach, mirror)

    def _collected(self, target: JoinedTarget, mirror: Mirror) -> list[Collected]:
        """The rows of the grains that the batch touches, in the target's slots; none if it touches none."""
        plan = self._plans[target.table.id.name]
        self._renumbered(target, mirror)
        if not mirror.trace(target):
            return []
        slices = mirror.slices(target, self._slice_grains)
        return [self._sides.collected(target, plan, next(slices), slices)]

    def _finish(self, begun: Begun, mirror: Mirror) -> Iterator[TargetRows]:
        changes = self._changes(begun, mirror)
        first, more = next(changes)
        if more:
            parts = chain([first], (change for change, _ in changes))
            yield from sliced(begun.first.target, parts, self._fresh_folder("slices"), self._say)
        else:
            yield TargetRows(begun.first.target.table, None, *first)

    def _changes(self, begun: Begun, mirror: Mirror) -> Iterator[tuple[Change, bool]]:
        """Yields the change of each slice, and whether another slice follows.

        While Spark maps a slice, the server collects the next one and the caller does something with the last.
        """
        plan, sides, job, running = begun.first.plan, begun.first.sides, begun.job, begun.running
        while True:
            following = next(begun.first.slices, None)
            change = self._judged(plan, sides, self.jobs.awaited(plan, job, running, mirror.stay))
            if following is None:
                yield change, False
                return
            sides, job = following, self._sides.put(plan, following)
            running = self.jobs.submit(job)
            yield change, True

    def _renumber(self, plan: MappingPlan, reach: Reach, mirror: Mirror) -> None:
        tables = mirror.roots(reach, grain_tables(plan.target))
        if tables is not None:
            rows = numbered(plan.target, reach, self._sides.frames(plan, tables))
            mirror.renumber(reach, self.jobs.run(plan, rows.toArrow, mirror.stay))

    @staticmethod
    def _judged(plan: MappingPlan, sides: Sides, mapped: pa.Table) -> Change:
        """Rows to delete, rows to write, and whether those without a row to delete must be new."""
        whole = sides.dumped and not entangled(plan.reaches)
        return (*difference(mapped, SIDE, plan.target.key, keep_equal=whole), not sides.dumped)

    # -- filling

    def _in_pieces(self, target: JoinedTarget, mirror: Mirror) -> bool:
        """Tells whether a target is filled piece by piece.

        Not where rows of an earlier mapping are there: which of them a piece takes the place of can't be known. Nor
        where rows stand for grains of which a piece would have a part only.
        """
        return (
            not entangled(target.reaches)
            and mirror.more_rows(target, self._slice_grains)
            and mirror.is_empty(target.table)
        )

    def _prepare(self, target: JoinedTarget, mirror: Mirror) -> None:
        """Computes what the mirror lacks for the target beside rows."""
        plan = self._plans[target.table.id.name]
        folder = self._fresh_folder("filling")
        if self._values.computed(plan) or not all(reach.grain for reach in target.reaches):
            self._revalued(target, mirror, self._whole(target, mirror, folder), folder)
        shutil.rmtree(folder, ignore_errors=True)

    def piece(self, mirror: Mirror) -> Iterator[TargetRows]:
        """The rows of the next grains of every target that is being filled, all mapped side by side.

        Together they have no more grains than one slice has. Raises as ``map``.
        """
        self.jobs.settle()
        covering = mirror.covering()
        targets = [one for one in self.targets if (one.table.id.name, one.digest()) in covering]
        begun: list[Begun] = []
        few: list[Collected] = []
        for target in targets:
            plan = self._plans[target.table.id.name]
            sides = mirror.piece(target, max(1, self._slice_grains // len(targets)))
            found = self._sides.collected(target, plan, sides, iter(()))
            if found.few:
                few.append(found)
            else:
                begun += self._sides.start([found])
        begun += self._sides.start(few)
        for work in begun:
            mapped = list(self._finish(work, mirror))
            self._step("fill.mapped")
            yield from mapped
        self.filling = self._under_way(mirror)

    def _under_way(self, mirror: Mirror) -> tuple[Filling, ...]:
        covering = mirror.covering()
        found = (covering.get((target.table.id.name, target.digest())) for target in self.targets)
        return tuple(covered.filling for covered in found if covered is not None)

    def _fill(self, target: JoinedTarget, mirror: Mirror) -> Iterator[TargetRows]:
        """Maps the whole mirror at once, through files: neither side of it has to fit into memory."""
        plan = self._plans[target.table.id.name]
        self._sides.prove(plan)
        self._say(f"filling {target.table.id.name} from the mirror")
        folder = self._fresh_folder("filling")
        frames = self._whole(target, mirror, folder)
        self._revalued(target, mirror, frames, folder)
        mapped = map_rows(self._spark, plan, frames)
        rows = self._through_files(plan, mirror, mapped, folder / "mapped")
        self._step("joined.mapped")
        self._refuse_doubles(plan, mirror, folder / "mapped")
        empty = mirror.is_empty(target.table)
        none = True
        for part in rows:
            none = False
            yield TargetRows(
                target.table, part if empty else None, None, None if empty else part, False, not empty
            )
        if none and not empty:
            nothing = map_rows(self._spark, plan, {}).limit(0).toArrow()
            yield TargetRows(target.table, None, None, nothing, False, replaces=True)
        mirror.mark_filled(target)
        self._step("joined.filled")
        shutil.rmtree(folder, ignore_errors=True)
        self._say("")

    def _whole(self, target: JoinedTarget, mirror: Mirror, folder: Path) -> dict[str, DataFrame]:
        """The whole mirrored tables of a target, by name, through files."""
        plan = self._plans[target.table.id.name]
        return {
            name: parquet_frame(self._spark, self._stored(plan, mirror, name, folder), plan.schemas[name])
            for name in target.sources
        }

    def _revalued(
        self, target: JoinedTarget, mirror: Mirror, frames: Mapping[str, DataFrame], folder: Path
    ) -> None:
        """Stores computed values and the numbers of computed grains anew."""
        plan = self._plans[target.table.id.name]
        for schema, columns, hashes in self._values.whole(plan, frames):
            parts = self._through_files(plan, mirror, hashes, folder / f"values of {schema.id.name}")
            mirror.revalue(self._mirrored[schema.id], columns, parts)
        for reach in target.reaches:
            if not reach.grain:
                numbers = numbered(plan.target, reach, frames)
                mirror.number_all(reach, self._through_files(plan, mirror, numbers, folder / "numbers"))

    def _stored(self, plan: MappingPlan, mirror: Mirror, name: str, folder: Path) -> list[Path]:
        """A mirrored table as a file."""
        path = folder / f"source-{sorted(plan.schemas).index(name)}.parquet"
        writer: pq.ParquetWriter | None = None
        for part in mirror.whole(self._mirrored[plan.schemas[name].id]):
            rows = conform(plan, name, part)
            writer = writer or pq.ParquetWriter(path, rows.schema)
            writer.write_table(rows)
        if writer is None:
            return []
        writer.close()
        return [path]

    def _through_files(
        self, plan: MappingPlan, mirror: Mirror, rows: DataFrame, folder: Path
    ) -> Iterator[pa.Table]:
        """Rows of any number, in parts; the job runs now."""
        self.jobs.run(plan, lambda: rows.write.mode("overwrite").parquet(file_uri(folder)), mirror.stay)

        def parts() -> Iterator[pa.Table]:
            for path in sorted(folder.glob("*.parquet")):
                for batch in pq.ParquetFile(path).iter_batches(_PART_ROWS):
                    yield pa.Table.from_batches([batch])

        return parts()

    def _refuse_doubles(self, plan: MappingPlan, mirror: Mirror, folder: Path) -> None:
        if not any(folder.glob("*.parquet")):
            return
        rows = self._spark.read.option("__globPaths__", "false").parquet(file_uri(folder))
        key = list(plan.target.key)
        doubles = rows.groupBy(*key).count().where("count > 1").limit(1)
        twice = self.jobs.run(plan, doubles.toArrow, mirror.stay).to_pylist()
        if twice:
            text = ", ".join(f"{name}={twice[0][name]!r}" for name in key)
            raise MappingError(
                f"the mapping of target table {plan.target.name!r} returned two rows for key {text}",
                where=plan.target.where(),
                cause="a target row must come from one grain, else the last one would win by chance",
                remedy=f"correct the mapping or its key, then start again: nothing was written{CORRECTED_MAPPING}",
            )

    # -- both

    def _fresh_folder(self, name: str) -> Path:
        folder = self._folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder


def _dumped(target: JoinedTarget, checkpoint: Checkpoint) -> bool:
    dumps = [checkpoint.dump_of(schema.id) for schema in target.sources.values()]
    return all(dump is not None and dump.done for dump in dumps)
