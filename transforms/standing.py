"""A mapping planned once and run for every small batch.

Calling a mapping function and planning its DataFrame costs far more than mapping a few hundred rows: every
``F.col`` is a call to the JVM, and the plan is analysed, optimised and compiled. So the plan is made once, over
leaves that read *whatever rows are in a slot file when the job runs*; every batch executes the same plan again.

The slot files lie in a folder that driver and executors share (the state folder, next to the event log).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from transforms.frames import spark_schema
from transforms.pipeline import SIDE, map_rows
from transforms.plan import MappingPlan

SIDES = ("before", "after")


class Slots:
    """The rows of one batch, where the standing plans read them: per source table one file a side.

    One thread fills them, and not before the jobs of the batch before have ended.
    """

    def __init__(self, folder: Path):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        for left_over in folder.glob("*.arrow"):
            left_over.unlink()

    def path(self, side: str, source: str) -> Path:
        """The slot of a source table; absent means no rows."""
        name = "".join(letter if letter.isalnum() else f"%{ord(letter):x}" for letter in source)
        return self._folder / f"{name}.{side}.arrow"

    def fill(self, side: str, tables: Mapping[str, pa.Table], sources: Iterable[str]) -> None:
        """Puts the rows of ``tables`` in place and empties the slots of the other ``sources``."""
        for source in sources:
            path, rows = self.path(side, source), tables.get(source)
            if rows is None or rows.num_rows == 0:
                path.unlink(missing_ok=True)
                continue
            with (
                os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file,
                pa.ipc.new_file(file, rows.schema) as writer,
            ):
                writer.write_table(rows)


class StandingMapping:
    """One target's mapping of before and after images, planned once.

    Args:
        spark: the session.
        plan: the checked mapping.
        slots: where its rows will be.
    """

    def __init__(self, spark: SparkSession, plan: MappingPlan, slots: Slots):
        self._frame = _both_sides(spark, plan, slots)

    def run(self) -> pa.Table:
        """What ``map_delta`` would give for the rows now in the slots: the target's columns after ``SIDE``."""
        return self._frame.toArrow()


def _both_sides(spark: SparkSession, plan: MappingPlan, slots: Slots) -> DataFrame:
    sides: list[DataFrame] = []
    for number, side in enumerate(SIDES):
        frames = {name: _leaf(spark, plan, name, slots.path(side, name)) for name in plan.reads}
        sides.append(map_rows(spark, plan, frames).select(F.lit(number).cast("tinyint").alias(SIDE), "*"))
    return sides[0].unionAll(sides[1])


def _leaf(spark: SparkSession, plan: MappingPlan, source: str, path: Path) -> DataFrame:
    """A frame of the source's schema that reads the slot when it is run."""
    schema = plan.schemas[source]
    names, file = list(schema.names()), str(path)

    def read(trigger: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in trigger:  # to its end: Spark throws a worker away that left input unread
            if os.path.exists(file):
                with pa.ipc.open_file(file) as rows:
                    yield from rows.read_all().select(names).to_batches()

    return spark.range(0, 1, 1, 1).mapInArrow(read, spark_schema(schema))
