"""What real servers tell of how long they keep their log, up to the moment at which they don't."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from migrator.adapters.sources.binlog.place.undecided import server_mark
from migrator.adapters.sources.binlog.retention import binlog_retention
from migrator.adapters.sources.mariadb.catalog import server_name as maria_name
from migrator.adapters.sources.mysql.catalog import server_name as mysql_name
from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.retention import slot_retention
from migrator.connections.mysql.settings import connect as binlog_connect
from migrator.embedded.process import scratch_directory
from migrator.errors import ConnectionFailed
from migrator.model.position import Position
from migrator.run.capture.retention_watch import warnings
from tests.fix_postgres_source import source_of as postgres_source
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import read_to
from tests.integration.binlog_reading import source_of as binlog_source
from tests.integration.waiting import await_true
from tests.servers import Database, embedded_postgres

pytestmark = pytest.mark.integration

AT = Position(1, "0/1")
MIB = 1 << 20
WRITE_8_MIB = (
    "SELECT pg_logical_emit_message(false, 'filler', repeat('x', 1048576)) FROM generate_series(1, 8)"
)


@pytest.fixture
def small_log() -> Iterator[Database]:
    """A PostgreSQL that keeps 32 MiB for a slot."""
    settings = {"wal_level": "logical", "max_slot_wal_keep_size": "32MB", "max_wal_size": "32MB"}
    with (
        scratch_directory("retention-") as folder,
        embedded_postgres(folder / "pg", settings=settings) as server,
    ):
        server.create_database("old")
        yield Database(server.host, server.port, "old", server.superuser, "", "postgresql")


def test_a_slot_is_warned_of_before_it_is_lost(small_log: Database) -> None:
    source = postgres_source(small_log)
    small_log.execute("CREATE TABLE t (k int PRIMARY KEY)", "ALTER TABLE t REPLICA IDENTITY FULL")
    catalog = PostgresCatalog(source)
    assert slot_retention(source, catalog.position).left_bytes is None, "no slot yet: nothing is kept"
    catalog.prepare(catalog.tables(["t"]))
    fresh = slot_retention(source, catalog.position)
    assert (fresh.bound_bytes, fresh.endangered) == (32 * MIB, "")
    assert warnings(fresh, 0) == []
    told = []
    for _ in range(12):
        small_log.execute(WRITE_8_MIB, "CHECKPOINT")
        found = slot_retention(source, catalog.position)
        told.append(" ".join(warnings(found, 0)))
        if "has lost log" in told[-1]:
            break
    assert "gives up what it needs after" in next(filter(None, told)), told
    assert "has lost log" in told[-1]
    assert found.end > fresh.end


def test_a_transaction_that_holds_the_slot_is_what_is_to_be_ended(small_log: Database) -> None:
    source = postgres_source(small_log)
    small_log.execute("CREATE TABLE t (k int PRIMARY KEY)", "ALTER TABLE t REPLICA IDENTITY FULL")
    catalog = PostgresCatalog(source)
    catalog.prepare(catalog.tables(["t"]))
    capture_all = f"SELECT pg_replication_slot_advance('{source.slot}', pg_current_wal_lsn())"
    small_log.execute(WRITE_8_MIB)
    late = slot_retention(source, catalog.position).remedy
    assert "help the migration to catch up" in late, "nothing is captured: the run is what is late"
    with psycopg.connect(small_log.dsn) as held:
        held.execute("INSERT INTO t VALUES (1)")
        small_log.execute(WRITE_8_MIB, "CHECKPOINT", capture_all)
        remedy = slot_retention(source, catalog.position).remedy
        assert "end the transaction that has been open there for longest" in remedy
        (query,) = re.findall("SELECT .* ORDER BY xact_start", remedy)
        assert [row[0] for row in small_log.query(query)] == [held.info.backend_pid]
    small_log.execute("CHECKPOINT", capture_all, "CHECKPOINT", capture_all, WRITE_8_MIB)
    assert slot_retention(source, catalog.position).remedy == late


def test_without_a_bound_nothing_is_warned_of(old_pg: Database) -> None:
    source = postgres_source(old_pg)
    old_pg.execute("CREATE TABLE t (k int PRIMARY KEY)", "ALTER TABLE t REPLICA IDENTITY FULL")
    catalog = PostgresCatalog(source)
    catalog.prepare(catalog.tables(["t"]))
    old_pg.execute(WRITE_8_MIB)
    found = slot_retention(source, catalog.position)
    assert (found.kept_bytes or 0) > MIB
    assert (found.left_bytes, found.bound_bytes, warnings(found, 1e9)) == (None, None, [])


def test_binlogs_expire_after_what_the_server_says(spare_database: Database) -> None:
    source = binlog_source(spare_database)
    ((before,),) = spare_database.query("SELECT @@global.binlog_expire_logs_seconds")
    try:
        spare_database.execute("SET GLOBAL binlog_expire_logs_seconds = 7200")
        found = binlog_retention(source, lambda: AT, maria_name)
        assert (found.end, found.expiry_s) == (AT, 7200)
        assert warnings(found, 3000) == []
        assert "binlog_expire_logs_seconds" in " ".join(warnings(found, 4000))
        spare_database.execute("SET GLOBAL binlog_expire_logs_seconds = 0")
        assert binlog_retention(source, lambda: AT, maria_name).expiry_s is None, "it keeps them"
    finally:
        spare_database.execute(f"SET GLOBAL binlog_expire_logs_seconds = {before}")


def test_binlogs_are_told_from_what_is_captured_on_where_the_login_may_see_them(
    engine: BinlogEngine, spare_database: Database
) -> None:
    source = binlog_source(spare_database)
    spare_database.execute("CREATE TABLE t (k int PRIMARY KEY, v longtext)")
    reader, _ = engine.started(source, "t")
    spare_database.execute("INSERT INTO t VALUES (1, 'x')")
    (captured,) = [part.position for part in read_to(reader, engine.end(source)).parts()]
    reader.close()

    named = {"mariadb": maria_name, "mysql": mysql_name}

    def kept(from_there: Position | None, **login: str) -> int | None:
        asked = binlog_source(spare_database, **login)
        return binlog_retention(asked, lambda: AT, named[engine.kind], from_there).kept_bytes

    assert kept(captured) == 0, "all of it is captured"
    spare_database.execute(f"INSERT INTO t VALUES (2, REPEAT('x', {MIB}))", "FLUSH BINARY LOGS")
    spare_database.execute(f"INSERT INTO t VALUES (3, REPEAT('x', {MIB}))")
    found = kept(captured)
    assert found is not None
    assert 2 * MIB < found < 2 * MIB + 8192, "of two files"
    assert kept(None) is None, "nothing is captured yet"
    user = f"k{spare_database.database[-8:]}"
    spare_database.execute(
        f"CREATE USER '{user}'@'%' IDENTIFIED BY 'p'",
        f"GRANT REPLICATION SLAVE ON *.* TO '{user}'@'%'",
        f"GRANT SELECT ON `{spare_database.database}`.* TO '{user}'@'%'",
    )
    login = {"user": user, "password": "p", "tls": engine.password_tls}
    try:
        assert kept(captured, **login) is None, "it may not see them, and no error comes of it"
        monitor = "BINLOG MONITOR" if engine.kind == "mariadb" else "REPLICATION CLIENT"
        spare_database.execute(f"GRANT {monitor} ON *.* TO '{user}'@'%'")
        assert kept(captured, **login) == kept(captured), "the right that is printed is the one"
    finally:
        spare_database.execute(f"DROP USER '{user}'@'%'")


def test_behind_another_server_nothing_is_known_until_a_transaction_of_its_own_log_is_captured(
    engine: BinlogEngine, spare_database: Database, request: pytest.FixtureRequest
) -> None:
    """A promoted replica names its files by itself: a place in the old primary's is in one of these by chance."""
    promoted: Database = request.getfixturevalue("old_maria" if engine.kind == "mariadb" else "old_mysql")
    name = maria_name if engine.kind == "mariadb" else mysql_name

    def captured_of(database: Database) -> Position:
        database.execute("CREATE TABLE t (k int PRIMARY KEY, v longtext)")
        reader, _ = engine.started(binlog_source(database), "t")
        database.execute("INSERT INTO t VALUES (1, 'x')")
        (part,) = read_to(reader, engine.end(binlog_source(database))).parts()
        reader.close()
        return part.position

    def kept(database: Database, place: Position) -> int | None:
        return binlog_retention(binlog_source(database), lambda: AT, name, place).kept_bytes

    with binlog_connect(binlog_source(spare_database)) as old, binlog_connect(binlog_source(promoted)) as new:
        marks = [server_mark(name(one)) for one in (old, new)]
    before, after = captured_of(spare_database), captured_of(promoted)
    assert [json.loads(place.token)["server"] for place in (before, after)] == marks
    assert kept(spare_database, before) == 0
    there = json.loads(after.token)
    by_chance = json.dumps(json.loads(before.token) | {"file": there["file"], "offset": there["offset"]})
    assert kept(promoted, Position(before.order, by_chance)) is None
    assert kept(promoted, after) is not None, "the control: a place of its own in that very file is known"
    unmarked = {name: value for name, value in there.items() if name != "server"}
    assert kept(promoted, Position(1, json.dumps(unmarked))) is None, (
        "an earlier version's doesn't say whose it is"
    )


