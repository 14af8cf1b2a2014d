"""A throw-away ZooKeeper: one real server, started from the jars that the ``pyspark`` package carries."""

from __future__ import annotations

import importlib.util
import signal
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

from migrator.embedded.process import ServerProcess, make_server_directory
from migrator.embedded.server import EmbeddedServer
from migrator.errors import MigratorError

# Found by trial: without metrics-core the server dies at once; without snappy-java it starts but no session
# is ever accepted, which is why readiness is asked with a session.
_JARS = (
    "zookeeper-3*.jar",
    "zookeeper-jute-*.jar",
    "slf4j-api-*.jar",
    "metrics-core-*.jar",
    "snappy-java-*.jar",
)
_MAIN_CLASS = "org.apache.zookeeper.server.ZooKeeperServerMain"
_SESSION_TIMEOUT_S = 5.0


class EmbeddedZooKeeper(EmbeddedServer):
    """A single ZooKeeper server under ``directory``; a context manager.

    Args:
        directory: gets the configuration, the data and the log; kept when the server stops.
        java_home: a folder with ``bin/java``, see `migrator.embedded.java.java_home`.

    Attributes: ``host``, ``port`` (the same after a restart), ``hosts`` ("host:port", for clients).
    Raises MigratorError if the server does not accept a session in time.
    """

    title = "the embedded ZooKeeper"

    def __init__(self, directory: Path, *, java_home: Path):
        super().__init__(directory)
        self.hosts = f"{self.host}:{self.port}"
        self._java_home = java_home

    def kill(self) -> None:
        """SIGKILL the server; its data stays. Does nothing if it isn't running."""
        if self._process is not None:
            self._process.kill()

    def _create(self) -> ServerProcess:
        root = make_server_directory(self._directory, None)
        configuration = root / "zoo.cfg"
        configuration.write_text(
            f"tickTime=1000\ndataDir={root}\nclientPort={self.port}\nclientPortAddress={self.host}\n"
            "admin.enableServer=false\n"
        )
        java = str(self._java_home / "bin" / "java")
        memory = ["-Xmx64m", "-XX:+UseSerialGC"]
        return ServerProcess(
            self.title,
            [java, *memory, "-cp", _class_path(), _MAIN_CLASS, str(configuration)],
            user=None,
            directory=root,
            log=root / "zookeeper.log",
            ready=self._why_not_ready,
            stop_signal=signal.SIGTERM,
        )

    def _why_not_ready(self) -> str:
        client = KazooClient(hosts=self.hosts, timeout=_SESSION_TIMEOUT_S)
        try:
            client.start(timeout=_SESSION_TIMEOUT_S)
            client.get_children("/")
        except KazooTimeoutError as error:
            return str(error)
        finally:
            client.stop()
            client.close()
        return ""


def _class_path() -> str:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise MigratorError(
            "pyspark is not installed", remedy="install the tool's requirements: pip install dbmigrator"
        )
    folder = Path(spec.origin).parent / "jars"
    found = []
    for pattern in _JARS:
        jars = sorted(folder.glob(pattern))
        if not jars:
            raise MigratorError(
                "pyspark lacks a jar that ZooKeeper needs",
                where=str(folder / pattern),
                remedy="install the version of pyspark that the tool asks for",
            )
        found.append(str(jars[0]))
    return ":".join(found)
