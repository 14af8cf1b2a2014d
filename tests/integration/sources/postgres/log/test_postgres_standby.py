"""Log and chunks of a standby: there visibility is the order of replay, and nothing can be written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.chunks import read_view
from migrator.adapters.sources.postgres.chunks.chunk_reader import PostgresChunkReader
from migrator.adapters.sources.postgres.chunks.witness import ReplayWitness
from migrator.adapters.sources.postgres.publication import create_statement
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.embedded.postgres import EmbeddedPostgres
from migrator.embedded.process import scratch_directory
from migrator.errors import SourceError
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.table import TableId, TableSchema
from tests.fix_postgres_commits import (
    COUNTERS,
    Capturing,
    HangingCommit,
    chunks_under_writers,
    let_go,
    no_standby_answers,
)
from tests.fix_postgres_source import changes, log_reader, parts, prepared, read_to, source_of, wait_for
from tests.servers import Database, server_of
from verify.readers.postgres.source import PostgresSource as JudgedSource
from verify.settings import ServerSettings

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[EmbeddedPostgres, EmbeddedPostgres]]:
    """A primary and a standby that follows it. PostgreSQL 16: the first version whose standbys decode."""
    with (
        scratch_directory("migrator-standby-") as directory,
        EmbeddedPostgres(directory / "primary", version=16) as primary,
        EmbeddedPostgres(directory / "standby", version=16, standby_of=primary) as standby,
    ):
        on_standby = Database(standby.host, standby.port, "postgres", standby.superuser, "", "postgresql")
        feedback(on_standby, "on")
        yield primary, standby


def feedback(standby: Database, value: str) -> None:
    """Whether the standby tells the primary what its snapshots need."""
    standby.execute(f"ALTER SYSTEM SET hot_standby_feedback = {value}", "SELECT pg_reload_conf()")
    wait_for(standby, f"SELECT current_setting('hot_standby_feedback') = '{value}'")


@pytest.fixture
def primary(pair: tuple[EmbeddedPostgres, EmbeddedPostgres]) -> Iterator[Database]:
    """A database of the test's own on the primary."""
    server, standby = pair
    server.create_database("shop")
    database = Database(server.host, server.port, "shop", server.superuser, "", "postgresql")
    replayed(database, replace(database, port=standby.port, database="postgres"))
    try:
        yield database
    finally:
        on_standby = replace(database, port=standby.port)
        for (slot,) in on_standby.query("SELECT slot_name FROM pg_replication_slots"):
            wait_for(on_standby, f"SELECT NOT active FROM pg_replication_slots WHERE slot_name = '{slot}'")
            on_standby.execute(f"SELECT pg_drop_replication_slot('{slot}')")
        server.drop_database("shop")


@pytest.fixture
def standby(pair: tuple[EmbeddedPostgres, EmbeddedPostgres], primary: Database) -> Database:
    """The same database on the standby."""
    return replace(primary, port=pair[1].port)


def replayed(primary: Database, standby: Database) -> None:
    """Waits until the standby shows what the primary has committed."""
    ((place,),) = primary.query("SELECT pg_current_wal_insert_lsn()::text")
    wait_for(standby, f"SELECT pg_last_wal_replay_lsn() >= '{place}'")


def ready(primary: Database, standby: Database) -> tuple[PostgresSource, TableSchema]:
    """A source on the standby with table ``t``; publication made on the primary, slot on the standby."""
    source = source_of(standby)
    primary.execute(create_statement(source.slot, [TableId("public", "t")]))
    replayed(primary, standby)
    made: list[TableSchema] = []
    making = threading.Thread(target=lambda: made.extend(prepared(source, "t")), daemon=True)
    making.start()
    # The slot waits for the next list of running transactions in the log, which the primary writes when asked.
    while making.is_alive():
        primary.execute("SELECT pg_log_standby_snapshot()")
        making.join(0.1)
    return source, made[0]


ROWS = (
    "CREATE TABLE t (k int PRIMARY KEY, v text)",
    "ALTER TABLE t REPLICA IDENTITY FULL",
    "INSERT INTO t SELECT g, 'old' FROM generate_series(1, 10) g",
)


