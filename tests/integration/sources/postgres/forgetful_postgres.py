"""A PostgreSQL server that forgets commits which were visible: a crash before the WAL writer had written them.

Placed, not hoped for: the WAL writer is stopped, so a hasty commit stays off the disk; then it is killed,
which makes the server start all over.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from migrator.embedded.process import scratch_directory
from tests.fix_postgres_source import DEADLINE_S
from tests.servers import Database, embedded_postgres

_SETTINGS = {"autovacuum": "off", "max_prepared_transactions": "5"}
_WRITER = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'"


@contextmanager
def forgetful_database() -> Iterator[Database]:
    """A database on a server of its own, that nothing but the test makes write to its log."""
    with (
        scratch_directory("migrator-test-") as folder,
        embedded_postgres(Path(folder) / "pg", settings=_SETTINGS) as server,
    ):
        server.create_database("old")
        yield Database(server.host, server.port, "old", server.superuser, "", "postgresql")


def wal_writer_of(database: Database) -> int:
    """Process id of the server's WAL writer."""
    ((pid,),) = database.query(_WRITER)
    return int(pid)


def crash(database: Database, wal_writer: int) -> None:
    """Kills the process and waits until the server is back."""
    os.kill(wal_writer, signal.SIGKILL)
    until = time.monotonic() + DEADLINE_S
    while True:
        try:
            if database.query(_WRITER) not in ([], [(wal_writer,)]):
                return
        except psycopg.OperationalError:
            assert time.monotonic() < until, "the server didn't come back"
