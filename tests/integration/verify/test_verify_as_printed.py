"""The judge takes texts for one that the target's type takes for one: over the server's own list of types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from tests.integration.judged import settings_of
from tests.integration.verify.verify_project import Project
from tests.servers import Database
from verify.readers.engines import target_reader
from verify.readers.snapshot import TargetColumnText
from verify.tables.compare.mapped_side import _canonical_target, _texts

pytestmark = [pytest.mark.integration, pytest.mark.spark]

WRITTEN = {
    "numeric": ["1e2", "+007.50", "nan", "-0", "1.10"], "uuid": ["{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}"],
    "text": [" a ", ""], "varchar": ["x "], "name": ["Ab"], "char": ["c"], "bpchar": ["a  "], "oid": ["007"],
    "json": ['{"b":1, "a" : 2}'], "jsonb": ['{"b":1.0, "a" : 2}'], "jsonpath": ["$.a", "lax $ . a"],
    "time": ["12:00", "1:2:3.10", "24:00", "12:00 pm"],
    "interval": ["1 day", "P1D", "25:00", "1.5 years"],
    "timetz": ["12:00+02", "12:00:00+02:00", "00:00Z"], "bit": ["1"], "varbit": ["X1F", "B101", ""],
    "inet": ["10.0.0.1/32", "::FFFF:1.2.3.4", "0:0:0:0:0:0:0:1"], "cidr": ["10", "10.0.0.0/8"],
    "macaddr": ["08-00-2B-01-02-03", "08002b:010203"], "macaddr8": ["08:00:2B:01:02:03"], "money": ["1", "$1,000.5"],
    "point": ["1,2", "( 1.0 , 2e0)"], "lseg": ["1,2,3,4", "[(1,2),(3,4)]"], "box": ["1,2,3,4"],
    "path": ["[(1,2),(3,4)]", "1,2,3,4"],
    "polygon": ["1,2,3,4"], "line": ["{1,2,3}", "1,2,3,4"], "circle": ["1,2,3", "<(1,2),3>"], "pg_lsn": ["0/00A"],
    "tsvector": ["b a b", "'a':1 b:2a"], "tsquery": ["a&b", "!a | ( b )"], "txid_snapshot": ["10:20:"],
    "pg_snapshot": ["10:20:11"],
    "int4range": ["[1,2]", "(0,3)", "empty", "[ 1 ,)"], "int8range": ["[1,2]"], "numrange": ["[1.0,2e1]", "(,)"],
    "daterange": ["[2024-1-1,2024-01-31]"], "tsrange": ["[2024-01-01,)"], "tstzrange": ["[2024-01-01 00:00+02,]"],
    "int4multirange": ["{[1,2],[3,4]}"], "int8multirange": ["{}"], "nummultirange": ["{[1.0,2],[2,3]}"],
    "datemultirange": ["{[2024-01-01,2024-01-02)}"], "tsmultirange": ["{[2024-01-01,]}"],
    "tstzmultirange": ["{[2024-01-01,]}"], "xid": ["007"], "xid8": ["007"], "cid": ["007"], "tid": ["(01,2)"],
    "int2vector": [" 1  2"], "oidvector": [" 1  2"], "refcursor": ["A b"],
}  # fmt: skip
"""Texts that each type reads; as a rule not what it prints."""
NATIVE = ("bool", "int2", "int4", "int8", "float4", "float8", "bytea", "date", "timestamp", "timestamptz")
"""What a mapping gives of these isn't text: no number, time or byte has a second form."""
NO_COLUMNS = (
    "reg", "pg_node_tree", "pg_ndistinct", "pg_dependencies", "pg_mcv_list", "pg_brin", "aclitem", "gtsvector", "xml",
    "unknown",
)  # fmt: skip
"""Names from the catalog, which preflight refuses, and what can't be written (xml: by the servers at hand)."""


