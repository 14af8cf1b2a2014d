"""A throw-away ZooKeeper: one real server or an ensemble, from the jars that the ``pyspark`` package carries."""

from __future__ import annotations

import importlib.util
import logging
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from migrator.embedded.process import LOCALHOST, HeldPort, Program, ServerProcess, make_server_directory
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
    # Only for TLS.
    "netty-buffer-4*.jar",
    "netty-codec-4*.jar",
    "netty-codec-base-4*.jar",
    "netty-common-4*.jar",
    "netty-handler-4*.jar",
    "netty-resolver-4*.jar",
    "netty-tcnative-classes-*.jar",
    "netty-transport-4*.jar",
    "netty-transport-classes-epoll-*.jar",
    "netty-transport-native-unix-common-*.jar",
)
_MAIN_CLASS = "org.apache.zookeeper.server.ZooKeeperServerMain"
_MEMBER_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_SESSION_TIMEOUT_S = 5.0
_QUORUM_S = 60.0
_QUIET = logging.Logger("zookeeper")
_QUIET.addHandler(logging.NullHandler())  # a server that isn't there yet is no news
_TICK_MS = 500
"""Sessions are granted from two ticks on."""


class EmbeddedZooKeeper(EmbeddedServer):
    """A single ZooKeeper server under ``directory``, or one member of an ensemble; a context manager.

    Args:
        directory: gets the configuration, the data and the log; kept when the server stops.
        java_home: a folder with ``bin/java``, see `migrator.embedded.java.java_home`.
        settings: lines of the configuration over ours, e.g. ``{"maxSessionTimeout": "4000"}``.
        jvm: further options of the JVM.
        member: its number in an ensemble, whose other members ``settings`` names; 0 for a single server. A member
            answers clients only once most members run, so ``start`` returns as soon as its process is there.

    Attributes: ``host``, ``port`` (the same after a restart), ``hosts`` ("host:port", for clients).
    Raises MigratorError if the server does not accept a session in time.
    """

    title = "the embedded ZooKeeper"

    def __init__(
        self,
        directory: Path,
        *,
        java_home: Path,
        settings: Mapping[str, str] | None = None,
        jvm: Sequence[str] = (),
        member: int = 0,
    ):
        super().__init__(directory)
        self.hosts = f"{self.host}:{self.port}"
        self._java_home = java_home
        self._settings = dict(settings or {})
        self._jvm = tuple(jvm)
        self._member = member

    def kill(self) -> None:
        """SIGKILL the server; its data stays. Does nothing if it isn't running."""
        if self._process is not None:
            self._process.kill()

    def _create(self) -> ServerProcess:
        root = make_server_directory(self._directory, None)
        configuration = root / "zoo.cfg"
        settings = {
            "tickTime": str(_TICK_MS),
            "dataDir": str(root),
            "clientPort": str(self.port),
            "clientPortAddress": self.host,
            "admin.enableServer": "false",
            **self._settings,
        }
        configuration.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        if self._member:
            (root / "myid").write_text(f"{self._member}\n")
        java = str(self._java_home / "bin" / "java")
        memory = ["-Xmx64m", "-XX:+UseSerialGC"]
        main_class = _MEMBER_CLASS if self._member else _MAIN_CLASS
        return ServerProcess(
            self.title,
            Program(
                [java, *memory, *self._jvm, "-cp", _class_path(), main_class, str(configuration)],
                user=None,
                directory=root,
                log=root / "zookeeper.log",
            ),
            ready=(lambda: "") if self._member else self._why_not_ready,
            stop_signal=signal.SIGTERM,
        )

    def _why_not_ready(self) -> str:
        return _why_no_session(self.hosts)


class EmbeddedEnsemble:
    """Several ZooKeeper servers that elect a leader among themselves; a context manager.

    Args:
        directory: gets a folder for each member; kept when they stop.
        java_home: as for a single server.
        size: number of members.

    Attributes: ``members`` (to kill and start again), ``hosts`` (all of them, for clients).
    Raises MigratorError if no session is accepted in time.
    """

    def __init__(self, directory: Path, *, java_home: Path, size: int = 3):
        self._ports = [(HeldPort(), HeldPort()) for _ in range(size)]
        peers = {
            f"server.{number}": f"{LOCALHOST}:{quorum.number}:{election.number}"
            for number, (quorum, election) in enumerate(self._ports, 1)
        }
        settings = {"initLimit": "10", "syncLimit": "4", "maxSessionTimeout": "60000", **peers}
        self.members = [
            EmbeddedZooKeeper(
                directory / f"member{number}", java_home=java_home, settings=settings, member=number
            )
            for number in range(1, size + 1)
        ]
        self.hosts = ",".join(member.hosts for member in self.members)

    def __enter__(self) -> Self:
        try:
            for member in self.members:
                member.start()
            self.await_quorum()
        except BaseException:  # Ctrl-C too: what was started must not be left running
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def await_quorum(self) -> None:
        """Returns once the ensemble accepts a session."""
        deadline = time.monotonic() + _QUORUM_S
        while why := _why_no_session(self.hosts):
            if time.monotonic() > deadline:
                raise MigratorError(
                    "the embedded ensemble accepts no session",
                    where=self.hosts,
                    cause=why,
                    remedy="see the logs of its members",
                )

    def _stop(self) -> None:
        for member in self.members:
            member.stop()


def _why_no_session(hosts: str) -> str:
    client = KazooClient(hosts=hosts, timeout=_SESSION_TIMEOUT_S, logger=_QUIET)
    try:
        client.start(timeout=_SESSION_TIMEOUT_S)
        client.get_children("/")
    except (KazooTimeoutError, KazooException) as error:
        return str(error) or type(error).__name__
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
