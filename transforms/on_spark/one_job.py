"""Many targets' standing plans as one Spark job.

A small batch often changes a few rows of every target. One job per target would cost Spark's overhead per target:
Spark describes the plan for a page nobody looks at, generates code again, schedules, and starts a task. So each
standing plan is kept as an RDD of Arrow record batches. The RDDs of a batch's targets are united and run by one
task, or by several if there are many rows. The first column of a record batch tells its target.

Jobs of Spark SQL hand the session's settings to their tasks. This job is none of them and does so itself. Otherwise
functions that read settings while they run would see Spark's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa
from pyspark.core.rdd import RDD
from pyspark.sql import SparkSession

from transforms.on_spark.pipeline import SIDE
from transforms.on_spark.standing import (
    SLOT_BYTES,
    Slots,
    StandingMapping,
    hand_settings_on,
    side_alone,
)

_FIRST = pa.schema([(SIDE, pa.int16())])


class OneJob:
    """The standing mappings of a migration over the same slots, run as one job.

    Args:
        spark: the session.
        standing: the mappings by target table; their numbers are their places in this order. Mappings whose plans
            can't be run again unchanged are left out.
        slots: the slots that hold the rows.
    """

    def __init__(self, spark: SparkSession, standing: Mapping[str, StandingMapping], slots: Slots):
        self._spark = spark
        self._slots = slots
        self._names = tuple(standing)
        self._schemas = {name: mapping.schema for name, mapping in standing.items()}
        found = {name: mapping.batches() for name, mapping in standing.items()}
        self._batches: dict[str, RDD[bytes]] = {name: rdd for name, rdd in found.items() if rdd is not None}
        # Settings belong to a thread of ours, and through it to one of the JVM's.
        self._pool = ThreadPoolExecutor(
            1, thread_name_prefix="one-job", initializer=hand_settings_on, initargs=(spark,)
        )

    def takes(self, target: str) -> bool:
        """Tells whether a target is among the job's."""
        return target in self._batches

    def submit(self, targets: Sequence[str]) -> Future[dict[str, pa.Table]]:
        """Begins to map the rows now in the small slots; gives what ``StandingMapping.run`` gives, by target.

        The future raises what Spark raises, if one of the mappings fails.
        """
        return self._pool.submit(self._run, targets)

    def close(self) -> None:
        """Waits for a job under way."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, targets: Sequence[str]) -> dict[str, pa.Table]:
        context = self._spark.sparkContext
        tasks = max(1, min(context.defaultParallelism, self._slots.filled_bytes // SLOT_BYTES))
        job = context.union([self._batches[name] for name in targets]).coalesce(tasks)
        found: dict[str, list[pa.RecordBatch]] = {name: [] for name in targets}
        for piece in job.collect():
            message = pa.py_buffer(piece)
            name = self._names[pa.ipc.read_record_batch(message, _FIRST)[SIDE][0].as_py() >> 1]
            found[name].append(pa.ipc.read_record_batch(message, self._schemas[name]))
        return {
            name: side_alone(pa.Table.from_batches(parts, self._schemas[name]))
            for name, parts in found.items()
        }
