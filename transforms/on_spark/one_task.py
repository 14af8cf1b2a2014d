"""One function run by one task on an executor; its result comes to the driver as bytes."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from migrator.errors import ClusterError
from transforms.cause import spark_cause
from transforms.on_spark.session import named_jvm_end


def on_executor(spark: SparkSession | None, work: Callable[[], bytes], limit_s: float) -> bytes:
    """Runs ``work`` as a job of one task, and returns its result. Any number of threads may do so at once.

    Spark may run it more than once, and gives the result of one attempt.

    Args:
        spark: the session; None while there is none.
        work: a function that can be pickled. An error that it raises fails the task, so it should return its errors.
        limit_s: seconds after which the job is cancelled; waiting for a free slot counts.

    Raises:
        ClusterError: the task failed (retryable), or didn't end in time (not retryable).
        MigratorError: Spark itself has ended.
    """
    if spark is None or spark.sparkContext._jsc is None:
        raise ClusterError("Spark doesn't run")
    context = spark.sparkContext
    group = f"one task {uuid.uuid4().hex}"
    late = threading.Event()

    def cancel() -> None:
        late.set()
        with suppress(Py4JError, OSError):  # Spark is gone, and the job with it
            context.cancelJobGroup(group)

    def task(numbers: Iterable[int]) -> Iterator[bytes]:
        # Read to the input's end: Spark doesn't reuse a worker that has input left, and a new one imports for long.
        for _ in numbers:
            yield work()

    timer = threading.Timer(limit_s, cancel)
    timer.daemon = True
    timer.start()
    try:
        with named_jvm_end():
            # Of this thread's jobs only. Cancelled, the task's Python worker ends, and its connections with it.
            context.setJobGroup(group, "reads from the source", interruptOnCancel=True)
            (result,) = context.parallelize([0], 1).mapPartitions(task).collect()
            return bytes(result)
    except (PySparkException, Py4JError) as error:
        if late.is_set():
            raise ClusterError(
                f"an executor's task didn't end within {limit_s:g} s",
                where=str(context.master),
                cause="no executor had a free slot, or what it reads from doesn't answer",
                remedy="give the application more cores, or leave this work to the driver",
            ) from error
        raise ClusterError(
            "a task on an executor failed",
            where=str(context.master),
            cause=spark_cause(error),
            remedy="see Spark's log and the executors'",
            retryable=True,
        ) from error
    finally:
        timer.cancel()
