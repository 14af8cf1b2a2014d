"""The judge piece by piece from MySQL and MariaDB: hashes across engines and within one, and what they must see."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.model.codecs.codec import checkpoint_to_json
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.table import TableId
from tests.integration.judged import settings_of as settings
from tests.integration.verify.chunks.chunk_project import PLAIN
from tests.integration.verify.test_verify_binlog import reader_of
from tests.servers import Database
from verify.tables.findings.differing import read_differing
from verify.tables.result import VerifyResult
from verify.tables.run import verify
from verify.verdict import Verdict

pytestmark = [pytest.mark.integration, pytest.mark.spark]

OLD = """
CREATE TABLE thing (
  id bigint unsigned, part int, exact decimal(38,10), whole decimal(20,0), n int,
  note varchar(50) CHARACTER SET latin1, raw varbinary(9), ratio double, small float,
  code char(36), made year, lasts time(6), kind set('x', 'y'), PRIMARY KEY (part, id))
"""
VALUES = """
INSERT INTO thing VALUES
 (18446744073709551615, 1, 9999999999999999999999999999.0123456789, 100, -7, 'é€ ', X'00ff', 0.1, 0.1,
  '0E984725-C51C-4BF4-9960-E1C80E27ABA0', 1999, '12:00:00.5', 'x,y'),
 (9007199254740993, 1, 1.5, 0, NULL, '', X'', 1e300, 1e38, NULL, NULL, NULL, NULL),
 (9007199254740992, 1, -0.0000000001, NULL, 0, NULL, NULL, 5e-324, NULL,
  '0e984725-c51c-4bf4-9960-e1c80e27aba1', 0, '00:00:00', ''),
 (3, 2, 100, 9007199254740993, 3, 'a:1', X'31', -1e-15, 1e-40, NULL, NULL, NULL, NULL),
 (4, 2, NULL, NULL, NULL, NULL, NULL, 0.3, NULL, NULL, NULL, NULL, NULL),
 (5, -2, 0, 1, 2, '3', X'33', NULL, -1, NULL, NULL, NULL, 'y')
"""
ON_POSTGRESQL = """
CREATE TABLE item (
  item_id numeric(20,0), part bigint, exact numeric(38,10), whole numeric(20,0), n bigint, note text, raw bytea,
  ratio double precision, small real, code uuid, made smallint, lasts time, kind varchar(9),
  PRIMARY KEY (part, item_id))
