"""A source that is put back to an earlier state and written past the place to go on from is refused by name."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.log.log_reader import PostgresLogReader
from migrator.adapters.sources.postgres.log.replication import ReplicationStream
from migrator.adapters.sources.postgres.lsn import parse_lsn, position_up_to, token_parts
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.embedded.process import scratch_directory
from migrator.errors import ConnectionFailed, GapError, MigratorError
from migrator.model.event import LogRecord
from migrator.model.position import Position
from migrator.model.table import TableSchema
from tests.fix_postgres_source import (
    DEADLINE_S,
    changes,
    log_reader,
    parts,
    prepared,
    reached,
    read_to,
    read_until,
    source_of,
)
from tests.integration.sources.restored import Snapshots
from tests.servers import Database, embedded_postgres

pytestmark = pytest.mark.integration

ANOTHER = "isn't the log that was read"


@dataclass(frozen=True)
class Restorable:
    """A source with table t, read by a slot of ours, and copies of its disk."""

    database: Database
    source: PostgresSource
    schemas: list[TableSchema]
    snapshots: Snapshots

    def read(self, after: Position | None, acknowledge: bool = True) -> Position:
        """Reads all there is; the last place, acknowledged like a durable one."""
        with log_reader(self.source, self.schemas, after) as reader:
            self.database.execute("SELECT pg_logical_emit_message(true, 'other', 'x')")
            (end,) = self.database.query("SELECT pg_current_wal_insert_lsn()::text")[0]
            records = read_until(reader, lambda found: _behind(found, str(end)))
            place = [each.position for each in records if hasattr(each, "position")][-1]
            if acknowledge:
                reader.acknowledge(place)
        self._unread()
        return place

    def captured(self, after: Position | None) -> Position:
        """Reads up to the last change only: a place that is a commit's."""
        with log_reader(self.source, self.schemas, after) as reader:
            records = read_until(reader, lambda found: bool(changes(found)))
            place = parts(records)[-1].position
            reader.acknowledge(place)
        self._unread()
        return place

    def _unread(self) -> None:
        until = time.monotonic() + DEADLINE_S
        while self.database.query("SELECT 1 FROM pg_replication_slots WHERE active"):
            assert time.monotonic() < until

    def write_past(self, place: Position, *statements: str) -> None:
        """Writes until the log is longer than it was at the place."""
        self.database.execute(*statements)
        lsn, _ = token_parts(place)
        self.database.execute("CREATE TABLE IF NOT EXISTS filler (x text)")
        while self.database.query("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")[0][0] <= lsn + 10_000:
            self.database.execute("INSERT INTO filler SELECT repeat('x', 500) FROM generate_series(1, 200)")


def _behind(found: list[LogRecord], lsn: str) -> bool:
    return reached(found, position_up_to(parse_lsn(lsn) - 64, ""))


@pytest.fixture
def it() -> Iterator[Restorable]:
    with scratch_directory("migrator-restored-") as scratch:
        folder = Path(scratch) / "pg"
        with embedded_postgres(folder, settings={"autovacuum": "off", "fsync": "off"}) as server:
            server.create_database("old")
            database = Database(server.host, server.port, "old", server.superuser, "", "postgresql")
            database.execute(
                "CREATE TABLE t (id int PRIMARY KEY, v text)",
                "ALTER TABLE t REPLICA IDENTITY FULL",
                "CREATE TABLE other (x int)",
            )
            source = source_of(database)
            yield Restorable(database, source, prepared(source, "t"), Snapshots(server, folder))


def refused(it: Restorable, place: Position) -> GapError:
    with pytest.raises(GapError, match=ANOTHER) as caught:
        it.read(place)
    return caught.value


@pytest.mark.parametrize("idle", [False, True], ids=["at a change", "behind it"])
def test_restored_and_written_past_is_refused_and_an_ordinary_restart_is_not(
    it: Restorable, idle: bool
) -> None:
    it.database.execute("INSERT INTO t VALUES (1, 'a')")
    place = it.read(None)
    it.snapshots.take()
    it.database.execute("INSERT INTO t VALUES (2, 'undone by the restore')")
    place = it.read(place) if idle else it.captured(place)
    it.snapshots.server.restart()
    assert it.read(place, acknowledge=False) >= place, "the control: the same log goes on"
    it.snapshots.restore()
    it.write_past(place, "INSERT INTO t VALUES (3, 'lost')", "DELETE FROM t WHERE id = 1")
    error = refused(it, place)
    assert "put back to an earlier state" in error.cause
    assert "start the migration anew" in error.remedy


