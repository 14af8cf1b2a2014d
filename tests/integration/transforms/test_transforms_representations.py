"""What engines store in forms of their own, in the words of the servers themselves: the same values on both
sides."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from migrator.errors import MappingError
from scenarios.project import make_project
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.run_project import Project, scenario_database
from tests.integration.transforms.test_transforms_columns import failure, values
from tests.servers import Database
from transforms import columns as C
from transforms import representations as R

pytestmark = [pytest.mark.integration, pytest.mark.spark]

OLD = """
CREATE TABLE thing (
  id int PRIMARY KEY, flag bit(1), bits bit(64), uid binary(16), swapped binary(16), digest varchar(40),
  raw varbinary(9), shape geometry, seen bigint, rank_ enum('low','high') , tags set('a b','c'),
  doc longtext, price decimal(12,2),
  small int unsigned, truth tinyint(1), born date, moment datetime(6), stamp timestamp(6) NULL,
  twice varchar(40), big bigint unsigned
) CHARSET utf8mb4"""
ROWS = (
    """INSERT INTO thing VALUES (1, b'1', 0xFFFFFFFFFFFFFFFF, 0x0011223344556677889900AABBCCDDEE,
  0x6677445500112233889900AABBCCDDEE, 'DEADbeef', 0x00FF, ST_GeomFromText('POINT(1.5 -2)', 3857), -1, 'high',
  'a b,c', '{"a": {"n": 12345678901234567890123456789012345.678, "t": "x\\\\"y", "z": null}, "l": [1,
  9007199254740993]}',
  10.05, 4294967295, 1, '2024-02-29', '1582-10-10 23:59:59.999999', '2038-01-19 03:14:07.999999',
  CONVERT(CONVERT(CONVERT('Café – 日本 €' USING utf8mb4) USING binary) USING latin1), 18446744073709551615)""",
    """INSERT INTO thing VALUES (2, b'0', b'0', 0x00, 0x00, '', '', ST_GeomFromText('LINESTRING(0 0, 1e300
    5e-324)'),
  0, '', '', '[]', -0.01, 0, 0, '0000-00-00', '0000-00-00', '1970-01-01 00:00:01', 'Café €', 0)""",
    "INSERT INTO thing (id) VALUES (3)",
)
NEW = """
CREATE TABLE thing (
  id int PRIMARY KEY, flag boolean, bits numeric(20,0), uid uuid, swapped uuid, digest bytea, raw text, shape bytea,
  srid bigint, seen timestamptz, rank smallint, tags text[], n numeric(38,3), t text, l bigint, price bigint,
  small bigint, truth boolean, born date, moment timestamp, stamp timestamptz, twice text,
  doc jsonb, big numeric(20,0))"""
MAPPING = """
from pyspark.sql import DataFrame, functions as F
from transforms import Mapping
from transforms.columns import cents, flag, instant, mysql_date, mysql_datetime
from transforms import representations as R

mapping = Mapping()


@mapping.target("thing", key="id")
def thing(thing: DataFrame) -> DataFrame:
    return thing.select(
        "id", R.bit_flag("flag").alias("flag"), R.bit_number("bits").alias("bits"),
        R.uuid_text("uid").alias("uid"), R.uuid_text("swapped", swapped=True).alias("swapped"),
        R.hex_bytes("digest").alias("digest"), R.hex_text("raw").alias("raw"), R.wkb("shape").alias("shape"),
        R.srid("shape").alias("srid"), R.epoch("seen").alias("seen"),
        R.code_of("rank_", {"low": 1, "high": 2}, invalid=0).cast("smallint").alias("rank"),
        R.pg_array(R.members("tags")).alias("tags"), R.json_value("doc", "$.a.n", "decimal(38,3)").alias("n"),
        R.json_value("doc", "$.a.t", "string").alias("t"), R.json_value("doc", "$.l[1]", "bigint").alias("l"),
        cents("price").alias("price"), F.col("small").alias("small"), flag("truth").alias("truth"),
        mysql_date("born").alias("born"), mysql_datetime("moment").alias("moment"),
        instant(mysql_datetime("stamp"), "UTC").alias("stamp"), R.undoubled("twice").alias("twice"),
        R.json_object(price="price", tag=F.col("tags")).alias("doc"), F.col("big").alias("big"),
    )
