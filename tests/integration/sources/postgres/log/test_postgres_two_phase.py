"""Prepared transactions: nothing before their outcome, nothing at all after a rollback, under every placement."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.log.log_reader import PostgresLogReader
from migrator.adapters.sources.postgres.settings import PLACEMENTS, PostgresSource
from migrator.embedded.postgres import EmbeddedPostgres
from migrator.embedded.process import scratch_directory
from migrator.errors import MigratorError, SourceError
from migrator.model.table import TableSchema
from tests.fix_postgres_commits import Capturing, HangingCommit, let_go, no_standby_answers
from tests.fix_postgres_source import (
    WATERMARK_TABLE,
    changes,
    chunk_reader,
    log_reader,
    parts,
    prepared,
    read_to,
    source_of,
    wait_for,
)
from tests.servers import Database

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    """A server of its own: max_prepared_transactions is fixed at start. PostgreSQL 16, for a second version."""
    settings = {"max_prepared_transactions": "5"}
    with (
        scratch_directory("migrator-2pc-") as directory,
        EmbeddedPostgres(directory / "pg", version=16, settings=settings) as started,
    ):
        yield started


@pytest.fixture
def admin(server: EmbeddedPostgres) -> Database:
    return Database(server.host, server.port, "postgres", server.superuser, "", "postgresql")


@pytest.fixture
def two_phase(server: EmbeddedPostgres, admin: Database) -> Iterator[Database]:
    """A database with rows (1, 'old') to (5, 'old'), of which every change is streamed at once."""
    name = f"two_phase_{server.port}"
    server.create_database(name)
    database = replace(admin, database=name)
    database.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t SELECT g, 'old' FROM generate_series(1, 5) g",
        *WATERMARK_TABLE,
        f'ALTER DATABASE "{name}" SET debug_logical_replication_streaming = immediate',
    )
    try:
        yield database
    finally:
        for (left,) in database.query("SELECT gid FROM pg_prepared_xacts"):
            database.execute(f"ROLLBACK PREPARED '{left}'")
        server.drop_database(name)


def prepare(database: Database, name: str, *statements: str) -> int:
    """Prepares a transaction; returns its xid."""
    connection = database.connect(autocommit=False)
    for statement in statements:
        connection.execute(statement)
    xid = int(connection.execute("SELECT pg_current_xact_id()::text").fetchone()[0])
    connection.execute(f"PREPARE TRANSACTION '{name}'")
    connection.close()
    return xid


@pytest.mark.parametrize("streaming", [True, False])
def test_rows_of_a_prepared_transaction_wait_for_its_outcome(two_phase: Database, streaming: bool) -> None:
    source = source_of(two_phase, streaming=streaming)
    schemas = prepared(source, "t")
    catalog = PostgresCatalog(source)
    xid = prepare(two_phase, "kept", "UPDATE t SET v = 'kept' WHERE k = 1")
    prepare(two_phase, "undone", "INSERT INTO t VALUES (6, 'undone')", "DELETE FROM t WHERE k = 2")
    with log_reader(source, schemas) as reader, chunk_reader(source) as chunks:
        assert changes(read_to(reader, catalog.position())) == []
        assert not chunks.witness().contains((xid,))
        two_phase.execute("ROLLBACK PREPARED 'undone'", "COMMIT PREPARED 'kept'")
        (part,) = parts(read_to(reader, catalog.position()))
        assert part.id == (xid,)
        assert [change.after for change in part.changes] == [("1", "kept")]
        assert chunks.witness().contains((xid,))


@pytest.mark.parametrize("streaming", [True, False])
def test_a_reader_that_began_after_the_prepare_has_the_rows_at_the_commit(
    two_phase: Database, streaming: bool
) -> None:
    source = source_of(two_phase, streaming=streaming)
    schemas = prepared(source, "t")
    catalog = PostgresCatalog(source)
    prepare(two_phase, "kept", "UPDATE t SET v = 'kept' WHERE k < 4")
    with log_reader(source, schemas) as reader:
        two_phase.execute("INSERT INTO t VALUES (7, 'small')")
        place = catalog.position()
        assert [change.after for change in changes(read_to(reader, place))] == [("7", "small")]
        reader.acknowledge(place)  # everything delivered: the slot must keep the prepared rows all the same
    with log_reader(source, schemas, place) as reader:
        two_phase.execute("COMMIT PREPARED 'kept'")
        (part,) = parts(read_to(reader, catalog.position()))
    assert [change.after for change in part.changes] == [("1", "kept"), ("2", "kept"), ("3", "kept")]
    with log_reader(source, schemas, part.position) as reader:  # and never twice
        assert changes(read_to(reader, catalog.position())) == []


def test_a_transaction_prepared_before_the_slot_holds_up_its_making_and_comes_with_the_dump(
    two_phase: Database,
) -> None:
    source = source_of(two_phase)
    prepare(two_phase, "early", "UPDATE t SET v = 'early' WHERE k = 1")
    warned = [finding for finding in PostgresCatalog(source).preflight(["t"]) if not finding.fatal]
    assert [finding.check for finding in warned] == ["prepared_transactions"]
    assert "early" in warned[0].problem
    made: list[TableSchema] = []
    making = threading.Thread(target=lambda: made.extend(prepared(source, "t")), daemon=True)
    making.start()
    wait_for(
        two_phase,
        "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        " AND query LIKE '%pg_create_logical_replication_slot%'",
    )
    assert not made
    two_phase.execute("COMMIT PREPARED 'early'")
    making.join(20)
    (schema,) = made
    with Capturing(source, schema) as capturing:
        capturing.deliver()
        capturing.read_chunk()
        capturing.deliver()
    assert capturing.rows["1",] == ("1", "early")


def test_a_slot_that_waits_too_long_for_a_prepared_transaction_says_so(
    two_phase: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("migrator.adapters.sources.postgres.catalog._SLOT_TIMEOUT", "500ms")
    prepare(two_phase, "forgotten", "UPDATE t SET v = 'x' WHERE k = 1")
    with pytest.raises(SourceError, match="transactions that are still open") as caught:
        prepared(source_of(two_phase), "t")
    assert "forgotten" in caught.value.cause
    assert "ROLLBACK PREPARED" in caught.value.remedy


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("outcome", ["COMMIT", "ROLLBACK"])
def test_a_chunk_read_while_a_transaction_is_prepared_ends_as_the_source_does(
    two_phase: Database, placement: str, outcome: str
) -> None:
    source = source_of(two_phase, placement=placement)
    (schema,) = prepared(source, "t")
    prepare(
        two_phase,
        "held",
        "UPDATE t SET v = 'NEW' WHERE k = 1",
        "DELETE FROM t WHERE k = 2",
        "INSERT INTO t VALUES (6, 'NEW')",
    )
    with Capturing(source, schema) as capturing:
        assert changes(capturing.deliver()) == []
        chunk = capturing.read_chunk()
        assert chunk.rows.num_rows == 5
        assert chunk.witness is not None
        two_phase.execute(f"{outcome} PREPARED 'held'")
        capturing.deliver()
        assert capturing.chunks_placed == 1
    assert capturing.rows == rows_of(two_phase)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_commit_prepared_that_is_delivered_before_it_is_visible_wins_over_the_chunk(
    two_phase: Database, admin: Database, placement: str
) -> None:
    source = source_of(two_phase, placement=placement)
    (schema,) = prepared(source, "t")
    xid = prepare(two_phase, "held", "UPDATE t SET v = 'NEW' WHERE k = 1")
    with no_standby_answers(admin, two_phase), Capturing(source, schema) as capturing:
        commit = HangingCommit(two_phase, last="COMMIT PREPARED 'held'")
        (part,) = parts(capturing.deliver())
        assert part.id == (xid,)
        chunk = capturing.read_chunk()
        assert chunk.rows.to_pylist()[0] == {"k": 1, "v": "old"}
        capturing.deliver()
        assert capturing.chunks_placed == 1
        assert capturing.rows["1",] == ("1", "NEW")
        let_go(admin)
        commit.finish()
    assert capturing.rows == rows_of(two_phase)


@pytest.mark.parametrize(
    ("making", "says"),
    [
        ("logical_replication_slot('{}', 'pgoutput', false, true)", "two_phase is on"),
        ("physical_replication_slot('{}')", "its plugin is none"),
    ],
)
def test_a_slot_made_otherwise_is_refused_by_name(two_phase: Database, making: str, says: str) -> None:
    source = source_of(two_phase)
    schemas = prepared(source, "t")
    two_phase.execute(
        f"SELECT pg_drop_replication_slot('{source.slot}')",
        f"SELECT pg_create_{making.format(source.slot)}",
    )
    refusals(source, schemas, says)
    two_phase.execute(f"SELECT pg_drop_replication_slot('{source.slot}')")


def test_a_slot_of_another_database_is_refused_by_name(two_phase: Database, admin: Database) -> None:
    source = source_of(two_phase)
    schemas = prepared(source, "t")
    two_phase.execute(f"SELECT pg_drop_replication_slot('{source.slot}')")
    admin.execute(f"SELECT pg_create_logical_replication_slot('{source.slot}', 'pgoutput')")
    refusals(source, schemas, "it belongs to database postgres")
    admin.execute(f"SELECT pg_drop_replication_slot('{source.slot}')")


def refusals(source: PostgresSource, schemas: list[TableSchema], says: str) -> None:
    """Preflight, ``prepare`` and the log reader all refuse the slot."""
    found = [finding for finding in PostgresCatalog(source).preflight(["t"]) if finding.fatal]
    assert [(finding.check, says in finding.problem) for finding in found] == [("slot", True)]
    for attempt in (
        lambda: PostgresLogReader(source, schemas).start(None),
        lambda: PostgresCatalog(source).prepare(schemas),
    ):
        with pytest.raises(MigratorError, match="isn't one that the migration can read") as caught:
            attempt()
        assert says in caught.value.cause
        assert not caught.value.retryable


def rows_of(database: Database) -> dict[tuple[str, ...], tuple[str, ...]]:
    """What the source holds, as text by key."""
    return {(str(k),): (str(k), v) for k, v in database.query("SELECT k, v FROM t")}
