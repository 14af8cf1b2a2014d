"""Every column type is written by both paths (straight into the table, staged) and read back exactly."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from migrator.errors import TargetError
from tests.integration.target_bench import Bench, bench, ints, texts
from tests.servers import Database, PostgresServer, fresh_database

pytestmark = pytest.mark.integration

TYPES = (
    'CREATE SCHEMA "odd ö""%s"',
    "CREATE TYPE \"odd ö\"\"%s\".mood AS ENUM ('sad', 'it''s \"fine\"')",
    "CREATE DOMAIN short AS varchar(5) CHECK (VALUE <> 'never')",
    "CREATE TYPE pair AS (a int, b text)",
)
US, UTC = pa.timestamp("us"), pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Case:
    """Values of a type as mapped, and as the server's canonical text (None: the same texts)."""

    sql: str
    spark: str
    arrow: pa.DataType
    values: tuple[Any, ...]
    texts: tuple[str, ...] | None = None
    raw: pa.DataType | None = None

    def array(self) -> pa.Array:
        """The values and a NULL."""
        return pa.array([*self.values, None], self.raw or self.arrow).cast(self.arrow)


I32, I64 = 2**31 - 1, 2**63 - 1
DIGITS = "12345678901234567890123456789012345678"
CASES = (
    Case("smallint", "smallint", pa.int16(), (-(2**15), 0, 2**15 - 1)),
    Case("integer", "int", pa.int32(), (-(2**31), 0, I32)),
    Case("bigint", "bigint", pa.int64(), (-(2**63), 2**53 + 1, I64)),
    Case("boolean", "boolean", pa.bool_(), (True, False), ("true", "false")),
    Case(
        "real",
        "float",
        pa.float32(),
        (float("nan"), float("inf"), float("-inf"), -0.0, 1.401298464324817e-45),
        ("NaN", "Infinity", "-Infinity", "-0", "1e-45"),
    ),
    Case(
        "double precision",
        "double",
        pa.float64(),
        (float("nan"), float("-inf"), -0.0, 5e-324, 1.7976931348623157e308, 0.1),
        ("NaN", "-Infinity", "-0", "5e-324", "1.7976931348623157e+308", "0.1"),
    ),
    Case(
        "numeric(12,2)",
        "decimal(12,2)",
        pa.decimal128(12, 2),
        tuple(map(Decimal, ("0.00", "-0.01", "9999999999.99"))),
    ),
    Case(
        "numeric(38,0)",
        "decimal(38,0)",
        pa.decimal128(38, 0),
        (Decimal(DIGITS), Decimal("-" + "9" * 38), Decimal(10000)),
    ),
    Case(
        "numeric(38,38)",
        "decimal(38,38)",
        pa.decimal128(38, 38),
        (Decimal("0." + DIGITS), Decimal("-0." + "0" * 37 + "1")),
        ("0." + DIGITS, "-0." + "0" * 37 + "1"),
    ),
    Case(
        "numeric(20,6)",
        "decimal(20,6)",
        pa.decimal128(20, 6),
        tuple(map(Decimal, ("10000.000100", "0.000001"))),
    ),
    Case(
        "numeric",
        "string",
        pa.string(),
        ("1.00", "1e-20", "NaN", "-Infinity"),
        ("1.00", "0.00000000000000000001", "NaN", "-Infinity"),
    ),
    Case("numeric(5,-2)", "string", pa.string(), ("12300", "-100")),
    Case("numeric(60,2)", "string", pa.string(), ("9" * 58 + ".99",)),
    Case("text", "string", pa.string(), ("", " ", "ünï €", "\\N", "a\tb\nc\r", "'\"%s%%{}", "x" * 100_000)),
    Case("varchar(3)", "string", pa.string(), ("", "äöü", "a  ")),
    Case("char(3)", "string", pa.string(), ("a", "abc"), ("a", "abc")),
    Case("name", "string", pa.string(), ("n" * 63,)),
    Case(
        "bytea",
        "binary",
        pa.binary(),
        (b"", b"\x00\xff", bytes(range(256))),
        ("\\x", "\\x00ff", "\\x" + bytes(range(256)).hex()),
    ),
    Case(
        "date",
        "date",
        pa.date32(),
        (-2440588 + 1, 0, 2932896, 2145042905),
        ("4714-11-25 BC", "1970-01-01", "9999-12-31", "5874897-12-31"),
        pa.int32(),
    ),
    Case(
        "date", "date", pa.date32(), (I32, -I32 - 1, -1), ("infinity", "-infinity", "1969-12-31"), pa.int32()
    ),
    Case(
        "timestamp",
        "timestamp_ntz",
        US,
        (0, -1, 253402300799999999),
        ("1970-01-01 00:00:00", "1969-12-31 23:59:59.999999", "9999-12-31 23:59:59.999999"),
        pa.int64(),
    ),
    Case(
        "timestamp",
        "timestamp_ntz",
        US,
        (I64, -I64 - 1, -1, -86400000001),
        ("infinity", "-infinity", "1969-12-31 23:59:59.999999", "1969-12-30 23:59:59.999999"),
        pa.int64(),
    ),
    Case(
        "timestamp(3)",
        "timestamp_ntz",
        US,
        (1000, -1000),
        ("1970-01-01 00:00:00.001", "1969-12-31 23:59:59.999"),
        pa.int64(),
    ),
    Case(
        "timestamptz",
        "timestamp",
        UTC,
        (0, -62135596800000000 - 1),
        ("1970-01-01 00:00:00+00", "0001-12-31 23:59:59.999999+00 BC"),
        pa.int64(),
    ),
    Case(
        "timestamptz",
        "timestamp",
        UTC,
        (I64, -I64 - 1, 1),
        ("infinity", "-infinity", "1970-01-01 00:00:00.000001+00"),
        pa.int64(),
    ),
    Case("time(6)", "string", pa.string(), ("00:00:00", "24:00:00", "23:59:59.999999")),
    Case("timetz", "string", pa.string(), ("12:00:00+02",)),
    Case("interval", "string", pa.string(), ("1 year 2 mons 3 days 04:05:06.789", "-00:00:00.000001")),
    Case(
        "uuid",
        "string",
        pa.string(),
        ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-0000000000ff"),
    ),
    Case(
        "uuid",
        "string",
        pa.string(),
        ("{A0EEBC99-9c0b-4ef8-bb6d-6bb9bd380a11}",),
        ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",),
    ),
    Case("json", "string", pa.string(), ('{"b": 1,  "a": 1.0, "a": 2}', "null")),
    Case("jsonb", "string", pa.string(), ('{"b": 1,  "a": 1.0}', "[]"), ('{"a": 1.0, "b": 1}', "[]")),
    Case('"odd ö""%s".mood', "string", pa.string(), ('it\'s "fine"', "sad")),
    Case("short", "string", pa.string(), ("12345", "")),
    Case("integer[]", "string", pa.string(), ("{1,NULL,3}", "{}", "{{1,2},{3,4}}")),
    Case("text[]", "string", pa.string(), ('{"a,b",NULL,"NULL",""}',)),
    Case("inet", "string", pa.string(), ("192.168.0.1/24", "::1/128")),
    Case("macaddr", "string", pa.string(), ("08:00:2b:01:02:03",)),
    Case("bit(3)", "string", pa.string(), ("101",)),
    Case("varbit", "string", pa.string(), ("1", "10101")),
    Case("point", "string", pa.string(), ("(1,2)",)),
    Case("int4range", "string", pa.string(), ("[1,5)", "empty")),
    Case("pair", "string", pa.string(), ('(1,"a b")',)),
    Case("tsvector", "string", pa.string(), ("'a':1 'b':2",)),
)


