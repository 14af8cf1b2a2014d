"""Every common type with its extreme values: the chunk path and the log path must give the same Arrow values."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from migrator.columnar.text import rows_to_table
from migrator.errors import SourceError
from migrator.model.chunk import ChunkRequest
from tests.fix_postgres_source import changes as changes_of
from tests.fix_postgres_source import chunk_reader, log_reader, prepared, read_to, read_until, source_of
from tests.servers import Database

pytestmark = pytest.mark.integration

TYPES = (
    "CREATE TYPE mood AS ENUM ('sad', 'it''s ok', 'häppy')",
    "CREATE DOMAIN cents AS numeric(12,2) CHECK (VALUE >= 0)",
    "CREATE DOMAIN code AS char(4)",
    "CREATE DOMAIN nested AS cents",
    "CREATE TYPE pair AS (a int, b text)",
)
CASES = {
    "bool": ["true", "false"],
    "int2": ["-32768", "32767", "0"],
    "int4": ["-2147483648", "2147483647"],
    "int8": ["-9223372036854775808", "9223372036854775807", "9007199254740993"],
    "numeric(38,0)": ["99999999999999999999999999999999999999", "-99999999999999999999999999999999999999"],
    "numeric(38,38)": [
        "0.99999999999999999999999999999999999999",
        "-0.00000000000000000000000000000000000001",
    ],
    "numeric(12,2)": ["1.10", "-0.05", "0"],
    "numeric": ["1.10", "1.1000", "NaN", "Infinity", "-Infinity", "1e-20", "1e40"],
    "numeric(60,10)": ["12345678901234567890123456789012345678901234567890.0123456789"],
    "numeric(5,-2)": ["12345"],
    "float4": ["NaN", "Infinity", "-Infinity", "-0.0", "1.4e-45", "3.4028235e38", "0.1"],
    "float8": ["NaN", "Infinity", "-Infinity", "-0.0", "5e-324", "1.7976931348623157e308", "0.1", "1e23"],
    "text": [
        "",
        " trailing ",
        "quote ' \" \\ back",
        "line\nand\ttab\rret",
        "𝄞 Zoë e\u0301",
        "\\N",
        "\\x41",
        "t",
    ],
    "varchar(10)": ["", "abc  "],
    "char(5)": ["", "ab", "ab   "],
    "name": ["a name"],
    '"char"': ["c"],
    "bytea": ["", "\\x00", "\\x00ff5c27", "\\xdeadbeef"],
    "date": [
        "infinity",
        "-infinity",
        "4714-11-24 BC",
        "0001-12-31 BC",
        "9999-12-31",
        "5874897-12-31",
        "1969-12-31",
    ],
    "timestamp": [
        "infinity",
        "-infinity",
        "4714-11-24 00:00:00 BC",
        "1999-12-31 23:59:59.999999",
        "1969-12-31 23:59:59.999999",
        "290000-01-01 00:00:00.000001",
        "0044-03-15 12:00:00 BC",
    ],
    "timestamp(0)": ["2020-02-29 12:34:56"],
    "timestamptz": [
        "infinity",
        "-infinity",
        "4714-11-24 00:00:00+00 BC",
        "2021-03-28 02:30:00+02",
        "1883-11-18 12:03:58-04:56:02",
        "290000-01-01 00:00:00.000001+00",
    ],
    "time": ["24:00:00", "00:00:00.000001"],
    "timetz": ["23:59:59.5+02"],
    "interval": ["1 year 2 mons -3 days +04:05:06.000001", "-00:00:01", "178000000 years"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
    "json": ['{"b": 1,   "a": [1, 2.50], "b": null}', "null", '"text"'],
    "jsonb": ['{"b": 1, "a": [1, 2.50], "b": null}', "12345678901234567890.10"],
    "int4[]": ["{}", "{1,NULL,-3}", "[0:1]={7,8}", "{{1,2},{3,4}}"],
    "text[]": ['{"a,b","q\\"uote",NULL,"NULL",""}'],
    "float8[]": ["{0.1,NaN,-0}"],
    "timestamptz[]": ['{"2020-01-01 00:00:00+02",infinity}'],
    "bytea[]": ['{"\\\\x00ff"}'],
    "mood": ["sad", "it's ok", "häppy"],
    "mood[]": ['{sad,"it\'s ok"}'],
    "cents": ["12.30"],
    "nested": ["12.30"],
    "code": ["ab"],
    "pair": ['(1,"a ""b""")'],
    "inet": ["1.2.3.4", "10.0.0.0/8", "::1"],
    "cidr": ["10.0.0.0/8"],
    "macaddr": ["08:00:2b:01:02:03"],
    "bit(4)": ["0101"],
    "varbit": ["", "10101"],
    "int4range": ["empty", "[1,5)", "(,)"],
    "tstzrange": ['["2020-01-01 00:00:00+02",)'],
    "int4multirange": ["{[1,3),[5,9)}"],
    "money": ["-12.34"],
    "point": ["(0.1,-0)"],
    "box": ["(1,1),(0,0)"],
    "tsvector": ["a:1A b:2"],
    "pg_lsn": ["16/B374D848"],
    "oid": ["4294967295"],
    "regclass": ["pg_class", "public.v"],
    "jsonpath": ["$.a[*]"],
}


def column_name(number: int, kind: str) -> str:
    """A quoted name with the type in it, with blanks and quotes where the type has them."""
    return '"' + f"c{number} {kind}".replace('"', '""') + '"'


