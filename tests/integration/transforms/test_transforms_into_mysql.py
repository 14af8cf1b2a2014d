"""The column library with MySQL and MariaDB as the new server: the values as that server itself shows them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scenarios.project import make_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.transforms.test_transforms_representations import OLD, ROWS
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

HEAD = """
from pyspark.sql import DataFrame, functions as F
from transforms import Mapping, columns as C, representations as R

mapping = Mapping()
CODES = {"low": 1, "high": 2}


def in_utc(instant):
    return F.convert_timezone(F.lit("UTC"), F.lit("UTC"), instant)


@mapping.target("thing", key="id")
def thing(thing: DataFrame) -> DataFrame:
    text = R.undoubled("twice")
    return thing.select(
        "id", R.hex_bytes("digest").alias("digest"), in_utc(R.epoch("seen")).alias("seen"),
        F.when(F.col("seen") > 0, R.epoch("seen")).alias("seen_utc"),
        R.json_value("doc", "$.a.n", "decimal(38,3)").alias("n"),
        R.json_value("doc", "$.a.t", "string").alias("t"), R.json_value("doc", "$.l[1]", "bigint").alias("l"),
        C.cents("price").alias("price"), text.alias("twice"), F.col("big").alias("big"),
        R.json_object(price="price", tags=F.col("tags")).alias("doc"), F.col("tags").alias("tags"),
        F.to_json(R.members("tags")).alias("tag_list"),
        R.code_of("rank_", CODES, invalid=0).alias("code"), F.nullif("rank_", F.lit("")).alias("label"),
        R.folded(text, "utf8mb4_general_ci").alias("folded"), C.blank_to_null(text).alias("filled"),
        F.rtrim(F.upper(text)).alias("loud"), C.uuid5("6ba7b811-9dad-11d1-80b4-00c04fd430c8", "id").alias("named"),
        C.uuid5_binary("6ba7b811-9dad-11d1-80b4-00c04fd430c8", "id").alias("named_bytes"),
        {own}
    )
"""
NEW = """
CREATE TABLE thing (
  id int PRIMARY KEY, digest varbinary(40), seen datetime(6), seen_utc timestamp(6) NULL, n decimal(38,3), t text,
  l bigint, price bigint, twice varchar(40), big bigint unsigned, doc json, tags set('a b','c'), tag_list json,
  code tinyint, label enum('low','high'), folded varchar(40), filled varchar(40), loud varchar(40), named char(36),
  named_bytes binary(16), {own}
) CHARSET utf8mb4"""
SHOWN = """
SELECT id, HEX(digest), CAST(seen AS CHAR), UNIX_TIMESTAMP(seen_utc), n, t, l, price, HEX(twice), big,
  JSON_UNQUOTE(JSON_EXTRACT(doc, '$.price')), JSON_UNQUOTE(JSON_EXTRACT(doc, '$.tags')), CAST(tags + 0 AS SIGNED),
  JSON_LENGTH(tag_list), code, CAST(label + 0 AS SIGNED), HEX(folded), HEX(filled), HEX(loud),
    named = LOWER(CONCAT_WS('-',
    SUBSTR(HEX(named_bytes), 1, 8), SUBSTR(HEX(named_bytes), 9, 4), SUBSTR(HEX(named_bytes), 13, 4),
    SUBSTR(HEX(named_bytes), 17, 4), SUBSTR(HEX(named_bytes), 21))), {own}
