"""Maps the whole mirror of a joined target at once, through files: neither side of it has to fit into memory."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from migrator.errors import CORRECTED_MAPPING, MappingError
from migrator.ports.mirror import JoinedTarget, Mirror, Sides
from migrator.ports.target import TargetRows
from migrator.run.apply.grains_aside import GrainsAside
from migrator.run.apply.joined_sides import conform
from migrator.run.apply.joined_values import JoinedValues
from migrator.run.apply.spark_jobs import SparkJobs
from migrator.run.steps import Step
from transforms.analysis.grain_numbers import numbered
from transforms.analysis.plan import MappingPlan
from transforms.frames import arrow_frame, file_uri
from transforms.on_spark.pipeline import map_rows, parquet_frame

_PART_ROWS = 50_000
MOST_SEARCHED = 1_000_000
"""Source rows among which grains at fault are looked for in memory, where a target isn't filled in pieces."""


def fresh_folder(parent: Path, name: str) -> Path:
    """An empty folder."""
    folder = parent / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


class WholeMirror:
    """The mirrored tables of joined targets, whole.

    Args:
        spark: the session.
        plans: checked mappings with a grain, by target table.
        folder: that driver and executors share.
        jobs: runs jobs while the target's transaction waits.
        values: computed values.
    """

    def __init__(
        self,
        spark: SparkSession,
        plans: Mapping[str, MappingPlan],
        folder: Path,
        jobs: SparkJobs,
        values: JoinedValues,
    ):
        self._spark, self._plans, self._folder = spark, plans, folder
        self._jobs, self._values = jobs, values

    def folder(self) -> Path:
        """An empty folder for the rows of one target."""
        return fresh_folder(self._folder, "filling")

    def prepare(self, target: JoinedTarget, mirror: Mirror) -> None:
        """Computes what the mirror lacks for the target beside rows."""
        plan = self.plan(target)
        folder = self.folder()
        if self._values.computed(plan) or not all(reach.grain for reach in target.reaches):
            self.revalue(target, mirror, self.frames(target, mirror, folder), folder)
        shutil.rmtree(folder, ignore_errors=True)

    def plan(self, target: JoinedTarget) -> MappingPlan:
        """The target's mapping."""
        return self._plans[target.table.id.name]

    def frames(self, target: JoinedTarget, mirror: Mirror, folder: Path) -> dict[str, DataFrame]:
        """The whole mirrored tables of a target, by name, through files."""
        plan = self.plan(target)
        return {
            name: parquet_frame(self._spark, self._stored(target, mirror, name, folder), plan.schemas[name])
            for name in target.sources
        }

    def revalue(
        self, target: JoinedTarget, mirror: Mirror, frames: Mapping[str, DataFrame], folder: Path
    ) -> None:
        """Stores computed values and the numbers of computed grains anew."""
        plan = self.plan(target)
        mirrored = {schema.id: schema for schema in target.sources.values()}
        for schema, columns, hashes in self._values.whole(plan, frames):
            parts = self.through_files(plan, mirror, hashes, folder / f"values of {schema.id.name}")
            mirror.revalue(mirrored[schema.id], columns, parts)
        for reach in target.reaches:
            if not reach.grain:
                numbers = numbered(plan.target, reach, frames)
                mirror.number_all(reach, self.through_files(plan, mirror, numbers, folder / "numbers"))

    def _stored(self, target: JoinedTarget, mirror: Mirror, name: str, folder: Path) -> list[Path]:
        """A mirrored table as a file."""
        plan = self.plan(target)
        path = stored_at(folder, plan, name)
        writer: pq.ParquetWriter | None = None
        for part in mirror.whole(target.sources[name]):
            rows = conform(plan, name, part)
            writer = writer or pq.ParquetWriter(path, rows.schema)
            writer.write_table(rows)
        if writer is None:
            return []
        writer.close()
        return [path]

    def through_files(
        self, plan: MappingPlan, mirror: Mirror, rows: DataFrame, folder: Path
    ) -> Iterator[pa.Table]:
        """Rows of any number, in parts; the job runs now."""
        self._jobs.run(plan, lambda: rows.write.mode("overwrite").parquet(file_uri(folder)), mirror.stay)

        def parts() -> Iterator[pa.Table]:
            for path in sorted(folder.glob("*.parquet")):
                for batch in pq.ParquetFile(path).iter_batches(_PART_ROWS):
                    yield pa.Table.from_batches([batch])

        return parts()

    def mapped(self, plan: MappingPlan, frames: Mapping[str, DataFrame]) -> DataFrame:
        """The target rows that the mapping makes."""
        return map_rows(self._spark, plan, frames)

    def again(self, plan: MappingPlan, mirror: Mirror, sides: Sides) -> pa.Table:
        """The target rows of some source rows in memory."""
        frames = {
            name: arrow_frame(self._spark, rows, plan.schemas[name])
            for name, rows in sides.after.items()
            if rows.num_rows
        }
        return self._jobs.run(plan, self.mapped(plan, frames).toArrow, mirror.stay)

    def refuse_doubles(self, plan: MappingPlan, mirror: Mirror, folder: Path, nulls: bool) -> None:
        """Raises ``MappingError`` where mapped rows in files have one key twice, or, if ``nulls``, NULL in it."""
        if not any(folder.glob("*.parquet")):
            return
        rows = self._spark.read.option("__globPaths__", "false").parquet(file_uri(folder))
        key = [f"`{name.replace('`', '``')}`" for name in plan.target.key]
        doubles = rows.groupBy(*key).count().where("count > 1").limit(1)
        twice = self._jobs.run(plan, doubles.toArrow, mirror.stay).to_pylist()
        if twice:
            text = ", ".join(f"{name}={twice[0][name]!r}" for name in plan.target.key)
            raise MappingError(
                f"the mapping of target table {plan.target.name!r} returned two rows for key {text}",
                where=plan.target.where(),
                cause="a target row must come from one grain, else the last one would win by chance",
                remedy=f"correct the mapping or its key, then start again: nothing was written{CORRECTED_MAPPING}",
            )
        if not nulls:
            return  # the target names such a row
        lacking = rows.where(" OR ".join(f"{name} IS NULL" for name in key)).limit(1)
        if self._jobs.run(plan, lacking.toArrow, mirror.stay).num_rows:
            raise MappingError(
                f"the mapping of target table {plan.target.name!r} returned NULL in a key",
                where=plan.target.where(),
                remedy=f"correct the mapping, then start again: nothing was written{CORRECTED_MAPPING}",
            )


