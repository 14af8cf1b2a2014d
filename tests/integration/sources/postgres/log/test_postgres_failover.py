"""The primary is lost, its standby promoted: reading goes on where it was, or names what the failover lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.log.log_reader import PostgresLogReader
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.embedded.postgres import EmbeddedPostgres
from migrator.embedded.process import scratch_directory
from migrator.errors import GapError, SourceError
from migrator.model.event import LogProgress, TransactionPart
from migrator.model.position import Position
from migrator.model.table import TableSchema
from tests.fix_postgres_source import changes, log_reader, prepared, read_to, source_of, wait_for
from tests.servers import Database, embedded_postgres, needs_postgres

pytestmark = pytest.mark.integration


def database_of(server: EmbeddedPostgres) -> Database:
    return Database(server.host, server.port, "postgres", server.superuser, "", "postgresql")


def read_on(reader: PostgresLogReader, source: PostgresSource) -> tuple[list[str], Position]:
    """Keys that come up to the log's end, and the place reached."""
    records = read_to(reader, PostgresCatalog(source).position())
    reached = [each.position for each in records if isinstance(each, LogProgress | TransactionPart)]
    return [str(change.after[0]) for change in changes(records) if change.after], max(reached)


def synchronised(
    source: PostgresSource, schemas: list[TableSchema], place: Position, primary: Database, standby: Database
) -> Position:
    """Until the standby has a lasting copy of the slot: the slot has to stand where the standby's log still is.

    It moves on as the reader acknowledges. Returns the place reached.
    """
    state = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = %s AND synced AND NOT temporary"
    for _ in range(50):
        # The snapshot comes last: a transaction behind it would leave the slot behind what the standby reserves.
        primary.execute("SELECT pg_logical_emit_message(true, '', '')", "SELECT pg_log_standby_snapshot()")
        with log_reader(source, schemas, place) as reader:
            place = PostgresCatalog(source).position()
            read_to(reader, place)
            reader.acknowledge(place)
        ((end,),) = primary.query("SELECT pg_current_wal_flush_lsn()::text")
        wait_for(standby, f"SELECT pg_last_wal_replay_lsn() >= '{end}'")
        wait_for(primary, f"SELECT NOT active FROM pg_replication_slots WHERE slot_name = '{source.slot}'")
        standby.execute("SELECT pg_sync_replication_slots()")
        if standby.query(state, [source.slot]) == [(1,)]:
            return place
    raise AssertionError("the slot was never synchronised")


def stands_by(standby: Database, schemas: list[TableSchema], place: Position, why: str) -> None:
    """Led to the standby, nobody is told to start anew: nothing is lost."""
    with pytest.raises(
        SourceError, match="leads to a standby, and the log was read on its primary"
    ) as caught:
        PostgresLogReader(source_of(standby), schemas).start(place)
    assert why in caught.value.cause
    assert not isinstance(caught.value, GapError)
    assert "promote this server" in caught.value.remedy


def test_reading_goes_on_at_a_promoted_standby_and_never_behind_what_it_lost() -> None:
    needs_postgres(17, "failover slots")
    with scratch_directory("migrator-failover-") as directory:
        failover(directory)


def failover(directory: Path) -> None:
    with (
        embedded_postgres(directory / "primary") as old_server,
        embedded_postgres(
            directory / "standby", standby_of=old_server, settings={"hot_standby_feedback": "on"}
        ) as new_server,
    ):
        old, new = database_of(old_server), database_of(new_server)
        old.execute("CREATE TABLE t (k int PRIMARY KEY)", "ALTER TABLE t REPLICA IDENTITY FULL")
        source = source_of(old)
        schemas = prepared(source, "t")
        assert old.query("SELECT failover FROM pg_replication_slots WHERE slot_name = %s", [source.slot]) == [
            (True,)
        ]
        with log_reader(source, schemas) as reader:
            old.execute("INSERT INTO t VALUES (1)")
            found, place = read_on(reader, source)
            assert found == ["1"]
        stands_by(new, schemas, place, "it has no copy of the slot")
        place = synchronised(source, schemas, place, old, new)
        stands_by(new, schemas, place, "it keeps a copy of the slot")
        with log_reader(source, schemas, place) as reader:
            old.execute("INSERT INTO t VALUES (2)")
            _, kept = read_on(reader, source)
            wait_for(new, "SELECT count(*) = 2 FROM t")
            new_server.stop()
            # The standby never gets these.
            old.execute(
                "SELECT pg_logical_emit_message(true, '', repeat('x', 100000))", "INSERT INTO t VALUES (3)"
            )
            found, lost = read_on(reader, source)
            assert found == ["3"]
        old_server.kill()
        new_server.start()
        new_server.promote()

        there = source_of(new)
        new.execute("INSERT INTO t VALUES (4)")
        while PostgresCatalog(there).position() <= lost:
            new.execute("SELECT pg_logical_emit_message(true, '', repeat('x', 10000))")
        with pytest.raises(GapError, match="doesn't hold the position") as caught:
            PostgresLogReader(there, schemas).start(lost)
        assert "the target may have what the failover lost" in caught.value.cause
        with log_reader(there, schemas, kept) as reader:
            assert read_on(reader, there)[0] == ["4"]
        # Without the timeline nothing would be noticed: 4 would be missing, and 3 stay.
        blind = replace(lost, token=lost.token.partition("#")[0].rpartition("/")[0])
        with log_reader(there, schemas, blind) as reader:
            assert read_on(reader, there)[0] == []
