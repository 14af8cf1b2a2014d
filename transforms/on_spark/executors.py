"""The check that a cluster's executors can run our jobs: one small job before the first real one.

It refuses by name what would fail in the middle of a batch, or would wait for ever without a word: no executor at
all, another Python, missing modules, a state folder that is not the driver's.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from migrator.errors import ClusterError, MigratorError
from transforms.cause import spark_cause
from transforms.on_spark.session import named_jvm_end
from transforms.on_spark.surroundings import wrong_in_executors, zone_data

_POLL_S = 0.05
_ARRIVES_S = 30.0
"""Network filesystems may show a folder as it was a while ago."""
_VERSION = "PYTHON_VERSION_MISMATCH"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one executor: where it runs, and everything that is wrong there."""

    host: str
    problems: tuple[str, ...]


def check_executors(spark: SparkSession, shared: Path, modules: Sequence[str], wait_s: float) -> int:
    """Waits for an executor and asks all that are there; returns how many tasks answered.

    Args:
        spark: a session on a cluster, code shipped.
        shared: folder that driver and executors must see under the same path, writable for both.
        modules: that tasks import.
        wait_s: how long to wait for the first executor.

    Raises ``ClusterError``: none came in time (retryable), or one can't do its work.
    """
    _await_executor(spark, wait_s)
    token = secrets.token_hex(8)
    asked = shared / f".probe-{token}"
    try:
        shared.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(asked, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(token)
        answers = _ask(spark, asked, token, modules)
        _refuse_unseen(answers, asked)
        _refuse_surroundings(spark, len(answers))
    except OSError as error:
        raise MigratorError(
            "the state folder can't be written",
            where=str(shared),
            cause=str(error.strerror or error),
            remedy="check free space and rights",
        ) from error
    finally:
        for left in shared.glob(f"{asked.name}*"):
            left.unlink(missing_ok=True)
    return len(answers)


def count_executors(spark: SparkSession) -> int | None:
    """Returns how many executors there are now; None if Spark doesn't answer."""
    try:
        return _executors(spark)
    except (Py4JError, OSError):
        return None


def _await_executor(spark: SparkSession, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    with named_jvm_end():
        while _executors(spark) == 0:
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"no executor came within {wait_s:g} s",
                    where=str(spark.sparkContext.master),
                    cause="the cluster has no worker, none with enough free cores and memory, or executors end as"
                    " soon as they start (they can't reach the driver, for instance)",
                    remedy="see the cluster's own pages and Spark's log; ask for less (spark.cores.max,"
                    " spark.executor.memory), have other applications leave something (a standby holds executors,"
                    " too), set spark.driver.host to an address that executors reach, or wait longer (wait_s in"
                    " [spark])",
                    retryable=True,
                )
            threading.Event().wait(_POLL_S)


def _executors(spark: SparkSession) -> int:
    context: Any = spark.sparkContext._jsc.sc()
    if context.isStopped():
        # The same words as of any later job: named_jvm_end knows what they mean.
        raise Py4JError("Spark has stopped")
    return len(context.statusTracker().getExecutorInfos()) - 1  # the driver is one of them


def _ask(spark: SparkSession, asked: Path, token: str, modules: Sequence[str]) -> list[Answer]:
    context = spark.sparkContext
    # One task a slot: all are offered at once, so every executor that is there gets one.
    slots = max(context.defaultParallelism, _executors(spark))
    wanted = tuple(modules)
    path = str(asked)

    def task(_: Iterable[int]) -> Iterator[tuple[str, tuple[str, ...]]]:
        from transforms.on_spark.executor_probe import look

        yield look(path, token, wanted)

    try:
        with named_jvm_end():
            found = context.parallelize(range(slots), slots).mapPartitions(task).collect()
    except (PySparkException, Py4JError) as error:
        raise _failed(spark, error) from error
    return [Answer(host, problems) for host, problems in found]


def _failed(spark: SparkSession, error: BaseException) -> ClusterError:
    cause = spark_cause(error)
    master = str(spark.sparkContext.master)
    if _VERSION in str(error) or _VERSION in cause:
        return ClusterError(
            "executors have another Python than this process",
            where=master,
            cause=cause,
            remedy="install the same minor version there, and name its path in spark.pyspark.python if it isn't ours",
        )
    return ClusterError(
        "executors can't run Python tasks",
        where=master,
        cause=cause,
        remedy=f"Python ({spark.sparkContext.pythonExec}) with pyarrow must be there on every worker"
        " (spark.pyspark.python names another path); see Spark's log and the executors'",
    )


def _refuse_surroundings(spark: SparkSession, tasks: int) -> None:
    """Refuses executors with other surroundings: rows would mean one thing to them and another to the driver."""
    with named_jvm_end():
        wrong, others = wrong_in_executors(spark, tasks)
    if others:
        raise ClusterError(
            "executors' Java has zone data of another year than the driver's",
            where=f"{', '.join(others)}; the driver has {zone_data(spark._jvm)}",
            cause="a clock of a zone would be read otherwise from row to row: countries change their rules",
            remedy="install the same version of Java for the driver and on every worker",
        )
    if wrong:
        raise ClusterError(
            "executors' JVMs have another locale, zone or encoding than English, UTC and UTF-8",
            where=", ".join(wrong),
            cause="lower case, times and texts would differ from row to row",
            remedy="remove these options (-D) from spark.executor.extraJavaOptions and from JAVA_TOOL_OPTIONS and"
            " _JAVA_OPTIONS of the workers",
        )


def _refuse_unseen(answers: Sequence[Answer], asked: Path) -> None:
    problems = sorted({f"{answer.host}: {problem}" for answer in answers for problem in answer.problems})
    deadline = time.monotonic() + _ARRIVES_S
    while not problems and not any(asked.parent.glob(f"{asked.name}.*")):
        if time.monotonic() > deadline:
            problems = ["what executors write there does not arrive here"]
        threading.Event().wait(_POLL_S)
    if problems:
        raise ClusterError(
            "executors can't do their part",
            where=str(asked.parent),
            cause=" | ".join(problems),
            remedy="the state folder must be the same folder under the same path for driver and executors (a shared"
            " filesystem), both as the same user; modules must be installed there or be given with --py-files",
        )
