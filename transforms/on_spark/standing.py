"""A mapping planned once and run for every batch.

To call a mapping function and plan its DataFrame costs far more than to map a few thousand rows: every
``F.col`` is a call to the JVM, and the plan is analysed, optimised and compiled. So the plan is made once,
over Parquet files whose content is replaced before each run, and every batch executes the same plan again.

A planned scan keeps the length that its file had when the plan was made. So these files, the slots, always have the
same length. Between the rows and the footer is a hole in the file, which takes no room on disk and no time to read.
There are two sizes. The smaller one, for few rows, is read by one task (of a joined mapping, by at least one per
side). The larger one is read by several tasks: its row groups are spread over the whole length, because Spark
divides a scan among tasks by places in the file.

They lie in a folder that driver and executors share (the state folder, next to the event log).
"""

from __future__ import annotations

import io
import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.core.rdd import RDD
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from migrator.errors import MigratorError
from migrator.model.table import TableSchema
from transforms.analysis.plan import MappingKind, MappingPlan
from transforms.frames import arrow_schema, parquet_frame
from transforms.on_spark.pipeline import SIDE, map_delta
from transforms.on_spark.planned import execution_of, planned_with

SIDES = ("before", "after")
_SHUFFLE = re.compile("(?<!Broadcast)Exchange ")
_SHARED = re.compile("Adaptive|Reused|[Ss]ubquery|InMemory(?!FileIndex)")
"""Nodes that a copy of a plan shares with the original, because they refer to something in it."""
_ADAPTIVE = "spark.sql.adaptive.enabled"
SLOT_BYTES = 4 << 20
"""The size of a small slot. Spark counts a file as at least 4 MiB when it divides a scan: so this makes one task."""
LARGE_SLOT_BYTES = 64 << 20
SIZES = (SLOT_BYTES, LARGE_SLOT_BYTES)
_ROW_GROUPS = 16
"""Row groups of a large slot, which is the number of tasks that can share it."""
_HOLE = bytes(LARGE_SLOT_BYTES // _ROW_GROUPS)

_Content = tuple[tuple[int, bytes], ...]
"""Pieces of a file with their places."""


_handed_on = threading.local()


class Slots:
    """The rows of one batch, where the standing plans read them: one file per source table, side and size.

    One thread fills them, and not before the jobs of the batch before have ended.

    Args:
        folder: the folder of the slots, created if missing; slots left over from another run are emptied.
        schemas: the source tables by name.

    Making and filling them raises ``MigratorError`` when the disk refuses.
    """

    def __init__(self, folder: Path, schemas: Mapping[str, TableSchema]):
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _refused(folder, error) from error
        self._folder = folder
        self._schemas = {name: arrow_schema(schema) for name, schema in schemas.items()}
        self._empty = {
            (name, size): _encoded(schema.empty_table(), size)
            for name, schema in self._schemas.items()
            for size in SIZES
        }
        self._filled: set[Path] = set()
        self.filled_bytes = 0
        """Bytes that the rows of the last batch take in memory."""
        for (name, size), content in self._empty.items():
            for side in SIDES:
                self._put(self.path(side, name, size), content or ())

    def path(self, side: str, source: str, size: int = SLOT_BYTES) -> Path:
        """The slot of a source table."""
        name = "".join(letter if letter.isalnum() else f"%{ord(letter):x}" for letter in source)
        return self._folder / f"{name}.{side}.{size >> 20}.parquet"

    def fill(self, rows: Mapping[str, Mapping[str, pa.Table]]) -> int:
        """Puts a batch in place.

        Args:
            rows: source rows by side and table name, with at least the columns of the schema. Slots of tables that
                are not named are emptied.

        Returns:
            The size of the slots that hold the rows; 0 if a table has too many rows for the largest size, and nothing
            was changed.
        """
        for size in SIZES:
            contents = self._contents(rows, size)
            if contents is not None:
                break
        else:
            return 0
        for (name, slot_size), empty in self._empty.items():
            for side in SIDES:
                path = self.path(side, name, slot_size)
                if path in contents:
                    self._put(path, contents[path])
                elif path in self._filled:
                    self._put(path, empty or ())
        self._filled = set(contents)
        self.filled_bytes = sum(table.nbytes for tables in rows.values() for table in tables.values())
        return size

    def _contents(self, rows: Mapping[str, Mapping[str, pa.Table]], size: int) -> dict[Path, _Content] | None:
        contents: dict[Path, _Content] = {}
        for side, tables in rows.items():
            for name, table in tables.items():
                if not table.num_rows:
                    continue
                schema = self._schemas[name]
                content = _encoded(table.select(schema.names).cast(schema), size)
                if content is None:
                    return None
                contents[self.path(side, name, size)] = content
        return contents

    @staticmethod
    def _put(path: Path, content: _Content) -> None:
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                for place, piece in content:
                    os.pwrite(file, piece, place)
            finally:
                os.close(file)
        except OSError as error:
            raise _refused(path, error) from error


def _refused(path: Path, error: OSError) -> MigratorError:
    return MigratorError(
        "the rows of a batch can't be put where Spark reads them",
        where=str(path),
        cause=str(error.strerror or error),
        remedy="check free space, rights and open files of the state directory, then start again: nothing is lost",
    )


class _Pieces(io.RawIOBase):
    """A file that keeps the written pieces with their places; while ``skipping``, it only counts bytes, of a hole."""

    def __init__(self) -> None:
        self.pieces: list[tuple[int, bytes]] = []
        self.place = 0
        self.skipping = False

    def writable(self) -> bool:
        return True

    def write(self, block: Any) -> int:
        length = memoryview(block).nbytes
        if not self.skipping:
            self.pieces.append((self.place, bytes(block)))
        self.place += length
        return length


def _encoded(rows: pa.Table, size: int) -> _Content | None:
    """The rows as a Parquet file of exactly ``size`` bytes, or None if they are too many."""
    if rows.nbytes > size:
        return None
    groups = 1 if size == SLOT_BYTES else _ROW_GROUPS
    step = max(1, -(-rows.num_rows // groups))
    pieces = _Pieces()
    sink = pa.PythonFile(pieces, mode="w")
    writer = pq.ParquetWriter(sink, rows.schema, store_schema=False, compression="none", use_dictionary=False)
    for group in range(groups):
        hole = group * (size // groups) - pieces.place
        if hole > 0 and group:
            pieces.skipping = True
            sink.write(memoryview(_HOLE)[:hole])
            pieces.skipping = False
        part = rows.slice(group * step, step)
        if part.num_rows:
            writer.write_table(part)
    end = pieces.place
    writer.close()
    length = pieces.place - end
    if pieces.place > size:
        return None
    body = [piece for piece in pieces.pieces if piece[0] < end]
    footer = b"".join(piece for place, piece in pieces.pieces if place >= end)
    return (*body, (size - length, footer))


class StandingMapping:
    """One target's mapping of before and after images, planned once for each size of slots.

    Args:
        spark: the session.
        plan: the checked mapping.
        slots: the slots that will hold the rows.
        number: the mapping's number; ``SIDE`` holds it in rows of small slots, see ``map_delta``.
        after_only: whether before images aren't mapped (``handed_keys``).

    The physical plan of most row-wise mappings is executed again as it is. One with a shuffle, or with a
    broadcast of source rows, remembers what that brought the first time. Over small slots a copy of such a plan is
    run, which remembers nothing; it is one without adaptive execution, whose memory copies share. (A joined
    mapping's few rows are mapped by a flat plan, see ``few_rows``.) Over large ones, and where a copy would share
    something else, the plan is made anew, and only the function's calls and the analysis are saved.
    """

    def __init__(
        self, spark: SparkSession, plan: MappingPlan, slots: Slots, number: int = 0, after_only: bool = False
    ):
        self._sides = SIDES[1:] if after_only else SIDES
        self._spark = spark
        self._plan = plan
        self._slots = slots
        self._number = number
        self._frames: dict[int, DataFrame] = {}
        self._remembers: dict[int, bool] = {}
        self._kept: dict[int, RDD[bytes]] = {}
        self._original: Any | None = None
        self._copied = False
        frame = self._frame(SLOT_BYTES)
        self.schema: pa.Schema = to_arrow_schema(frame.schema, timezone="UTC")
        """The schema of what ``run`` and ``batches`` give."""

    def run(self, size: int = SLOT_BYTES) -> pa.Table:
        """Returns what ``map_delta`` would for the rows now in the slots: the target's columns after ``SIDE``."""
        hand_settings_on(self._spark)
        if size != SLOT_BYTES:
            rows = self.batches(size)
        else:
            original = self._to_be_copied()
            rows = None if original is None else self._collectable(original.clone())
        if rows is None:
            frame, remembers = self._planned(size)
            return side_alone((frame.select("*") if remembers else frame).toArrow())
        batches = [pa.ipc.read_record_batch(pa.py_buffer(piece), self.schema) for piece in rows.collect()]
        return side_alone(pa.Table.from_batches(batches, self.schema))

    def batches(self, size: int = SLOT_BYTES) -> RDD[bytes] | None:
        """Returns an RDD that gives the slots' rows, mapped, as Arrow record batches whenever it is run; None if that
        can't be."""
        if self._plan.kind is not MappingKind.ROW_WISE:
            return None
        frame, remembers = self._planned(size)
        if remembers:
            return None
        if size not in self._kept:
            self._kept[size] = self._collectable(frame._jdf.queryExecution().executedPlan())
        return self._kept[size]

    def _collectable(self, physical: Any) -> RDD[bytes]:
        batches = self._frame(SLOT_BYTES)._jdf.toArrowBatchRdd(physical)
        return RDD(batches.toJavaRDD(), self._spark.sparkContext, NoOpSerializer())

    def _to_be_copied(self) -> Any | None:
        """The physical plan over small slots, without adaptive execution; None if it needn't be copied, or copies
        would share something. Made when it is first needed: it costs as much as the plan itself."""
        if not self._copied:
            if self._plan.kind is MappingKind.GRAIN or self._planned(SLOT_BYTES)[1]:
                with planned_with(self._spark, {_ADAPTIVE: "false"}) as session:
                    physical = execution_of(session, self._frame(SLOT_BYTES)).executedPlan()
                    self._original = None if _SHARED.search(physical.toString()) is not None else physical
            self._copied = True
        return self._original

    def _planned(self, size: int) -> tuple[DataFrame, bool]:
        """The frame over slots of a size, and whether its physical plan remembers rows."""
        frame = self._frame(size)
        if size not in self._remembers:
            joined = self._plan.kind is MappingKind.GRAIN
            self._remembers[size] = joined or _remembers(
                frame._jdf.queryExecution().executedPlan().toString()
            )
        return frame, self._remembers[size]

    def _frame(self, size: int) -> DataFrame:
        """The mapping over slots of a size."""
        if size not in self._frames:
            frames = {
                side: {
                    name: parquet_frame(
                        self._spark, [self._slots.path(side, name, size)], self._plan.schemas[name]
                    )
                    for name in self._plan.reads
                }
                for side in self._sides
            }
            frame = map_delta(self._spark, self._plan, frames.get(SIDES[0]), frames[SIDES[1]], self._number)
            # A task costs more than a few rows do, so one task maps both sides.
            together = size == SLOT_BYTES and self._plan.kind is MappingKind.ROW_WISE
            self._frames[size] = frame.coalesce(1) if together else frame
        return self._frames[size]


def hand_settings_on(spark: SparkSession) -> None:
    """Hands the session to this thread's plans, and its settings to the tasks of its jobs, as Spark SQL does.

    Otherwise functions that read settings while they run see Spark's defaults. Each thread needs this once.
    """
    context = spark.sparkContext
    if getattr(_handed_on, "context", None) is not context:
        for name, value in spark.conf.getAll.items():
            if name.startswith("spark.sql."):
                context.setLocalProperty(name, value)
        jvm: Any = spark._jvm
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
        _handed_on.context = context


def side_alone(mapped: pa.Table) -> pa.Table:
    """The mapped rows with the mapping's number removed from ``SIDE``."""
    place = mapped.column_names.index(SIDE)
    side = pc.bit_wise_and(mapped[SIDE], pa.scalar(1, mapped[SIDE].type))
    return mapped.set_column(place, mapped.schema.field(place), side)


def _remembers(physical: str) -> bool:
    """Tells whether a plan keeps slots' rows after its first run: in a shuffle, or in a broadcast.

    Spark broadcasts the source's side of a join with constants if it holds this side to be the smaller one.
    """
    if _SHUFFLE.search(physical) is not None:
        return True
    broadcast: int | None = None
    for line in physical.splitlines():
        depth = len(line) - len(line.lstrip(" :+-"))
        if broadcast is not None and depth <= broadcast:
            broadcast = None
        if broadcast is None and "BroadcastExchange" in line:
            broadcast = depth
        if broadcast is not None and "FileScan" in line:
            return True
    return False
