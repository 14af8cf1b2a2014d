"""Preflight against a real MariaDB: what only its tables and settings have in the way, all found and named."""

from __future__ import annotations

import pytest

from tests.integration.binlog_engine import MARIADB, BinlogEngine
from tests.integration.binlog_preflight import obstacles
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
