"""A throw-away Spark standalone cluster: one master and some workers, from the jars of the ``pyspark`` package."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from migrator.embedded.process import Program, ServerProcess, make_server_directory, plain_environment
from migrator.embedded.server import EmbeddedServer
from migrator.errors import MigratorError

_PACKAGE = "org.apache.spark.deploy"
# What Spark's own launcher opens of Java's modules for these daemons, as far as they need it (found by trial).
_OPENED = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "-Dspark.master.rest.enabled=false",
    "-Dspark.ui.enabled=false",
    "-Dspark.worker.cleanup.enabled=false",
)
_DAEMON_MEMORY = ("-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_CORE_JAR = re.compile(r"spark-core_([\d.]+)-")
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


class _Daemon(EmbeddedServer):
    """A JVM of the cluster; ready once its log says so."""

    title: ClassVar[str] = "the embedded Spark daemon"
    said: ClassVar[str] = ""

    def __init__(self, directory: Path, java_home: Path):
        super().__init__(directory)
        self._java_home = java_home
        self._log_begins_at = 0

    def start(self) -> None:
        """See ``EmbeddedServer.start``; a line of an earlier start doesn't count."""
        log = self._directory / "daemon.log"
        self._log_begins_at = log.stat().st_size if log.exists() else 0
        super().start()

    def _arguments(self) -> list[str]:
        raise AssertionError(f"{self.title} has no arguments")

    def _create(self) -> ServerProcess:
        root = make_server_directory(self._directory, None)
        home = _spark_home()
        environment: Mapping[str, str] = {
            **plain_environment(),
            "JAVA_HOME": str(self._java_home),
            "SPARK_HOME": str(home),
            "SPARK_SCALA_VERSION": _scala_version(home),  # else executors look for a source tree, in vain
            "SPARK_LOCAL_IP": self.host,
            "HOME": os.environ.get("HOME", str(root)),
        }
        java = str(self._java_home / "bin" / "java")
        return ServerProcess(
            self.title,
            Program(
                [java, *_DAEMON_MEMORY, *_OPENED, "-cp", f"{home}/jars/*", *self._arguments()],
                user=None,
                directory=root,
                log=root / "daemon.log",
                environment=environment,
            ),
            ready=self._why_not_ready,
        )

    def _why_not_ready(self) -> str:
        with (self._directory / "daemon.log").open("rb") as log:
            log.seek(self._log_begins_at)
            return "" if self.said.encode() in log.read() else f"it has not said {self.said!r}"


class _Master(_Daemon):
    title = "the embedded Spark master"
    said = "New state: ALIVE"

    @property
    def url(self) -> str:
        return f"spark://{self.host}:{self.port}"

    def _arguments(self) -> list[str]:
        return [
            f"{_PACKAGE}.master.Master",
            "--host",
            self.host,
            "--port",
            str(self.port),
            "--webui-port",
            "0",
        ]


class EmbeddedSparkWorker(_Daemon):
    """One worker, which starts executors as children; to be killed and started again.

    Args:
        directory: work folder, with a folder for each executor.
        java_home: as for the cluster.
        master: its URL.
        cores, memory: what it offers.
    """

    title = "the embedded Spark worker"
    said = "Successfully registered with master"

    def __init__(self, directory: Path, java_home: Path, master: str, cores: int, memory: str):
        super().__init__(directory, java_home)
        self._master, self._cores, self._memory = master, cores, memory

    def executors(self) -> list[int]:
        """Process ids of its executors' JVMs now."""
        return [pid for pid in _children(self.pid) if _EXECUTOR in _words(pid)]

    def _arguments(self) -> list[str]:
        offer = ["-c", str(self._cores), "-m", self._memory, "-d", str(self._directory / "work")]
        place = ["--host", self.host, "--port", str(self.port), "--webui-port", "0"]
        return [f"{_PACKAGE}.worker.Worker", *offer, *place, self._master]


class EmbeddedSparkCluster:
    """A master and its workers on 127.0.0.1; a context manager. They end with this process, executors with them.

    Args:
        directory: gets a folder for each of them, kept when they stop.
        java_home: a folder whose ``bin/java`` is Java 17 or newer, see ``java.java_home``.
        workers: how many.
        cores: of each worker.
        memory: that each worker gives to executors, e.g. ``1g``.

    Attributes: ``url`` (for ``--master``), ``workers`` (to kill and start again).
    Raises MigratorError if one can't be started, with the end of its log.
    """

    def __init__(
        self, directory: Path, *, java_home: Path, workers: int = 2, cores: int = 1, memory: str = "1g"
    ):
        self._master = _Master(directory / "master", java_home)
        self.url = self._master.url
        self.workers = [
            EmbeddedSparkWorker(directory / f"worker{number}", java_home, self.url, cores, memory)
            for number in range(1, workers + 1)
        ]

    def __enter__(self) -> Self:
        try:
            self._master.start()
            with ThreadPoolExecutor(len(self.workers)) as pool:
                list(pool.map(EmbeddedSparkWorker.start, self.workers))
        except BaseException:  # Ctrl-C too: what was started must not be left running
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def pids(self) -> list[int]:
        """Process ids of master and workers."""
        return [self._master.pid, *(worker.pid for worker in self.workers if worker.running)]

    def executors(self) -> list[int]:
        """Process ids of all executors' JVMs now."""
        return [pid for worker in self.workers if worker.running for pid in worker.executors()]

    def _stop(self) -> None:
        with ThreadPoolExecutor(len(self.workers)) as pool:
            list(pool.map(EmbeddedSparkWorker.stop, self.workers))
        self._master.stop()


def _spark_home() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise MigratorError(
            "pyspark is not installed", remedy="install the tool's requirements: pip install dbmigrator"
        )
    return Path(spec.origin).parent


def _scala_version(home: Path) -> str:
    """``2.13`` from the name of Spark's core jar."""
    names = [
        found[1] for jar in (home / "jars").glob("spark-core_*.jar") if (found := _CORE_JAR.match(jar.name))
    ]
    if not names:
        raise MigratorError(
            "pyspark lacks Spark's core jar",
            where=str(home / "jars"),
            remedy="install the version of pyspark that the tool asks for",
        )
    return names[0]


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(word) for word in re.findall(r"\d+", tasks.read_text())]
        except OSError:  # the thread has ended meanwhile
            continue
    return found


def _words(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError:  # it has ended meanwhile
        return []
