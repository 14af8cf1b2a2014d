"""Preflight against a real MariaDB: what only its tables and settings have in the way, all found and named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.integration.binlog_engine import MARIADB, BinlogEngine
from tests.integration.sources.binlog_preflight import found_besides_accounts, obstacles
from tests.servers import Database

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def engine() -> BinlogEngine:
    """These tests are this engine's."""
    return MARIADB


def test_all_obstacles_of_tables_are_found_at_once(engine: BinlogEngine, spare_database: Database) -> None:
    spare_database.execute(
        "CREATE TABLE parent (id int PRIMARY KEY)",
        "CREATE TABLE child (id int PRIMARY KEY, p int, q int,"
        " CONSTRAINT gone FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE,"
        " CONSTRAINT lost FOREIGN KEY (q) REFERENCES parent (id) ON DELETE SET NULL ON UPDATE CASCADE)",
        "CREATE TABLE fine (id int PRIMARY KEY, p int, FOREIGN KEY (p) REFERENCES parent (id))",
        "CREATE TABLE keyless (a int, b int, UNIQUE (a))",
        "CREATE TABLE old_engine (id int PRIMARY KEY) ENGINE = MyISAM",
        "CREATE VIEW seen AS SELECT * FROM fine",
        "CREATE TABLE history (id int PRIMARY KEY) WITH SYSTEM VERSIONING",
        "CREATE TABLE types (id int PRIMARY KEY, u uuid, i inet6, c varchar(900) COMPRESSED, b blob COMPRESSED,"
        " y year(2), g varchar(10) CHARACTER SET gbk, ok varchar(10) CHARACTER SET latin7,"
        " __sign int)",
    )
    name = spare_database.database
    tables = ["child", "fine", "keyless", "old_engine", "seen", "history", "types", "absent"]
    found = obstacles(engine, spare_database, *tables)
    assert set(found) == {
        f"key: {name}.keyless",
        f"engine: {name}.old_engine",
        f"table: {name}.seen",
        f"table: {name}.history",
        f"column type: {name}.types.y",
        f"table: {name}.absent",
        f"column name: {name}.types.__sign",
    }


def test_a_replica_whose_log_lacks_what_it_replicates_is_refused(
    engine: BinlogEngine, spare_database: Database
) -> None:
    assert obstacles(engine, spare_database) == {}, "the control: no replica"
    at_it = f"log_slave_updates: {spare_database.host}:{spare_database.port}"
    spare_database.execute("CHANGE MASTER 'far' TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1")
    try:
        assert list(obstacles(engine, spare_database)) == [at_it]
    finally:
        spare_database.execute("RESET SLAVE 'far' ALL")


def test_who_may_not_see_replicas_goes_by_the_place_in_another_servers_log(
    engine: BinlogEngine, spare_database: Database
) -> None:
    spare_database.execute(
        "CREATE USER IF NOT EXISTS narrow@'%' IDENTIFIED BY 'p'",
        f"GRANT SELECT ON {spare_database.database}.* TO narrow@'%'",
        "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO narrow@'%'",
    )
    narrow = replace(spare_database, user="narrow", password="p")
    assert obstacles(engine, narrow) == {}, "the control: no such place"
    spare_database.execute("SET GLOBAL gtid_slave_pos = '7-7-7'")
    try:
        (found,) = [one for one in found_besides_accounts(engine, narrow) if one.fatal]
        assert "is or was a replica" in found.problem
        spare_database.execute("GRANT SLAVE MONITOR ON *.* TO narrow@'%'")
        assert obstacles(engine, narrow) == {}, "the remedy, followed"
    finally:
        spare_database.execute("SET GLOBAL gtid_slave_pos = ''", "DROP USER narrow@'%'")
