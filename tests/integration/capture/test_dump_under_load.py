"""A dump of a real source that others keep busy: it slows down and goes on, and the log goes on all the time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import pairwise

import pytest

from migrator.adapters.memory.eventlog import MemorySegmentWriter
from migrator.core.pace import Pacer
from migrator.model.limits import CaptureLimits
from migrator.model.requests.request import Pace
from migrator.model.table import TableId
from tests.integration.capturing import Capturing, capturing
from tests.integration.sources.test_source_load import busy
from tests.servers import Database

pytestmark = pytest.mark.integration

ROWS = 120
LIMITS = CaptureLimits(
    chunk_rows=1, chunk_rows_min=1, chunk_rows_max=1, dump_workers=2, linger_s=0.01, dump_share=1.0
)
NOTE = "active sessions"


@pytest.fixture(params=["old_pg", "old_maria", pytest.param("old_mysql", marks=pytest.mark.slow)])
def old(request: pytest.FixtureRequest) -> Database:
    database: Database = request.getfixturevalue(request.param)
    database.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v int)",
        f"INSERT INTO t VALUES {', '.join(f'({number}, 0)' for number in range(ROWS))}",
        "CREATE TABLE quiet (k int PRIMARY KEY, v int)",
        "INSERT INTO quiet VALUES (1, 1)",
    )
    if database.kind == "postgresql":
        database.execute(*(f"ALTER TABLE {name} REPLICA IDENTITY FULL" for name in ("t", "quiet")))
    return database


@contextmanager
def others_busy(database: Database, sessions: int) -> Iterator[None]:
    """So many sessions of an application run statements."""
    if database.kind == "postgresql":
        login = {"application_name": "shop"}
    else:  # there our own sessions are told by their user
        login = {"user": f"u{database.database[-8:]}", "password": "p"}
        database.execute(f"CREATE USER {login['user']}@'%' IDENTIFIED BY 'p'")
    with ExitStack() as stack:
        if database.kind != "postgresql":
            stack.callback(database.execute, f"DROP USER {login['user']}@'%'")
            database.execute(f"GRANT ALL ON `{database.database}`.* TO {login['user']}@'%'")
        for lock in range(sessions):
            stack.enter_context(busy(database, database.connect(**login), lock))
        yield


def noted(capture: Capturing) -> str:
    return capture.progress.snapshot().note


def test_a_busy_source_is_dumped_slowly_and_its_log_is_read_as_ever(old: Database) -> None:
    """Four sessions of others run statements, one is allowed: until they end the dump crawls.

    Four, since on MySQL and MariaDB a session of ours that begins or ends during a sample hides one of them.
    """
    capture = capturing(old, ["t"], replace(LIMITS, max_active_sessions=1), metered=True)
    throttled, story = threading.Event(), list[str]()

    def wait_for_the_first_sample(name: str) -> None:
        if name == "chunk.begin":
            story.append(name)
            throttled.wait(30)

    with others_busy(old, 4):

        def log_goes_on() -> bool:
            if not throttled.is_set():
                if NOTE not in noted(capture):
                    return False
                throttled.set()
                for number in range(50):
                    old.execute(f"UPDATE t SET v = v + 1 WHERE k = {number}")
            return capture.progress.snapshot().captured_changes >= 50

        capture.run(log_goes_on, wait_for_the_first_sample)
        assert not capture.dumped(), "the log was read to its end before the dump was"
        assert len(story) < ROWS / 2
    capture.run(capture.caught_up())
    assert noted(capture) == ""
    (table,) = capture.schemas
    assert capture.held()[table] == capture.source(table)


def test_within_the_bound_the_same_sessions_slow_nothing_down(old: Database) -> None:
    capture = capturing(old, ["t"], replace(LIMITS, max_active_sessions=50), metered=True)
    notes: set[str] = set()
    with others_busy(old, 4):
        capture.run(capture.dumped, lambda _: notes.add(noted(capture)))
    assert notes == {""}


def test_reads_that_take_long_throttle_by_themselves(old: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """No read is as fast as the bound: each rest is at least twice the one before. Lifted, there is none."""
    rests: list[float] = []
    original = Pacer.note

    def noting(pacer: Pacer, table: TableId, limit_rows: int, elapsed_s: float, full: bool) -> None:
        original(pacer, table, limit_rows, elapsed_s, full)
        rests.append(pacer.rest_s)
        if len(rests) == 6:
            capture.requests.update(lambda book: replace(book, pace=Pace()))

    monkeypatch.setattr(Pacer, "note", noting)
    capture = capturing(old, ["t"], replace(LIMITS, dump_workers=1))
    capture.requests.update(lambda book: replace(book, pace=Pace(p95_s=1e-6)))
    capture.run(capture.dumped)
    assert rests[0] > 0
    assert all(2 * before <= after for before, after in pairwise(rests[:6])), rests[:6]
    assert rests[-1] == 0.0


def test_chunks_shrink_to_their_bytes(old: Database) -> None:
    """Wide rows: of a bound of ten rows' bytes no chunk after the first ones has more than about ten."""
    old.execute("CREATE TABLE wide (k int PRIMARY KEY, v varchar(10000))")
    if old.kind == "postgresql":
        old.execute("ALTER TABLE wide REPLICA IDENTITY FULL")
    with old.connect() as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO wide VALUES (%s, %s)", [(n, "x" * 10_000) for n in range(300)])
        connection.commit()
    limits = replace(LIMITS, chunk_rows=100, chunk_rows_max=100, dump_workers=1, chunk_bytes=100_000)
    capture = capturing(old, ["wide"], limits)
    capture.run(capture.dumped)
    (bounded,) = capture.progress.snapshot().dumps
    free = capturing(old, ["wide"], replace(limits, chunk_bytes=1 << 30))
    free.run(free.dumped)
    (whole,) = free.progress.snapshot().dumps
    assert bounded.rows == whole.rows == 300
    assert bounded.chunks > 20
    assert whole.chunks < 10


def test_a_silent_table_is_told_from_one_that_is_written(old: Database) -> None:
    """Each table has the time of its newest change in the log; rows of a dump are none, and it outlives a
    restart."""
    capture = capturing(old, ["t", "quiet"], replace(LIMITS, chunk_rows=100, chunk_rows_max=100))
    capture.run(capture.dumped)
    assert last_changes(capture) == {}, "nothing has changed yet"
    old.execute("UPDATE t SET v = 5 WHERE k = 1")
    capture.run(capture.caught_up())
    first = last_changes(capture)
    assert list(first) == ["t"]
    assert abs(first["t"] / 1e6 - time.time()) < 3600
    old.execute("UPDATE quiet SET v = 2")
    capture.run(capture.caught_up())
    later = last_changes(capture)
    assert sorted(later) == ["quiet", "t"]
    assert later["t"] == first["t"] <= later["quiet"]


def last_changes(capture: Capturing) -> dict[str, int]:
    last = MemorySegmentWriter(capture.event_log, capture.epoch).last()
    assert last is not None
    return {table.name: at_us for table, at_us in last.checkpoint.last_changes}
