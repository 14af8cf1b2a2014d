"""The parts of a running scenario: the things that faults break and recorders read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from migrator.model.coordination import Coordination
from scenarios.database import Database
from scenarios.proxy.proxy import TcpProxy


class Server(Protocol):
    """A server that can be killed and started again on the same port with the same data."""

    @property
    def pid(self) -> int:
        """The main process."""
        ...

    def start(self) -> None:
        """Starts it and waits until it answers."""
        ...

    def stop(self) -> None:
        """Stops it cleanly."""
        ...

    def kill(self) -> None:
        """SIGKILL to all its processes; what was not durable is gone."""
        ...


class Pipeline(Protocol):
    """``migrator run`` as a process of its own."""

    @property
    def pid(self) -> int:
        """The process now; another one after a restart."""
        ...

    @property
    def running(self) -> bool:
        """Returns whether the process exists."""
        ...

    def start(self) -> None:
        """Starts it (again)."""
        ...

    def stop(self) -> None:
        """Stops it as Ctrl-C would."""
        ...

    def kill(self) -> None:
        """SIGKILL to the process and its children (JVM, Python workers)."""
        ...


class Replica(Protocol):
    """A server that follows a side's first one.

    Attributes:
        primary: straight to the server that it follows.
        database: straight to it.
    """

    primary: Database
    database: Database

    def hand_over(self) -> None:
        """Makes sure that the log can be read on from it once it is promoted. The primary runs, as do all
        readers."""
        ...

    def await_same(self) -> None:
        """Waits until it has all that the primary has now."""
        ...

    def promote(self) -> None:
        """Makes a primary of it; the old one is down."""
        ...

    def pause(self) -> None:
        """Makes the replica fall behind from now on."""
        ...

    def resume(self) -> None:
        """Lets the replica catch up again."""
        ...

    def lose_log(self, slot: str, written: Callable[[], object]) -> str:
        """Promoted, it gives up the log that the pipeline needs; says what is gone.

        Args:
            slot: the pipeline's, where there are slots.
            written: lets clients and recorders reach it, and waits until they have written. The pipeline can't yet.
        """
        ...


@dataclass(frozen=True, slots=True)
class Side:
    """One database server of a scenario.

    Attributes:
        direct: how clients and recorders reach it.
        via: how the pipeline reaches it: a proxy's port, or the same as ``direct``.
        server: to kill and start.
        proxy: what ``via`` leads through; None when the pipeline goes straight to the server.
        replica: what follows the server, if a fault needs that.
        front: what ``direct`` leads through then, so that clients and recorders can be led to the replica.
    """

    direct: Database
    via: Database
    server: Server
    proxy: TcpProxy | None = None
    replica: Replica | None = None
    front: TcpProxy | None = None


class Cluster(Protocol):
    """A Spark cluster whose executors can be killed."""

    def executors(self) -> list[int]:
        """Process ids of the executors now."""
        ...


@dataclass(frozen=True, slots=True)
class ZooKeeperSide:
    """The ZooKeeper of a scenario.

    Attributes:
        server: to kill and start.
        proxy: what the pipeline reaches it through.
        settings: how everybody else does.
        migration: whose nodes count.
    """

    server: Server
    proxy: TcpProxy
    settings: Coordination
    migration: str


@dataclass(frozen=True, slots=True)
class World:
    """A running scenario.

    Attributes:
        folder: scratch folder of this run.
        config: the project's ``migration.toml``.
        source: old side.
        target: new side.
        pipeline: the process under test.
        now_us: microseconds since the run's start, the clock of the history.
        applied: how many batches the process with this id has brought into the target, as it has announced so far.
        zookeeper: says who leads; None where a lock file does.
        cluster: where Spark's tasks run; None where they run in the pipeline's own JVM.
    """

    folder: Path
    config: Path
    source: Side
    target: Side
    pipeline: Pipeline
    now_us: Callable[[], int]
    applied: Callable[[int], int]
    zookeeper: ZooKeeperSide | None = None
    cluster: Cluster | None = None
