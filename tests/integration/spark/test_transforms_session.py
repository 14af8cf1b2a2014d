"""The Spark session as a process: settings, silence, and the end of the JVM with its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from migrator.errors import MigratorError
from transforms.on_spark.session import named_jvm_end, running_session, spark_session

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[3]

PROGRAM = """
import sys
from pathlib import Path
from pyspark import SparkContext
from transforms.on_spark.session import spark_session

java_home = Path(sys.argv[2]) if len(sys.argv) > 2 else None
spark = spark_session(master="local[1]", conf={"spark.driver.memory": "512m"}, java_home=java_home,
                      log_path=Path(sys.argv[1]))
assert spark.sql("select 1 + 1").toArrow().to_pylist()[0].popitem()[1] == 2
print(spark._jvm.System.getProperty("java.version"), SparkContext._gateway.proc.pid, flush=True)
sys.stdin.readline()
"""


DIED = "26/11/24 04:19:47 ERROR SparkUncaughtExceptionHandler: Uncaught exception in thread"


def until(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead but not yet reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def start(tmp_path: Path, *java_home: str, program: str = PROGRAM) -> tuple[subprocess.Popen[str], str, int]:
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "logs" / "spark.log"), *java_home],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert child.stdout is not None
    words = child.stdout.readline().split()
    if not words:
        pytest.fail(f"Spark did not start: {child.communicate()[1]}")
    return child, words[0], int(words[1])


@pytest.mark.slow
def test_the_jvm_dies_with_a_killed_process_and_nothing_was_printed(tmp_path: Path) -> None:
    child, _, jvm = start(tmp_path)
    assert alive(jvm)
    child.send_signal(signal.SIGKILL)
    _, printed = child.communicate()
    assert until(lambda: not alive(jvm)), "the JVM outlived its parent"
    assert printed == ""
    assert (tmp_path / "logs" / "spark.log").stat().st_size > 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["logs"], (
        "Spark left files in the working directory"
    )


@pytest.mark.slow
def test_a_killed_jvm_is_named_whatever_is_asked_of_it_next(tmp_path: Path) -> None:
    """Not the row or the mapping at hand is at fault; and without the JVM the process still can end."""
    asking = """
from migrator.errors import MigratorError
from transforms.on_spark.session import named_jvm_end
for ask in (lambda: spark.sql("select 1").toArrow(), lambda: spark.range(3).count()):
    try:
        with named_jvm_end():
            ask()
        print("answered", flush=True)
    except MigratorError as error:
        print(error.what, error.where, flush=True)
"""
    child, _, jvm = start(tmp_path, program=PROGRAM + asking)
    os.kill(jvm, signal.SIGKILL)
    assert child.communicate("\n") == ("Spark's JVM has ended killed by SIGKILL\n" * 2, "")
    assert child.returncode == 0


@pytest.mark.slow
def test_a_killed_jvm_did_not_die_of_what_an_earlier_one_died_of(tmp_path: Path) -> None:
    """All JVMs of a migration write to one log."""
    asking = """
from migrator.errors import MigratorError
from transforms.on_spark.session import named_jvm_end
SparkContext._gateway.proc.kill()
try:
    with named_jvm_end():
        spark.range(3).count()
except MigratorError as error:
    print(error.what, error.where, error.retryable, flush=True)
"""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "spark.log").write_text(f"{DIED} Thread[a,5,main]\njava.lang.StackOverflowError\n")
    child, _, _ = start(tmp_path, program=PROGRAM + asking)
    assert child.communicate("\n") == ("Spark's JVM has ended killed by SIGKILL True\n", "")


@pytest.mark.slow
def test_after_a_killed_jvm_the_next_session_has_one_of_its_own(tmp_path: Path) -> None:
    asking = """
from pyspark.sql import functions as F
SparkContext._gateway.proc.wait()
again = spark_session(master="local[1]", conf={}, java_home=None, log_path=Path(sys.argv[1]))
print(again is spark, again.range(3).select(F.udf(lambda n: n * 2, "long")("id")).collect()[2][0], flush=True)
"""
    child, _, jvm = start(tmp_path, program=PROGRAM + asking)
    os.kill(jvm, signal.SIGKILL)
    assert child.communicate("\n") == ("False 4\n", "")
    assert child.returncode == 0


@pytest.mark.slow
def test_a_plan_that_is_too_deep_is_told_of_and_not_waited_for(tmp_path: Path) -> None:
    """Its stack overflows in the thread that serves the result: who waits for that would do so for ever."""
    asking = """
