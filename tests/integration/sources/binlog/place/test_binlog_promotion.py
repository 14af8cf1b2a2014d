"""A promoted replica is read on from where the old primary was left, and one that lacks transactions is refused."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from migrator.embedded.binlog_server import BinlogServer
from migrator.embedded.mysql import EmbeddedMySQL
from migrator.embedded.process import scratch_directory
from migrator.errors import GapError
from tests.integration.binlog_engine import MYSQL, BinlogEngine
from tests.integration.binlog_reading import DEADLINE_S, Read, fold, read_to, source_of
from tests.integration.sources.restored import Snapshots
from tests.servers import Database, embedded_mariadb, embedded_mysql, unpacked_mysql

pytestmark = pytest.mark.integration

FOLLOW = {
    "mysql": (
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{0}', SOURCE_PORT = {1}, SOURCE_USER = 'root',"
        " SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1",
        "START REPLICA",
    ),
    "mariadb": (
        "CHANGE MASTER TO MASTER_HOST = '{0}', MASTER_PORT = {1}, MASTER_USER = 'root', MASTER_USE_GTID = slave_pos",
        "START REPLICA",
    ),
}
HAS = {
    "mysql": ("SELECT @@GLOBAL.gtid_executed", "SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_executed)"),
    "mariadb": ("SELECT @@GLOBAL.gtid_binlog_pos", "SELECT %s = @@GLOBAL.gtid_binlog_pos"),
}


def database_of(server: BinlogServer, name: str = "old") -> Database:
    kind = "mysql" if isinstance(server, EmbeddedMySQL) else "mariadb"
    return Database(server.host, server.port, name, server.superuser, "", kind)


@pytest.fixture
def pair(engine: BinlogEngine) -> Iterator[tuple[BinlogServer, BinlogServer]]:
    if engine is MYSQL:
        unpacked_mysql()
    make = embedded_mysql if engine is MYSQL else embedded_mariadb
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_directory("migrator-promotion-"))
        settings = {} if engine is MYSQL else {"log-slave-updates": ""}
        primary, replica = (
            stack.enter_context(
                make(folder / f"server{number}", settings={"server-id": str(number), **settings})
            )
            for number in (101, 102)
        )
        primary.create_database("old")
        database_of(replica, "mysql").execute(
            *(statement.format(primary.host, primary.port) for statement in FOLLOW[engine.kind])
        )
        await_same(primary, replica)
        yield primary, replica


def await_same(primary: BinlogServer, replica: BinlogServer) -> None:
    place, has = HAS[database_of(primary).kind]
    wanted = database_of(primary, "mysql").query(place)[0][0]
    deadline = time.monotonic() + DEADLINE_S
    while not database_of(replica, "mysql").query(has, (wanted,))[0][0]:
        assert time.monotonic() < deadline, "the replica doesn't catch up"
        threading.Event().wait(0.05)


@pytest.mark.slow
def test_reading_goes_on_from_a_promoted_replica(
    engine: BinlogEngine, pair: tuple[BinlogServer, BinlogServer]
) -> None:
    """A transaction that was prepared on the old primary commits on the new one."""
    primary, replica = pair
    old, new = database_of(primary), database_of(replica)
    old.execute("CREATE TABLE t (id int PRIMARY KEY)")
    source = source_of(old)
    reader, tables = engine.started(source, "t")
    read = Read()
    old.execute("INSERT INTO t VALUES (1)")
    with old.connect() as connection, connection.cursor() as cursor:
        for statement in ("XA START 'x'", "INSERT INTO t VALUES (50)", "XA END 'x'", "XA PREPARE 'x'"):
            cursor.execute(statement)
    old.execute("INSERT INTO t VALUES (2)")
    read_to(reader, engine.end(source), read)
    last = read.parts()[-1].position
    reader.close()
    old.execute("INSERT INTO t VALUES (3)")  # the reader hasn't seen it when the primary dies
    await_same(primary, replica)
    primary.kill()
    new.execute("STOP REPLICA", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (4)", "XA COMMIT 'x'")
    promoted = source_of(new)
    reader = engine.log_reader(promoted, tables)
    assert reader.start(last) == last
    read_to(reader, engine.end(promoted), read)
    reader.close()
    assert [change.after for change in read.changes()] == [("1",), ("2",), ("3",), ("4",), ("50",)]
    assert len(fold(read.changes(), (0,))) == new.query("SELECT count(*) FROM t")[0][0]
    orders = [part.position.order for part in read.parts()]
    assert orders == sorted(set(orders))
    reader = engine.log_reader(promoted, tables)
    reader.start(read.parts()[0].position)
    copies = read_to(reader, engine.end(promoted)).parts()
    reader.close()
    times = [part.committed_at_us for part in read.parts()]
    assert [part.committed_at_us for part in copies] == times[1:], "the replica's log has the primary's times"


@pytest.mark.slow
def test_a_replica_that_lacks_transactions_is_a_gap(
    engine: BinlogEngine, pair: tuple[BinlogServer, BinlogServer]
) -> None:
    primary, replica = pair
    old = database_of(primary)
    old.execute("CREATE TABLE t (id int PRIMARY KEY)")
    await_same(primary, replica)
    new = database_of(replica)
    new.execute("STOP REPLICA")
    old.execute("INSERT INTO t VALUES (1)")  # acknowledged by the primary alone
    position = engine.end(source_of(old))
    primary.kill()
    new.execute("INSERT INTO t VALUES (2)", "INSERT INTO t VALUES (3)")
    promoted = source_of(new)
    reader = engine.log_reader(promoted, engine.catalog(promoted).tables(["t"]))
    with pytest.raises(GapError, match=r"ends before|has diverged"):
        reader.start(position)


@pytest.mark.slow
def test_a_replica_put_back_with_its_primary_is_refused_and_one_that_catches_up_again_is_not(
    engine: BinlogEngine, pair: tuple[BinlogServer, BinlogServer]
) -> None:
    """What the replica lost alone it gets again, the very same; what the primary lost as well is gone."""
    primary, replica = pair
    old, source = database_of(primary), source_of(database_of(replica))
    old.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    await_same(primary, replica)
    copies = [Snapshots(server, server._directory) for server in pair]
    for copy in copies:
        copy.take()
    old.execute("INSERT INTO t VALUES (2)", "INSERT INTO t VALUES (3)")
    await_same(primary, replica)
    reader, _ = engine.started(source, "t")
    place = reader.start(None)
    reader.close()
    copies[1].restore()
    await_same(primary, replica)
    assert reader.start(place) == place, "the control: it caught up again"
    reader.close()
    time.sleep(1.05 if engine is not MYSQL else 0)  # MariaDB's log has whole seconds
    for copy in copies:
        copy.restore()
    old.execute(*(f"INSERT INTO t VALUES ({key})" for key in (12, 13, 14)))
    await_same(primary, replica)
    with pytest.raises(GapError, match="isn't the log that was read"):
        reader.start(place)
    reader.close()