def test_restored_and_written_past_by_others_only_is_refused_all_the_same(it: Restorable) -> None:
    """No change of ours: yet what the target has of the time that was taken back is wrong."""
    place = it.read(None)
    it.snapshots.take()
    it.database.execute("INSERT INTO t VALUES (2, 'undone by the restore')")
    place = it.read(place)
    it.snapshots.restore()
    it.write_past(place)
    assert "it isn't there" in refused(it, place).cause


def test_restored_to_behind_the_last_change_is_the_same_log(it: Restorable) -> None:
    """Nothing of ours was taken back and nothing of ours came: going on is right, and what comes next isn't
    lost."""
    it.database.execute("INSERT INTO t VALUES (1, 'a')")
    place = it.read(None)
    it.snapshots.take()
    it.database.execute("INSERT INTO other VALUES (1)")
    place = it.read(place)
    it.snapshots.restore()
    it.write_past(place)
    it.database.execute("INSERT INTO t VALUES (2, 'b')")
    with log_reader(it.source, it.schemas, place) as reader:
        found = read_until(reader, lambda records: bool(changes(records)))
    assert [change.after for change in changes(found)] == [("2", "b")]


def test_a_change_in_the_place_of_silence_is_refused(it: Restorable) -> None:
    it.database.execute("INSERT INTO t VALUES (1, 'a')")
    place = it.read(None)
    it.snapshots.take()
    it.database.execute("INSERT INTO other SELECT generate_series(1, 1000)")
    place = it.read(place)
    it.snapshots.restore()
    it.write_past(place, "INSERT INTO t VALUES (3, 'lost')")
    assert "there is transaction" in refused(it, place).cause


def test_before_the_first_change_silence_is_known_too(it: Restorable) -> None:
    place = it.read(None)
    it.snapshots.take()
    it.database.execute("INSERT INTO other SELECT generate_series(1, 1000)")
    place = it.read(place)
    it.snapshots.restore()
    it.write_past(place, "INSERT INTO t VALUES (3, 'lost')")
    assert "no change of ours" in refused(it, place).cause


def test_a_session_that_ends_late_moves_the_slot_for_nobody(
    it: Restorable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed run's last acknowledgement reaches the server after the next run has looked at the slot."""
    it.database.execute("INSERT INTO t VALUES (1, 'a')")
    before = PostgresLogReader(it.source, it.schemas)
    before.start(None)
    it.database.execute("INSERT INTO other VALUES (1)")
    records = read_to(before, PostgresCatalog(it.source).position())
    place = [each.position for each in records if hasattr(each, "position")][-1]

    def ends_late(stream: ReplicationStream, *places: int) -> None:
        before.acknowledge(place)
        before.close()
        it._unread()
        begin(stream, *places)

    begin = ReplicationStream.begin
    with monkeypatch.context() as late:
        late.setattr(ReplicationStream, "begin", ends_late)
        with pytest.raises(ConnectionFailed, match="in use by another session") as caught:
            it.read(place)
    assert caught.value.retryable
    before.acknowledge(place)
    before.close()
    it._unread()
    assert it.read(place) >= place


@pytest.mark.slow
def test_a_restore_under_a_running_reader_is_refused_on_reconnecting(it: Restorable) -> None:
    reader = PostgresLogReader(it.source, it.schemas)
    try:
        place = reader.start(None)
        it.database.execute("INSERT INTO t VALUES (1, 'a')")
        records = read_until(reader, lambda found: bool(changes(found)))
        reader.acknowledge(parts(records)[-1].position)
        it.snapshots.take(running=True)
        it.database.execute("INSERT INTO t VALUES (2, 'undone')")
        records = read_until(reader, lambda found: bool(changes(found)))
        place = parts(records)[-1].position
        it.snapshots.restore()
        it.write_past(place, "INSERT INTO t VALUES (3, 'lost')")
        with pytest.raises(ConnectionFailed):
            reader.read(5.0)
        with pytest.raises(MigratorError, match=ANOTHER):
            reader.start(place)
    finally:
        reader.close()


def test_a_place_of_an_earlier_version_goes_on_unproven(it: Restorable) -> None:
    it.database.execute("INSERT INTO t VALUES (1, 'a')")
    place = it.read(None)
    old = Position(place.order, place.token.partition("#")[0])
    it.database.execute("INSERT INTO t VALUES (2, 'b')")
    with log_reader(it.source, it.schemas, old) as reader:
        found = read_to(reader, Position(place.order + 1, ""))
    assert [change.after for change in changes(found)] == [("2", "b")]
    assert "#" in found[-1].position.token  # type: ignore[union-attr]