import faulthandler
from migrator.errors import MigratorError
from transforms.on_spark.session import named_jvm_end
rows = spark.range(3).toDF("n")
for step in range(400):
    rows = rows.selectExpr(f"n * 2 + {step} as n")
faulthandler.dump_traceback_later(240, exit=True)
try:
    with named_jvm_end():
        print(rows.toArrow().num_rows, flush=True)
except MigratorError as error:
    print(error.what, error.where, error.cause, error.retryable, sep="; ", flush=True)
"""
    child, _, _ = start(tmp_path, program=PROGRAM + asking)
    printed, failed = child.communicate("\n")
    told = "a mapping is too deep for Spark: its plan overflows the stack; Spark's JVM, exit code 50; "
    assert printed == told + "java.lang.StackOverflowError; False\n", failed
    assert child.returncode == 0


@pytest.mark.slow
def test_a_jvm_that_ends_with_one_of_its_threads_says_of_what(tmp_path: Path) -> None:
    asking = """
from pyspark.java_gateway import ensure_callback_server_started
from migrator.errors import MigratorError
from transforms.on_spark.session import named_jvm_end

class Fails:
    def run(self):
        raise RuntimeError("no room for code")
    class Java:
        implements = ["java.lang.Runnable"]

ensure_callback_server_started(SparkContext._gateway)
spark._jvm.java.lang.Thread(Fails()).start()
try:
    with named_jvm_end():
        spark._jvm.java.lang.Thread.sleep(100_000)
    print("slept", flush=True)
except MigratorError as error:
    print(error.what, error.where, error.retryable, error.cause, sep="; ", flush=True)
"""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "spark.log").write_text(f"{DIED} Thread[a,5,main]\njava.lang.StackOverflowError\n")
    child, _, _ = start(tmp_path, program=PROGRAM + asking)
    printed, _ = child.communicate("\n")
    assert printed.startswith(
        "Spark's JVM has ended; exit code 50; True; one of its threads died: py4j.Py4JException: "
    )
    assert child.returncode == 0


def test_what_fails_while_the_jvm_lives_passes_unchanged(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transforms.on_spark.session._DYING_S", 0.1)
    for error in (ConnectionRefusedError("another server"), Py4JError("a call that failed")):
        with pytest.raises(type(error)), named_jvm_end():
            raise error


def test_the_session_is_made_once_and_guards_what_rows_mean(spark: SparkSession, tmp_path: Path) -> None:
    assert running_session() is spark
    assert spark_session(master="local[2]", conf={}, java_home=None, log_path=tmp_path / "x.log") is spark
    with pytest.raises(MigratorError, match="already runs"):
        spark_session(master="local[1]", conf={}, java_home=None, log_path=tmp_path / "x.log")
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    assert spark.conf.get("spark.sql.parquet.datetimeRebaseModeInRead") == "CORRECTED"
    assert spark.conf.get("spark.ui.enabled") == "false"


def test_a_java_that_does_not_work_is_explained(tmp_path: Path) -> None:
    program = PROGRAM.replace("spark = ", "from migrator.errors import MigratorError\ntry: spark = ").replace(
        "assert spark", "except MigratorError as error: sys.exit(f'{error}')\nassert spark", 1
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "spark.log"), str(tmp_path / "no-java")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 1
    assert "Spark can't be started" in done.stderr
    assert "Traceback" not in done.stderr
    assert "JAVA_HOME" in done.stderr


def test_a_broadcast_of_few_rows_takes_little_memory(spark: SparkSession) -> None:
    """By itself Spark takes 64 MiB for the hash table of each, and frees it when the collector has been through."""
    adaptive = spark.conf.get("spark.sql.adaptive.enabled", "true") or "true"
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        few = spark.sql("SELECT CAST(id AS string) AS name, id FROM range(10)")
        many = spark.sql("SELECT CAST(id AS string) AS name FROM range(1000)")
        joined = many.join(few.hint("broadcast"), "name")
        assert len(joined.toArrow()) == 10
        plan = joined._jdf.queryExecution().executedPlan()
        waiting = [plan]
        found = []
        while waiting:
            node = waiting.pop()
            waiting += [node.children().apply(n) for n in range(node.children().size())]
            if node.getClass().getSimpleName() == "BroadcastExchangeExec":
                found.append(node.metrics().apply("dataSize").value())
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    assert len(found) == 1
    assert 0 < found[0] < 16 << 20