FROM thing ORDER BY id"""
CAFE, CAFE_SHORT = "Café – 日本 €", "Café €"


def shown(text: str) -> str:
    """As HEX shows it."""
    return text.encode().hex().upper()


COMMON = [
    ("1", "DEADBEEF", "1969-12-31 23:59:59.000000", None, "12345678901234567890123456789012345.678", 'x"y',
     "9007199254740993", "1005", shown(CAFE), "18446744073709551615", "10.05", "a b,c", "3", "2", "2", "2",
     shown("CAFE – 日本 €"), shown(CAFE), shown("CAFÉ – 日本 €"), "1"),
    ("2", "", "1970-01-01 00:00:01.000000", "1.000000", None, None, None, "-1", shown(CAFE_SHORT), "0", "-0.01",
     "", "0", "0", "0", None, shown("CAFE €"), shown(CAFE_SHORT), shown("CAFÉ €"), "1"),
    ("3", None, None, None, None, None, None, None, None, None, "null", "null", None, None, None, None, None, None,
     None, "1"),
]  # fmt: skip


class Side:
    """What one kind of old server has of its own.

    Attributes:
        old: statements that make the table with the rows 1 and 2.
        own: what the mapping, the new table and the look at it have besides; and what is to be seen.
    """

    def __init__(
        self, old: tuple[str, ...], mapping: str, new: str, look: str, wanted: list[tuple[str | None, ...]]
    ):
        self.old, self.mapping, self.new, self.look, self.wanted = old, mapping, new, look, wanted


MARIA = Side(
    ("SET sql_mode = ''", OLD, *ROWS[:2],
     "UPDATE thing SET seen = 1 WHERE id = 2"),
    """R.bit_flag("flag").alias("flag"), R.bit_number("bits").alias("bits"), F.col("bits").alias("same_bits"),
        R.uuid_text("uid").alias("uid"), R.uuid_bytes(R.uuid_text("swapped", swapped=True)).alias("uid_bytes"),
        R.hex_text("raw").alias("raw"), R.wkb("shape").alias("shape"), R.srid("shape").alias("srid"),
        F.col("small").alias("small"), C.flag("truth").alias("truth"), C.mysql_date("born").alias("born"),
        C.mysql_datetime("moment").alias("moment"), C.instant(C.mysql_datetime("stamp"), "UTC").alias("stamp"),
        in_utc(C.instant(C.mysql_datetime("stamp"), "Europe/Berlin")).alias("berlin")""",
    """flag bit(1), bits bigint unsigned, same_bits bit(64), uid char(36), uid_bytes binary(16), raw varchar(20),
       shape longblob, srid int unsigned, small int unsigned, truth tinyint(1), born date, moment datetime(6),
       stamp timestamp(6) NULL, berlin datetime(6)""",
    """flag + 0, bits, same_bits + 0, uid, HEX(uid_bytes), raw, HEX(shape), srid, small, truth, CAST(born AS CHAR),
       CAST(moment AS CHAR), CAST(stamp AS CHAR), CAST(berlin AS CHAR)""",
    [
        ("1", "18446744073709551615", "18446744073709551615", "00112233-4455-6677-8899-00aabbccddee",
         "00112233445566778899" + "00AABBCCDDEE", "00ff", "0101000000000000000000F83F00000000000000C0", "3857",
         "4294967295", "1", "2024-02-29", "1582-10-10 23:59:59.999999", "2038-01-19 03:14:07.999999",
         "2038-01-19 02:14:07.999999"),
        ("0", "0", "0", "00000000-0000-0000-0000-000000000000", "00" * 16, "",
         "01020000000200000000000000000000000000000000000000" "9C7500883CE4377E" "0100000000000000", "0", "0", "0",
         None, None, "1970-01-01 00:00:01.000000", "1969-12-31 23:00:01.000000"),
        (None,) * 14,
    ],
)  # fmt: skip
POSTGRES = Side(
    (
        "CREATE TYPE grade AS ENUM ('', 'low', 'high')",
        """CREATE TABLE thing (id int PRIMARY KEY, digest text, seen bigint, doc jsonb, price numeric(12,2),
           twice text, big numeric(20,0), tags text, rank_ grade, flag boolean, uid uuid, raw bytea, amount money,
           born date, moment timestamp, stamp timestamptz, ints int[], real_ double precision)""",
        "ALTER TABLE thing REPLICA IDENTITY FULL",
        """INSERT INTO thing VALUES (1, '\\xDEADbeef', -1,
           '{"a": {"n": 12345678901234567890123456789012345.678, "t": "x\\"y", "z": null},
              "l": [1, 9007199254740993]}', 10.05, 'CafÃ© â€“ æ—¥æœ¬ â‚¬', 18446744073709551615, 'a b,c',
           'high', true, '00112233-4455-6677-8899-00aabbccddee', '\\x00ff', '-$1,234.56', '2024-02-29',
           '2024-07-01 12:00:00.123456', '2038-01-19 03:14:07.999999Z', '{1,2}', 0.1)""",
        """INSERT INTO thing VALUES (2, '', 1, '[]', -0.01, 'Café €', 0, '', '', false,
           '00000000-0000-0000-0000-000000000000', '', '$0.00', '0001-01-01', '9999-12-31 23:59:59.999999',
           '1970-01-01 00:00:01Z', '{}', -0.0)""",
    ),
    """F.col("flag").alias("flag"), F.col("flag").alias("truth"), F.col("uid").alias("uid"),
        R.uuid_bytes("uid").alias("uid_bytes"), R.hex_text("raw").alias("raw"), R.money("amount").alias("amount"),
        F.col("born").alias("born"), F.col("moment").alias("moment"), F.col("stamp").alias("stamp"),
        in_utc(C.instant("moment", "Europe/Berlin")).alias("berlin"), F.col("real_").alias("real_"),
        F.col("raw").alias("same_raw")""",
    """flag bit(1), truth tinyint(1), uid char(36), uid_bytes binary(16), raw varchar(20), amount decimal(19,2),
       born date, moment datetime(6), stamp timestamp(6) NULL, berlin datetime(6), real_ double,
       same_raw varbinary(9)""",
    """flag + 0, truth, uid, HEX(uid_bytes), raw, amount, CAST(born AS CHAR), CAST(moment AS CHAR),
       CAST(stamp AS CHAR), CAST(berlin AS CHAR), real_ = 0.1, HEX(same_raw)""",
    [
        ("1", "1", "00112233-4455-6677-8899-00aabbccddee", "00112233445566778899" + "00AABBCCDDEE", "00ff",
         "-1234.56", "2024-02-29", "2024-07-01 12:00:00.123456", "2038-01-19 03:14:07.999999",
         "2024-07-01 10:00:00.123456",
         "1", "00FF"),
        ("0", "0", "00000000-0000-0000-0000-000000000000", "00" * 16, "", "0.00", "0001-01-01",
         "9999-12-31 23:59:59.999999", "1970-01-01 00:00:01.000000", "9999-12-31 22:59:59.999999", "0", ""),
        (None,) * 12,
    ],
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old_name", "side", "new_name"),
    [
        ("old_maria", MARIA, "new_mysql"),
        ("old_pg", POSTGRES, "new_maria"),
        pytest.param("old_maria", MARIA, "new_maria", marks=pytest.mark.slow),
        pytest.param("old_pg", POSTGRES, "new_mysql", marks=pytest.mark.slow),
    ],
    ids=["maria to mysql", "pg to maria", "maria to maria", "pg to mysql"],
)
def test_every_form_arrives_as_the_new_servers_own(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    spark: SparkSession,
    old_name: str,
    side: Side,
    new_name: str,
) -> None:
    """Dumped and streamed; the new server tells what it holds."""
    old: Database = request.getfixturevalue(old_name)
    new: Database = request.getfixturevalue(new_name)
    source = tmp_path / "source"
    (source / "alembic" / "versions").mkdir(parents=True)
    (source / "mapping.py").write_text(HEAD.replace("{own}", side.mapping))
    sides = scenario_database(old), scenario_database(new)
    config = make_project(tmp_path / "project", *sides, source, "forms", ("[spark]", 'master = "local[2]"'))
    project = Project(old, new, config)
    old.execute(*side.old)
    new.execute(NEW.replace("{own}", side.new))
    project.run_here()
    changes = [
        "INSERT INTO thing (id) VALUES (3)",
        *(f"UPDATE thing SET rank_ = '{to}' WHERE id = 1" for to in ("low", "high")),
    ]
    old.execute(*changes)
    project.run_here()
    found = [tuple(_text(value) for value in row) for row in new.query(SHOWN.replace("{own}", side.look))]
    wanted = [(*common, *own) for common, own in zip(COMMON, side.wanted, strict=True)]
    assert found == wanted
    shutil.rmtree(config.parent / ".migrator")


def _text(value: object) -> str | None:
    if value is None:
        return None
    return value.decode() if isinstance(value, bytes) else str(value)
