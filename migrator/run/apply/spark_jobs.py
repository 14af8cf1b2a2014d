"""Spark jobs that a target transaction waits for: it is kept alive meanwhile, a job that fails is tried once
more."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as NotYet

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from migrator.errors import MappingError
from transforms.analysis.plan import MappingPlan
from transforms.cause import spark_cause

_STAY_S = 10.0
"""Seconds between two touches of the waiting transaction while Spark works: the server ends idle ones after a
minute."""
_AT_ONCE = 4

Job = Callable[[], pa.Table]


class SparkJobs:
    """Jobs of mappings, a few at a time in threads of their own."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="joined-job")
        self._submitted: list[Future[pa.Table]] = []

    def close(self) -> None:
        """Waits for a job under way."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def settle(self) -> None:
        """Waits for all jobs that were submitted, however they end."""
        wait(self._submitted)
        self._submitted.clear()

    def submit(self, job: Job) -> Future[pa.Table]:
        """Starts a job."""
        running = self._pool.submit(job)
        self._submitted.append(running)
        return running

    def run(self, plan: MappingPlan, job: Job, stay: Callable[[], None]) -> pa.Table:
        """A job's result; as ``awaited``."""
        return self.awaited(plan, job, self.submit(job), stay)

    def awaited(
        self, plan: MappingPlan, job: Job, running: Future[pa.Table], stay: Callable[[], None]
    ) -> pa.Table:
        """The result of a job that runs.

        Args:
            plan: of the mapping, for the error.
            job: what runs, for a second try.
            running: as ``submit`` gave it.
            stay: keeps the waiting transaction alive.

        Raises ``MappingError`` with the cause when it fails twice.
        """
        try:
            return _result(running, stay)
        except (PySparkException, Py4JError):
            pass  # perhaps a Python worker that the system has killed: Spark in local mode tries no task twice
        try:
            return _result(self.submit(job), stay)
        except (PySparkException, Py4JError) as error:
            raise MappingError(
                f"the mapping of target table {plan.target.name!r} fails",
                where=plan.target.where(),
                cause=spark_cause(error),
                remedy="correct the mapping, or the rows in the source; then start again: nothing was lost",
            ) from error


def _result(running: Future[pa.Table], stay: Callable[[], None]) -> pa.Table:
    while True:
        try:
            return running.result(_STAY_S)
        except NotYet:
            if running.done():
                raise
            stay()
