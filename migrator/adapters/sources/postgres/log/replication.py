"""The streaming replication connection: starts pgoutput, hands out raw messages, sends feedback.

psycopg has no replication support; its ``pq`` layer has all that is needed: COPY BOTH messages without blocking.
Source: PostgreSQL documentation, "Streaming Replication Protocol" and "Logical Streaming Replication Protocol".
"""

from __future__ import annotations

import select
import struct
import time
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import pq

from migrator.adapters.sources.postgres.connection import connect, named_failure
from migrator.adapters.sources.postgres.log.pgoutput import POSTGRES_EPOCH_US
from migrator.adapters.sources.postgres.log.server_log import ServerLog
from migrator.adapters.sources.postgres.log.slot import (
    SLOT_STATE,
    SlotState,
    slot_in_use,
    stopped_log,
)
from migrator.adapters.sources.postgres.lsn import format_lsn, parse_lsn
from migrator.adapters.sources.postgres.publication import changed_publication
from migrator.adapters.sources.postgres.settings import MESSAGE, PostgresSource
from migrator.errors import ConnectionFailed, MigratorError, SourceError

_STATUS = struct.Struct("!cQQQqB")
_U64 = struct.Struct("!Q")
_NOT_IN_PREREQUISITE_STATE = "55000"
_NAP_S, _GATHER_S = 0.00015, 0.002
_PLENTY = 32
"""Messages in libpq's 16 KiB: as many as that came because more were there."""
_STATUS_INTERVAL_S = 2.0
_LEAVING_S, _LOOK_AGAIN_S = 1.0, 0.01
_XLOG_DATA, KEEPALIVE = ord("w"), ord("k")
_DATA_HEADER_BYTES = 25
_KEEPALIVE_BYTES = 18


