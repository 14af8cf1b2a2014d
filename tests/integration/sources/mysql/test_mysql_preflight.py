"""Preflight against a real MySQL: what only its tables and settings have in the way, all found and named."""

from __future__ import annotations

import pytest

from tests.integration.binlog_engine import MYSQL, BinlogEngine
from tests.integration.sources.binlog_preflight import expect_setting_checked, obstacles, without_watermark
from tests.servers import Database, has_mysql

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def engine() -> BinlogEngine:
    """These tests are this engine's."""
    return MYSQL


def test_all_obstacles_of_tables_are_found_at_once(engine: BinlogEngine, spare_database: Database) -> None:
    vector = ", v vector(2)" if has_mysql(9, 0) else ""
    spare_database.execute(
        f"CREATE TABLE fine (id int PRIMARY KEY, i int INVISIBLE, j json{vector})",
        "CREATE TABLE keyless (a int, b int, UNIQUE (a))",
        "CREATE TABLE old_engine (id int PRIMARY KEY) ENGINE = MyISAM",
        "CREATE VIEW seen AS SELECT * FROM fine",
        "CREATE TABLE types (id int PRIMARY KEY, g varchar(10) CHARACTER SET gbk,"
        " ok varchar(10) CHARACTER SET latin7, __sign int)",
    )
    name = spare_database.database
    tables = ["fine", "keyless", "old_engine", "seen", "types", "absent"]
    assert set(obstacles(engine, spare_database, *tables)) == {
        f"key: {name}.keyless",
        f"engine: {name}.old_engine",
        f"table: {name}.seen",
        f"table: {name}.absent",
        f"column name: {name}.types.__sign",
    }


def test_partial_json_is_refused(engine: BinlogEngine, spare_database: Database) -> None:
    expect_setting_checked(engine, spare_database, "binlog_row_value_options", "'PARTIAL_JSON'", "''")


def test_a_watermark_needs_commits_in_order_and_a_witness_does_not(
    engine: BinlogEngine, spare_database: Database
) -> None:
    spare_database.execute("SET GLOBAL binlog_order_commits = OFF")
    try:
        assert obstacles(engine, spare_database) == {}
        where = f"{spare_database.host}:{spare_database.port}"
        assert set(obstacles(engine, without_watermark(spare_database), placement="watermark")) == {
            f"binlog_order_commits: {where}",
            "watermark: migrator.watermark",
        }
    finally:
        spare_database.execute("SET GLOBAL binlog_order_commits = ON")


def test_gtids_are_demanded(engine: BinlogEngine, spare_database: Database) -> None:
    spare_database.execute("SET GLOBAL gtid_mode = ON_PERMISSIVE")
    try:
        assert list(obstacles(engine, spare_database)) == [
            f"gtid_mode: {spare_database.host}:{spare_database.port}"
        ]
    finally:
        spare_database.execute("SET GLOBAL gtid_mode = ON")
