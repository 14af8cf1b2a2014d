"""A mapping planned once and run for every small batch.

Calling a mapping function and planning its DataFrame costs far more than mapping a few hundred rows: every ``F.col``
is a call to the JVM, and the plan is analysed, optimised and compiled. So the plan is made once, over Parquet files
whose content is replaced before each run, and every batch executes the same plan again.

A planned scan keeps the length that its file had when the plan was made. So these files, the slots, always have the
same length: a filler in the footer makes up for what the rows leave. They lie in a folder that driver and executors
share (the state folder, next to the event log).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from migrator.errors import MigratorError
from migrator.model.table import TableSchema
from transforms.frames import arrow_schema, file_uri, spark_schema
from transforms.pipeline import SIDE, map_rows
from transforms.plan import MappingKind, MappingPlan

SIDES = ("before", "after")
_SHUFFLE = re.compile("(?<!Broadcast)Exchange ")
SLOT_BYTES = 1 << 19
_LEAST_FILLER_BYTES = 1 << 14
"""From here to 2^21 bytes a text's length takes three bytes in a Parquet footer, so lengths simply add up."""


class Slots:
    """The rows of one batch, where the standing plans read them: one file per source table and side.

    One thread fills them, and not before the jobs of the batch before have ended.

    Args:
        folder: made when missing; slots left over from another run are emptied.
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
        self._empty = {name: _encoded(schema.empty_table()) for name, schema in self._schemas.items()}
        self._filled: set[Path] = set()
        for side in SIDES:
            for name in schemas:
                self._put(self.path(side, name), self._empty[name] or b"")

    def path(self, side: str, source: str) -> Path:
        """The slot of a source table."""
        name = "".join(letter if letter.isalnum() else f"%{ord(letter):x}" for letter in source)
        return self._folder / f"{name}.{side}.parquet"

    def fill(self, rows: Mapping[str, Mapping[str, pa.Table]]) -> bool:
        """Puts a batch in place.

        Args:
            rows: source rows by side and table name, with at least the columns of the schema. Slots of tables that
                are not named are emptied.

        Returns:
            False, and nothing is changed, if the rows of a table don't fit into a slot.
        """
        contents: dict[Path, bytes] = {}
        for side, tables in rows.items():
            for name, table in tables.items():
                if table.num_rows:
                    schema = self._schemas[name]
                    content = _encoded(table.select(schema.names).cast(schema))
                    if content is None:
                        return False
                    contents[self.path(side, name)] = content
        for side in SIDES:
            for name, empty in self._empty.items():
                path = self.path(side, name)
                if path in contents:
                    self._put(path, contents[path])
                elif path in self._filled:
                    self._put(path, empty or b"")
        self._filled = set(contents)
        return True

    @staticmethod
    def _put(path: Path, content: bytes) -> None:
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(content)
        except OSError as error:
            raise _refused(path, error) from error


def _refused(path: Path, error: OSError) -> MigratorError:
    return MigratorError(
        "the rows of a batch can't be put where Spark reads them",
        where=str(path),
        cause=str(error.strerror or error),
        remedy="check free space, rights and open files of the state directory, then start again: nothing is lost",
    )


def _encoded(rows: pa.Table) -> bytes | None:
    """The rows as a Parquet file of exactly ``SLOT_BYTES``, or None if they are too many."""
    shortest = _parquet(rows, _LEAST_FILLER_BYTES)
    if len(shortest) > SLOT_BYTES:
        return None
    content = _parquet(rows, _LEAST_FILLER_BYTES + SLOT_BYTES - len(shortest))
    if len(content) != SLOT_BYTES:
        raise AssertionError(f"a slot of {len(content)} bytes: lengths in the footer don't add up")
    return content


def _parquet(rows: pa.Table, filler_bytes: int) -> bytes:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink, rows.schema, store_schema=False, compression="none", use_dictionary=False
    ) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({"filler": " " * filler_bytes})
    return bytes(sink.getvalue())


class StandingMapping:
    """One target's mapping of before and after images, planned once.

    Args:
        spark: the session.
        plan: the checked mapping.
        slots: where its rows will be.

    The physical plan of most row-wise mappings is executed again as it is. One with a shuffle, or with a broadcast of
    source rows, remembers what that brought the first time: such a plan is made anew for every batch, and only the
    function's calls and the analysis are saved.
    """

    def __init__(self, spark: SparkSession, plan: MappingPlan, slots: Slots):
        self._frame = _both_sides(spark, plan, slots)
        physical = self._frame._jdf.queryExecution().executedPlan().toString()
        self._remembers = plan.kind is MappingKind.GRAIN or _SHUFFLE.search(physical) is not None

    def run(self) -> pa.Table:
        """What ``map_delta`` would give for the rows now in the slots: the target's columns after ``SIDE``."""
        frame = self._frame.select("*") if self._remembers else self._frame
        return frame.toArrow()


def _both_sides(spark: SparkSession, plan: MappingPlan, slots: Slots) -> DataFrame:
    sides: list[DataFrame] = []
    for number, side in enumerate(SIDES):
        frames = {
            name: spark.read.schema(spark_schema(plan.schemas[name])).parquet(
                file_uri(slots.path(side, name))
            )
            for name in plan.reads
        }
        sides.append(map_rows(spark, plan, frames).select(F.lit(number).cast("tinyint").alias(SIDE), "*"))
    return sides[0].unionAll(sides[1])
