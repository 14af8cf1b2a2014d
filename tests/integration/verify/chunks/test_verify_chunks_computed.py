"""Computed columns whose digests servers of two engines compute: all that is equal is, all that differs is
found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.integration.judged import settings_of as settings
from tests.integration.verify.chunks.test_verify_chunks_binlog import LEDGER, ledger
from tests.servers import Database
from verify.tables.findings.differing import read_differing
from verify.tables.result import VerifyResult
from verify.tables.run import verify
from verify.tables.sweeps.chunk_sweep import CHUNK_ROWS

pytestmark = [pytest.mark.integration, pytest.mark.spark]

MAPPING = """
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from transforms import Mapping
from transforms.columns import cents, flag, instant, mysql_date, mysql_datetime

mapping = Mapping()


@mapping.target("item", key="id")
def item(thing: DataFrame) -> DataFrame:
    return thing.select(
        "id",
        F.lower("note").alias("note"),
        cents("total").alias("total_cents"),
        mysql_date("born").alias("born"),
        mysql_datetime("seen").alias("seen"),
        instant(mysql_datetime("at"), "UTC").alias("at"),
        flag("paid").alias("is_paid"),
        "ratio",
        F.hex("raw").alias("code"),
        F.concat_ws("-", F.substring("note", 1, 2), F.nvl("state", F.lit("none"))).alias("label"),
    )
"""
OLD = """
CREATE TABLE thing (id int PRIMARY KEY, note varchar(20) CHARACTER SET latin1 NOT NULL, total decimal(12,2),
 born date, seen datetime NOT NULL, at timestamp(6) NULL, paid smallint NOT NULL, ratio double,
 raw binary(16), state enum('a', 'b'))
"""
VALUES = """
INSERT INTO thing VALUES
 (1, 'Plain, sir', 1.50, '2024-02-29', '2024-03-31 02:30:00', '2024-03-31 02:30:00.500000', 1, 0.1,
  X'0e984725c51c4bf49960e1c80e27aba0', 'a'),
 (2, '', -0.01, '0000-00-00', '0000-00-00', NULL, 0, NULL, NULL, NULL),
 (3, ' X ', NULL, NULL, '9999-12-31 23:59:59', '1970-01-01 00:00:01', 1, -1234567.875, NULL, 'b'),
 (4, 'ABC', 9999999999.99, '0001-01-01', '1000-01-01 00:00:00', '2038-01-19 03:14:07.999999', 0, 123456.75, NULL,
  NULL)
