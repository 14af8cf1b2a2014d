"""Chunks of another server than the log's, a lagging replica or a standby: what they would do, who refuses them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.chunks.chunk_reader import PostgresChunkReader
from migrator.adapters.sources.postgres.chunks.witness import SnapshotWitness
from migrator.adapters.sources.postgres.log.log_reader import PostgresLogReader
from migrator.connections.same_server import SameServer
from migrator.embedded.postgres import EmbeddedPostgres
from migrator.embedded.process import (
    make_server_directory,
    plain_environment,
    run_as,
    scratch_directory,
    unprivileged_user,
)
from migrator.errors import ConnectionFailed
from migrator.model.chunk import ChunkRequest
from tests import fix_postgres_source as postgres_source
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import read_to, source_of
from tests.integration.sources.placed_race import delivered
from tests.servers import Database, PostgresServer, embedded_postgres, fresh_database

pytestmark = pytest.mark.integration

ONE_ROW = ("CREATE TABLE t (id int PRIMARY KEY, v varchar(20))", "INSERT INTO t VALUES (5, 'old')")
UPDATE = "UPDATE t SET v = 'NEW' WHERE id = 5"


def test_a_replica_that_stopped_has_rows_that_the_log_never_corrects(
    request: pytest.FixtureRequest, engine: BinlogEngine, spare_database: Database
) -> None:
    """T1 was before the log's beginning, and the other server doesn't have it."""
    replica = request.getfixturevalue(engine.kind)
    with fresh_database(replica, "replica") as behind:
        for database in (spare_database, behind):
            database.execute(*ONE_ROW)
        spare_database.execute(UPDATE)
        source = source_of(spare_database)
        elsewhere = source_of(behind)
        same = SameServer()
        (schema,), (other,) = (engine.catalog(each).tables(["t"]) for each in (source, elsewhere))
        here, there = (ChunkRequest(1, table.id, None, 10) for table in (schema, other))
        with (
            closing(engine.log_reader(source, [schema], same)) as log,
            closing(engine.chunk_reader(elsewhere)) as unchecked,
            closing(engine.chunk_reader(elsewhere, same=same)) as checked,
            closing(engine.chunk_reader(source, same=same)) as ours,
        ):
            log.start(None)
            stale, chunk = unchecked.read(there, other), ours.read(here, schema)
            read = read_to(log, engine.end(source))
            assert (stale.rows["v"].to_pylist(), read.changes()) == (["old"], [])  # it would stay so for good
            for attempt in (lambda: checked.read(there, other), checked.witness):
                with pytest.raises(ConnectionFailed, match="another server than the log's") as refused:
                    attempt()
                assert refused.value.retryable
            assert delivered(schema, [chunk, *read.records]) == ["NEW"]


def test_chunks_follow_a_log_that_moves(
    request: pytest.FixtureRequest, engine: BinlogEngine, spare_database: Database
) -> None:
    """A connection made before is given up then, and the next one leads to the new place."""
    with fresh_database(request.getfixturevalue(engine.kind), "new") as promoted:
        for database in (spare_database, promoted):
            database.execute(*ONE_ROW)
        same = SameServer()
        before, after = source_of(spare_database), source_of(promoted)
        tables = engine.catalog(before).tables(["t"])
        with (
            closing(engine.log_reader(before, tables, same)) as log,
            closing(engine.chunk_reader(before, same=same)) as chunks,
        ):
            log.start(None)
            chunks.witness()
            with closing(engine.log_reader(after, engine.catalog(after).tables(["t"]), same)) as moved:
                moved.start(None)
                with pytest.raises(ConnectionFailed, match="another server"):
                    chunks.witness()
        with closing(engine.chunk_reader(after, same=same)) as chunks:
            chunks.witness()


# -- PostgreSQL


def database_of(server: EmbeddedPostgres) -> Database:
    return Database(server.host, server.port, "old", server.superuser, "", "postgresql")


@pytest.fixture
def pair() -> Iterator[tuple[Database, Database]]:
    """A database on a primary, and the same on its standby, whose replay can be paused."""
    with scratch_directory("migrator-standby-") as folder, embedded_postgres(folder / "primary") as primary:
        primary.create_database("old")
        user = unprivileged_user()
        root = make_server_directory(folder / "standby", user)
        standby = embedded_postgres(folder / "standby")
        programs = standby._installation(root, user) / "bin"
        backup = [str(programs / "pg_basebackup"), "-D", str(root / "data"), "-R", "-c", "fast", "-d"]
        run_as([*backup, primary.dsn()], user, directory=root, environment=plain_environment())
        with standby:
            yield database_of(primary), database_of(standby)


def replayed(primary: Database, standby: Database) -> None:
    """Waits until the standby shows what the primary shows now."""
    ((place,),) = primary.query("SELECT pg_current_wal_insert_lsn()::text")
    postgres_source.wait_for(standby, f"SELECT pg_last_wal_replay_lsn() >= '{place}'::pg_lsn")


def test_a_standby_is_refused_and_its_snapshot_would_lie(pair: tuple[Database, Database]) -> None:
    primary, standby = pair
    primary.execute(*ONE_ROW, "ALTER TABLE t REPLICA IDENTITY FULL", "CREATE TABLE other (id int)")
    source = postgres_source.source_of(primary)
    (schema,) = postgres_source.prepared(source, "t")
    with primary.connect() as t1, postgres_source.log_reader(source, [schema]) as log:
        t1.execute("BEGIN")
        t1.execute(UPDATE)
        primary.execute(
            "INSERT INTO other VALUES (1)"
        )  # its xid is above T1's: so T1 is below the standby's xmax
        replayed(primary, standby)
        standby.execute("SELECT pg_wal_replay_pause()")
        t1.execute("COMMIT")
        records = postgres_source.read_to(log, PostgresCatalog(source).position())
        ((snapshot, value),) = standby.query("SELECT pg_current_snapshot()::text, v FROM t")
        (part,) = postgres_source.parts(records)
        assert [change.after for change in part.changes] == [("5", "NEW")]
        assert value == "old"  # after T1's event: the plain window is empty, and its row would go out
        assert SnapshotWitness.parse(snapshot).contains(part.id)  # and so would the witness let it

    elsewhere, same = postgres_source.source_of(standby), SameServer()
    with (
        closing(PostgresLogReader(source, [schema], same=same)) as log,
        closing(PostgresChunkReader(elsewhere, same=same)) as chunks,
    ):
        log.start(None)
        for read in (lambda: chunks.read(ChunkRequest(1, schema.id, None, 10), schema), chunks.witness):
            with pytest.raises(ConnectionFailed, match="leads to a standby of") as refused:
                read()
            assert refused.value.retryable
    standby.execute("SELECT pg_wal_replay_resume()")

    same = (
        SameServer()
    )  # a promoted standby is a server of its own, though it has the primary's system identifier
    with closing(PostgresLogReader(source, [schema], same=same)) as log:
        log.start(None)
        standby.execute("SELECT pg_promote()")
        with (
            closing(PostgresChunkReader(elsewhere, same=same)) as chunks,
            pytest.raises(ConnectionFailed, match="another server than the log's"),
        ):
            chunks.witness()
        with closing(PostgresChunkReader(source, same=same)) as chunks:
            chunks.witness()


def test_another_primary_is_refused(postgres: PostgresServer, old_pg: Database, new_pg: Database) -> None:
    for database in (old_pg, new_pg):
        database.execute(*ONE_ROW, "ALTER TABLE t REPLICA IDENTITY FULL")
    source, same = postgres_source.source_of(old_pg), SameServer()
    tables = postgres_source.prepared(source, "t")
    with (
        closing(PostgresLogReader(source, tables, same=same)) as log,
        closing(PostgresChunkReader(postgres_source.source_of(new_pg), same=same)) as elsewhere,
        closing(PostgresChunkReader(source, same=same)) as ours,
    ):
        log.start(None)
        with pytest.raises(ConnectionFailed, match="another server than the log's"):
            elsewhere.read(ChunkRequest(1, tables[0].id, None, 10), tables[0])
        assert ours.read(ChunkRequest(1, tables[0].id, None, 10), tables[0]).row_count == 1
