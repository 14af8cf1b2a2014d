"""The common part of all embedded servers: start, stop, kill, restart, and being a context manager."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from migrator.embedded.process import LOCALHOST, HeldPort, ServerProcess
from migrator.errors import MigratorError


class EmbeddedServer(ABC):
    """A server whose files lie under ``directory`` and stay there when it stops; a context manager.

    Attributes: ``host``, ``port`` (the same after a restart), ``title`` (how messages name it).
    Raises MigratorError if the server can't be created or started, with the end of its log.
    """

    host = LOCALHOST
    title: ClassVar[str]

    def __init__(self, directory: Path):
        self._port = HeldPort()
        self.port = self._port.number
        self._directory = directory
        self._process: ServerProcess | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        """Tells whether the server's process exists."""
        return self._process is not None and self._process.running

    @property
    def pid(self) -> int:
        """The server's main process id."""
        return self._started().pid

    def start(self) -> None:
        """Create the server's files if there are none, start it, and return once it answers its clients."""
        if self._process is None:
            self._process = self._create()
        self._process.start()

    def stop(self) -> None:
        """Clean shutdown: sessions are cut, everything is written. Does nothing if it isn't running."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        """SIGKILL the server with all its sessions; the next start recovers from its own log."""
        self._started().kill()

    def restart(self) -> None:
        """Stop and start again on the same port, with the same data."""
        self.stop()
        self.start()

    @abstractmethod
    def _create(self) -> ServerProcess:
        """The process that will serve, with its files in place; not started yet."""

    def _started(self) -> ServerProcess:
        if self._process is None:
            raise MigratorError(f"{self.title} was never started", where=str(self._directory))
        return self._process