def test_a_bound_by_size_is_told_until_the_file_is_purged(
    engine: BinlogEngine, spare_database: Database
) -> None:
    """MariaDB from 11.4 on: with it, "without a bound" was said of a log that was about to be lost."""
    if not spare_database.query("SHOW GLOBAL VARIABLES LIKE 'max\\_binlog\\_total\\_size'"):
        pytest.skip("this server doesn't purge by size")
    source, bound = binlog_source(spare_database), 64 * MIB
    spare_database.execute("CREATE TABLE t (k int PRIMARY KEY, v longtext)")
    reader, _ = engine.started(source, "t")
    spare_database.execute("INSERT INTO t VALUES (0, 'x')")
    (captured,) = [part.position for part in read_to(reader, engine.end(source)).parts()]
    reader.close()
    assert binlog_retention(source, lambda: AT, maria_name, captured).left_bytes is None, "the control"
    names = ("max_binlog_total_size", "slave_connections_needed_for_purge")
    before = {name: spare_database.query(f"SELECT @@global.{name}")[0][0] for name in names}
    spare_database.execute(
        *(f"SET GLOBAL {name} = {value}" for name, value in zip(names, (bound, 0), strict=True))
    )
    try:
        left: list[int] = []
        for number in range(1, 40):
            found = binlog_retention(source, lambda: AT, maria_name, captured)
            if found.left_bytes is None:
                break
            assert found.bound_bytes == bound
            assert "max_binlog_total_size" in found.remedy
            left.append(found.left_bytes)
            spare_database.execute(
                f"INSERT INTO t VALUES ({number}, REPEAT('x', {8 * MIB}))", "FLUSH BINARY LOGS"
            )
        assert found.kept_bytes is None, "its file was purged"
        assert left == sorted(left, reverse=True)
        assert bound - MIB < left[0] <= bound
        assert left[-1] < 9 * MIB, "and not before the bound was near"
        assert warnings(replace(found, left_bytes=left[-1]), 0)
    finally:
        spare_database.execute(*(f"SET GLOBAL {name} = {value}" for name, value in before.items()))


