"""Many targets' standing plans as one Spark job.

A small batch often changes a few rows of every target. One job per target would cost Spark's overhead per target:
Spark describes the plan for a page nobody looks at, generates code again, schedules, and starts a task. So each
standing plan is kept as an RDD of Arrow record batches. The RDDs of a batch's targets are united and run by one
task, or by several. The first column of a record batch tells its target.

Jobs of Spark SQL hand the session's settings to their tasks. This job is none of them and does so itself. Otherwise
functions that read settings while they run would see Spark's defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, Protocol, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.core.rdd import RDD
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from transforms.on_spark.few_rows.in_driver import DriverTask
from transforms.on_spark.pipeline import SIDE
from transforms.on_spark.standing import hand_settings_on, side_alone

_FIRST = pa.schema([(SIDE, pa.int16())])
Result = dict[str, pa.Table]


def share(target: str, running: Future[Result], alone: Callable[[], pa.Table]) -> pa.Table:
    """A target's share of a job of many. Where that one fails each target maps alone, and so names what it is."""
    try:
        return running.result()[target]
    except (PySparkException, Py4JError):
        return alone()


class Planned(Protocol):
    """A mapping that is planned."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of its RDD's record batches."""
        ...


PlannedT = TypeVar("PlannedT", bound=Planned)


def nowhere(_: Planned) -> bool:
    """Leaves every mapping to a job."""
    return False


class OneJob(Generic[PlannedT]):
    """The standing mappings of a migration, run together.

    Args:
        spark: the session.
        standing: the mappings by target table; their numbers are their places in this order. One is looked at when
            it is first asked for: it may be planned only then.
        batches: gives a mapping's RDD; mappings of which it gives none are left out.
        settings: more settings of Spark SQL that the tasks see.
        jobs: how many run at a time.
        here: whether a mapping is run in the driver, without a job (``in_driver``).
    """

    def __init__(
        self,
        spark: SparkSession,
        standing: Mapping[str, PlannedT],
        batches: Callable[[PlannedT], RDD[bytes] | None],
        settings: Mapping[str, str] | None = None,
        jobs: int = 1,
        here: Callable[[PlannedT], bool] = nowhere,
    ):
        self._spark = spark
        self._names = tuple(standing)
        self._planned = standing
        self._batches_of = batches
        self._batches: dict[str, RDD[bytes] | None] = {}
        self._here = here
        self._settings = settings or {}
        self._task: DriverTask | None = None

        def begin() -> None:
            hand_settings_on(spark)
            for name, value in (settings or {}).items():
                spark.sparkContext.setLocalProperty(name, value)

        # Settings belong to a thread of ours, and through it to one of the JVM's.
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="one-job", initializer=begin)

    def takes(self, target: str) -> bool:
        """Tells whether a target is among the job's."""
        return self._of(target) is not None

    def _of(self, target: str) -> RDD[bytes] | None:
        if target not in self._batches:
            self._batches[target] = self._batches_of(self._planned[target])
        return self._batches[target]

    def submit(self, targets: Sequence[str], tasks: int) -> Future[Result]:
        """Begins to map the rows now in the small slots, by so many tasks at most; gives what ``StandingMapping.run``
        gives, by target. Only of targets that it takes.

        The future raises what Spark raises, if one of the mappings fails.
        """
        return self._pool.submit(self._run, targets, tasks)

    def close(self) -> None:
        """Waits for jobs under way."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, targets: Sequence[str], tasks: int) -> Result:
        found: dict[str, list[pa.RecordBatch]] = {name: [] for name in targets}
        for piece in self._collected(targets, tasks):
            message = pa.py_buffer(piece)
            name = self._names[pa.ipc.read_record_batch(message, _FIRST)[SIDE][0].as_py() >> 1]
            found[name].append(pa.ipc.read_record_batch(message, self._planned[name].schema))
        return {
            name: side_alone(pa.Table.from_batches(parts, self._planned[name].schema))
            for name, parts in found.items()
        }

    def _collected(self, targets: Sequence[str], tasks: int) -> list[bytes]:
        found = {name: rdd for name in targets if (rdd := self._of(name)) is not None}
        here = [rdd for name, rdd in found.items() if self._here(self._planned[name])]
        rest = [rdd for name, rdd in found.items() if not self._here(self._planned[name])]
        if here and self._task is None:
            self._task = DriverTask(self._spark, self._settings)
        pieces = [] if self._task is None or not here else self._task.collected(here)
        if rest:
            context = self._spark.sparkContext
            tasks = max(1, min(context.defaultParallelism, tasks))
            pieces += context.union(rest).coalesce(tasks).collect()
        return pieces
