"""The visibility race: a commit is in the log, and delivered, before a SELECT can see it.

Placed, not hoped for: with a synchronous standby that doesn't exist, or that answers in ten minutes, T1 waits after
its commit record was written. Each race is shown twice, with the plain window (the marks of DBLog and nothing
else), which delivers the old row after the new one, and with the product, which doesn't.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from migrator.adapters.sources.postgres.chunks.chunk_reader import PostgresChunkReader
from migrator.adapters.sources.postgres.chunks.watermark import PostgresWatermarkWriter
from migrator.adapters.sources.postgres.settings import WATERMARK, PostgresSource
from migrator.embedded.process import scratch_directory
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.event import LogRecord, MarkKind, TransactionPart, WatermarkSeen
from migrator.model.table import TableSchema
from scenarios.database import Database as Place
from scenarios.mutants.broken_capture import HIGH_IGNORED
from scenarios.simulation.setup import patched
from scenarios.torture.standby import DistantStandby, require_standby
from tests.fix_postgres_commits import COUNTERS, HangingCommit, chunks_under_writers
from tests.fix_postgres_source import (
    WATERMARK_TABLE,
    chunk_reader,
    log_reader,
    parts,
    prepared,
    read_to,
    read_until,
    source_of,
)
from tests.integration.sources.placed_race import TOKEN, delivered
from tests.integration.sources.plain_watermark import WRITTEN_MARKS_ONLY
from tests.servers import Database, PostgresServer, embedded_postgres, fresh_database

pytestmark = pytest.mark.integration

_FOREVER_S = 600.0


@pytest.fixture(scope="module")
def race_server() -> Iterator[PostgresServer]:
    """A server of its own: every commit on it may be made to hang, and transactions may be prepared."""
    settings = {"max_prepared_transactions": "5"}
    with (
        scratch_directory("migrator-race-") as directory,
        embedded_postgres(directory / "pg", settings=settings) as server,
    ):
        yield PostgresServer(
            Database(server.host, server.port, "postgres", server.superuser, "", "postgresql"), server
        )


@pytest.fixture
def old(race_server: PostgresServer) -> Iterator[Database]:
    """An empty source."""
    with fresh_database(race_server, "race") as database:
        yield database


@pytest.fixture
def race(old: Database) -> Database:
    """A source with one row, 'old', whose sessions wait for a standby only if they ask for it."""
    old.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t VALUES (5, 'old')",
        *WATERMARK_TABLE,
        f'ALTER DATABASE "{old.database}" SET synchronous_commit = local',
    )
    return old


def admin_of(server: PostgresServer) -> Place:
    admin = server.admin
    return Place("postgresql", admin.host, admin.port, admin.database, admin.user)


@contextmanager
def ghost_standby(server: PostgresServer) -> Iterator[None]:
    """Commits that ask for it wait for a standby that never comes."""
    require_standby(admin_of(server), "ghost")
    try:
        yield
    finally:
        require_standby(admin_of(server), "")


def distant_standby(server: PostgresServer) -> AbstractContextManager[object]:
    """The same with a standby that takes the log and confirms it in ten minutes."""
    return DistantStandby(admin_of(server), _FOREVER_S)


def chunk_between_marks(source: PostgresSource, schema: TableSchema, chunks: PostgresChunkReader) -> Chunk:
    """A chunk as DBLog reads it."""
    marks = PostgresWatermarkWriter(source)
    marks.write(TOKEN, MarkKind.LOW)
    chunk = chunks.read(ChunkRequest(1, schema.id, None, 10, TOKEN), schema)
    marks.write(TOKEN, MarkKind.HIGH)
    marks.close()
    return chunk


def is_high(record: LogRecord) -> bool:
    return isinstance(record, WatermarkSeen) and record.kind is MarkKind.HIGH


UPDATE = "UPDATE t SET v = 'NEW' WHERE k = 5"


@pytest.mark.parametrize(
    ("standby", "statements", "last"),
    [
        pytest.param(ghost_standby, [UPDATE], "COMMIT", id="ghost standby"),
        pytest.param(distant_standby, [UPDATE], "COMMIT", id="distant standby"),
        pytest.param(
            ghost_standby, ["SAVEPOINT a", UPDATE, "RELEASE SAVEPOINT a"], "COMMIT", id="subtransaction"
        ),
        pytest.param(
            ghost_standby, [UPDATE, "PREPARE TRANSACTION 'p'"], "COMMIT PREPARED 'p'", id="prepared"
        ),
    ],
)
def test_the_plain_window_emits_a_stale_row_and_the_witness_does_not(
    race_server: PostgresServer,
    race: Database,
    standby: Callable[[PostgresServer], AbstractContextManager[object]],
    statements: list[str],
    last: str,
) -> None:
    source = source_of(race, placement=WATERMARK)
    (schema,) = prepared(source, "t")
    with log_reader(source, [schema]) as log, chunk_reader(source) as chunks:
        with HangingCommit(race, *statements, last=last, standby=standby(race_server)) as t1:
            chunk = chunk_between_marks(source, schema, chunks)
            records = read_until(log, lambda seen: any(map(is_high, seen)))
            assert not chunks.witness().contains((t1.xid,))

        story = [record for record in records if isinstance(record, TransactionPart | WatermarkSeen)]
        assert isinstance(story[0], TransactionPart), "T1 must be delivered BEFORE the low watermark"
        assert [type(record) for record in story[1:]] == [WatermarkSeen, WatermarkSeen], "an empty window"
        assert story[0].id == (t1.xid,)
        assert chunk.rows["v"].to_pylist() == ["old"]
        assert chunk.witness is not None
        assert not chunk.witness.contains((t1.xid,))
        inputs = [story[0], chunk, *story[1:]]
        with patched(WRITTEN_MARKS_ONLY):
            assert delivered(schema, inputs, marks=True) == ["NEW", "old"]
        assert delivered(schema, inputs, marks=True) == ["NEW"]

        assert chunks.witness().contains((t1.xid,))
        fresh = chunks.read(ChunkRequest(2, schema.id, None, 10), schema)
        assert fresh.rows["v"].to_pylist() == ["NEW"]


def test_a_transaction_prepared_before_the_chunk_and_committed_after_it_follows_it(race: Database) -> None:
    """No gap here: the chunk rightly has the old row, and the log brings the new one later, in either algorithm."""
    source = source_of(race, placement=WATERMARK)
    (schema,) = prepared(source, "t")
    with log_reader(source, [schema]) as log, chunk_reader(source) as chunks:
        with race.connect() as connection:
            for statement in ("BEGIN", UPDATE, "PREPARE TRANSACTION 'p'"):
                connection.execute(statement)
        chunk = chunk_between_marks(source, schema, chunks)
        race.execute("COMMIT PREPARED 'p'")
        records = read_until(log, lambda seen: bool(parts(seen)))
    assert delivered(schema, [chunk, *records], marks=True) == ["old", "NEW"]


def test_a_read_view_older_than_the_low_mark_is_known_by_its_witness(race: Database) -> None:
    """The session stays in a REPEATABLE READ transaction: its view is from before T1, and from before the mark."""
    source = source_of(race, placement=WATERMARK)
    (schema,) = prepared(source, "t")
    with log_reader(source, [schema]) as log, chunk_reader(source) as chunks:
        chunks.witness()  # connects
        assert chunks._connection is not None
        for statement in ("BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM public.t"):
            chunks._connection.call("", lambda cursor, text=statement: cursor.execute(text))  # type: ignore[misc]
        race.execute(UPDATE)
        chunk = chunk_between_marks(source, schema, chunks)
        records = read_until(log, lambda seen: any(map(is_high, seen)))
        fresh = chunks.read(ChunkRequest(2, schema.id, None, 10), schema)
    assert chunk.rows["v"].to_pylist() == ["old"]
    inputs = [*records[:-1], chunk, records[-1]]
    with patched(WRITTEN_MARKS_ONLY):
        assert delivered(schema, inputs, marks=True) == ["NEW", "old"]
    assert delivered(schema, inputs, marks=True) == ["NEW"]
    assert fresh.rows["v"].to_pylist() == ["NEW"]  # the end of each chunk ends its view


def test_a_chunk_waits_for_events_that_it_is_newer_than(race: Database) -> None:
    """The log is read late: emitted at once, the chunk's row would be followed by the past."""
    source = source_of(race)
    (schema,) = prepared(source, "t")
    with log_reader(source, [schema]) as log, chunk_reader(source) as chunks:
        race.execute("UPDATE t SET v = 'mid' WHERE k = 5", UPDATE)
        chunk = chunks.read(ChunkRequest(1, schema.id, None, 10), schema)
        records = read_to(log, chunk.high)
    with patched(HIGH_IGNORED):
        assert delivered(schema, [chunk, *records]) == ["NEW", "mid", "NEW"]
    assert delivered(schema, [chunk, *records]) == ["mid", "NEW", "NEW"]


def test_everything_a_chunk_shows_was_delivered_once_the_log_is_read_to_its_high_position(
    old: Database,
) -> None:
    """Writers of both kinds of commit run while chunks are read; the rule of ``Chunk.high`` must hold for each."""
    old.execute(*COUNTERS)
    source = source_of(old)
    (schema,) = prepared(source, "t")
    assert chunks_under_writers(old, source, schema, 40).behind > 0, "no chunk row was ever overtaken"
