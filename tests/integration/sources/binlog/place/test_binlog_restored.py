"""A source that is put back to an earlier state, or whose log was reset, is refused by name once it was
written past.

GTIDs are given out again: by number alone the log seems to go on from the place where reading stopped.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from migrator.adapters.sources.binlog.transactions import log_reader
from migrator.adapters.sources.mysql.gtid_set import parse_set
from migrator.connections.mysql.settings import BinlogSource
from migrator.embedded.binlog_server import BinlogServer
from migrator.embedded.process import scratch_directory
from migrator.errors import GapError, MigratorError
from migrator.model.position import Position
from migrator.model.table import TableSchema
from tests.integration.binlog_engine import MARIADB, MYSQL, BinlogEngine
from tests.integration.binlog_reading import DEADLINE_S, Read, read_to, source_of
from tests.integration.sources.restored import Snapshots
from tests.servers import Database, embedded_mariadb, embedded_mysql, unpacked_mysql

pytestmark = pytest.mark.integration

ANOTHER = "isn't the log that was read"
RESET = {"mysql": "RESET BINARY LOGS AND GTIDS", "mariadb": "RESET MASTER"}


@dataclass(frozen=True)
class Restorable:
    """A source with table t, and copies of its disk."""

    engine: BinlogEngine
    server: BinlogServer
    database: Database
    source: BinlogSource
    tables: list[TableSchema]
    snapshots: Snapshots

    def read(self, after: Position | None) -> Position:
        """Reads all there is; the last place."""
        reader = self.engine.log_reader(self.source, self.tables)
        try:
            place = reader.start(after)
            found = read_to(reader, self.engine.end(self.source)) if after is not None else Read()
            return ([each.position for each in found.records if hasattr(each, "position")] or [place])[-1]
        finally:
            reader.close()

    def insert(self, *keys: int) -> None:
        self.database.execute(*(f"INSERT INTO t VALUES ({key})" for key in keys))


@pytest.fixture
def it(engine: BinlogEngine) -> Iterator[Restorable]:
    if engine is MYSQL:
        unpacked_mysql()
    make = embedded_mysql if engine is MYSQL else embedded_mariadb
    with ExitStack() as stack:
        folder = Path(stack.enter_context(scratch_directory("migrator-restored-"))) / "server"
        server = stack.enter_context(make(folder, settings={"server-id": "7"}))
        server.create_database("old")
        kind = "mysql" if engine is MYSQL else "mariadb"
        database = Database(server.host, server.port, "old", server.superuser, "", kind)
        database.execute("CREATE TABLE t (id int PRIMARY KEY)")
        source = source_of(database)
        tables = engine.catalog(source).tables(["t"])
        yield Restorable(engine, server, database, source, tables, Snapshots(server, folder))


@pytest.mark.slow
def test_restored_and_written_past_is_refused_and_an_ordinary_restart_is_not(it: Restorable) -> None:
    it.insert(1)
    place = it.read(it.read(None))
    it.snapshots.take()
    it.insert(2, 3)
    place = it.read(place)
    it.snapshots.server.restart()
    it.insert(4)
    place = it.read(place)  # the control: the same log goes on
    time.sleep(max(0.0, 1.05 - time.time() % 1) if it.engine is MARIADB else 0)  # its log has whole seconds
    it.snapshots.restore()
    with pytest.raises(GapError, match="ends before"):
        it.read(place)
    it.insert(12, 13, 14)
    with pytest.raises(GapError, match=ANOTHER):
        it.read(place)
    it.insert(15, 16)
    with pytest.raises(GapError, match=ANOTHER) as caught:
        it.read(place)
    assert "start the migration anew" in caught.value.remedy


@pytest.mark.slow
def test_a_first_place_is_proven_too(it: Restorable) -> None:
    """Nothing was read yet but the rows of a dump."""
    it.snapshots.take()
    it.insert(1, 2)
    place = it.read(None)
    assert json.loads(place.token)["at"] > 0
    it.snapshots.server.restart()
    assert it.read(place) == place, "the control"
    time.sleep(1.05 if it.engine is MARIADB else 0)
    it.snapshots.restore()
    it.insert(11, 12)
    with pytest.raises(GapError, match=ANOTHER):
        it.read(place)


@pytest.mark.slow
def test_a_place_of_an_earlier_version_takes_its_proof_from_the_log(it: Restorable) -> None:
    it.insert(1, 2)
    place = it.read(it.read(None))
    told = json.loads(place.token)
    old = {name: value for name, value in told.items() if name not in ("last", "at", "before")}
    reader = it.engine.log_reader(it.source, it.tables)
    started = reader.start(Position(place.order, json.dumps(old)))
    reader.close()
    assert {name: json.loads(started.token)[name] for name in ("last", "at")} == {
        "last": told["last"],
        "at": told["at"],
    }


@pytest.mark.slow
def test_a_purged_proof_is_told_from_a_purged_log_and_its_remedy_goes_on(it: Restorable) -> None:
    it.insert(1, 2)
    place = it.read(it.read(None))
    _purge(it)
    with pytest.raises(GapError, match="can't be shown to be") as caught:
        it.read(place)
    assert "migrator run --unproven-log" in caught.value.remedy
    sure = replace(it, source=replace(it.source, unproven=True))
    it.insert(3)
    place = sure.read(place)
    assert it.read(place) == place, "the next place has a proof again"

    it.insert(4)
    _purge(it)
    for one in (it, sure):
        with pytest.raises(GapError, match="no longer holds"):
            one.read(place)


def _purge(it: Restorable) -> None:
    """Leaves nothing but an empty binlog: a file stays until the server has noticed that its reader left."""
    it.database.execute("FLUSH BINARY LOGS")
    status = "SHOW BINARY LOG STATUS" if it.engine is MYSQL else "SHOW MASTER STATUS"
    (newest, *_), *_ = it.database.query(status)
    deadline = time.monotonic() + 60
    while len(it.database.query("SHOW BINARY LOGS")) > 1:
        assert time.monotonic() < deadline, "the binlog can't be purged"
        it.database.execute(f"PURGE BINARY LOGS TO '{newest}'")
        time.sleep(0.05)


def test_a_log_that_is_reset_under_a_running_reader_is_noticed(
    it: Restorable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server goes on in another file, and says nothing of it to who reads the one before."""
    monkeypatch.setattr(log_reader, "_LOOK_EVERY_S", 0.3)
    it.insert(1, 2)
    reader = it.engine.log_reader(it.source, it.tables)
    try:
        place = reader.start(None)
        it.insert(3)
        found = read_to(reader, it.engine.end(it.source))
        place = found.parts()[-1].position
        it.database.execute(RESET[it.engine.kind])
        with pytest.raises(GapError, match="ends before"):
            reader.finish()
        time.sleep(1.05 if it.engine is MARIADB else 0)
        it.insert(*range(10, 40))
        with pytest.raises(MigratorError) as caught:
            _read_on(reader)
        assert isinstance(caught.value, GapError) or caught.value.retryable
        with pytest.raises(GapError):
            reader.start(place)
    finally:
        reader.close()


def test_a_reader_that_is_up_to_date_or_has_work_is_left_alone(
    it: Restorable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_reader, "_LOOK_EVERY_S", 0.0)
    reader = it.engine.log_reader(it.source, it.tables)
    try:
        reader.start(None)
        read = Read()
        for key in range(30):
            it.insert(key)
            read.records += reader.read(0.05)
        read_to(reader, it.engine.end(it.source), read)
        for _ in range(5):
            reader.read(0.01)
        reader.finish()
        assert len(read.changes()) == 30
    finally:
        reader.close()


def _read_on(reader: log_reader.BinlogReader) -> None:
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        reader.read(0.1)


def test_gtids_without_others() -> None:
    uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    for text, taken, left in (
        ("1-9", "9", "1-8"),
        ("1-9", "1", "2-9"),
        ("1-9", "5", "1-4:6-9"),
        ("3", "3", ""),
        ("1-3:7", "9", "1-3:7"),
    ):
        found = parse_set(f"{uuid}:{text}").without(parse_set(f"{uuid}:{taken}"))
        assert str(found) == (f"{uuid}:{left}" if left else "")
