"""A chunk shows a commit that the server then forgets, crashing before it had written it to the disk."""

from __future__ import annotations

import os
import signal

import pytest

from migrator.core.capture import Capture
from migrator.model.limits import CaptureLimits
from tests.integration.capturing import Capturing, Rows, capturing
from tests.integration.sources.postgres.forgetful_postgres import crash, forgetful_database, wal_writer_of
from tests.servers import Database

pytestmark = pytest.mark.integration


def captured_over_a_crash(database: Database) -> tuple[Rows, Rows]:
    """The rows that the event log amounts to, and those of the source, after a chunk has seen a forgotten row."""
    database.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t VALUES (1, 'kept')",
    )
    capture: Capturing = capturing(database, ["t"], CaptureLimits(dump_workers=1))
    wal_writer = wal_writer_of(database)
    seen: list[str] = []

    def step(name: str) -> None:
        if name in seen:
            return
        if name == "log.connected":  # before the first chunk is read
            seen.append(name)
            os.kill(wal_writer, signal.SIGSTOP)
            with database.connect() as hasty:
                hasty.execute("SET synchronous_commit = off")
                hasty.execute("INSERT INTO t VALUES (7, 'forgotten')")
        if name == "capture.chunk":  # read, and waiting for its place in the log
            seen.append(name)
            crash(database, wal_writer)
            assert database.query("SELECT k FROM t") == [(1,)], "it must be forgotten: else nothing is shown"
            # Enough of the log to get past every place from before the crash.
            database.execute("INSERT INTO t SELECT n, 'later' FROM generate_series(100, 2000) n")

    capture.run(capture.dumped, step)
    capture.run(capture.caught_up())
    assert seen == ["log.connected", "capture.chunk"]
    (table,) = capture.schemas
    return capture.held()[table], capture.source(table)


def test_a_row_that_the_server_forgot_is_not_dumped() -> None:
    with forgetful_database() as database:
        held, source = captured_over_a_crash(database)
        assert held == source
        assert len(source) > 1900


def test_a_chunk_kept_over_the_crash_brings_a_row_that_never_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control."""
    monkeypatch.setattr(Capture, "on_reconnect", lambda self: None)
    with forgetful_database() as database:
        held, source = captured_over_a_crash(database)
        assert [row["v"] for key, row in held.items() if key not in source] == ["forgotten"]
