"""The one Spark session of a process: quiet, on one machine local to the loopback, UTC, ANSI, gone when we are.

The JVM is a child that reads our end of its standard input: when this process dies, however it dies, the
pipe breaks and the JVM exits. Everything the JVM and Python workers print goes to a log file.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from migrator.errors import ConfigError, MigratorError
from transforms.cause import spark_cause
from transforms.on_spark.apart import handlers_kept, started_apart
from transforms.on_spark.class_archive import ClassArchive
from transforms.on_spark.session_settings import session_settings
from transforms.on_spark.surroundings import pin_jvm, pin_process
from transforms.on_spark.unstarted import last_line, remedy_for

_EXIT_S = 20.0
_DYING_S = 10.0
"""Seconds that a JVM gets to exit after its connections have broken."""
_LOG_END_BYTES = 1 << 20
"""An overflown stack is printed with its innermost 1,024 calls."""
_UNCAUGHT = re.compile(r"SparkUncaughtExceptionHandler: .*Uncaught exception in thread .*\n(.{1,500})")


@dataclass(frozen=True, slots=True)
class _Running:
    session: SparkSession
    master: str
    conf: tuple[tuple[str, str], ...]
    log_path: Path
    log_begins_at: int
    trained: ClassArchive | None


_lock = threading.Lock()
_running: _Running | None = None


def spark_session(
    *,
    master: str = "local[*]",
    conf: Mapping[str, str],
    java_home: Path | None,
    log_path: Path,
    java_options: str = "",
    trained: ClassArchive | None = None,
) -> SparkSession:
    """Returns this process's Spark session, starting Spark on the first call, and again where its JVM has ended.

    Args:
        master: Spark master URL; ``local[...]`` binds to the loopback address only. On a cluster workers take the
            Python named by ``spark.pyspark.python``, by default the path of ours.
        conf: settings named ``spark.*``; they win over our defaults.
        java_home: runtime to use; None leaves the choice to ``JAVA_HOME`` and ``PATH``.
        log_path: file that takes everything the JVM prints; its folder also holds Spark's (empty) warehouse.
        java_options: of the JVM, before those of ``conf``.
        trained: the archive of classes that the JVM leaves at its end by ``java_options``; None: it leaves none.

    Raises:
        ConfigError: a setting that is not Spark's, or one that would change what rows mean.
        MigratorError: Spark can't start, or already runs with another master or other settings.
    """
    global _running
    wanted = tuple(sorted(conf.items()))
    if _running is not None and (_jvm_exit_code(0.0) is not None or _stopped_by_itself()):
        stop_session()
    with _lock:
        if _running is not None:
            if (_running.master, _running.conf) != (master, wanted):
                raise MigratorError(
                    "Spark already runs in this process with other settings",
                    where=f"master {_running.master}",
                    cause=f"asked for {master}, and for other values of: {_differing(wanted, _running.conf)}",
                    remedy="use one set of Spark settings per process, or call stop_session() before",
                )
            return _running.session
        log_begins_at = log_path.stat().st_size if log_path.is_file() else 0
        settings = session_settings(master, conf, log_path, java_options)
        session = _start(settings, java_home, log_path)
        _running = _Running(session, master, wanted, log_path, log_begins_at, trained)
        return _running.session


def _differing(wanted: tuple[tuple[str, str], ...], running: tuple[tuple[str, str], ...]) -> str:
    """The names of settings that differ. Values aren't shown, because one may be a secret."""
    return ", ".join(sorted({name for name, _ in set(wanted) ^ set(running)})) or "none"


def running_session() -> SparkSession | None:
    """The session made by :func:`spark_session`, if Spark runs."""
    return _running.session if _running is not None else None


def small_session() -> SparkSession:
    """The session that runs, or else a small local one: for tests of mappings, and where only a parser is
    needed."""
    return running_session() or spark_session(
        master="local[2]",
        conf={},
        java_home=None,
        log_path=Path(tempfile.mkdtemp(prefix="mapping-test-")) / "spark.log",
    )