def names(case: Case) -> str:
    """A readable test id."""
    return f"{case.sql}-{str(case.values[0])[:12]}"


@pytest.fixture(scope="module")
def shared(postgres_target: PostgresServer) -> Iterator[Bench]:
    """A writer on a database where each case makes a table of its own."""
    with fresh_database(postgres_target, "new") as database, bench(database, *TYPES) as made:
        yield made


@pytest.mark.parametrize("case", CASES, ids=names)
def test_values_arrive_exactly(shared: Bench, case: Case) -> None:
    expected = [*(case.texts or tuple(str(value) for value in case.values)), None]
    it, query = shared, shared.database.query
    name = it.new_table(f"id int PRIMARY KEY, v {case.sql}")
    assert it.target.tables([name])[0].columns[1].spark_type == case.spark
    rows = pa.table({**ints("id", *range(len(expected))), "v": case.array()})
    it.apply(it.part(name, chunk=rows))
    read = f"SELECT v::text FROM {name} ORDER BY id"
    assert [row[0] for row in query(read)] == expected
    it.apply(it.part(name, chunk=rows, strict=False))  # conflicts: staged, every row is the same
    shared.database.execute(f"DELETE FROM {name}")
    it.apply(it.part(name, after=rows))
    assert [row[0] for row in query(read)] == expected
    images = query(f"SELECT xmin::text FROM {name}")
    it.apply(it.part(name, before=rows, after=rows))
    assert query(f"SELECT xmin::text FROM {name}") == images  # equal rows aren't rewritten
    nothing = pa.table({**ints("id", *range(len(expected))), "v": pa.nulls(len(expected), case.arrow)})
    it.apply(it.part(name, before=rows, after=nothing))
    assert [row[0] for row in query(read)] == [None] * len(expected)