def test_of_a_purged_file_nothing_is_known(engine: BinlogEngine, spare_database: Database) -> None:
    source = binlog_source(spare_database)
    name = maria_name if engine.kind == "mariadb" else mysql_name
    spare_database.execute("CREATE TABLE t (k int PRIMARY KEY, v longtext)")
    reader, _ = engine.started(source, "t")
    spare_database.execute("INSERT INTO t VALUES (1, 'x')")
    (captured,) = [part.position for part in read_to(reader, engine.end(source)).parts()]
    reader.close()
    spare_database.execute("FLUSH BINARY LOGS", "INSERT INTO t VALUES (2, 'y')")

    def kept() -> int | None:
        return binlog_retention(source, lambda: AT, name, captured).kept_bytes

    assert (kept() or 0) > 0, "the control"
    file = str(spare_database.query("SHOW BINARY LOGS")[-1][0])

    def purged() -> bool:  # a dump thread that ends just now may still hold the file
        spare_database.execute(f"PURGE BINARY LOGS TO '{file}'")
        return len(spare_database.query("SHOW BINARY LOGS")) == 1

    await_true(purged, "the files before are gone")
    assert kept() is None


def test_a_source_that_can_not_be_asked_is_named(old_pg: Database) -> None:
    with pytest.raises(ConnectionFailed):
        slot_retention(postgres_source(old_pg, port=1), lambda: AT)
    with pytest.raises(ConnectionFailed):
        binlog_retention(binlog_source(old_pg, port=1), lambda: AT, maria_name)