"""
LEDGER = (
    "CREATE TABLE {} (migration varchar(50) PRIMARY KEY, epoch bigint, segment bigint,"
    " position_order numeric(39,0), position_token text, checkpoint text)"
)
PLANTED = {
    (
        "different",
        "9007199254740993",
    ): "UPDATE item SET exact = 1.5000000001 WHERE item_id = 9007199254740993",
    ("different", "9007199254740992"): "UPDATE item SET note = '' WHERE item_id = 9007199254740992",
    ("different", "3"): "UPDATE item SET whole = 9007199254740992 WHERE item_id = 3",
    ("different", "4"): "UPDATE item SET ratio = 0.30000000000000004 WHERE item_id = 4",
    (
        "different",
        "18446744073709551615",
    ): "UPDATE item SET small = 0.10000001 WHERE item_id > 9007199254740993",
    ("missing", "5"): "DELETE FROM item WHERE item_id = 5",
    ("extra", "0"): "INSERT INTO item (part, item_id) VALUES (1, 0)",
    ("extra", "77"): "INSERT INTO item (part, item_id) VALUES (9, 77)",
}


def rows_of(database: Database) -> list[tuple[object, ...]]:
    with database.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM thing")
        return list(cursor.fetchall())


def ledger(old: Database) -> tuple[object, ...]:
    place = reader_of(old).position()
    token = json.dumps({"gtid": place.state, "file": "", "offset": 0})
    position = Position(place.order, token)
    checkpoint = Checkpoint(position, dumps=(TableDump(TableId(old.database, "thing"), done=True),))
    return ("m", 1, 1, place.order, token, json.dumps(checkpoint_to_json(checkpoint)))


def judged(old: Database, new: Database, spark: SparkSession, folder: Path, rows: int) -> VerifyResult:
    mapping = folder / "mapping.py"
    mapping.write_text(PLAIN.replace('key="item_id"', 'key=("part", "item_id")'))
    sides = settings(old), settings(new)
    return verify(*sides, "m", mapping, None, lambda: spark, folder / "r", wait_s=5, chunk_rows=rows)


def check(old: Database, new: Database, spark: SparkSession, folder: Path) -> None:
    for rows in (2, 100):
        table = judged(old, new, spark, folder, rows).tables[0]
        assert (table.counts.equal, table.counts.compared) == (6, 6)
        assert table.method.endswith("hashes computed by both servers, no row read")
    unlogged = (
        ["SET SESSION sql_log_bin = 0"] if new.kind != "postgresql" else []
    )  # it may be the source's log
    with new.connect() as connection, connection.cursor() as cursor:
        for statement in (*unlogged, *PLANTED.values()):
            cursor.execute(statement)
        connection.commit()
    judged(old, new, spark, folder, 2)
    keys = read_differing(folder / "r" / "verify.json").keys
    assert {(each.status, each.key[1]) for each in keys} == set(PLANTED)


@pytest.mark.slow
def test_to_postgresql(old_binlog: Database, new_pg: Database, spark: SparkSession, tmp_path: Path) -> None:
    old_binlog.execute(OLD, VALUES)
    new_pg.execute(ON_POSTGRESQL, "CREATE SCHEMA migrator", LEDGER.format("migrator.ledger"))
    with new_pg.connect() as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO item VALUES ({})".format(", ".join(["%s"] * 13)), rows_of(old_binlog))
        cursor.execute("INSERT INTO migrator.ledger VALUES (%s, %s, %s, %s, %s, %s)", ledger(old_binlog))
    check(old_binlog, new_pg, spark, tmp_path)


def test_to_the_same_engine(
    old_binlog: Database, request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path
) -> None:
    new: Database = request.getfixturevalue("new_mysql" if old_binlog.kind == "mysql" else "new_maria")
    old_binlog.execute(OLD, VALUES)
    new.execute(
        OLD.replace("TABLE thing", "TABLE item")
        .replace(" id bigint", " item_id bigint")
        .replace(", id)", ", item_id)"),
        LEDGER.format("migrator_ledger").replace("numeric", "decimal"),
        f"INSERT INTO item SELECT * FROM {old_binlog.database}.thing",
    )
    values = ledger(old_binlog)  # after the last write: both databases are on one server, with one log
    with new.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute("INSERT INTO migrator_ledger VALUES (%s, %s, %s, %s, %s, %s)", values)
        connection.commit()
    check(old_binlog, new, spark, tmp_path)


@pytest.mark.slow
def test_what_a_session_wrote_past_the_log_is_found(
    old_binlog: Database, new_pg: Database, spark: SparkSession, tmp_path: Path
) -> None:
    """The log has nothing of it, and no log reader can notice; the judge compares tables."""
    old_binlog.execute(OLD, VALUES)
    new_pg.execute(ON_POSTGRESQL, "CREATE SCHEMA migrator", LEDGER.format("migrator.ledger"))
    with new_pg.connect() as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO item VALUES ({})".format(", ".join(["%s"] * 13)), rows_of(old_binlog))
        cursor.execute("INSERT INTO migrator.ledger VALUES (%s, %s, %s, %s, %s, %s)", ledger(old_binlog))
    end = reader_of(old_binlog).position()
    with old_binlog.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute("UPDATE thing SET note = 'unlogged' WHERE id = 3")
        cursor.execute("DELETE FROM thing WHERE id = 4")
        connection.commit()
    assert reader_of(old_binlog).position() == end, "the log knows nothing"
    assert judged(old_binlog, new_pg, spark, tmp_path, 2).verdict is Verdict.DIFFERENT
    keys = read_differing(tmp_path / "r" / "verify.json").keys
    assert {(each.status, each.key[1]) for each in keys} == {("different", "3"), ("extra", "4")}


@pytest.mark.slow
def test_a_sign_of_zero_that_mariadb_cannot_keep_is_no_difference(
    old_mysql: Database, new_maria: Database, spark: SparkSession, tmp_path: Path
) -> None:
    columns = "(part int, {} int, ratio double, small float, PRIMARY KEY (part, {}))"
    values = "(1, 1, -0e0, -0e0), (1, 2, 0e0, 0e0), (1, 3, 0.1, 0.1), (1, 4, NULL, NULL)"
    old_mysql.execute(
        f"CREATE TABLE thing {columns.format('id', 'id')}", f"INSERT INTO thing VALUES {values}"
    )
    new_maria.execute(
        f"CREATE TABLE item {columns.format('item_id', 'item_id')}",
        f"INSERT INTO item VALUES {values}",
        LEDGER.format("migrator_ledger").replace("numeric", "decimal"),
    )
    assert old_mysql.query("SELECT CAST(ratio AS CHAR) FROM thing WHERE id = 1") == [("-0",)]
    assert new_maria.query("SELECT CAST(ratio AS CHAR) FROM item WHERE item_id = 1") == [("0",)]
    with new_maria.connect() as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO migrator_ledger VALUES (%s, %s, %s, %s, %s, %s)", ledger(old_mysql))
    assert judged(old_mysql, new_maria, spark, tmp_path, 100).verdict is Verdict.EQUAL
    new_maria.execute("UPDATE item SET ratio = 5e-324, small = 1e-45 WHERE item_id = 1")
    table = judged(old_mysql, new_maria, spark, tmp_path, 100).tables[0]
    assert (table.counts.equal, {column.column for column in table.columns}) == (3, {"ratio", "small"})