def test_log_and_dump_of_a_standby_end_as_the_primary_does(primary: Database, standby: Database) -> None:
    primary.execute(*ROWS)
    source, schema = ready(primary, standby)
    catalog = PostgresCatalog(source)
    assert [finding for finding in catalog.preflight(["t"]) if finding.fatal] == []
    with Capturing(source, schema) as capturing:
        primary.execute("UPDATE t SET v = 'new' WHERE k < 4", "DELETE FROM t WHERE k = 4")
        replayed(primary, standby)
        capturing.read_chunk()
        capturing.deliver()
        primary.execute("INSERT INTO t VALUES (11, 'later')")
        replayed(primary, standby)
        capturing.deliver()
        assert capturing.chunks_placed == 1
    assert capturing.rows == {(str(k),): (str(k), v) for k, v in primary.query("SELECT k, v FROM t")}


def test_what_hangs_on_the_primary_is_visible_here_and_the_witness_says_so(
    pair: tuple[EmbeddedPostgres, EmbeddedPostgres], primary: Database, standby: Database
) -> None:
    """On the primary the same chunk would be stale: its witness is not that of a standby."""
    primary.execute(*ROWS)
    source, schema = ready(primary, standby)
    admin = replace(primary, database="postgres")
    with no_standby_answers(admin, primary), Capturing(source, schema) as capturing:
        commit = HangingCommit(primary, "UPDATE t SET v = 'NEW' WHERE k = 5")
        replayed(primary, standby)
        (part,) = parts(capturing.deliver())
        assert part.id[0] == commit.xid
        chunk = capturing.read_chunk()
        assert chunk.rows.to_pylist()[4] == {"k": 5, "v": "NEW"}
        assert primary.query("SELECT v FROM t WHERE k = 5") == [("old",)]
        assert chunk.witness is not None
        assert chunk.witness.contains(part.id)
        capturing.deliver()
        assert capturing.chunks_placed == 1
        assert capturing.rows["5",] == ("5", "NEW")
        let_go(admin)
        commit.finish()


def read_between(source: PostgresSource, schema: TableSchema, between: Callable[[], None]) -> Chunk:
    """A chunk between whose snapshot and SELECT something happens."""
    reader = PostgresChunkReader(source, lambda name: between() if name == "chunk.snapshot" else None)
    try:
        return reader.read(ChunkRequest(1, schema.id, None, 100), schema)
    finally:
        reader.close()


def test_a_commit_replayed_behind_the_snapshot_is_not_in_the_witness(
    primary: Database, standby: Database
) -> None:
    primary.execute(*ROWS)
    source, schema = ready(primary, standby)
    with log_reader(source, [schema]) as log:
        seen = []

        def write() -> None:
            primary.execute("UPDATE t SET v = 'NEW' WHERE k = 5")
            replayed(primary, standby)
            seen.extend(parts(read_to(log, PostgresCatalog(source).position())))

        chunk = read_between(source, schema, write)
        (part,) = seen
        assert chunk.rows.to_pylist()[4] == {"k": 5, "v": "old"}
        assert chunk.witness is not None
        assert not chunk.witness.contains(part.id)
        later = PostgresChunkReader(source)
        assert later.witness().contains(part.id)
        later.close()


def test_everything_a_chunk_shows_was_delivered_once_the_log_is_read_to_its_high_position(
    primary: Database, standby: Database
) -> None:
    primary.execute(*COUNTERS)
    source, schema = ready(primary, standby)
    assert chunks_under_writers(primary, source, schema, 40).behind > 0, "no chunk row was ever overtaken"


