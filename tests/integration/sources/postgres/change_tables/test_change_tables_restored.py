"""A source with change tables that is put back to an earlier state and written past our place is refused by
name."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrator.adapters.sources.postgres.change_tables.catalog import ChangeTableCatalog
from migrator.adapters.sources.postgres.change_tables.log_reader import ChangeTableLogReader
from migrator.adapters.sources.postgres.change_tables.place import Place
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.embedded.process import scratch_directory
from migrator.errors import ConnectionFailed, GapError
from migrator.model.position import Position
from migrator.model.table import TableSchema
from tests.fix_change_tables import captured, read_all, started
from tests.fix_postgres_source import changes
from tests.integration.sources.restored import Snapshots
from tests.servers import Database, embedded_postgres

pytestmark = pytest.mark.integration

ANOTHER = "isn't the log that was read"


@dataclass(frozen=True)
class Restorable:
    """A source with the captured table t, and copies of its server's disk."""

    database: Database
    source: PostgresSource
    schemas: list[TableSchema]
    snapshots: Snapshots

    def read(self, after: Position | None) -> Position:
        """Reads all there is; the last place."""
        return self.found(after)[0]

    def found(self, after: Position | None) -> tuple[Position, list[object]]:
        """The same, with the rows that were brought."""
        with started(self.source, self.schemas, after) as reader:
            self.database.execute("INSERT INTO other VALUES (0)")
            records = read_all(reader, self.source)
            place = [each.position for each in records if hasattr(each, "position")][-1]
            return place, [change.after for change in changes(records)]

    def pass_by(self, place: Position, *statements: str) -> None:
        """Writes until more transactions have ended than at the place."""
        self.database.execute(*statements)
        while ChangeTableCatalog(self.source).position().order <= place.order + 20:
            self.database.execute(*["INSERT INTO other VALUES (1)"] * 10)

    def refused(self, place: Position) -> str:
        with pytest.raises(GapError, match=ANOTHER) as caught:
            self.read(place)
        assert "start the migration anew" in caught.value.remedy
        return caught.value.cause


@pytest.fixture(scope="module")
def snapshots() -> Iterator[Snapshots]:
    with scratch_directory("migrator-restored-") as scratch:
        folder = Path(scratch) / "pg"
        with embedded_postgres(folder, settings={"autovacuum": "off", "fsync": "off"}) as server:
            yield Snapshots(server, folder)


@pytest.fixture
def it(snapshots: Snapshots, request: pytest.FixtureRequest) -> Restorable:
    server, name = snapshots.server, f"old_{uuid.uuid4().hex[:8]}"
    server.create_database(name)  # type: ignore[attr-defined]
    database = Database(server.host, server.port, name, "postgres", "", "postgresql")
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE TABLE other (x int)")
    source, schemas = captured(database, "t", forget_changes=getattr(request, "param", False))
    return Restorable(database, source, schemas, snapshots)


def test_restored_and_written_past_is_refused_and_an_ordinary_restart_is_not(it: Restorable) -> None:
    it.database.execute("INSERT INTO t VALUES (1, 'a')")
    place = it.read(it.read(None))
    it.snapshots.take()
    it.database.execute("INSERT INTO t VALUES (2, 'undone by the restore')")
    place = it.read(place)
    it.snapshots.server.restart()
    assert it.read(place) >= place, "the control: the same change tables go on"
    it.snapshots.restore()
    with pytest.raises(GapError, match="don't go on"):
        it.read(place)
    it.pass_by(place, "INSERT INTO t VALUES (3, 'lost')", "DELETE FROM t WHERE id = 1")
    assert "it is another one there" in it.refused(place)


def test_written_past_by_others_only_or_in_the_place_of_silence(it: Restorable) -> None:
    before = it.read(None)
    it.snapshots.take()
    silent = it.read(before)
    it.database.execute("INSERT INTO t VALUES (2, 'undone by the restore')")
    place = it.read(silent)
    it.snapshots.restore()
    it.pass_by(place)
    assert "it isn't there" in it.refused(place)
    assert it.found(silent)[1] == [], "of what was read by then, nothing was taken back"
    it.snapshots.restore()
    it.pass_by(place, "INSERT INTO t VALUES (3, 'lost')")
    assert "no change, but there is change" in it.refused(silent)