def sides(
    spark: SparkSession,
    new: Database,
    columns: dict[str, tuple[str, str]],
    directory: Path,
    rows: Sequence[tuple[str, ...]],
) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Mapped and target rows in canonical text. ``columns``: type by name, rows: what the mapping writes."""
    declared = ", ".join(f'"{name}" {native}' for name, (native, _) in columns.items())
    new.execute(f"CREATE TABLE t (id int PRIMARY KEY, {declared})")
    with new.connect() as connection:
        for number, row in enumerate(rows):
            values = ", ".join(["%s"] * (1 + len(row)))
            connection.execute(f"INSERT INTO t VALUES ({values})", (number, *row))
    read = target_reader(settings_of(new), "m").snapshot(["t"], directory).tables["t"]
    schema = T.StructType(
        [T.StructField("id", T.IntegerType()), *(T.StructField(n, T.StringType()) for n in columns)]
    )
    frame = spark.createDataFrame([(number, *row) for number, row in enumerate(rows)], schema)
    both = _texts(frame, read.columns), _canonical_target(spark, read, read.columns)
    mapped, target = ([row.asDict() for row in side.orderBy("id").collect()] for side in both)
    return mapped, target


def target_columns(new: Database) -> tuple[TargetColumnText, ...]:
    with target_reader(settings_of(new), "m").chunks("t") as chunks:
        return tuple(chunks.columns)


def test_every_type_of_the_server_is_asked_for_what_it_prints(
    spark: SparkSession, new_pg: Database, tmp_path: Path
) -> None:
    found = new_pg.query(
        "SELECT typname FROM pg_type WHERE typtype IN ('b', 'r', 'm') AND typcategory <> 'A'"
        " AND typnamespace = 'pg_catalog'::regnamespace"
    )
    names = [str(name) for (name,) in found]
    unknown = [n for n in names if n not in WRITTEN and n not in NATIVE and not n.startswith(NO_COLUMNS)]
    assert not unknown, "a type that nobody has thought of"
    columns, rows = {}, max(map(len, WRITTEN.values()))
    for name in (each for each in WRITTEN if each in names):
        native = {"char": '"char"', "bit": "bit(1)"}.get(name, name)
        columns[name] = (native, name)
        columns[f"{name}s"] = (f"{native}[]", name)
    written: list[tuple[str, ...]] = []
    for number in range(rows):
        row: list[str] = []
        for native, base in columns.values():
            texts = WRITTEN[base]
            text = texts[number % len(texts)]
            escaped = text.replace("\\", "\\\\").replace('"', '\\"')
            comma = ";" if base == "box" else ","
            row.append(f'{{ "{escaped}" {comma} NULL}}' if native.endswith("[]") else text)
        written.append(tuple(row))
    mapped, target = sides(spark, new_pg, columns, tmp_path, written)
    assert mapped == target


def test_what_differs_still_does(spark: SparkSession, new_pg: Database, tmp_path: Path) -> None:
    new_pg.execute("CREATE TYPE pair AS (a int, b text)", "CREATE TYPE mood AS ENUM ('A', 'a')")
    columns = {"tags": ("text[]", ""), "n": ("numeric(5,1)[]", ""), "p": ("pair", ""), "m": ("mood", "")}
    rows = [('{"a"}', "{1.25}", '(1,"x")', "A")]
    [mapped], [target] = sides(spark, new_pg, columns, tmp_path, rows)
    assert [name for name in mapped if mapped[name] != target[name]] == ["n"], (
        "rounded, and not equal by that"
    )
    unasked = [replace(column, printed=None) for column in target_columns(new_pg)]
    frame = spark.createDataFrame([(0, *rows[0])], "id int, tags string, n string, p string, m string")
    [alarm] = _texts(frame, unasked).collect()
    assert [name for name in mapped if alarm[name] != target[name]] == ["tags", "n", "p"], "without asking"
    new_pg.execute("UPDATE t SET tags = '{A}', p = '(2,x)', m = 'a'")
    read = target_reader(settings_of(new_pg), "m").snapshot(["t"], tmp_path).tables["t"]
    [row] = _canonical_target(spark, read, read.columns).collect()
    assert [name for name in mapped if mapped[name] != row[name]] == ["tags", "n", "p", "m"]


def test_text_that_the_target_cant_read_stays_as_it_is(new_pg: Database) -> None:
    columns = {"a": "text[]", "i": "interval", "n": "numeric", "r": "int4range"}
    new_pg.execute(f"CREATE TABLE t ({', '.join(f'{name} {type_}' for name, type_ in columns.items())})")
    found = target_columns(new_pg)
    texts = ["nonsense {", "a\0b", *(f"bad {n}" for n in range(20)), "{"]
    for column in found:
        assert column.printed is not None
        with column.printed.type.asking() as ask:
            assert ask(texts) == texts
            assert "password" not in repr(column.printed)
    with found[2].printed.type.asking() as ask:  # type: ignore[union-attr]
        assert ask(["1e2", "x", "2e2"]) == ["100", "x", "200"], "one that can't be read spoils no other"


MAPPING = """
from pyspark.sql import DataFrame, functions as F
from transforms import Mapping
from transforms.representations import pg_array

mapping = Mapping()


@mapping.target("t2", key="id")
def t2(thing: DataFrame) -> DataFrame:
    odd = F.concat(F.lit('{"'), F.array_join(F.split("tags", " "), '" , "'), F.lit('"}'))
    return thing.select("id", pg_array(F.split("tags", " ")).alias("tags"), odd.alias("odd"), "span")
"""


@pytest.mark.parametrize("chunk_rows", [0, 2])
def test_a_mapping_may_write_an_array_in_any_form(
    old_pg: Database, new_pg: Database, spark: SparkSession, tmp_path: Path, chunk_rows: int
) -> None:
    project = Project(old_pg, new_pg, spark, tmp_path)
    project.mapping.write_text(MAPPING)
    old_pg.execute(
        "CREATE TABLE thing (id int PRIMARY KEY, tags text, span text)",
        "INSERT INTO thing SELECT g, 'a b NULL {x}', g || ' hours 0.50 s' FROM generate_series(1, 5) g",
    )
    new_pg.execute(
        "CREATE TABLE t2 (id int PRIMARY KEY, tags text[], odd text[], span interval)",
        "INSERT INTO t2 SELECT g, ARRAY['a', 'b', 'NULL', '{x}'], ARRAY['a', 'b', 'NULL', '{x}'],"
        " (g || ' hours 0.5 s')::interval FROM generate_series(1, 5) g",
    )
    project.prepare()
    project.ledger()
    assert project.verify(chunk_rows=chunk_rows).verdict.value == "equal"
    new_pg.execute("UPDATE t2 SET tags[2] = 'B' WHERE id = 3")
    found = project.verify(chunk_rows=chunk_rows)
    assert [(table.counts.different, table.counts.equal) for table in found.tables] == [(1, 4)]


def test_addresses_of_mariadb(spark: SparkSession, new_maria: Database) -> None:
    new_maria.execute("CREATE TABLE t (a inet4, b inet6, c varchar(9))")
    four, six, text = target_columns(new_maria)
    assert text.printed is None
    assert six.printed is not None
    assert four.printed is not None
    with six.printed.type.asking() as ask:
        assert ask(["0:0:0:0:0:0:0:1", "::FFFF:1.2.3.4", "x"]) == ["::1", "::ffff:1.2.3.4", "x"]
    with four.printed.type.asking() as ask:
        assert ask(["1.2.3.4", "x"]) == ["1.2.3.4", "x"]