def training() -> bool:
    """Tells whether the JVM that runs leaves an archive of its classes when it is given time to end."""
    return _running is not None and _running.trained is not None


def stop_session(exit_s: float = _EXIT_S) -> None:
    """Stops Spark and waits ``exit_s`` for its JVM to exit, or ends it. Does nothing when Spark doesn't run."""
    global _running
    with _lock:
        if _running is None:
            return
        gateway, trained = SparkContext._gateway, _running.trained
        _stop(_running.session)
        _running = None
        if gateway is None:
            return
        with suppress(Py4JError, OSError):
            gateway.shutdown()
        SparkContext._gateway = SparkContext._jvm = None
        process: subprocess.Popen[bytes] = gateway.proc
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(exit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if trained is not None:
            trained.adopt(whole=process.returncode == 0)


def _stop(session: SparkSession) -> None:
    """Stops the session in the JVM and in Python. If the JVM has ended, PySpark stops halfway, and we do the rest."""
    context = session.sparkContext
    with suppress(Py4JError, OSError), warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        session.stop()
        return
    context._jsc = None  # else the next line asks the JVM again
    context.stop()
    SparkSession._instantiatedSession = SparkSession._activeSession = None


@contextmanager
def named_jvm_end() -> Iterator[None]:
    """Turns failures of calls to a Spark that has ended into one error that says so; other failures pass unchanged.

    The driver's Python process outlives the JVM, and the JVM outlives a cluster that has given the application up.
    Then every call fails in some way, and neither a row nor a mapping is at fault.
    """
    try:
        yield
    except (Py4JError, PySparkException, ConnectionError) as error:
        # an exception of Java's own was sent by a JVM that lived
        lived = isinstance(error, (Py4JJavaError, PySparkException))
        code = _jvm_exit_code(0.0 if lived else _DYING_S)
        if code is None and _stopped_by_itself():
            raise MigratorError(
                "Spark's cluster has given this application up",
                where=_running.master if _running is not None else "",
                cause="its master can't be reached any more, or its executors ended again and again: see Spark's log",
                remedy="bring the cluster back; a migration that has begun starts again by itself, nothing is lost",
                retryable=True,
            ) from error
        if code is None:
            raise
        raise _ended(code, _died_of() if code > 0 else "") from error


def _ended(code: int, died_of: str) -> MigratorError:
    """The error for a JVM that ended. It ends by itself when one of its threads dies, see ``_end_with_a_thread``."""
    if died_of.startswith("java.lang.StackOverflowError"):
        return MigratorError(
            "a mapping is too deep for Spark: its plan overflows the stack",
            where=f"Spark's JVM, exit code {code}",
            cause=died_of,
            remedy="write fewer steps one after the other (one select instead of a loop of withColumn), or allow"
            ' deeper ones: "spark.driver.extraJavaOptions" = "-Xss16m" in [spark.conf]',
        )
    killed = "it was killed, perhaps by the kernel because memory ran out, or it failed: see Spark's log"
    return MigratorError(
        "Spark's JVM has ended",
        where=f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}",
        cause=f"one of its threads died: {died_of}" if died_of else killed,
        remedy="start again: nothing is lost; if it happens again, give the machine more memory, or Spark less "
        "(`spark.driver.memory`)",
        retryable=True,
    )


def _died_of() -> str:
    """The error, as the log has it, of the thread with which the JVM has ended; empty if it ended otherwise.

    Earlier JVMs wrote to the same log; their errors are ignored.
    """
    if _running is None or not _running.log_path.is_file():
        return ""
    with _running.log_path.open("rb") as log:
        log.seek(max(_running.log_begins_at, log.seek(0, os.SEEK_END) - _LOG_END_BYTES))
        said = log.read().decode(errors="replace")
    found = _UNCAUGHT.findall(said)
    return found[-1] if found else ""


