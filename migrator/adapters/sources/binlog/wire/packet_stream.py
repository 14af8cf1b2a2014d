"""The stream of binlog events from the server, with bounded waiting.

The adapter asks for the log in its engine's way; from the first event on the packets are read here.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable
from typing import Any

import pymysql

from migrator.connections.mysql.packet_buffer import BufferedConnection, PacketBuffer
from migrator.connections.mysql.settings import BinlogSource, named
from migrator.errors import ConnectionFailed, GapError, MigratorError, SourceError

_HEARTBEATS = 4
"""Heartbeats in the time after which silence counts as death."""
HANDSHAKE_TIMEOUT_S = 60.0
_GATHER_S = 0.005
_FATAL_READING_LOG = 1236
_SAME_SERVER_ID = 4052
"""MariaDB's own code for a stream that ends because another replica of this server_id came; MySQL says 1236."""
_ERROR = b"\xff"


def heartbeat_s(source: BinlogSource) -> float:
    """Returns the seconds between the server's signs of life when its log has nothing new."""
    return source.server.silence_s / _HEARTBEATS


class PacketStream:
    """An open stream of raw events. One thread uses it.

    Args:
        source: the server.
        ask: connects, asks for the log and returns the connection, whose next packet is the first event. It adds
            every connection it makes to the list it is given, so that all of them end with the stream.

    Raises ``GapError`` when the log no longer holds that place, ``ConnectionFailed``.
    """

    def __init__(self, source: BinlogSource, ask: Callable[[list[Any]], BufferedConnection]):
        self._source = source
        self._connections: list[Any] = []
        self._open = True
        self._ending: bytes | None = None
        self._selector = selectors.DefaultSelector()
        try:
            connection: Any = ask(self._connections)
            connection._sock.setblocking(False)
            self._buffer: PacketBuffer = connection.buffer
            self._sock = connection._sock
            self._selector.register(self._sock, selectors.EVENT_READ)
            self._heard_at = time.monotonic()
            # the server answers at once: with the name of the file it begins in, or with why it can't
            self._first = self.events(HANDSHAKE_TIMEOUT_S)
        except BaseException:
            self.close()
            raise

    def take_first(self) -> list[bytes]:
        """The events that came with the server's answer. To be read before all others."""
        first, self._first = self._first, []
        return first

    def events(self, timeout_s: float, gather: bool = False) -> list[bytes]:
        """Raw events that have arrived, waiting up to ``timeout_s`` for the first; empty when none came.

        ``gather``: nobody waits for single events, they may come together.
        Raises ``ConnectionFailed`` when the connection is cut or silent for ``silence_s`` (heartbeats missing),
        ``GapError`` or ``SourceError`` when the server can't go on.
        """
        deadline = time.monotonic() + timeout_s
        found = self._complete()
        if gather and not found and self._open:
            time.sleep(
                min(_GATHER_S, timeout_s)
            )  # the server sends each commit at once, and wakes us for each
        while not found and self._open:
            received = self._receive_now()
            if not received:
                self._wait(deadline - time.monotonic())
                received = self._receive_now()
            now = time.monotonic()
            if received:
                self._heard_at = now
                found = self._complete()
            elif now - self._heard_at > self._source.server.silence_s:
                raise self._lost(f"no heartbeat for {self._source.server.silence_s:g} s")
            if now >= deadline:
                break
        return found

    def close(self) -> None:
        """Ends the connections. Safe to call twice."""
        self._open = False
        self._selector.close()
        for connection in self._connections:
            if connection.open:
                connection._force_close()  # a COM_QUIT would wait behind a full send buffer
        self._connections.clear()

    def _receive_now(self) -> bool:
        try:
            return self._buffer.receive_now()
        except (OSError, EOFError) as error:
            raise self._lost(str(error)) from error

    def _wait(self, timeout_s: float) -> None:
        pending = getattr(self._sock, "pending", None)
        if pending is None or not pending():
            self._selector.select(max(0.0, timeout_s))

    def _complete(self) -> list[bytes]:
        events: list[bytes] = []
        if self._ending is None:
            events, self._ending = self._buffer.events()
        if self._ending is None or events:  # what came before the end is delivered first
            return events
        if self._ending.startswith(_ERROR):
            code, message = int.from_bytes(self._ending[1:3], "little"), self._ending[9:]
            raise self._named(pymysql.err.OperationalError(code, message.decode("utf-8", "replace")))
        raise self._lost("the server ended the stream")

    def _named(self, error: Exception) -> MigratorError:
        code = error.args[0] if error.args else 0
        message = str(error.args[1]) if len(error.args) > 1 else str(error)
        if code == _FATAL_READING_LOG and "GTID" in message:
            return GapError(
                "the source log no longer holds the place to go on from",
                where=self._source.server.address,
                cause=message,
                remedy="start the migration anew (docs/how-to/start-anew.md)"
                " (and keep binlogs longer: expire_logs_days, binlog_expire_logs_seconds)",
            )
        if code == _FATAL_READING_LOG and "anonymous transaction" in message:
            return SourceError(  # trying again would meet it again
                "the log holds a transaction without a GTID",
                where=self._source.server.address,
                cause=f"gtid_mode was not ON when it was written: {message}",
                remedy="SET GLOBAL gtid_mode = ON (in its steps), then start the migration anew"
                " (docs/how-to/start-anew.md)",
            )
        if code in (_FATAL_READING_LOG, _SAME_SERVER_ID):
            return SourceError(
                "the server can't send its log",
                where=self._source.server.address,
                cause=message,
                remedy="see the server's error log; another replica with this server_id ends the stream, too",
                retryable=True,
            )
        return named(self._source, "the source log can't be read", error)

    def _lost(self, cause: str) -> ConnectionFailed:
        return ConnectionFailed(
            "the connection to the source log was lost",
            where=self._source.server.address,
            cause=cause,
            remedy="reading goes on from the last stored position once the server can be reached again",
            retryable=True,
        )