def test_random_decimals_arrive_exactly(new_pg: Database) -> None:
    """The driver's numeric writer, with trailing zeros, empty groups of four digits, both signs."""
    dice = random.Random(7)
    columns = {}
    for scale in (0, 1, 2, 4, 5, 10, 37, 38):
        numbers = [
            dice.choice((1, -1)) * dice.randrange(10 ** dice.randint(0, 38)) // 10 ** dice.randint(0, 9)
            for _ in range(500)
        ]
        columns[f"s{scale}"] = pa.array(
            [Decimal(f"{number}e-{scale}") for number in numbers], pa.decimal128(38, scale)
        )
    declared = ", ".join(f"{name} numeric(38,{name[1:]})" for name in columns)
    with bench(new_pg, f"CREATE TABLE t (id int PRIMARY KEY, {declared})") as it:
        it.apply(it.part("t", chunk=pa.table({**ints("id", *range(500)), **columns})))
    stored = new_pg.query(f"SELECT {', '.join(columns)} FROM t ORDER BY id")
    assert stored == list(zip(*(column.to_pylist() for column in columns.values()), strict=True))


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("numeric(10,2)", pa.array([Decimal("1.005")], pa.decimal128(10, 3))),
        ("integer", pa.array([2**31], pa.int64())),
        ("smallint", pa.array(["x"], pa.string())),
        ("timestamp(3)", pa.array([1], pa.int64()).cast(US)),
        ("timestamptz(0)", pa.array([-1], pa.int64()).cast(UTC)),
    ],
)
def test_what_would_be_rounded_is_refused(shared: Bench, sql: str, values: pa.Array) -> None:
    name = shared.new_table(f"id int PRIMARY KEY, v {sql}")
    with pytest.raises(TargetError, match=rf"column v of public\.{name} .* without loss"):
        shared.apply(shared.part(name, after=pa.table({**ints("id", 1), "v": values})))
    assert shared.database.query(f"SELECT * FROM {name}") == []


