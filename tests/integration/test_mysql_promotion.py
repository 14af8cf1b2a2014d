"""A promoted replica is read on from where the old primary was left, and one that lacks transactions is refused."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from migrator.adapters.mysql.catalog import MysqlCatalog
from migrator.adapters.mysql.log_reader import MysqlLogReader
from migrator.embedded.mysql import EmbeddedMySQL, MySQLUnavailable, install_mysql
from migrator.embedded.process import scratch_directory
from migrator.errors import GapError
from tests.integration.binlog_reading import DEADLINE_S, Read, read_to, source_of
from tests.servers import Database

pytestmark = pytest.mark.integration


def database_of(server: EmbeddedMySQL, name: str = "old") -> Database:
    return Database(server.host, server.port, name, server.superuser, "", "mysql")


@pytest.fixture
def pair() -> Iterator[tuple[EmbeddedMySQL, EmbeddedMySQL]]:
    try:
        install_mysql()
    except MySQLUnavailable as error:
        pytest.skip(str(error))
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_directory("migrator-promotion-"))
        primary = stack.enter_context(EmbeddedMySQL(folder / "primary", settings={"server-id": "101"}))
        replica = stack.enter_context(EmbeddedMySQL(folder / "replica", settings={"server-id": "102"}))
        database_of(replica, "mysql").execute(
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{primary.host}', SOURCE_PORT = {primary.port},"
            " SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1",
            "START REPLICA",
        )
        yield primary, replica


def await_same(primary: EmbeddedMySQL, replica: EmbeddedMySQL) -> None:
    wanted = database_of(primary, "mysql").query("SELECT @@GLOBAL.gtid_executed")[0][0]
    deadline = time.monotonic() + DEADLINE_S
    while not database_of(replica, "mysql").query(
        "SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_executed)", (wanted,)
    )[0][0]:
        assert time.monotonic() < deadline, "the replica doesn't catch up"
        threading.Event().wait(0.05)


def test_reading_goes_on_from_a_promoted_replica(pair: tuple[EmbeddedMySQL, EmbeddedMySQL]) -> None:
    primary, replica = pair
    primary.create_database("old")
    old, new = database_of(primary), database_of(replica)
    old.execute("CREATE TABLE t (id int PRIMARY KEY)")
    source = source_of(old)
    tables = MysqlCatalog(source).tables(["t"])
    reader, read = MysqlLogReader(source, tables), Read()
    reader.start(None)
    old.execute("INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)")
    read_to(reader, MysqlCatalog(source).position(), read)
    last = read.parts()[-1].position
    reader.close()
    old.execute("INSERT INTO t VALUES (3)")  # the reader hasn't seen it when the primary dies
    await_same(primary, replica)
    primary.kill()
    new.execute("STOP REPLICA", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (4)")
    promoted = source_of(new)
    reader = MysqlLogReader(promoted, tables)
    assert reader.start(last) == last
    read_to(reader, MysqlCatalog(promoted).position(), read)
    reader.close()
    assert [change.after for change in read.changes()] == [("1",), ("2",), ("3",), ("4",)]
    orders = [part.position.order for part in read.parts()]
    assert orders == list(range(orders[0], orders[0] + 4))


def test_a_replica_that_lacks_transactions_is_a_gap(pair: tuple[EmbeddedMySQL, EmbeddedMySQL]) -> None:
    primary, replica = pair
    primary.create_database("old")
    old = database_of(primary)
    old.execute("CREATE TABLE t (id int PRIMARY KEY)")
    await_same(primary, replica)
    new = database_of(replica)
    new.execute("STOP REPLICA")
    old.execute("INSERT INTO t VALUES (1)")  # acknowledged by the primary alone
    position = MysqlCatalog(source_of(old)).position()
    primary.kill()
    new.execute("INSERT INTO t VALUES (2)", "INSERT INTO t VALUES (3)")
    promoted = source_of(new)
    reader = MysqlLogReader(promoted, MysqlCatalog(promoted).tables(["t"]))
    with pytest.raises(GapError, match="ends before"):
        reader.start(position)
