"""Nothing is rounded or cut without a word on its way into PostgreSQL: the server's own types, as it lists them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pytest

from migrator.errors import TargetError
from tests.integration.target_bench import Bench, bench, ints, texts
from tests.servers import Database, PostgresServer, fresh_database

pytestmark = pytest.mark.integration

MADE = (
    "CREATE DOMAIN price AS numeric(40,2)",
    "CREATE DOMAIN moment AS time(0)",
    "CREATE DOMAIN word AS varchar(3)",
    "CREATE DOMAIN later AS moment",
    "CREATE DOMAIN flags AS varbit(2)",
    "CREATE TYPE pair AS (n numeric(4,1), w varchar(3))",
    "CREATE TYPE deep AS (p pair, t time(0)[])",
)
# type, values that it holds, a value of which the server keeps less without a word
KINDS: list[tuple[str, tuple[str, ...], str]] = [
    ("numeric(40,2)", ("1.50", "1.5", "1.500", "-0.0", "NaN", "9e30"), "1.005"),
    ("numeric(40,-2)", ("12300", "1.23e4"), "12345"),
    ("numeric(3,5)", ("0.00123",), "0.001234"),
    ("numeric(5,2)[]", ("{1.5,NULL,NaN}", "{{1.500},{2}}", "{}"), "{1,1.005}"),
    ("numeric(40,2)[]", ("{1.5}",), "{0.001}"),
    ("price", ("1.5",), "1.005"), ("price[]", ("{1.5,NULL}", "{1.50}"), "{1.005}"),
    ("pair", ("(1.5,abc)", '(1.50,"a b")', "(,)"), "(1.25,abc)"), ("pair[]", ('{"(1.5,abc)"}',), '{"(1.25,abc)"}'),
    ("pair", ("(1,)",), '(1,"abc  ")'), ("deep", ('("(1.5,abc)",{12:00:00})',), '("(1.5,abc)",{12:00:00.5})'),
    ("time(3)", ("12:00:00.123", "12:00", "12:00:00.123000", "24:00"), "12:00:00.1234"),
    ("time", ("12:00:00.123456", "12:00:00.1234560"), "12:00:00.1234567"),
    ("time(0)[]", ("{12:00,NULL}",), "{12:00:00.5}"), ("time[]", ("{12:00:00.123456}",), "{12:00:00.1234561}"),
    ("moment", ("12:00",), "12:00:00.4"), ("later", ("12:00",), "12:00:00.4"),
    ("moment[]", ("{12:00:00}",), "{12:00:00.4}"),
    ("timetz(1)", ("12:00:00.5+02",), "12:00:00.55+02"), ("timetz", ("12:00+02",), "12:00:00.0000001+02"),
    ("timetz(0)[]", ("{12:00+02}",), "{12:00:00.1+02}"),
    ("interval(2)", ("1 day 00:00:01.25", "1 mon"), "00:00:01.255"), ("interval", ("1 day",), "00:00:00.1234567"),
    ("interval year to month", ("1 year 2 mons",), "1 year 2 days"), ("interval day", ("3 days",), "3 days 01:00:00"),
    ("interval(0)[]", ("{00:00:01}",), "{00:00:01.5}"),
    ("timestamp(0)[]", ('{"2024-01-01 00:00:00",infinity}',), '{"2024-01-01 00:00:00.5"}'),
    ("timestamptz(3)[]", ('{"2024-01-01 00:00:00.123+00"}',), '{"2024-01-01 00:00:00.1234+00"}'),
    ("timestamp[]", ('{"2024-01-01 00:00:00.123456"}',), '{"2024-01-01 00:00:00.1234561"}'),
    ("tsrange", ('["2024-01-01 00:00:00","2024-01-02 00:00:00.5")',), '["2024-01-01 00:00:00.0000001",)'),
    ("tstzmultirange", ("{}",), '{["2024-01-01 00:00:00.0000001+00",)}'),
    ("varchar(3)", ("abc", "a ", "äöü"), "abc  "), ("varchar(3)", ("",), "    "), ("word", ("abc",), "abc "),
    ("varchar(3)[]", ("{abc,NULL}",), '{"abc "}'), ("word[]", ("{abc}",), '{"abc "}'),
    ("flags", ("10",), "101"),
    ("name", ("n" * 63,), "n" * 64), ("name", ("é" * 31,), "é" * 32), ('"char"', ("a", ""), "ab"),
    ("money", ("1.25", "$1,000.00"), "1.255"), ("money[]", ("{1.25}",), "{1.255}"),
    ("real[]", ("{0.1,NULL,NaN,Infinity,1e-45}", "{0.10000000149011612}"), "{0.123456789}"),
    ("double precision[]", ("{0.1,1e300,5e-324,-Infinity}",), "{0.1234567890123456789}"),
]  # fmt: skip
SAID_ALOUD = ("bit", "varbit")
"""Too long for a column they are an error (``test_a_refused_row_is_named_by_its_key``)."""
INSIGNIFICANT = ("bpchar",)
"""Blanks at the end of ``character(n)`` are no part of the value; others beyond are an error."""
ARROW = ("timestamp", "timestamptz")
"""Not text on their way (``test_what_would_be_rounded_is_refused``)."""


def table(value: str | None, rows: int = 30, at: int = 17) -> pa.Table:
    values: list[str | None] = [None] * rows
    values[at] = value
    return pa.table({**ints("id", *range(rows)), **texts("tag", *["k"] * rows), **texts("v", *values)})


@pytest.fixture(scope="module")
def shared(postgres_target: PostgresServer) -> Iterator[Bench]:
    """A writer on a database where each case makes a table of its own."""
    with fresh_database(postgres_target, "new") as database, bench(database, *MADE) as made:
        yield made


@pytest.mark.parametrize(("kind", "kept", "lossy"), KINDS, ids=[f"{one[0]} {one[2][:9]}" for one in KINDS])
def test_of_no_value_a_part_is_lost(shared: Bench, kind: str, kept: tuple[str, ...], lossy: str) -> None:
    name = shared.new_table(f"id int, tag text, v {kind}, PRIMARY KEY (id, tag)")
    for path in ("chunk", "after"):
        with pytest.raises(TargetError, match="without loss") as raised:
            shared.apply(shared.part(name, **{path: table(lossy)}))
        assert f"public.{name}" in raised.value.where
        assert "id=17, tag='k', column v, value" in raised.value.where.replace("'17'", "17")
        assert lossy[:20] in raised.value.where
        assert shared.database.query(f"SELECT count(*) FROM {name}") == [(0,)]
    for value in kept:
        shared.apply(shared.part(name, chunk=table(value), strict=False))
        shared.apply(shared.part(name, before=table(value), after=table(value)))
    silently_kept(shared.database, name, kind, lossy)


def silently_kept(database: Database, name: str, kind: str, lossy: str) -> None:
    """The control: as the tool casts, or loads, the server takes it, and keeps another value."""
    database.execute(f"DELETE FROM {name}")
    (plain,) = database.query(
        "SELECT atttypid::regtype::text FROM pg_attribute WHERE attrelid = %s::regclass AND attname = 'v'",
        [name],
    )[0]
    loaded = (
        "%s"
        if kind.startswith(("varchar", "name", "word")) and "[" not in kind
        else f"CAST(CAST(%s AS text) AS {plain})"
    )
    database.query(f"INSERT INTO {name} SELECT 1, 'k', {loaded} RETURNING v::text", [lossy])
    [(kept,)] = database.query(f"SELECT v::text FROM {name}")
    assert kept != lossy


def test_every_type_of_the_server_that_takes_a_modifier_is_tried(new_pg: Database) -> None:
    """A type of a newer server that cuts or rounds by a modifier of its own fails here."""
    listed = new_pg.query("SELECT typname FROM pg_catalog.pg_type WHERE typmodin <> 0 AND typcategory <> 'A'")
    tried = set()
    for kind, _, _ in KINDS:
        found = new_pg.query(
            "SELECT format('%%I', typname) FROM pg_type WHERE oid = to_regtype(%s)",
            [re.sub(r"\[\]", "", kind)],
        )
        tried |= {row[0].strip('"') for row in found}
    assert {row[0] for row in listed} <= tried | {*SAID_ALOUD, *INSIGNIFICANT, *ARROW}