@pytest.mark.parametrize(
    ("sql", "good", "bad", "cause"),
    [
        ("varchar(3)", "abc", "abcd", "too long"),
        ("bit(2)", "11", "111", "length"),
        ("short", "ok", "123456", "too long"),
        ("short", "ok", "never", "check constraint"),
        ("int[]", "{}", "{a}", "invalid input"),
        ("jsonb", "{}", "{", "json"),
        ("text CHECK (v <> 'bad')", "good", "bad", "{table}_v_check"),
        ("text NOT NULL", "x", None, "null value"),
        ('"odd ö""%s".mood', "sad", "glad", "glad"),
        ("numeric", "1", "one", "one"),
        ("text", "a", "nul\x00", "0x00"),
    ],
)
@pytest.mark.parametrize("path", ["chunk", "after"])
def test_a_refused_row_is_named_by_its_key(
    shared: Bench, sql: str, good: str, bad: str | None, cause: str, path: str
) -> None:
    name = shared.new_table(f"id int, tag text, v {sql}, PRIMARY KEY (id, tag)")
    rows = 50
    values: list[str | None] = [good] * rows
    values[37] = bad
    table = pa.table({**ints("id", *range(rows)), **texts("tag", *["k"] * rows), **texts("v", *values)})
    with pytest.raises(TargetError) as raised:
        shared.apply(shared.part(name, **{path: table}))
    assert "id=37, tag='k'" in raised.value.where
    assert cause.replace("{table}", name) in raised.value.cause
    assert shared.database.query(f"SELECT * FROM {name}") == []
    assert shared.ledger_segment() == shared.segment


ODD_NAMES = (
    'with "quotes"',
    "with space",
    "select",
    "ünïcode €",
    "per%cent %s %(a)s",
    "Mixed",
    "back\\slash",
    "a'b",
    "$1",
    "{0}",
)


def test_odd_identifiers(new_pg: Database) -> None:
    def quote(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    schema = 'odd ö"%s'
    for place, name in enumerate(ODD_NAMES):
        columns = ", ".join(f"{quote(column)} text" for column in ODD_NAMES)
        new_pg.execute(
            f"CREATE SCHEMA IF NOT EXISTS {quote(schema)}",
            f"CREATE TABLE {quote(schema)}.{quote(name)} ({columns}, PRIMARY KEY ({quote(ODD_NAMES[place])}),"
            f" UNIQUE ({quote(ODD_NAMES[place - 1])}))",
        )
    with bench(new_pg, schema=schema) as it:
        for name in ODD_NAMES:
            first = pa.table({column: [column + "1", column + "2"] for column in ODD_NAMES})
            swapped = pa.table({column: [column + "2", column + "1"] for column in ODD_NAMES})
            it.apply(it.part(name, chunk=first))
            it.apply(it.part(name, before=first, after=swapped))
            stored = new_pg.query(f"SELECT * FROM {quote(schema)}.{quote(name)} ORDER BY 1")
            assert stored == [tuple(column + number for column in ODD_NAMES) for number in "12"]
            with pytest.raises(TargetError, match="exists already"):
                it.apply(it.part(name, after=first.slice(1)))
            it.apply(it.part(name, before=first))
            assert new_pg.query(f"SELECT * FROM {quote(schema)}.{quote(name)}") == []


def test_keys_that_are_equal_though_they_look_different(new_pg: Database) -> None:
    """The server's equality decides what is one key, and the row then looks as mapped last."""
    with bench(new_pg, "CREATE TABLE t (k numeric PRIMARY KEY, v int)") as it:
        it.apply(it.part("t", chunk=pa.table({**texts("k", "1.0", "2"), **ints("v", 1, 2)})))
        short, long = (pa.table({**texts("k", k), **ints("v", 9)}) for k in ("1.0", "1.000"))
        it.apply(it.part("t", before=short, after=long))
        assert new_pg.query("SELECT k::text, v FROM t ORDER BY k") == [("1.000", 9), ("2", 2)]
        with pytest.raises(TargetError, match="takes two keys"):
            it.apply(it.part("t", after=pa.table({**texts("k", "3", "3.0"), **ints("v", 1, 2)})))
