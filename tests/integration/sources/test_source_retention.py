"""What real servers tell of how long they keep their log, up to the moment at which they don't."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from migrator.adapters.sources.binlog.retention import binlog_retention
from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.retention import slot_retention
from migrator.embedded.process import scratch_directory
from migrator.errors import ConnectionFailed
from migrator.model.position import Position
from migrator.run.capture.retention_watch import warnings
from tests.fix_postgres_source import source_of as postgres_source
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import read_to
from tests.integration.binlog_reading import source_of as binlog_source
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
        found = binlog_retention(source, lambda: AT)
        assert (found.end, found.expiry_s) == (AT, 7200)
        assert warnings(found, 3000) == []
        assert "binlog_expire_logs_seconds" in " ".join(warnings(found, 4000))
        spare_database.execute("SET GLOBAL binlog_expire_logs_seconds = 0")
        assert binlog_retention(source, lambda: AT).expiry_s is None, "it keeps them"
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

    def kept(from_there: Position | None, **login: str) -> int | None:
        return binlog_retention(binlog_source(spare_database, **login), lambda: AT, from_there).kept_bytes

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


def test_a_source_that_can_not_be_asked_is_named(old_pg: Database) -> None:
    with pytest.raises(ConnectionFailed):
        slot_retention(postgres_source(old_pg, port=1), lambda: AT)
    with pytest.raises(ConnectionFailed):
        binlog_retention(binlog_source(old_pg, port=1), lambda: AT)
