"""The stream of binlog events from the server, with bounded waiting.

mysql-replication's ``BinLogStreamReader`` logs in, announces itself and asks for the log from a GTID state; from
the first event on the packets are read here. Its own reading would block without bound, would answer a cut
connection by replaying the log from the first place it ever started at, and would filter unknown events away.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.constants.COMMAND import COM_BINLOG_DUMP
from pymysql.cursors import DictCursor
from pymysqlreplication import BinLogStreamReader

from migrator.adapters.mariadb.position import Gtid, gtid_text
from migrator.adapters.mariadb.settings import MariaSource, connect, named, named_errors
from migrator.errors import ConnectionFailed, GapError, MigratorError, SourceError

_HEARTBEATS = 4
"""In the time after which silence counts as death."""
_HANDSHAKE_TIMEOUT_S = 60.0
_RECEIVE_BYTES = 1 << 20
_LARGEST_PACKET = 0xFFFFFF
_FATAL_READING_LOG = 1236
_OK, _ERROR = 0x00, 0xFF


class PacketBuffer:
    """Received bytes of one socket, in place of PyMySQL's buffered file: it can tell whether a packet is complete."""

    def __init__(self, sock: Any):
        self._sock = sock
        self._data = bytearray()
        self._at = 0

    def read(self, size: int) -> bytes:
        """``size`` bytes, waiting for them; fewer at the end of the stream (what PyMySQL expects of a file)."""
        while len(self._data) - self._at < size:
            piece = self._sock.recv(_RECEIVE_BYTES)
            if not piece:
                break
            self._append(piece)
        piece = bytes(self._data[self._at : self._at + size])
        self._at += len(piece)
        return piece

    def close(self) -> None:
        """Nothing: the socket belongs to the connection."""

    def drain(self) -> bytes:
        """All bytes not read yet."""
        rest = bytes(memoryview(self._data)[self._at :])
        self._data.clear()
        self._at = 0
        return rest

    def receive(self, at_least: int) -> bytes:
        """Waits for more bytes and hands them out unread. Raises ``OSError`` when the connection is cut."""
        pieces, size = [], 0
        while size < at_least:
            piece = self._sock.recv(_RECEIVE_BYTES)
            if not piece:
                raise ConnectionResetError("the server closed the connection")
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)

    def receive_now(self) -> bool:
        """Takes what the socket holds, without waiting. Raises ``EOFError`` when the server has hung up."""
        try:
            piece = self._sock.recv(_RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            # a TLS record is not complete yet (ssl.SSLWantReadError says so by its name only)
            if type(error).__name__ == "SSLWantReadError":
                return False
            raise
        if not piece:
            raise EOFError("the server closed the connection")
        self._append(piece)
        return True

    def packet(self) -> bytes | None:
        """The payload of the next complete packet; a payload of 16 MiB or more spans several."""
        data, at, pieces = self._data, self._at, []
        while len(data) - at >= 4:
            size = data[at] | data[at + 1] << 8 | data[at + 2] << 16
            if len(data) - at - 4 < size:
                return None
            pieces.append(bytes(memoryview(data)[at + 4 : at + 4 + size]))
            at += 4 + size
            if size < _LARGEST_PACKET:
                self._at = at
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return None

    def _append(self, piece: bytes) -> None:
        if self._at:
            del self._data[: self._at]
            self._at = 0
        self._data += piece


class BufferedConnection(Connection):  # type: ignore[misc]
    """A PyMySQL connection that reads through a ``PacketBuffer``."""

    buffer: PacketBuffer

    def connect(self, sock: Any = None) -> None:
        """Logs in, then swaps the reader: the server sends nothing unasked, so no byte is lost between the two."""
        super().connect(sock)
        self.buffer = PacketBuffer(self._sock)
        self._rfile = self.buffer


class _StreamOpenedError(Exception):
    """The library has asked for the log and wants to read: from here on the packets are ours."""


class _StreamConnection(BufferedConnection):
    """Lets the library ask for the log, and takes the stream over before it reads its first event."""

    _asked = False

    def _write_bytes(self, data: bytes) -> None:
        super()._write_bytes(data)
        self._asked = data[4] == COM_BINLOG_DUMP

    def _read_packet(self, *arguments: Any) -> Any:
        if self._asked:
            raise _StreamOpenedError
        return super()._read_packet(*arguments)


class PacketStream:
    """An open stream of raw events. One thread uses it.

    Args:
        source: the server.
        gtids: the GTID state after which to begin.

    Raises ``GapError`` when the log no longer holds that place, ``ConnectionFailed``.
    """

    def __init__(self, source: MariaSource, gtids: Mapping[int, Gtid]):
        self._source = source
        self._connections: list[Any] = []
        self._open = True
        self._ending: bytes | None = None
        self._selector = selectors.DefaultSelector()
        try:
            self._ask(gtids)
            connection = self._connections[0]
            connection._sock.setblocking(False)
            self._buffer: PacketBuffer = connection.buffer
            self._sock = connection._sock
            self._selector.register(self._sock, selectors.EVENT_READ)
            self._heard_at = time.monotonic()
            # the server answers at once: with the name of the file it begins in, or with why it can't
            self._first = self.events(_HANDSHAKE_TIMEOUT_S)
        except BaseException:
            self.close()
            raise

    def _ask(self, gtids: Mapping[int, Gtid]) -> None:
        library = BinLogStreamReader(
            {"read_timeout": _HANDSHAKE_TIMEOUT_S},
            server_id=self._source.server_id,
            pymysql_wrapper=self._connect,
            auto_position=gtid_text(gtids),
            is_mariadb=True,
            blocking=True,
            slave_heartbeat=self._source.silence_s / _HEARTBEATS,
            enable_logging=False,
        )
        with named_errors(self._source, "the source log can't be opened"), suppress(_StreamOpenedError):
            library.fetchone()

    def take_first(self) -> list[bytes]:
        """The events that came with the server's answer. To be read before all others."""
        first, self._first = self._first, []
        return first

    def events(self, timeout_s: float) -> list[bytes]:
        """Raw events that have arrived, waiting up to ``timeout_s`` for the first; empty when none came.

        Raises ``ConnectionFailed`` when the connection is cut or silent for ``silence_s`` (heartbeats missing),
        ``GapError`` or ``SourceError`` when the server can't go on.
        """
        deadline = time.monotonic() + timeout_s
        found = self._complete()
        while not found and self._open:
            self._wait(deadline - time.monotonic())
            try:
                received = self._buffer.receive_now()
            except (OSError, EOFError) as error:
                raise self._lost(str(error)) from error
            now = time.monotonic()
            if received:
                self._heard_at = now
                found = self._complete()
            elif now - self._heard_at > self._source.silence_s:
                raise self._lost(f"no heartbeat for {self._source.silence_s:g} s")
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

    def _connect(self, **_options: Any) -> Any:
        """What the library calls to connect: first for the stream, then for its look at a server variable."""
        if not self._connections:
            connection = connect(
                self._source, read_timeout_s=_HANDSHAKE_TIMEOUT_S, connection_class=_StreamConnection
            )
            self._connections.append(connection)
            with connection.cursor() as cursor:
                # CRC32 even where the server writes none: events are then checked on their way;
                # net_write_timeout: a slow batch on our side must not look like a dead replica
                cursor.execute("SET @master_binlog_checksum = 'CRC32', SESSION net_write_timeout = 3600")
        elif len(self._connections) == 1:
            connection = connect(self._source, cursorclass=DictCursor)
            self._connections.append(connection)
        else:
            raise self._lost("cut while the stream was being opened")
        return connection

    def _wait(self, timeout_s: float) -> None:
        pending = getattr(self._sock, "pending", None)
        if pending is None or not pending():
            self._selector.select(max(0.0, timeout_s))

    def _complete(self) -> list[bytes]:
        events = []
        while self._ending is None and (payload := self._buffer.packet()) is not None:
            if payload[0] == _OK:
                events.append(payload[1:])
            else:
                self._ending = payload
        if self._ending is None or events:  # what came before the end is delivered first
            return events
        if self._ending[0] == _ERROR:
            code, message = int.from_bytes(self._ending[1:3], "little"), self._ending[9:]
            raise self._named(pymysql.err.OperationalError(code, message.decode("utf-8", "replace")))
        raise self._lost("the server ended the stream")

    def _named(self, error: Exception) -> MigratorError:
        code = error.args[0] if error.args else 0
        message = str(error.args[1]) if len(error.args) > 1 else str(error)
        if code == _FATAL_READING_LOG and "GTID" in message:
            return GapError(
                "the source log no longer holds the place to go on from",
                where=self._source.where,
                cause=message,
                remedy="start a new dump (and keep binlogs longer: expire_logs_days, binlog_expire_logs_seconds)",
            )
        if code == _FATAL_READING_LOG:
            return SourceError(
                "the server can't send its log",
                where=self._source.where,
                cause=message,
                remedy="see the server's error log; another replica with this server_id ends the stream, too",
                retryable=True,
            )
        return named(self._source, "the source log can't be read", error)

    def _lost(self, cause: str) -> ConnectionFailed:
        return ConnectionFailed(
            "the connection to the source log was lost",
            where=self._source.where,
            cause=cause,
            remedy="reading goes on from the last stored position once the server can be reached again",
            retryable=True,
        )