def _stopped_by_itself() -> bool:
    """Tells whether the JVM lives and Spark in it has stopped, though nobody here asked for it."""
    context = SparkContext._active_spark_context
    if context is None or context._jsc is None:
        return False
    try:
        return bool(context._jsc.sc().isStopped())
    except (Py4JError, OSError):
        return False


def _jvm_exit_code(timeout_s: float) -> int | None:
    """Returns the JVM's exit code, negative for a signal; None while it runs, or runs elsewhere."""
    gateway = SparkContext._gateway
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None:
        return None
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return None


def _silence_python_side() -> None:
    """Silences PySpark's loggers: its errors say the same; on the terminal it would stand twice, with a JVM stack."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    # py4j says with a stack, on the root logger, that its JVM is gone; the error it raises is told as well
    logging.getLogger().addFilter(_not_of_py4j)
    warnings.filterwarnings(
        "ignore", message="PySpark does not yet fully support pandas", category=FutureWarning
    )


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def _printed(log_path: Path, begins_at: int) -> str:
    """Returns what the log has of this start; empty where it can't even be opened."""
    try:
        with log_path.open("rb") as log:
            log.seek(begins_at)
            return log.read(1 << 16).decode(errors="replace")
    except OSError:
        return ""


def _start(settings: SparkConf, java_home: Path | None, log_path: Path) -> SparkSession:
    # else workers take whatever python3 is first on PATH
    os.environ["PYSPARK_PYTHON"] = settings.get("spark.pyspark.python", sys.executable) or sys.executable
    if java_home is not None:
        os.environ["JAVA_HOME"] = str(java_home)
    if settings.get("spark.master", "").startswith("local"):
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    _silence_python_side()
    pin_process()
    log_path.parent.mkdir(parents=True, exist_ok=True)
    begins_at = log_path.stat().st_size if log_path.exists() else 0
    try:
        with log_path.open("ab") as log, started_apart(log) as apart:
            gateway = launch_gateway(settings, popen_kwargs=apart)  # type: ignore[no-untyped-call]
            pin_jvm(gateway.jvm)
            with handlers_kept():
                context = SparkContext(conf=settings, gateway=gateway)
            _end_with_a_thread(gateway.jvm)
            return SparkSession(context)
    except ConfigError:
        SparkContext._gateway = gateway
        _end_halfway()
        raise
    except (PySparkRuntimeError, Py4JError, OSError) as error:
        java = isinstance(error, Py4JJavaError)
        cause = spark_cause(error) if java else str(error)  # while the JVM can be asked
        _end_halfway()
        printed = "" if java else _printed(log_path, begins_at)
        raise MigratorError(
            "Spark can't be started",
            where=f"{settings.get('spark.master')}, log {log_path}",
            cause="; ".join(filter(None, [cause, last_line(printed)])),
            remedy="see the log; is the master's address right, and can it start executors?"
            if java
            else remedy_for(error, printed),
            retryable=java,
        ) from error


def _end_with_a_thread(jvm: Any) -> None:
    """Makes the JVM end when one of its threads dies of an error, as Spark's executors do.

    A thread of the JVM brings us results. If it dies of an error that Scala doesn't catch (no room for more compiled
    code, a stack that is too deep), we would wait for them for ever.
    """
    handler = jvm.org.apache.spark.util.SparkUncaughtExceptionHandler(True)
    jvm.java.lang.Thread.setDefaultUncaughtExceptionHandler(handler)


def _end_halfway() -> None:
    """Ends the JVM of a session that was never handed over."""
    gateway, context = SparkContext._gateway, SparkContext._active_spark_context
    if context is not None:
        context._jsc = None
        context.stop()
    SparkContext._gateway = SparkContext._jvm = None
    if gateway is not None:
        with suppress(Py4JError, OSError):
            gateway.shutdown()
        gateway.proc.kill()
        gateway.proc.wait()
