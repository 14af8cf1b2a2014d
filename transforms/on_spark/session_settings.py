"""The settings of our Spark sessions: what is fixed, what is a default, what a user may set."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkConf

from migrator.errors import ConfigError
from migrator.own_modules import own
from transforms.on_spark.surroundings import EXECUTORS

_HEAP_MAX_BYTES = 3 << 30
_HEAP_MIN_BYTES = 512 << 20
_PAGE = "4m"
"""The size of the pages of memory that Spark's hash tables take. Spark's default is 64 MiB for each broadcast, even
of few rows. A joined batch has several broadcasts, and their memory is free only after a garbage collection."""
_ONE_PROCESS = re.compile(r"local(\[.*\])?")
_RUN_ONCE = Path(__file__).with_name("run_once.txt")
UNSAFE = re.compile(r"[^\w./+,@=~-]")
"""Letters of a path that mean something in a text of options: blanks and quotes to Spark, a colon to Java."""

# Other values of these change what rows mean, so they are not open to configuration.
_FIXED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    **EXECUTORS,
}


def is_cluster(master: str) -> bool:
    """Tells whether tasks run in other processes than the driver's JVM, on this machine or others."""
    return _ONE_PROCESS.fullmatch(master) is None


def heap_bytes(memory_bytes: int) -> int:
    """The JVM heap for a machine of that much memory: a quarter of it, between 512 MiB and 3 GiB."""
    return max(_HEAP_MIN_BYTES, min(_HEAP_MAX_BYTES, memory_bytes // 4))


def compiler_options(directives: Path = _RUN_ONCE) -> str:
    """Returns Java's options by which its thorough compiler leaves alone what runs while Spark starts and plans.

    Empty where Java couldn't read the file: it wouldn't start then.
    """
    path = str(directives)
    if UNSAFE.search(path) is not None or not os.access(directives, os.R_OK):
        return ""
    return f"-XX:+UnlockDiagnosticVMOptions -XX:CompilerDirectivesFile={path}"


def session_settings(
    master: str, conf: Mapping[str, str], log_path: Path, java_options: str = ""
) -> SparkConf:
    """Returns the settings of a session. Arguments as of ``spark_session``; raises ``ConfigError`` as that does."""
    wrong = [name for name in conf if not name.startswith("spark.")]
    changed = [name for name, value in _FIXED.items() if conf.get(name, value).lower() != value.lower()]
    if wrong or changed:
        raise ConfigError(
            "Spark settings that can't be used",
            where=", ".join(wrong + changed),
            cause="a setting must start with `spark.`"
            if wrong
            else "another value would change what rows mean",
            remedy="remove them"
            if wrong
            else f"remove them, or set {', '.join(f'{k}={_FIXED[k]}' for k in changed)}",
        )
    cores = str(len(os.sched_getaffinity(0)))
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    defaults = {
        "spark.app.name": "migrator",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark remembers plans and metrics for a page that isn't there: 1,000 of them fill the heap of a long run.
        "spark.sql.ui.retainedExecutions": "10",
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "50",
        "spark.log.level": "WARN",
        "spark.driver.memory": f"{heap_bytes(memory_bytes) >> 20}m",
        "spark.buffer.pageSize": _PAGE,
        "spark.sql.shuffle.partitions": cores,
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        # Code of 100 operators is kept otherwise: the plans of twenty joined targets have more.
        "spark.sql.codegen.cache.maxEntries": "2000",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(log_path.resolve().parent / "spark-warehouse"),
        # Each call of a mapping would first tell the JVM where in Python it stands, by nine calls more. That is for
        # the context of an error message, which ``spark_cause`` leaves out; so is the JVM's look at its own stack.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.dataFrameQueryContext.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    }
    if master.startswith("local"):
        defaults |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if not is_cluster(master):
        defaults["spark.default.parallelism"] = cores  # a cluster's is what its executors have
        defaults["spark.python.daemon.module"] = own("migrator.worker_daemon")
        defaults["spark.executorEnv.PYTHONSAFEPATH"] = "1"  # a user's json.py must not hide Python's
    wanted = {**defaults, **conf, **_FIXED, "spark.master": master}
    theirs = conf.get("spark.driver.extraJavaOptions", "")
    if java := [one for one in (compiler_options(), java_options, theirs) if one]:  # the last ones win
        wanted["spark.driver.extraJavaOptions"] = " ".join(java)
    settings = SparkConf(loadDefaults=False)
    settings.setAll(list(wanted.items()))
    return settings