"""
EXPECTED = (
    "(1, true, 18446744073709551615, '00112233-4455-6677-8899-00aabbccddee', '00112233-4455-6677-8899-00aabbccddee',"
    " '\\xdeadbeef', '00ff', decode({wkb1}, 'hex'), 3857, '1969-12-31 23:59:59Z', 2, '{{\"a b\",c}}',"
    " 12345678901234567890123456789012345.678, 'x\"y', 9007199254740993, 1005, 4294967295, true, '2024-02-29',"
    " '1582-10-10 23:59:59.999999', '2038-01-19 03:14:07.999999Z', 'Café – 日本 €',"
    ' \'{{"tag": "a b,c", "price": 10.05}}\','
    " 18446744073709551615)",
    "(2, false, 0, '00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000', '', '',"
    " decode({wkb2}, 'hex'), 0, '1970-01-01 00:00:00Z', 0, '{{}}', NULL, NULL, NULL, -1, 0, false, NULL, NULL,"
    " '1970-01-01 00:00:01Z', 'Café €', '{{\"tag\": \"\", \"price\": -0.01}}', 0)",
    "(3" + ", NULL" * 21 + ', \'{{"tag": null, "price": null}}\', NULL)',
)


@pytest.mark.slow
def test_every_form_arrives_as_the_new_servers_own(
    engine: BinlogEngine, old_binlog: Database, new_pg: Database, tmp_path: Path, spark: SparkSession
) -> None:
    """Dumped and streamed, and compared by the new server with literals of its own types."""
    source = tmp_path / "source"
    (source / "alembic" / "versions").mkdir(parents=True)
    (source / "mapping.py").write_text(MAPPING)
    sides = scenario_database(old_binlog), scenario_database(new_pg)
    config = make_project(tmp_path / "project", *sides, source, "forms", ("[spark]", 'master = "local[2]"'))
    project = Project(old_binlog, new_pg, config)
    relaxed = "SET sql_mode = ''"
    old_binlog.execute(relaxed, OLD, *ROWS[:2])
    new_pg.execute(NEW)
    project.run_here()
    old_binlog.execute(
        relaxed,
        ROWS[2],
        "UPDATE thing SET rank_ = 'low' WHERE id = 1",
        "UPDATE thing SET rank_ = 'high' WHERE id = 1",
    )
    project.run_here()
    [(one,), (two,), (_,)] = old_binlog.query("SELECT HEX(ST_AsWKB(shape)) FROM thing ORDER BY id")
    rows = ", ".join(EXPECTED).format(wkb1=f"'{_text(one)}'", wkb2=f"'{_text(two)}'")
    new_pg.execute("CREATE TABLE wanted (LIKE thing)", f"INSERT INTO wanted VALUES {rows}")
    assert (
        new_pg.query("TABLE thing EXCEPT TABLE wanted")
        == new_pg.query("TABLE wanted EXCEPT TABLE thing")
        == []
    )
    assert new_pg.query("SELECT count(*) FROM thing") == [(3,)]
    shutil.rmtree(config.parent / ".migrator")


@pytest.mark.parametrize("collation", ["utf8mb4_general_ci", "latin1_swedish_ci"])
def test_texts_are_the_same_where_the_server_takes_them_for_one(
    engine: BinlogEngine, old_binlog: Database, spark: SparkSession, collation: str
) -> None:
    """Every character of the basic plane that the character set has, by the server's own weight."""
    charset = collation.split("_")[0]
    old_binlog.execute("CREATE TABLE letter (c varchar(1) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)")
    found = [chr(code) for code in range(33, 0xFFFE) if not 0xD800 <= code < 0xE000]
    for start in range(0, len(found), 4096):
        some = ", ".join(f"(_utf8mb4 0x{c.encode().hex()})" for c in found[start : start + 4096])
        old_binlog.execute(f"INSERT INTO letter VALUES {some}")
    own = f"CONVERT(c USING {charset})"
    weighed = old_binlog.query(
        f"SELECT HEX(c), HEX(WEIGHT_STRING({own} COLLATE {collation})) FROM letter"
        f" WHERE HEX(CONVERT({own} USING utf8mb4)) = HEX(c)"
    )
    assert len(weighed) > (200 if charset == "latin1" else 60_000)
    letters = [(bytes.fromhex(_text(letter)).decode(),) for letter, _ in weighed]
    folded = [one for (one,) in values(spark, "c string", letters, R.folded("c", collation))]
    by_weight: dict[object, set[str]] = {}
    for (_, weight), one in zip(weighed, folded, strict=True):
        by_weight.setdefault(weight, set()).add(one)
    assert all(len(each) == 1 for each in by_weight.values()), "what is one on the server is one here"
    assert len(set(folded)) == len(by_weight), "and nothing else is"


