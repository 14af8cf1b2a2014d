"""The Spark session of a project: on this machine, or on a cluster with executors that get our code."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Mapping

import pyspark
from pyspark.sql import SparkSession

from migrator.config.project import Settings
from migrator.embedded.java import java_home
from migrator.own_modules import own
from migrator.wiring.source_engines import SOURCE_ENGINES
from migrator.wiring.target_engines import TARGET_ENGINES
from transforms.on_spark.class_archive import class_archive
from transforms.on_spark.executors import check_executors, count_executors
from transforms.on_spark.one_task import on_executor
from transforms.on_spark.session import running_session, spark_session, stop_session, training
from transforms.on_spark.session_settings import is_cluster
from transforms.on_spark.shipping import mapping_modules, package_code, ship

_MODULES = ("pyarrow", own("transforms.on_spark.staged"), own("verify.tables.compare.json_text"))
_READ_LIMIT_S = 60.0
"""Seconds for one chunk, waiting for a slot included; then the driver reads it. A read should take less than one."""


_KEPT_S = 120.0
"""Seconds for a JVM to write down its classes when it ends; on an idle machine it takes a few."""


def spark(
    settings: Settings, master: str | None = None, conf: Mapping[str, str] | None = None
) -> SparkSession:
    """The project's Spark session, started on the first call.

    On a cluster executors get this tool's modules and the mapping's, and are asked whether they can do their part.
    Raises ``ClusterError`` if they can't, ``ConfigError``, ``MigratorError``.
    """
    where = master or settings.spark.master
    before, options = running_session(), {**settings.spark.conf, **(conf or {})}
    home = None if before is not None else java_home()  # asking costs a process; a start leaves JAVA_HOME
    archive = None if home is None else class_archive(home, options)
    trains = "" if archive is None or not settings.spark.keep_classes else archive.training()
    session = spark_session(
        master=where,
        conf=options,
        java_home=home,
        log_path=settings.state / "spark.log",
        java_options=trains or ("" if archive is None else archive.options()),
        trained=archive if trains else None,
    )
    if session is not before and is_cluster(where):
        try:
            _prepare(session, settings, where)
        except BaseException:  # Ctrl-C too: whoever asks next must not be handed what was never checked
            stop_session()
            raise
    return session


def keep_classes() -> None:
    """Ends a session that was started with ``keep_classes``, so that its classes are there for later starts."""
    if training():
        stop_session(_KEPT_S)


def surroundings(settings: Settings, conf: Mapping[str, str] | None = None) -> str:
    """Returns what the plans of a project's mapping depend on beside declarations and tables, as one text: the code
    in its folder, this tool's, versions, settings of Spark. Raises ``MigratorError`` for a folder that can't be read.
    """
    folder = settings.mapping.resolve().parent
    files = {
        **package_code(own("transforms")),
        **mapping_modules(settings.mapping, (settings.state, settings.alembic)),
        **{path.name: path.read_bytes() for path in sorted(folder.glob("*.sql"))},
    }
    code = hashlib.sha256()
    for name, content in files.items():
        code.update(f"{name} {len(content)} ".encode() + content)
    options = sorted({**settings.spark.conf, **(conf or {})}.items())
    versions = (pyspark.__version__, platform.python_version())
    return repr((str(settings.mapping.resolve()), code.hexdigest(), versions, options))


def executors_now(master: str) -> int | None:
    """Returns how many executors a cluster has given the running session; None if there is no cluster, or no
    answer."""
    session = running_session()
    return count_executors(session) if session is not None and is_cluster(master) else None


def executors_stage(settings: Settings, master: str) -> bool:
    """One local process loads faster over its one connection: its executors would write every row twice."""
    staging = settings.apply.staging
    return staging == "executors" or (staging == "auto" and is_cluster(master))


def executors_read(settings: Settings) -> Callable[[Callable[[], bytes]], bytes] | None:
    """Runs a function on an executor of the session that runs, where executors are to read chunks; else None."""
    if settings.capture.chunk_reading != "executors":
        return None
    return lambda work: on_executor(running_session(), work, _READ_LIMIT_S)


def _prepare(session: SparkSession, settings: Settings, master: str) -> None:
    passed_over = (settings.state, settings.alembic)
    ship(session, settings.mapping, passed_over, settings.spark.py_files, settings.state / "spark-code")
    staging = TARGET_ENGINES[settings.target.kind].staging if executors_stage(settings, master) else ""
    reads = settings.capture.chunk_reading == "executors"
    reading = SOURCE_ENGINES[settings.source.kind].reading if reads else ""
    modules = (*_MODULES, *filter(None, (staging, reading)))
    check_executors(session, settings.state, modules, settings.spark.wait_s)
