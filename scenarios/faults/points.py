"""Listens to the named points that a pipeline announces, and holds it there while a fault is placed."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from migrator.errors import ConfigError, MigratorError
from migrator.run.steps import POINTS, POINTS_VARIABLE, SOCKET_VARIABLE

Callback = Callable[[], None]
_ANSWER = b"go\n"
_CREDENTIALS = struct.Struct("iII")
_LONGEST_PATH_BYTES = 107
"""The longest address of a Unix socket, in bytes (unix(7), without the final zero)."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A point was reached.

    Attributes:
        point: its name.
        count: the number of times it was reached so far, this one included, over all processes of the run.
        at_s: ``time.monotonic()`` of its arrival.
        pid: the process that reached it.
    """

    point: str
    count: int
    at_s: float
    pid: int


class PointServer:
    """A Unix socket for ``MIGRATOR_STEPS``; a context manager.

    Callbacks run in the connection's thread while the pipeline's thread waits for the answer: other threads of the
    pipeline go on, and several may be held at once. A callback's error doesn't hold the pipeline; ``raise_failure``
    raises it. Once closed, whoever is held is let go.

    Args:
        path: of the socket, made here; its folder must exist.
        announce: points to be announced besides those of ``on``, to be recorded only.
    """

    def __init__(self, path: Path, announce: Iterable[str] = ()):
        if len(str(path).encode()) > _LONGEST_PATH_BYTES:
            raise ConfigError(
                "the path of the points' socket is too long",
                where=str(path),
                remedy=f"choose a folder of fewer letters: a Unix socket's path holds {_LONGEST_PATH_BYTES} bytes",
            )
        self._path = path
        self._announced = set()
        for point in announce:
            self._announced.add(_known(point))
        self._callbacks: dict[tuple[str, int], Callback] = {}
        self._counts: Counter[str] = Counter()
        self._reached: list[Reached] = []
        self._failure: BaseException | None = None
        self._changed = threading.Condition()
        self._connections: set[socket.socket] = set()
        self._listener: socket.socket | None = None

    def __enter__(self) -> Self:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._path.unlink(missing_ok=True)
        listener.bind(str(self._path))
        listener.listen()
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), name="points", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def on(self, point: str, count: int, callback: Callback) -> None:
        """Calls ``callback`` when ``point`` is reached for the ``count``-th time, the pipeline held meanwhile.

        A pipeline announces only the points known when its ``environment()`` was taken. Raises
        ``ConfigError`` for a point that doesn't exist, a count below 1, and a second callback for the same
        moment.
        """
        _known(point)
        if count < 1:
            raise ConfigError(f"a point can't be reached for the {count}th time", where=point)
        with self._changed:
            if (point, count) in self._callbacks:
                raise ConfigError(f"two faults wait for {point}:{count}", remedy="give one another count")
            self._callbacks[point, count] = callback
            self._announced.add(point)

    def environment(self) -> dict[str, str]:
        """The variables that a pipeline needs to announce its points here."""
        with self._changed:
            names = ",".join(sorted(self._announced))
        return {SOCKET_VARIABLE: str(self._path), POINTS_VARIABLE: names}

    def reached(self) -> tuple[Reached, ...]:
        """Every announced point so far, in order of arrival."""
        with self._changed:
            return tuple(self._reached)

    def reached_by(self, pid: int, point: str) -> int:
        """Counts the times that one process has announced a point so far."""
        with self._changed:
            return sum(arrival.pid == pid and arrival.point == point for arrival in self._reached)

    def pending(self) -> tuple[tuple[str, int], ...]:
        """Moments of ``on`` that haven't come: their faults have not fired."""
        with self._changed:
            return tuple(sorted(self._callbacks))

    def wait(self, point: str, count: int, timeout_s: float) -> bool:
        """Waits until the point has been reached ``count`` times; returns False if that took too long."""
        with self._changed:
            return self._changed.wait_for(lambda: self._counts[point] >= count, timeout_s)

    def raise_failure(self) -> None:
        """Raises the first error of a callback, if one failed."""
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Stops listening and lets everyone go. Safe to call twice."""
        with self._changed:
            listener, self._listener = self._listener, None
            connections = list(self._connections)
        if listener is None:
            return
        listener.shutdown(socket.SHUT_RDWR)  # close() alone leaves the thread in accept()
        listener.close()
        for connection in connections:
            _shut(connection)
        self._path.unlink(missing_ok=True)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return  # closed
            with self._changed:
                self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), name="point", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as lines:
                pid = _peer(connection)
                for line in lines:
                    self._arrived(line.decode("ascii", "replace").strip(), pid)
                    connection.sendall(_ANSWER)
        except OSError:  # the pipeline was killed, or we were closed: nobody waits for an answer
            return
        finally:
            with self._changed:
                self._connections.discard(connection)

    def _arrived(self, point: str, pid: int) -> None:
        with self._changed:
            self._counts[point] += 1
            count = self._counts[point]
            self._reached.append(Reached(point, count, time.monotonic(), pid))
            callback = self._callbacks.pop((point, count), None)
            self._changed.notify_all()
        if callback is None:
            return
        try:
            callback()
        except (MigratorError, OSError, AssertionError, RuntimeError) as error:
            with self._changed:
                self._failure = self._failure or error


def parse_point(text: str) -> tuple[str, int]:
    """``capture.chunk:3`` as name and count; the count is 1 where none is given. Raises ``ConfigError``."""
    name, _, count = text.partition(":")
    if count and not count.isdecimal():
        raise ConfigError(f"{text!r} is no point", remedy="write <point>:<number>, e.g. capture.chunk:3")
    return _known(name), int(count or 1)


def _known(point: str) -> str:
    if point not in POINTS:
        raise ConfigError(
            f"there is no point {point!r}", where="at", remedy=f"name one of: {', '.join(POINTS)}"
        )
    return point


def _peer(connection: socket.socket) -> int:
    """The process at the other end (unix(7): SO_PEERCRED)."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, _, _ = _CREDENTIALS.unpack(credentials)
    return int(pid)


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # its other end has gone already
        return