def test_trailing_spaces_and_characters_beyond_the_basic_plane_fold_as_on_the_server(
    spark: SparkSession,
) -> None:
    rows = [("É  ",), ("e",), ("e\t",), (" e",), ("😀",), ("𝒳",), (None,)]
    assert values(spark, "c string", rows, R.folded("c", "utf8mb4_general_ci")) == [
        ("E",), ("E",), ("E\t",), (" E",), ("\ufffd",), ("\ufffd",), (None,),
    ]  # fmt: skip
    with pytest.raises(MappingError, match="utf8mb4_0900_ai_ci"):
        R.folded("c", "utf8mb4_0900_ai_ci")


@pytest.mark.parametrize(
    ("schema", "value", "column", "cause"),
    [
        ("v binary", b"\x02", R.bit_flag, "value 02 is no BIT"),
        ("v binary", b"\x01" * 15, R.uuid_text, "is no UUID of 16 bytes"),
        ("v string", "0011", R.uuid_bytes, "value 0011 is no UUID"),
        ("v string", "abc", R.hex_bytes, "value abc is no hexadecimal"),
        ("v string", "12,50 €", R.money, "is no amount in dollars"),
        ("v string", "HIGH", lambda v: R.code_of(v, {"low": 1}), "value HIGH is none of low"),
        ("v string", "{", lambda v: R.json_value(v, "$.a", "int"), "value { is no JSON"),
        ("v string", '{"a": "x"}', lambda v: R.json_value(v, "$.a", "int"), "INVALID_VARIANT_CAST"),
    ],
)
def test_other_values_fail_by_name(
    spark: SparkSession, schema: str, value: object, column: object, cause: str
) -> None:
    assert callable(column)
    made = column("v")
    assert isinstance(made, Column)
    assert cause in failure(spark, schema, value, made)


def test_forms_go_back_and_forth(spark: SparkSession) -> None:
    text = "00112233-4455-6677-8899-00aabbccddee"
    assert (
        values(spark, "v string", [(text,), ("{" + text.upper() + "}",)], R.uuid_text(R.uuid_bytes("v")))
        == [(text,)] * 2
    )
    money = values(spark, "v string", [("-$1,234.56",), ("$0.00",), (None,)], C.cents(R.money("v")))
    assert money == [(-123456,), (0,), (None,)]
    units = values(spark, "v long", [(1_700_000_000_000_001,)], F.unix_micros(R.epoch("v", "microseconds")))
    assert units == [(1_700_000_000_000_001,)]
    with pytest.raises(MappingError, match="no unit"):
        R.epoch("v", "days")  # type: ignore[arg-type]


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
