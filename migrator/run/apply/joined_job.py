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

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from migrator.model.progress import Checkpoint, Filling
from migrator.model.reach import Reach, entangled, united
from migrator.model.table import TableId
from migrator.model.target import TargetTable
from migrator.ports.eventlog import Batch, NetDelta
from migrator.ports.mirror import JoinedTarget, Mirror, MirrorRows, Sides
from migrator.ports.target import TargetRows
from migrator.run.apply.difference import difference
from migrator.run.apply.grains_aside import GrainsAside
from migrator.run.apply.joined_sides import Begun, Collected, JoinedSides, Starting
from migrator.run.apply.joined_values import JoinedValues
from migrator.run.apply.joined_whole import Filler, WholeMirror, fresh_folder
from migrator.run.apply.sliced import Change, sliced
from migrator.run.steps import Step, no_step
from transforms.analysis.grain_numbers import numbered
from transforms.analysis.kept import Prove, proved
from transforms.analysis.plan import MappingPlan
from transforms.declared_grain import grain_tables
from transforms.on_spark.pipeline import SIDE


@dataclass(frozen=True, slots=True)
class Manner:
    """The manner in which joined targets are kept.

    Attributes:
        slice_grains: grains that are read and mapped at a time.
        changes_only: whether the targets have their rows already: once the mirror is whole they are in step.
        prove: raises where a plan isn't the function's, before a first row is mapped by it.
        most_aside: how many grains of a target may be set aside at a time; None: the mapping may fail on none.
    """

    slice_grains: int
    changes_only: bool = False
    prove: Prove = proved
    most_aside: int | None = None


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
        self._aside = GrainsAside(
            spark, plans, self.jobs, manner.most_aside, lambda name: self._step(name), say
        )
        self._whole = WholeMirror(spark, plans, folder, self.jobs, self._values)
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
        self._aside.begin()
        touched = {table.name for table in batch.tables()}
        followed = {*mirror.filled(), *mirror.covering()}
        starting = Starting(self._sides)
        for target in self.targets:
            if (target.table.id.name, target.digest()) in followed:
                if touched & set(target.sources) and mirror.touches(target):
                    for found in self._collected(target, mirror):
                        starting.add(found)
            elif _dumped(target, batch.checkpoint):
                if self._changes_only:
                    self._whole.prepare(target, mirror)
                    mirror.mark_filled(target)
                elif self._in_pieces(target, mirror):
                    self._whole.prepare(target, mirror)
                    yield from self._begin_pieces(target, mirror)
                else:
                    yield from self._fill(target, mirror)
        for work in sorted(starting.rest(), key=lambda work: self.targets.index(work.first.target)):
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
                self._whole.prepare(target, mirror)
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
        slices = (self._aside.tried(target, mirror, one) for one in mirror.slices(target, self._slice_grains))
        return [self._sides.collected(target, plan, next(slices), slices)]

    def _finish(self, begun: Begun, mirror: Mirror) -> Iterator[TargetRows]:
        return self._aside.noting(begun.first.target, self._changed(begun, mirror))

    def _changed(self, begun: Begun, mirror: Mirror) -> Iterator[TargetRows]:
        changes = self._changes(begun, mirror)
        first, more = next(changes)
        if more:
            parts = chain([first], (change for change, _ in changes))
            yield from sliced(begun.first.target, parts, fresh_folder(self._folder, "slices"), self._say)
        else:
            yield TargetRows(begun.first.target.table, None, *first)

    def _changes(self, begun: Begun, mirror: Mirror) -> Iterator[tuple[Change, bool]]:
        """Yields the change of each slice, and whether another slice follows.

        While Spark maps a slice, the server collects the next one and the caller does something with the last.
        """
        plan, sides, job, running = begun.first.plan, begun.first.sides, begun.job, begun.running
        target = begun.first.target

        def again(some: Sides) -> pa.Table:
            return self.jobs.run(plan, self._sides.put(plan, some), mirror.stay)

        while True:
            following = next(begun.first.slices, None)
            result = partial(self.jobs.awaited, plan, job, running, mirror.stay)
            change = self._judged(plan, sides, self._aside.awaited(target, mirror, sides, result, again))
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

    def piece(self, mirror: Mirror) -> Iterator[TargetRows]:
        """The rows of the next grains of every target that is being filled, all mapped side by side.

        Together they have no more grains than one slice has. Raises as ``map``.
        """
        self.jobs.settle()
        self._aside.begin()
        covering = mirror.covering()
        targets = [one for one in self.targets if (one.table.id.name, one.digest()) in covering]
        starting = Starting(self._sides)
        for target in targets:
            plan = self._plans[target.table.id.name]
            sides = mirror.piece(target, max(1, self._slice_grains // len(targets)))
            sides = self._aside.tried(target, mirror, sides)
            starting.add(self._sides.collected(target, plan, sides, iter(())))
        for work in starting.rest():
            mapped = list(self._finish(work, mirror))
            self._step("fill.mapped")
            yield from mapped
        self.filling = self._under_way(mirror)

    def _begin_pieces(self, target: JoinedTarget, mirror: Mirror) -> Iterator[TargetRows]:
        """Gives no rows; what is set aside of the target is tried with its piece."""
        self._aside.tried_all(target, mirror)
        mirror.begin_pieces(target)
        return self._aside.noting(target, ())

    def _fill(self, target: JoinedTarget, mirror: Mirror) -> Iterator[TargetRows]:
        """Maps the whole mirror at once."""
        plan = self._plans[target.table.id.name]
        self._sides.prove(plan)
        self._say(f"filling {target.table.id.name} from the mirror")
        filler = Filler(self._whole, self._aside, target, mirror, self._step)
        if filler.mapped() is None:  # an empty target, whose grains at fault are looked for piece by piece
            yield from self._begin_pieces(target, mirror)
        else:
            yield from self._aside.noting(target, filler.rows())
            mirror.mark_filled(target)
            self._step("joined.filled")
        filler.close()
        self._say("")

    def _under_way(self, mirror: Mirror) -> tuple[Filling, ...]:
        covering = mirror.covering()
        found = (covering.get((target.table.id.name, target.digest())) for target in self.targets)
        return tuple(covered.filling for covered in found if covered is not None)


def _dumped(target: JoinedTarget, checkpoint: Checkpoint) -> bool:
    dumps = [checkpoint.dump_of(schema.id) for schema in target.sources.values()]
    return all(dump is not None and dump.done for dump in dumps)
