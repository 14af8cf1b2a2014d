"""Synchronous standbys that widen the gap between a commit's place in the log and its becoming visible.

A transaction that waits for a synchronous standby has its commit record in the WAL, where every log reader sees it,
but no SELECT does until the standby has answered. A standby in another building does that to every commit.
"""

from __future__ import annotations

import select
import struct
import time
from collections import deque
from contextlib import closing
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import pq

from migrator.errors import MigratorError
from migrator.run.failure import Stopping
from scenarios.database import Database
from scenarios.torture.tool import wait_until

_POSTGRES_EPOCH_S = 946_684_800
_DATA, _KEEPALIVE = ord("w"), ord("k")


def require_standby(admin: Database, name: str) -> None:
    """Makes commits wait from here on for the standby of this name ("" for none)."""
    with admin.postgres(autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
        connection.execute("SELECT pg_reload_conf()")
    wait_until(lambda: _setting(admin) == name, "the change of synchronous_standby_names")


def _setting(admin: Database) -> str:
    with admin.postgres(autocommit=True) as connection:
        row = connection.execute("SHOW synchronous_standby_names").fetchone()
    return str(row[0]) if row else ""


class DistantStandby:
    """A stand-in for a standby ``delay_s`` away: it takes the WAL and confirms each piece that much later.

    Nothing is stored; the primary can't tell. As a context manager it also makes the primary wait for it.

    Source: PostgreSQL documentation, "Streaming Replication Protocol".
    """

    def __init__(self, admin: Database, delay_s: float, name: str = "distant"):
        self._admin = admin
        self._delay_s = delay_s
        self._name = name
        self._stopping = Stopping()

    def __enter__(self) -> Self:
        connection = psycopg.connect(
            host=self._admin.host,
            port=self._admin.port,
            user=self._admin.user,
            application_name=self._name,
            replication="true",
            autocommit=True,
        )
        self._thread = self._stopping.thread(self._name, lambda: self._follow(connection))
        wait_until(self._streams, "the standby's start")
        require_standby(self._admin, self._name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        require_standby(self._admin, "")
        self._stopping.request()
        self._thread.join(10)
        self._stopping.raise_failure()

    def _streams(self) -> bool:
        self._stopping.raise_failure()
        with self._admin.postgres(autocommit=True) as connection:
            row = connection.execute(
                "SELECT count(*) FROM pg_stat_replication WHERE application_name = %s", [self._name]
            ).fetchone()
        return row is not None and row[0] == 1

    def _follow(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        with closing(connection):
            stream: Any = connection.pgconn
            place = stream.exec_(b"IDENTIFY_SYSTEM").get_value(0, 2).decode()
            begun = stream.exec_(f"START_REPLICATION PHYSICAL {place}".encode())
            if begun.status != pq.ExecStatus.COPY_BOTH:
                raise MigratorError("the standby can't follow", cause=stream.error_message.decode())
            stream.nonblocking = 1
            due: deque[tuple[float, int]] = deque()
            while not self._stopping.requested():
                received = _received(stream)
                if received:
                    due.append((time.monotonic() + self._delay_s, received))
                confirmed = 0
                while due and due[0][0] <= time.monotonic():
                    confirmed = due.popleft()[1]
                if confirmed:
                    _confirm(stream, confirmed)
                wait_s = due[0][0] - time.monotonic() if due else 0.1
                if not received and wait_s > 0:
                    select.select([stream.socket], [], [], min(wait_s, 0.1))
                stream.consume_input()


def _received(stream: Any) -> int:
    """End of the WAL received since the last call, 0 if nothing new came. Raises MigratorError when it ended."""
    newest = 0
    while True:
        size, data = stream.get_copy_data(1)
        if size == 0:
            return newest
        if size < 0:
            raise MigratorError("the primary ended the standby's stream", cause=stream.error_message.decode())
        message = bytes(data)
        if message[0] == _DATA:
            newest = struct.unpack_from("!Q", message, 1)[0] + len(message) - 25
        elif message[0] == _KEEPALIVE:
            newest = max(newest, struct.unpack_from("!Q", message, 1)[0])


def _confirm(stream: Any, lsn: int) -> None:
    """Tells the primary that everything up to ``lsn`` is written, flushed and applied."""
    now_us = int((time.time() - _POSTGRES_EPOCH_S) * 1e6)
    stream.put_copy_data(struct.pack("!cQQQqB", b"r", lsn, lsn, lsn, now_us, 0))
    stream.flush()