def create(database: Database) -> None:
    """A table with one column per type."""
    database.execute(*TYPES)
    columns = [f"{column_name(n, kind)} {kind}" for n, kind in enumerate(CASES)]
    database.execute(
        f"CREATE TABLE v (id int PRIMARY KEY, {', '.join(columns)})",
        "ALTER TABLE v REPLICA IDENTITY FULL",
    )


def insert(database: Database) -> int:
    """One row per value and column, all other columns NULL. Returns the number of rows."""
    connection = database.connect()
    row = 0
    for n, (kind, values) in enumerate(CASES.items()):
        for value in values:
            row += 1
            connection.execute(
                f"INSERT INTO v (id, {column_name(n, kind)}) VALUES (%s, %s::text::{kind})", [row, value]
            )
    connection.close()
    return row


def exactly(column: pa.ChunkedArray) -> list[bytes | None]:
    """Values as raw bytes, so that -0.0 isn't 0.0 and infinities of dates can be compared at all."""
    array = column.combine_chunks()
    if pa.types.is_fixed_size_binary(array.type) or not pa.types.is_primitive(array.type):
        return list(array.to_pylist())
    if pa.types.is_boolean(array.type):
        return list(array.to_pylist())
    width = array.type.bit_width // 8
    data = array.buffers()[1].to_pybytes()
    start = array.offset
    valid = array.is_valid().to_pylist()
    return [data[(start + n) * width : (start + n + 1) * width] if ok else None for n, ok in enumerate(valid)]


def assert_same(chunk: pa.Table, log: pa.Table) -> None:
    assert chunk.schema == log.schema
    for name in chunk.column_names:
        assert exactly(chunk.column(name)) == exactly(log.column(name)), name


def test_chunk_and_log_agree_on_every_type(old_pg: Database) -> None:
    create(old_pg)
    source = source_of(old_pg)
    (schema,) = prepared(source, "v")
    rows = insert(old_pg)
    old_pg.execute("UPDATE v SET id = id")  # before images go through the same functions: compare them too
    with chunk_reader(source) as chunks, log_reader(source, [schema]) as log:
        chunk = chunks.read(ChunkRequest(1, schema.id, None, rows + 1), schema)
        seen = changes_of(read_to(log, chunk.high))
    assert chunk.row_count == rows
    assert chunk.final
    inserted = [change.after for change in seen[:rows]]
    before = sorted((change.before for change in seen[rows:]), key=lambda row: int(str((row or ("0",))[0])))
    assert_same(chunk.rows, rows_to_table(schema, [row for row in inserted if row is not None]))
    assert_same(chunk.rows, rows_to_table(schema, [row for row in before if row is not None]))


def test_an_empty_table_has_the_right_types(old_pg: Database) -> None:
    create(old_pg)
    source = source_of(old_pg)
    (schema,) = prepared(source, "v")
    with chunk_reader(source) as chunks:
        chunk = chunks.read(ChunkRequest(1, schema.id, None, 10), schema)
    assert (chunk.row_count, chunk.last_key, chunk.final) == (0, None, True)
    assert chunk.rows.schema == rows_to_table(schema, []).schema


@pytest.mark.parametrize(
    ("kind", "value"), [("numeric(12,2)", "NaN"), ("timestamp", "294276-12-31 23:59:59.999999")]
)
def test_what_arrow_cannot_hold_is_a_named_error_on_both_paths(
    old_pg: Database, kind: str, value: str
) -> None:
    old_pg.execute(
        f"CREATE TABLE v (id int PRIMARY KEY, amount {kind})", "ALTER TABLE v REPLICA IDENTITY FULL"
    )
    source = source_of(old_pg)
    (schema,) = prepared(source, "v")
    old_pg.execute(f"INSERT INTO v VALUES (1, NULL), (77, '{value}')")
    with chunk_reader(source) as chunks, log_reader(source, [schema]) as log:
        with pytest.raises(SourceError) as caught:
            chunks.read(ChunkRequest(1, schema.id, None, 10), schema)
        assert "public.v.amount" in caught.value.what
        assert "row id=77" in caught.value.where
        assert chunks.witness() is not None  # the reader goes on after the error
        rows = [
            change.after
            for change in changes_of(read_until(log, lambda records: len(changes_of(records)) == 2))
        ]
    with pytest.raises(SourceError, match=r"public\.v\.amount"):
        rows_to_table(schema, [row for row in rows if row is not None])


def test_generated_columns_are_left_out_of_both_paths(old_pg: Database) -> None:
    old_pg.execute(
        "CREATE TABLE g (id int PRIMARY KEY, a int, twice int GENERATED ALWAYS AS (a * 2) STORED, b text)",
        "ALTER TABLE g REPLICA IDENTITY FULL",
    )
    source = source_of(old_pg)
    (schema,) = prepared(source, "g")
    assert schema.names() == ("id", "a", "b")
    key = str(uuid.uuid4())
    old_pg.execute(f"INSERT INTO g (id, a, b) VALUES (1, 2, '{key}')")
    with chunk_reader(source) as chunks, log_reader(source, [schema]) as log:
        chunk = chunks.read(ChunkRequest(1, schema.id, None, 10), schema)
        (change,) = changes_of(read_to(log, chunk.high))
    assert change.after == ("1", "2", key)
    assert chunk.rows.to_pylist() == [{"id": 1, "a": 2, "b": key}]