class ReplicationStream:
    """One walsender session. ``acknowledged`` is the only place ever reported as flushed."""

    def __init__(self, source: PostgresSource, step: Callable[[str], None] = lambda name: None):
        self._source = source
        self._step = step
        self._connection = connect(source, "log", replication="database")
        self._pg: Any = self._connection.pgconn
        self._acknowledged = self._reported = 0
        self._received = 0
        self._heard_at = self._reported_at = time.monotonic()
        self._asked = False
        self._warning = ""
        self._came = 0
        self._over = False
        self._connection.add_notice_handler(self._noticed)

    def close(self) -> None:
        """Closes the session."""
        self._connection.close()

    def identify(self) -> ServerLog:
        """Returns which log the server has, and up to where it is on disk."""
        ((system, timeline, flushed, _),) = self._simple("IDENTIFY_SYSTEM")
        return ServerLog(str(system), int(str(timeline)), parse_lsn(str(flushed)))

    def history(self, timeline: int) -> str:
        """The history file of a timeline that is not the first."""
        ((_, content),) = self._simple(f"TIMELINE_HISTORY {timeline}")
        return str(content)

    def on_standby(self) -> bool:
        """Tells whether the server replays another one's log."""
        return self._simple("SELECT pg_catalog.pg_is_in_recovery()") == [("t",)]

    def slot(self) -> SlotState | None:
        """The state of our slot, or None when there is none; a session that is ending gets a moment to leave it."""
        name = pq.Escaping(self._pg).escape_literal(self._source.slot.encode()).decode()
        until = time.monotonic() + _LEAVING_S
        while True:
            rows = self._simple(f"{SLOT_STATE} WHERE slot_name = {name}")
            state = SlotState.of(*rows[0]) if rows else None
            if state is None or not state.read_by or time.monotonic() >= until:
                return state
            time.sleep(_LOOK_AGAIN_S)

    def begin(self, start_lsn: int, confirmed_lsn: int) -> None:
        """START_REPLICATION at ``start_lsn``. Raises GapError, ConnectionFailed (slot in use),
        SourceError.

        Where reading starts is not told as flushed: the target may not hold it yet, and who reads on after us may
        have to begin there. Until something is acknowledged, the slot stays where it was confirmed.
        """
        publication = pq.Escaping(self._pg).escape_identifier(self._source.slot.encode()).decode()
        options = ["proto_version '1'", f"publication_names '{publication}'"]
        if self._source.streaming:
            options = ["proto_version '2'", "streaming 'on'", *options[1:]]
        if self._source.placement == MESSAGE or self._source.counterpart:
            options.append("messages 'true'")
        result = self._pg.exec_(
            f"START_REPLICATION SLOT {publication} LOGICAL {format_lsn(start_lsn)} "
            f"({', '.join(options)})".encode()
        )
        if result.status != pq.ExecStatus.COPY_BOTH:
            raise self._failure(result)
        self._pg.nonblocking = 1
        self._acknowledged = self._reported = confirmed_lsn
        self._received = start_lsn
        self._heard_at = self._reported_at = time.monotonic()

    def take(self, most: int) -> list[bytes]:
        """Messages already received, at most so many: pgoutput's, and keepalives (see ``wal_end``). Never
        blocks."""
        found: list[bytes] = []
        get, data = self._pg.get_copy_data, b""
        for _ in range(0 if self._over else most):
            size, message = get(1)
            if size <= 0:
                self._over = size < 0  # libpq says so once: asked again it calls that a mistake of ours
                break
            data = message
            if data[0] == _XLOG_DATA and size >= _DATA_HEADER_BYTES:
                found.append(bytes(data[_DATA_HEADER_BYTES:]))
            else:
                found.append(self._keepalive(bytes(data)))
        if self._warning:
            raise changed_publication(self._source, self._warning)
        if self._over and not found:
            raise self._ended()
        if found:
            self._heard_at, self._asked = time.monotonic(), False
            self._came += len(found)
            if data[0] == _XLOG_DATA:
                self._received = max(self._received, _U64.unpack_from(data, 1)[0])
        return found

    def wait(self, timeout_s: float, gather: bool = False) -> bool:
        """Waits for bytes and takes them in; False when nothing came. Feedback goes out meanwhile.

        ``gather``: nobody waits for single messages, they may come together.
        Raises ConnectionFailed (retryable) when the server gave no sign of life for ``2 * silence_s``.
        """
        until = time.monotonic() + timeout_s
        while True:
            self._keep_in_touch()
            remaining = until - time.monotonic()
            step = max(0.0, min(remaining, _STATUS_INTERVAL_S, self._source.server.silence_s / 2))
            if select.select([self._pg.socket], [], [], step)[0]:
                # The server sends message by message: where few came the last time a nap lets libpq's buffer fill,
                # which measured 1.7 times the rows per second at an eighth of the client's CPU.
                if self._came < _PLENTY:
                    time.sleep(_GATHER_S if gather else _NAP_S)
                self._came = 0
                self._consume()
                return True
            if remaining <= step:
                return False

    def busy(self) -> None:
        """The caller works off what it collected: feedback goes out, and the server's silence doesn't count."""
        self._heard_at, self._asked = time.monotonic(), False
        self._keep_in_touch()

    def acknowledge(self, lsn: int) -> None:
        """``lsn`` is durable on our side; told to the server with the next feedback, at most 2 s later."""
        self._acknowledged = max(self._acknowledged, lsn)

    def tell(self, ask: bool = False) -> None:
        """Sends feedback now; ``ask`` wants an answer."""
        now_us = int(time.time() * 1e6) - POSTGRES_EPOCH_US
        received = max(self._received, self._acknowledged)
        flushed = self._acknowledged
        newer = flushed > self._reported
        if self._over:  # nobody listens any more; the next ``take`` says why
            return
        if newer:
            self._step("log.acknowledge")
        try:
            self._pg.put_copy_data(_STATUS.pack(b"r", received, flushed, flushed, now_us, ask))
            self._pg.flush()
        except psycopg.OperationalError as error:
            raise self._lost(str(error)) from error
        self._reported, self._reported_at = flushed, time.monotonic()
        if newer:
            self._step("log.acknowledged")

    def _noticed(self, notice: psycopg.errors.Diagnostic) -> None:
        """PostgreSQL 18 goes on without a publication that is gone, with no more than a warning."""
        if notice.severity_nonlocalized == "WARNING" and notice.sqlstate == _NOT_IN_PREREQUISITE_STATE:
            self._warning = notice.message_primary or "the server gave a warning"

    def _simple(self, statement: str) -> list[tuple[str | None, ...]]:
        """A statement by the simple protocol, the only one a walsender speaks; values come as text."""
        result = self._pg.exec_(statement.encode())
        if result.status != pq.ExecStatus.TUPLES_OK:
            raise self._failure(result)
        return [
            tuple(
                None if (value := result.get_value(row, column)) is None else value.decode()
                for column in range(result.nfields)
            )
            for row in range(result.ntuples)
        ]

    def _keepalive(self, data: bytes) -> bytes:
        if data[0] == KEEPALIVE and len(data) == _KEEPALIVE_BYTES:
            self._received = max(self._received, wal_end(data))
            if data[17]:
                self.tell()
            return data
        raise SourceError(
            "a message of the replication stream is malformed",
            where=self._source.server.address,
            cause=f"{len(data)} bytes starting {data[:8].hex()}",
            retryable=True,
        )

    def _keep_in_touch(self) -> None:
        now = time.monotonic()
        silent_s = now - self._heard_at
        if silent_s > 2 * self._source.server.silence_s:
            raise self._lost(f"no sign of life for {silent_s:.0f} s")
        if silent_s > self._source.server.silence_s and not self._asked:
            self._asked = True
            self.tell(ask=True)
        elif now - self._reported_at >= _STATUS_INTERVAL_S:
            self.tell()

    def _consume(self) -> None:
        try:
            self._pg.consume_input()
        except psycopg.OperationalError as error:
            raise self._lost(str(error)) from error

    def _ended(self) -> MigratorError:
        """Explains why the server ended the stream."""
        while (result := self._pg.get_result()) is not None:
            if result.status in (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.NONFATAL_ERROR):
                return self._failure(result)
            if result.status != pq.ExecStatus.COPY_BOTH:
                break
        return self._lost(self._pg.error_message.decode(errors="replace") or "the server ended the stream")

    def _lost(self, cause: str) -> ConnectionFailed:
        return ConnectionFailed(
            "reading the source log: the connection was lost",
            where=self._source.server.address,
            cause=" ".join(cause.split()),
            remedy="the connection is made again by itself; check the network if this repeats",
            retryable=True,
        )

    def _failure(self, result: Any) -> MigratorError:
        state = result.error_field(pq.DiagnosticField.SQLSTATE)
        sqlstate = state.decode() if state else None
        words = " ".join(result.error_message.decode(errors="replace").split())
        if sqlstate == "55006":
            return slot_in_use(self._source, words)
        if (found := stopped_log(self._source, sqlstate or "", words)) is not None:
            return found
        return named_failure(self._source, "reading the source log failed", sqlstate, words)


def wal_end(keepalive: bytes) -> int:
    """The place up to which the server has nothing more to send, said by a keepalive."""
    return int(_U64.unpack_from(keepalive, 1)[0])