"""
NEW = {
    "postgresql": "CREATE TABLE item (id int PRIMARY KEY, note text, total_cents bigint, born date, seen timestamp,"
    " at timestamptz, is_paid boolean, ratio double precision, code uuid, label text)",
    "mysql": "CREATE TABLE item (id int PRIMARY KEY, note varchar(20) CHARACTER SET utf8mb4, total_cents bigint,"
    " born date, seen datetime(6), at timestamp(6) NULL, is_paid tinyint(1), ratio double,"
    " code char(32), label varchar(30))",
}
CODE = "0E984725C51C4BF49960E1C80E27ABA0"
"""Of both engines: PostgreSQL reads it as a UUID."""
ROWS = [
    (
        1,
        "plain, sir",
        150,
        "2024-02-29",
        "2024-03-31 02:30:00",
        "2024-03-31 02:30:00.500000",
        True,
        0.1,
        CODE,
        "Pl-a",
    ),
    (2, "", -1, None, None, None, False, None, None, "-none"),
    (
        3,
        " x ",
        None,
        None,
        "9999-12-31 23:59:59",
        "1970-01-01 00:00:01",
        True,
        -1234567.875,
        None,
        " X-b",
    ),
    (
        4,
        "abc",
        999999999999,
        "0001-01-01",
        "1000-01-01 00:00:00",
        "2038-01-19 03:14:07.999999",
        False,
        123456.75,
        None,
        "AB-none",
    ),
]
# Of each batch one change in a row at most, each row in a chunk of its own: no difference hides behind another one.
PLANTED = (
    {
        1: ("born", "'2024-03-01'"),
        2: ("seen", "'1999-12-31'"),
        3: ("note", "'x'"),
        4: ("total_cents", "999999999998"),
    },
    {
        1: ("seen", "'2024-03-31 02:30:00.000001'"),
        2: ("is_paid", "true"),
        3: ("total_cents", "0"),
        4: ("note", "'abd'"),
    },
    {
        1: ("at", "NULL"),
        2: ("ratio", "0"),
        3: ("at", "'1970-01-01 00:00:01.000001'"),
        4: ("born", "NULL"),
    },
    {1: ("is_paid", "NULL")},
    {1: ("ratio", "0.10000000000000002"), 2: ("label", "'-None'"), 3: ("code", f"'{CODE}'")},
    {1: ("code", f"'{CODE[:-1]}1'"), 3: ("label", "' X-a'")},
)


@pytest.fixture(params=["postgresql", "mysql"])
def pair(request: pytest.FixtureRequest, old_binlog: Database) -> tuple[Database, Database]:
    """Both databases, filled alike; the new one is PostgreSQL's, or of the source's own engine."""
    own = "new_mysql" if old_binlog.kind == "mysql" else "new_maria"
    new: Database = request.getfixturevalue("new_pg" if request.param == "postgresql" else own)
    with old_binlog.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = ''")
        cursor.execute(OLD)
        cursor.execute(VALUES)
        connection.commit()
    state = ledger(old_binlog)
    postgres = request.param == "postgresql"
    table = LEDGER.format("migrator.ledger" if postgres else "migrator_ledger")
    with new.connect() as connection, connection.cursor() as cursor:
        if postgres:
            cursor.execute(f"ALTER DATABASE \"{new.database}\" SET TimeZone = 'UTC'")
            cursor.execute("SET TimeZone = 'UTC'")
            cursor.execute("CREATE SCHEMA migrator")
        else:  # it may be the source's log
            cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(table if postgres else table.replace("numeric", "decimal"))
        cursor.execute(NEW[request.param])
        fill(cursor)
        name = "migrator.ledger" if postgres else "migrator_ledger"
        cursor.execute(f"INSERT INTO {name} VALUES (%s, %s, %s, %s, %s, %s)", state)
        connection.commit()
    return old_binlog, new


def fill(cursor: Any) -> None:
    """The new rows, as the mapping makes them."""
    cursor.execute("DELETE FROM item")
    cursor.executemany(f"INSERT INTO item VALUES ({', '.join(['%s'] * 10)})", ROWS)


def plant(new: Database, changes: Mapping[int, tuple[str, str]]) -> None:
    """The new rows with a column of some of them changed."""
    with new.connect() as connection, connection.cursor() as cursor:
        if new.kind != "postgresql":  # it may be the source's log
            cursor.execute("SET SESSION sql_log_bin = 0")
        fill(cursor)
        for key, (column, value) in changes.items():
            cursor.execute(f"UPDATE item SET {column} = {value} WHERE id = {key}")
        connection.commit()


def judged(
    pair: tuple[Database, Database], spark: SparkSession, folder: Path, rows: int = CHUNK_ROWS
) -> VerifyResult:
    mapping = folder / "mapping.py"
    mapping.write_text(MAPPING)
    sides = settings(pair[0]), settings(pair[1])
    return verify(*sides, "m", mapping, None, lambda: spark, folder / "r", wait_s=5, chunk_rows=rows)


@pytest.mark.slow
def test_no_row_of_an_equal_table_is_read_and_every_difference_is(
    pair: tuple[Database, Database], spark: SparkSession, tmp_path: Path
) -> None:
    table = judged(pair, spark, tmp_path).tables[0]
    assert (table.counts.equal, table.counts.compared) == (4, 4)
    assert table.method.endswith("hashes computed by both servers, no row read")
    for batch in PLANTED:
        plant(pair[1], batch)
        table = judged(pair, spark, tmp_path, rows=1).tables[0]
        keys = read_differing(tmp_path / "r" / "verify.json").keys
        assert {(each.status, each.key) for each in keys} == {("different", (str(key),)) for key in batch}
        assert table.method.endswith(f"hashes computed by both servers, {len(batch)} rows of the source read")
        cells = [(sample.key[0][1], cell) for sample in table.samples for cell in sample.cells]
        assert {(key, cell.column) for key, cell in cells if cell.differs} == {
            (str(key), column) for key, (column, _) in batch.items()
        }


def test_a_row_that_the_mapping_refuses_is_not_taken_for_equal(
    pair: tuple[Database, Database], spark: SparkSession, tmp_path: Path
) -> None:
    """The same impossible day on both sides, where the target can have one; or a flag that is none."""
    old, new = pair
    both = new.kind != "postgresql"
    change = "born = '2024-02-00'" if both else "paid = 2"
    for database, table in ((old, "thing"), (new, "item"))[: 2 if both else 1]:
        with database.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_mode = '', sql_log_bin = 0")
            cursor.execute(f"UPDATE {table} SET {change} WHERE id = 1")
            connection.commit()
    with pytest.raises(Exception, match=r"is no flag|is no full date"):
        judged(pair, spark, tmp_path)
