"""Waiting for a server that may never answer, without a limit for one that is still at work.

A line can fall silent without being cut (a firewall forgets it, a middlebox stalls); keepalives notice only
what the kernel of the other end doesn't acknowledge. Drivers written in C wait for ever then. So the call is
made in a thread of its own, and whoever waits asks now and then, over another connection, whether the server
still works on it. If not, the call is left behind with its connection, which is closed whenever it returns.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import socket
import stat
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")
Query = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]

_SESSION = (
    "SELECT a.state, a.wait_event_type, a.state_change::text, coalesce(c.bytes_processed, 0)"
    " FROM pg_catalog.pg_stat_activity a LEFT JOIN pg_catalog.pg_stat_progress_copy c ON c.pid = a.pid"
    " WHERE a.pid = $1::bigint AND a.backend_start = $2::text::timestamptz"
)


_TCP_INFO_BYTES, _CARRIED_AT = 136, 120
"""Linux's ``struct tcp_info`` up to ``tcpi_bytes_acked`` and ``tcpi_bytes_received``, two u64 (linux/tcp.h)."""


class SilentError(Exception):
    """Nobody answers, and nothing says that anybody will."""


class _Call(Generic[Result]):
    """A call in a thread of its own. ``leave`` runs in that thread if the call returns to nobody."""

    def __init__(self, call: Callable[[], Result], leave: Callable[[], None]):
        self._call = call
        self._leave = leave
        self._lock = threading.Lock()
        self._left = False
        self._result: list[Result] = []
        self._error: BaseException | None = None
        self._done = threading.Event()
        _start(self._run)

    def returned(self, timeout_s: float) -> bool:
        """Waits for the call, at most ``timeout_s``; tells whether it has returned or raised."""
        return self._done.wait(timeout_s)

    def leave(self) -> bool:
        """Gives it up; False when it has returned in this moment."""
        with self._lock:
            self._left = not self._done.is_set()
            return self._left

    def result(self) -> Result:
        """Returns what the call returned; raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._result[0]

    def _run(self) -> None:
        try:
            self._result.append(self._call())
        except BaseException as error:  # noqa: BLE001  raised again in the thread that waits
            self._error = error
        with self._lock:
            self._done.set()
        if self._left:
            self._leave()


def _start(work: Callable[[], None]) -> None:
    """A thread that nobody waits for. Raises ``MemoryError`` if there is no room for it.

    ``threading.Thread.start`` waits until the thread has begun: for ever, if that one gets no memory for its first
    step. Such a call is one that isn't answered, and is left behind like any other.
    """
    try:
        _thread.start_new_thread(work, ())
    except RuntimeError as error:
        raise MemoryError(str(error)) from error


def patiently(
    call: Callable[[], Result], silence_s: float, works: Callable[[], bool], leave: Callable[[], None]
) -> Result:
    """The call's result; raises what it raises.

    Args:
        call: made in another thread; it must touch nothing that is used again once it was left behind.
        silence_s: how long to wait before asking ``works``, and each time after.
        works: whether waiting on makes sense.
        leave: closes what a call left behind used, called when that call returns.

    Raises ``SilentError`` once ``works`` says no: the call is left behind; ``MemoryError`` if it can't be begun.
    """
    running = _Call(call, leave)
    waited_s = silence_s
    while not running.returned(silence_s):
        if not works() and running.leave():
            raise SilentError(f"no answer for {waited_s:g} s")
        waited_s += silence_s
    return running.result()


class Line:
    """Our end of one TCP connection to a server, made by a driver that doesn't tell its socket.

    Sockets that appear while ``connected`` runs are taken for it: there may be others of the same moment among them.
    """

    def __init__(self, host: str, port: int):
        self._address = (host, port)
        self._sockets: set[int] = set()

    def connected(self, connect: Callable[[], Result]) -> Result:
        """Makes the connection."""
        before = carried_bytes(*self._address)
        connection = connect()
        self._sockets = carried_bytes(*self._address).keys() - before.keys()
        return connection

    def carried(self) -> dict[int, int]:
        """Bytes that it carried so far in both directions, by socket."""
        now = carried_bytes(*self._address) if self._sockets else {}
        return {inode: size for inode, size in now.items() if inode in self._sockets}


class WatchedSession:
    """A PostgreSQL session, watched over other connections of the same role: ``works`` for ``patiently``.

    A session that waits for its client, twice in a row with nothing moved in between, has answered, and the
    answer is lost. (Bytes of a COPY count as movement, those that the server has seen and those on the line:
    a slow line is not a dead one.) Twice no answer to the question itself means that the server can't be
    reached.

    Args:
        query: runs a query over a new connection; its failures (see ``failures``) count as no answer.
        failures: errors of ``query``.
        session: process and start of the backend; process 0 while it isn't known, which counts as no answer.
        carried: bytes that went over the session's line.
    """

    def __init__(
        self,
        query: Query,
        failures: tuple[type[Exception], ...],
        session: Callable[[], tuple[int, str]],
        carried: Callable[[], dict[int, int]] = dict,
    ):
        self._query = query
        self._failures = failures
        self._session = session
        self._carried = carried
        self._bytes: dict[int, int] = {}
        self._last: tuple[Any, ...] | None = None
        self._unanswered = 0

    def works(self) -> bool:
        """Tells whether the session still works on the call."""
        before, self._bytes = self._bytes, self._carried()
        if any(before.get(line, size) != size for line, size in self._bytes.items()):
            self._last, self._unanswered = None, 0
            return True
        session = self._session()
        try:
            found = self._query(_SESSION, session) if session[0] else None
        except self._failures:
            found = None
        if found is None:
            self._unanswered += 1
            return self._unanswered < 2
        self._unanswered = 0
        if not found:
            return False
        state, waits_for, changed, copied_bytes = found[0]
        if state == "active" and waits_for != "Client":
            self._last = None
            return True
        seen = (state, changed, copied_bytes)
        moved, self._last = seen != self._last, seen
        return moved


def carried_bytes(host: str, port: int) -> dict[int, int]:
    """Bytes acknowledged and received on each TCP connection of this process to a server, by the socket's inode.

    Empty where the kernel doesn't tell (it is Linux that does).
    """
    if not hasattr(socket, "TCP_INFO") or not os.path.isdir("/proc/self/fd"):
        return {}
    found: dict[int, int] = {}
    with contextlib.suppress(OSError):  # a name that can't be resolved, sockets that are closed while we look
        addresses = {str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                about = os.stat(int(name))
                if stat.S_ISSOCK(about.st_mode):
                    found.update(_carried(int(name), about.st_ino, addresses, port))
    return found


def _carried(handle: int, inode: int, addresses: set[str], port: int) -> dict[int, int]:
    with socket.socket(fileno=os.dup(handle)) as one:
        if one.family not in (socket.AF_INET, socket.AF_INET6) or one.type != socket.SOCK_STREAM:
            return {}
        peer = one.getpeername()
        if peer[1] != port or peer[0] not in addresses:
            return {}
        info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
        return {inode: sum(struct.unpack_from("QQ", info, _CARRIED_AT))}
