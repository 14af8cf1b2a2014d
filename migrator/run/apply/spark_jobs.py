"""Spark jobs of mappings: a few at a time, and a job that fails is tried once more.

A target transaction that waits for one is kept alive meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as NotYet
from typing import Any, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from migrator.errors import CORRECTED_MAPPING, MappingError
from transforms.analysis.plan import MappingPlan
from transforms.cause import spark_cause
from transforms.on_spark.session import named_jvm_end

_STAY_S = 10.0
"""Seconds between two touches of the waiting transaction while Spark works: the server ends idle ones after a
minute."""
_AT_ONCE = 4
"""Spark jobs under way at a time: small jobs mostly wait for each other's scheduling, not for cores."""
SPARK_ERRORS = (PySparkException, Py4JError)
Result = TypeVar("Result")

Job = Callable[[], pa.Table]


class SparkJobs:
    """Jobs of mappings, a few at a time in threads of their own."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="spark-job")
        self._submitted: list[Future[pa.Table]] = []

    def close(self) -> None:
        """Waits for a job under way."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def settle(self) -> None:
        """Waits for all jobs that were submitted, however they end."""
        wait(self._submitted)
        self._submitted.clear()

    def start(self, work: Callable[[], Result]) -> Future[Result]:
        """Starts work that ``settle`` doesn't wait for: a job with what comes before and after it."""
        return self._pool.submit(work)

    def submit(self, job: Job) -> Future[pa.Table]:
        """Starts a job."""
        running = self._pool.submit(job)
        self._submitted.append(running)
        return running

    def once(self, job: Job, stay: Callable[[], None]) -> pa.Table:
        """A job's result, without a second try. Raises what Spark raises."""
        return _result(self.submit(job), stay)

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

        Raises ``MappingError`` as ``tried_twice``.
        """
        return tried_twice(plan, lambda: _result(running, stay), lambda: _result(self.submit(job), stay))


def warmed_up(jobs: Iterable[Future[Any]], places: Sequence[str]) -> None:
    """Waits for jobs that map no rows. Raises ``MappingError`` where one fails; ``places``: of the mappings."""
    for job in jobs:
        try:
            with named_jvm_end():
                job.result()
        except SPARK_ERRORS as error:
            raise MappingError(
                "the mapping can't be run where Spark's tasks run",
                where=", ".join(places),
                cause=spark_cause(error),
                remedy="it fails even without rows: what its functions import must be there as well; on a cluster"
                " install it on every worker, or give it with --py-files",
            ) from error


def nobody() -> MappingError | None:
    """Blames no row."""
    return None


def tried_twice(
    plan: MappingPlan, first: Job, again: Job, at_fault: Callable[[], MappingError | None] = nobody
) -> pa.Table:
    """The result of a job; of one that fails though no row is at fault, that of a second attempt.

    A Python worker that the system has killed is such a case: Spark in local mode tries no task twice.

    Args:
        plan: of the mapping, for the error.
        first: gives the job's result.
        again: gives that of a second attempt.
        at_fault: looks for a row that makes the job fail by itself; the error that names it.

    Raises ``MappingError``: that of the row, or with the cause where it fails twice.
    """
    try:
        return first()
    except SPARK_ERRORS as error:
        found = at_fault()
        if found is not None:
            raise found from error
    try:
        return again()
    except SPARK_ERRORS as error:
        raise job_failed(plan, error) from error


def job_failed(plan: MappingPlan, error: Exception) -> MappingError:
    """The error of a mapping's job that fails though no row alone is at fault; ``error``: what Spark says."""
    return MappingError(
        f"the Spark job of target table {plan.target.name!r} fails",
        where=plan.target.where(),
        cause=spark_cause(error),
        remedy="correct the mapping, or the rows in the source; where no row is to blame see the Spark log in the"
        f" state folder. Then start again: nothing was lost{CORRECTED_MAPPING}",
    )


def _result(running: Future[pa.Table], stay: Callable[[], None]) -> pa.Table:
    while True:
        try:
            return running.result(_STAY_S)
        except NotYet:
            if running.done():
                raise
            stay()
