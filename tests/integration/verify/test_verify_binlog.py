"""The two readers of the judge for MySQL and MariaDB: exact values in logical types, and whole verifications."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from migrator.errors import VerifyError
from migrator.model.codecs.codec import checkpoint_to_json
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.table import TableId
from tests.integration.judged import settings_of as settings
from tests.servers import Database
from verify.readers.mysql.binlog_source import BinlogSource
from verify.readers.mysql.mariadb_source import MariaDBSource
from verify.readers.mysql.mysql_source import MySQLSource
from verify.tables.run import verify
from verify.verdict import Verdict

pytestmark = pytest.mark.integration

TABLE = """
CREATE TABLE thing (
  id bigint unsigned PRIMARY KEY, t tinyint(1), tu tinyint unsigned, m mediumint, iu int unsigned zerofill,
  exact decimal(38,10), wide decimal(65,30), f float, d double, note varchar(50) CHARACTER SET latin1, big
  mediumtext, b binary(4), bits bit(9), y year, day date, moment datetime(6), at timestamp(6) NULL, hours
  time(3), e enum('x','y'), doc json, twice int AS (t + 1) VIRTUAL)
"""
VALUES = """
INSERT INTO thing (id, t, tu, m, iu, exact, wide, f, d, note, big, b, bits, y, day, moment, at, hours, e, doc)
VALUES
 (18446744073709551615, -1, 255, -8388608, 42, 9999999999999999999999999999.0123456789, 1.5, 0.1, 0.1, 'é€',
 'a\\nb',
  'a\\0', b'100000001', 2024, '0000-00-00', '9999-12-31 23:59:59.999999', '2038-01-19 03:14:07.5', '-838:59:58.999',
  'y', '{"a": 1.0}'),
 (1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
"""
MAPPING = """
from pyspark.sql import DataFrame, functions as F
from transforms import Mapping

mapping = Mapping()


@mapping.target("item", key="id")
def item(thing: DataFrame) -> DataFrame:
    return thing.select("id", "exact", "f", "note", "day")
"""

READERS = {"mysql": MySQLSource, "mariadb": MariaDBSource}


def reader_of(database: Database) -> BinlogSource:
    return READERS[database.kind](settings(database))


def load(database: Database) -> None:
    connection = database.connect()
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = ''")
        cursor.execute("SET SESSION time_zone = '+00:00'")
        cursor.execute(TABLE)
        cursor.execute(VALUES)
    connection.close()


def test_values_arrive_exactly(old_binlog: Database, tmp_path: Path) -> None:
    load(old_binlog)
    snapshot = reader_of(old_binlog).snapshot(["thing"], tmp_path)
    table = snapshot.tables["thing"]
    rows = pq.read_table(table.path)
    assert rows.schema.field("id").type == pa.decimal128(20, 0)
    assert rows.schema.field("iu").type == pa.int64()
    null, full = sorted(rows.to_pylist(), key=lambda row: row["id"])
    assert full == {
        "id": Decimal(2**64 - 1),
        "t": -1,
        "tu": 255,
        "m": -8388608,
        "iu": 42,
        "exact": Decimal("9999999999999999999999999999.0123456789"),
        "wide": "1.500000000000000000000000000000",
        "f": pytest.approx(0.1, abs=1e-8),
        "d": 0.1,
        "note": "é€",
        "big": "a\nb",
        "b": b"a\0\0\0",
        "bits": b"\x01\x01",
        "y": 2024,
        "day": "0000-00-00",
        "moment": "9999-12-31 23:59:59.999999",
        "at": "2038-01-19 03:14:07.500000",
        "hours": "-838:59:58.999",
        "e": "y",
        "doc": '{"a": 1.0}',
    }
    assert (
        rows.column("f")
        .cast(pa.float32())
        .equals(pa.chunked_array([pa.array([r["f"] for r in rows.to_pylist()], pa.float32())]))
    )
    assert {name: value for name, value in null.items() if value is not None} == {
        "id": Decimal(1),
        "note": "",
    }
    assert (table.rows, table.schema.key, snapshot.low) == (2, ("id",), snapshot.high)


def test_the_snapshot_is_one_state_and_positions_rise(old_binlog: Database, tmp_path: Path) -> None:
    load(old_binlog)
    reader = reader_of(old_binlog)
    before = reader.position()
    old_binlog.execute("DELETE FROM thing WHERE id = 1")
    assert reader.position().order == before.order + 1


def test_a_missing_table_is_named(old_binlog: Database, tmp_path: Path) -> None:
    with pytest.raises(VerifyError, match="nowhere does not exist"):
        reader_of(old_binlog).snapshot(["nowhere"], tmp_path)


@pytest.mark.slow
@pytest.mark.spark
def test_mapped_to_postgresql(
    old_binlog: Database, new_pg: Database, spark: SparkSession, tmp_path: Path
) -> None:
    load(old_binlog)
    place = reader_of(old_binlog).position()
    position = Position(place.order, json.dumps({"gtid": place.state, "file": "", "offset": 0}))
    checkpoint = Checkpoint(position, dumps=(TableDump(TableId(old_binlog.database, "thing"), done=True),))
    new_pg.execute(
        "CREATE TABLE item (id numeric(20,0) PRIMARY KEY, exact numeric(38,10), f float4, note text, day text)",
        "INSERT INTO item VALUES (18446744073709551615, 9999999999999999999999999999.0123456789, 0.1, 'é€',"
        " '0000-00-00'), (1, NULL, NULL, '', NULL)",
        "CREATE SCHEMA migrator",
        "CREATE TABLE migrator.ledger (migration text PRIMARY KEY, epoch bigint, segment bigint,"
        " position_order numeric(39,0), position_token text, checkpoint jsonb, updated_at timestamptz)",
    )
    with new_pg.connect() as connection:
        connection.execute(
            "INSERT INTO migrator.ledger VALUES ('m', 1, 1, %s, %s, %s, now())",
            (position.order, position.token, json.dumps(checkpoint_to_json(checkpoint))),
        )
    mapping = tmp_path / "mapping.py"
    mapping.write_text(MAPPING)

    def judge() -> Verdict:
        return verify(
            settings(old_binlog),
            settings(new_pg),
            "m",
            mapping,
            None,
            lambda: spark,
            tmp_path / "r",
            wait_s=1,
        ).verdict

    assert judge() is Verdict.EQUAL
    new_pg.execute("UPDATE item SET exact = exact - 0.0000000001 WHERE id > 1")
    assert judge() is Verdict.DIFFERENT
    old_binlog.execute("DELETE FROM thing WHERE id = 1")
    assert judge() is Verdict.UNKNOWN