def test_high_lies_behind_the_commit_that_may_be_in_replay_just_now(
    primary: Database, standby: Database
) -> None:
    """It may be visible before ``pg_last_wal_replay_lsn()`` counts it. On an idle standby there is no such
    commit."""
    primary.execute(*ROWS)
    replayed(primary, standby)
    connection = standby.connect()
    at = "SELECT pg_last_wal_replay_lsn() - '0/0', pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn()"

    def high() -> tuple[int, int, bool]:
        """(``high``, the place of replay, whether nothing more was received), from a moment when nothing moved."""
        while True:
            before = connection.execute(at).fetchone()
            order = read_view.present_position(connection.cursor()).order
            if before == connection.execute(at).fetchone():
                return order, int(before[0]), before[1]

    try:
        wait_for(standby, "SELECT pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn()")
        order, place, idle = high()
        assert order == place - idle
        standby.execute("SELECT pg_wal_replay_pause()")
        wait_for(standby, "SELECT pg_get_wal_replay_pause_state() = 'paused'")
        primary.execute("INSERT INTO t VALUES (11, 'x')")
        wait_for(standby, "SELECT pg_last_wal_receive_lsn() > pg_last_wal_replay_lsn()")
        order, place, idle = high()
        assert (order, idle) == (place, False)
    finally:
        standby.execute("SELECT pg_wal_replay_resume()")
        connection.close()


def test_a_snapshot_of_the_standby_would_be_no_witness(primary: Database, standby: Database) -> None:
    """Why the place of replay decides: a transaction that runs on the primary counts as ended there."""
    primary.execute(*ROWS)
    replayed(primary, standby)
    running = primary.connect(autocommit=False)
    running.execute("UPDATE t SET v = 'NEW' WHERE k = 5")
    xid = int(running.execute("SELECT pg_current_xact_id()::text").fetchone()[0])
    primary.execute("UPDATE t SET v = 'other' WHERE k = 6")
    replayed(primary, standby)
    ((claimed,),) = standby.query(f"SELECT pg_visible_in_snapshot('{xid}', pg_current_snapshot())")
    ((known,),) = primary.query(f"SELECT pg_visible_in_snapshot('{xid}', pg_current_snapshot())")
    assert (claimed, known) == (True, False)
    running.rollback()
    running.close()


def test_the_judge_reads_a_standby_and_waits_for_everything_that_it_saw(
    primary: Database, standby: Database, tmp_path: Path
) -> None:
    primary.execute(*ROWS, "UPDATE t SET v = 'new' WHERE k = 5")
    replayed(primary, standby)
    settings = ServerSettings(server_of(standby))
    ((shown,),) = standby.query("SELECT (pg_last_wal_replay_lsn() - '0/0')::int8 - 1")
    read = JudgedSource(settings, "shop").snapshot(["t"], tmp_path)
    rows = pq.read_table(read.tables["t"].path).to_pylist()
    assert rows[-1] == {"k": 5, "v": "new"}
    assert len(rows) == 10
    assert shown <= read.low.order <= read.high.order


def test_what_a_standby_lacks_is_named_with_its_remedy(primary: Database, standby: Database) -> None:
    primary.execute(*ROWS)
    replayed(primary, standby)
    source = source_of(standby)
    found = {finding.check: finding.remedy for finding in PostgresCatalog(source).preflight(["t"])}
    assert list(found) == ["publication"]
    with pytest.raises(SourceError, match="can't be made on a standby") as caught:
        prepared(source, "t")
    assert caught.value.remedy == found["publication"]
    feedback(standby, "off")
    try:
        writing = PostgresCatalog(replace(source, placement="message")).preflight(["t"])
        assert {finding.check for finding in writing} == {"publication", "hot_standby_feedback", "placement"}
    finally:
        feedback(standby, "on")


def test_a_view_taken_while_the_standby_is_promoted_is_given_up(primary: Database) -> None:
    connection = primary.connect()
    with pytest.raises(SourceError, match="promoted") as caught:
        read_view.taken_view(connection.cursor(), ReplayWitness(1))  # it was a standby a moment ago
    assert caught.value.retryable
    connection.close()


def test_changes_of_a_standbys_table_come_with_the_place_of_their_commit(
    primary: Database, standby: Database
) -> None:
    primary.execute(*ROWS)
    source, schema = ready(primary, standby)
    primary.execute("INSERT INTO t VALUES (11, 'x')")
    replayed(primary, standby)
    with log_reader(source, [schema]) as log:
        records = read_to(log, PostgresCatalog(source).position())
    (part,) = parts(records)
    assert part.id == (part.id[0], part.position.order)
    assert [change.after for change in changes(records)] == [("11", "x")]