def test_restored_to_behind_the_last_change_is_the_same_log(it: Restorable) -> None:
    """What comes next is there, and a change that would have been passed over is told."""
    it.database.execute("INSERT INTO t VALUES (1, 'a')")
    place = it.read(it.read(None))
    it.snapshots.take()
    place = it.read(it.read(place))
    it.snapshots.restore()
    it.pass_by(place)
    it.database.execute("INSERT INTO t VALUES (2, 'b')")
    assert it.found(place)[1] == [("2", "b")]
    it.snapshots.restore()
    it.pass_by(place, "INSERT INTO t VALUES (3, 'lost')")
    assert "as the last one, but there is change" in it.refused(place)


def test_a_restore_under_a_running_reader_is_refused(it: Restorable) -> None:
    with closing(ChangeTableLogReader(it.source, it.schemas)) as reader:
        reader.start(None)
        it.snapshots.take(running=True)
        it.database.execute("INSERT INTO t VALUES (2, 'undone')")
        read_all(reader, it.source)
        place = ChangeTableCatalog(it.source).position()
        it.snapshots.restore()
        it.pass_by(place, "INSERT INTO t VALUES (3, 'lost')")
        with pytest.raises((GapError, ConnectionFailed)) as caught:
            _read_on(reader)
    assert ANOTHER in str(caught.value) or caught.value.retryable


def _read_on(reader: ChangeTableLogReader) -> None:
    for _ in range(20):
        reader.read(0.5)


def test_a_poll_of_which_a_part_was_stored_is_proven_too(it: Restorable) -> None:
    place = it.read(None)
    it.snapshots.take()
    it.database.execute("INSERT INTO t SELECT n, 'undone' FROM generate_series(1, 5) n")
    with started(it.source, it.schemas, place) as reader:
        read_all(reader, it.source)
        whole = Place.parse(ChangeTableCatalog(it.source).position())
        told = reader._started().last
    half = Place(whole.server, Place.parse(place).at, whole.at, Place.parse(place).capture, told).position()
    it.snapshots.server.restart()
    assert len(it.found(half)[1]) == 5, "the control"
    it.snapshots.restore()
    it.pass_by(half, "INSERT INTO t SELECT n, 'another' FROM generate_series(1, 5) n")
    it.refused(half)


@pytest.mark.parametrize("it", [True], indirect=True, ids=["forgetting"])
def test_what_proves_a_place_is_not_forgotten(it: Restorable) -> None:
    it.database.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    place = it.read(it.read(None))
    it.database.execute("INSERT INTO t VALUES (3, 'c')")
    with started(it.source, it.schemas, place) as reader:
        read_all(reader, it.source)
        it.database.execute("INSERT INTO other VALUES (0)")
        read_all(reader, it.source)
        place = reader._started().position()
        reader.acknowledge(place)
    left = it.database.query('SELECT id FROM migrator_cdc."public_t_CT" ORDER BY 1')
    assert left == [(3,)], "the control: the others were forgotten"
    it.snapshots.take()
    assert it.read(place) >= place
    it.database.execute("SELECT migrator_cdc.forget(pg_current_xact_id(), 100)")
    with pytest.raises(GapError, match="have been deleted"):
        it.read(place)


def test_a_place_of_an_earlier_version_takes_its_proof_from_the_tables(it: Restorable) -> None:
    it.database.execute("INSERT INTO t VALUES (1, 'a')")
    place = it.read(it.read(None))
    told = json.loads(place.token)
    assert told.pop("last")[:2] == ["public", "t"]
    it.database.execute("INSERT INTO t VALUES (2, 'b')")
    again, found = it.found(Position(place.order, json.dumps(told)))
    assert found == [("2", "b")]
    assert json.loads(again.token)["last"][2] > json.loads(place.token)["last"][2]


def test_nothing_of_this_is_seen_without_the_proof(it: Restorable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: by transaction ids alone the tables seem to go on, and a change is lost."""
    place = it.read(None)
    it.snapshots.take()
    it.database.execute("INSERT INTO t VALUES (2, 'undone by the restore')")
    place = it.read(place)
    it.snapshots.restore()
    it.pass_by(place, "INSERT INTO t VALUES (3, 'lost')")
    trusting: Callable[..., None] = lambda *told: None  # noqa: E731
    monkeypatch.setattr("migrator.adapters.sources.postgres.change_tables.log_reader.check_same", trusting)
    assert it.found(place)[1] == []