def stored_at(folder: Path, plan: MappingPlan, name: str) -> Path:
    """The file of a mirrored table."""
    return folder / f"source-{sorted(plan.schemas).index(name)}.parquet"


class Filler:
    """One joined target being filled at once.

    Args:
        whole: its mirror.
        aside: grains that go aside.
        target: what is filled.
        mirror: of the transaction.
        step: called at the point ``joined.mapped``.
    """

    def __init__(
        self, whole: WholeMirror, aside: GrainsAside, target: JoinedTarget, mirror: Mirror, step: Step
    ):
        self._whole, self._aside, self._target, self._mirror, self._step = whole, aside, target, mirror, step
        self._plan = whole.plan(target)
        self._folder = whole.folder()
        self._empty = mirror.is_empty(target.table)
        self._parts: Iterator[pa.Table] = iter(())

    def mapped(self) -> Filler | None:
        """Maps all rows; None where the mapping fails, and grains at fault can be looked for piece by piece.

        Raises ``MappingError`` where it fails for another reason.
        """
        whole, plan, mirror, folder = self._whole, self._plan, self._mirror, self._folder
        frames = whole.frames(self._target, mirror, folder)
        whole.revalue(self._target, mirror, frames, folder)
        may = self._aside.may(self._target)
        try:
            self._parts = whole.through_files(plan, mirror, whole.mapped(plan, frames), folder / "mapped")
            self._step("joined.mapped")
            whole.refuse_doubles(plan, mirror, folder / "mapped", nulls=may)
        except MappingError as error:
            if not may:
                raise
            if self._empty:
                return None
            self._parts = self._searched(error)
        self._aside.tried_all(self._target, mirror)
        return self

    def _searched(self, error: MappingError) -> Iterator[pa.Table]:
        """The rows without grains at fault, which are looked for in memory: rows of the target can't go in pieces."""
        self._whole.frames(self._target, self._mirror, self._folder)  # with the values computed since
        paths = {name: stored_at(self._folder, self._plan, name) for name in self._target.sources}
        files = {name: path for name, path in paths.items() if path.exists()}
        if sum(pq.ParquetFile(path).metadata.num_rows for path in files.values()) > MOST_SEARCHED:
            error.remedy += f". Grains at fault aren't looked for among more than {MOST_SEARCHED:,} rows"
            raise error
        sides = Sides({}, {name: pq.read_table(path) for name, path in files.items()}, True)

        def failed() -> pa.Table:
            raise error

        rows = self._aside.awaited(
            self._target,
            self._mirror,
            sides,
            failed,
            lambda some: self._whole.again(self._plan, self._mirror, some),
        )
        return iter((rows,))

    def rows(self) -> Iterator[TargetRows]:
        """The target's rows, in parts: all that it shall hold."""
        none, table, empty = True, self._target.table, self._empty
        for part in self._parts:
            none = False
            yield TargetRows(table, part if empty else None, None, None if empty else part, False, not empty)
        if none and not empty:
            nothing = self._whole.mapped(self._plan, {}).limit(0).toArrow()
            yield TargetRows(table, None, None, nothing, False, replaces=True)

    def close(self) -> None:
        """Removes the files."""
        shutil.rmtree(self._folder, ignore_errors=True)
