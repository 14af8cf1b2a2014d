"""Columns of a mapping in PostgreSQL's words give what Spark makes of them, or say that they don't know it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from tests.integration.judged import settings_of
from tests.integration.verify.chunks.worded import (
    CENTS,
    DIGITS_38,
    LONG,
    NOT_OF_TEXTS,
    OF_TEXTS,
    SMALL,
    TEXTS,
    WHOLE,
    Said,
    Worded,
    in_groups,
    rows_of_edges,
)
from tests.servers import Database, PostgresServer, fresh_database
from transforms.columns import (
    blank_to_null,
    cents,
    flag,
    instant,
    lower_ascii,
    mysql_datetime,
    slug,
    uuid5,
)
from verify.readers.postgres.source import PostgresSource
from verify.tables.hashed_by_servers import postgres as in_postgres
from verify.tables.hashed_by_servers.sql_value import SqlValue

pytestmark = [pytest.mark.integration, pytest.mark.spark]

TABLE = (
    "CREATE TABLE r (k int PRIMARY KEY, s smallint, i int, l bigint, n numeric(12,2), w numeric(38,0), b boolean,"
    " t text, v varchar(40), c char(8), f double precision, d date, at timestamp, tz timestamptz, j jsonb, raw bytea)"
)
TIMES = [
    None, "1970-01-01", "2024-03-31 02:30:00", "0001-01-01", "1900-01-01 00:00:00.000001",
    "9999-12-31 23:59:59.999999",
    "infinity", "-infinity",
]  # fmt: skip
COLUMNS = (
    SMALL, WHOLE, LONG, CENTS, DIGITS_38, [None, True, False], [*TEXTS, "true"], [*TEXTS, "true"], [None, "a", "a b"],
    [None, 0.0, "-0", "NaN", 1.5], TIMES, TIMES, TIMES, [None, "{}"],
    [None, b"", b"\x00", b"\xc3\x9f\xff"],
)  # fmt: skip


SAID: dict[str, Said] = {
    **OF_TEXTS,
    "constant": lambda _: F.lit("it's"),
    "null": lambda _: F.lit(None).cast("timestamp"),
    "lower": lambda _: F.lower("t"),
    "upper of varchar": lambda _: F.upper("v"),
    "lower_ascii": lambda _: lower_ascii("t"),
    "trimmed": lambda _: F.trim("t"),
    "left and right": lambda _: F.concat(F.ltrim("t"), F.lit("|"), F.rtrim("v")),
    "blank_to_null": lambda _: blank_to_null("t"),
    "length": lambda _: F.length("t"),
    "one of": lambda _: F.when(F.col("t").isin("a", "ß", "it's"), F.col("v")).otherwise(F.col("t")),
    "nullif": lambda _: F.nullif("t", F.lit("")),
    "coalesce": lambda _: F.coalesce("t", "v", F.lit("none")),
    "same": lambda _: F.col("t").eqNullSafe(F.col("v")),
    "cents": lambda _: cents("n"),
    "flag": lambda _: flag("s"),
    "flag of a boolean's number": lambda _: flag(F.col("b").cast("int")),
    "instant": lambda _: instant("at", "UTC"),
    "day of an instant": lambda _: F.col("tz").cast("date"),
    "day and back": lambda _: F.col("at").cast("date").cast("timestamp"),
    "midnight": lambda _: F.col("d").cast("timestamp"),
    "naive": lambda _: F.col("tz").cast("timestamp_ntz"),
    "earlier": lambda _: F.when(F.col("at") < F.col("tz").cast("timestamp_ntz"), "before").otherwise(
        "not before"
    ),
    "sum": lambda _: F.col("i") + F.col("s"),
    "sum of longs": lambda _: F.col("l") + F.col("i"),
    "product": lambda _: F.col("l") * F.col("l") - 1,
    "product of decimals": lambda _: F.col("n") * F.lit(Decimal("1.19")),
    "decimal and int": lambda _: F.col("n") - F.col("i"),
    "product that fits": lambda _: F.col("s").cast("int") * 1000,
    "cents by another way": lambda _: (F.lit(-200) * F.col("n")).cast("long"),
    "tenths, cut": lambda _: (F.col("n") * 10).cast("long"),
    "product that may not": lambda _: F.col("s").cast("int") * 100_000,
    "null or the same as another": lambda _: F.col("i").isNull() | (F.col("l") == F.col("i")),
    "blanks alone": lambda _: F.ltrim("t") == "",
    "not blanks alone": lambda _: ~(F.rtrim("v") == F.lit("")),
    "cut": lambda _: F.col("n").cast("int"),
    "cut or null": lambda _: F.col("w").try_cast("bigint"),
    "digits": lambda _: F.col("l").cast("string"),
    "yes or no": lambda _: F.col("b").cast("string"),
    "is it": lambda _: F.col("l").cast("boolean"),
    "three ways": lambda _: (F.col("b") & (F.col("i") > 1)) | ~(F.col("s") <= 0),
    "cases": lambda _: F.when(F.col("i") > 1, F.lower("t")).when(F.col("b"), F.col("v")),
    "case of what fails": lambda _: F.when(F.col("s") == 7, flag("s")).otherwise(F.col("b")),
    "if": lambda _: F.expr("if(i is null, t, v)"),
    "a day before": lambda _: F.col("d") < F.col("at").cast("date"),
    "enough": lambda _: F.col("w") >= F.col("l"),
    "over two projections": lambda _: F.lower(F.col("again")),
    "ninety steps": lambda _: reduce(lambda made, _: ~made, range(90), F.col("b")),
}
"""What there are words for."""
UNMET = {
    "cents", "cents by another way", "tenths, cut", "flag of a boolean's number", "product of decimals",
    "decimal and int", "enough",
}  # fmt: skip
"""Whose conditions no row of these types can meet."""
UNSAID: dict[str, Said] = {
    **NOT_OF_TEXTS,
    "chance": lambda _: F.rand(1),
    "of no row": lambda _: F.when(F.col("i") > 1, F.lit(2**62) * F.lit(4)).otherwise(F.col("l")),
    "quotient": lambda _: F.col("n") / 3,
    "hash": lambda _: F.sha1("t"),
    "order of texts": lambda _: F.col("t") < F.col("v"),
    "blanks at the end": lambda _: F.trim("c"),
    "number of a text": lambda _: F.col("t").try_cast("int"),
    "text of a decimal": lambda _: F.col("n").cast("string"),
    "text of a time": lambda _: F.col("at").cast("string"),
    "floating": lambda _: F.col("f") + 1,
    "json": lambda _: F.get_json_object("j", "$.a"),
    "slug": lambda _: slug("t"),
    "uuid5": lambda _: uuid5("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "t"),
    "a zone with summer": lambda _: instant("at", "Europe/Berlin"),
    "a time in a text": lambda _: mysql_datetime("t"),
    "backslash": lambda _: F.concat("t", F.lit("\\")),
    "trimmed of others": lambda _: F.expr("trim(BOTH 'x' FROM t)"),
    "rounded": lambda _: F.round("n", 1),
    "more digits than there are": lambda _: F.col("w") * F.col("w"),
    "Python": lambda _: F.udf(lambda text: text, "string")("t"),
    "a hundred and fifty steps": lambda _: reduce(lambda made, _: ~made, range(150), F.col("b")),
}


ODD = 9000
REFUSED = {
    "cents": f"INSERT INTO r (k, n) VALUES ({ODD}, 'NaN')",
    "cut or null": f"INSERT INTO r (k, w) VALUES ({ODD + 1}, 'NaN')",
    "instant": f"INSERT INTO r (k, at) VALUES ({ODD + 2}, '294260-01-01')",
    "day of an instant": f"INSERT INTO r (k, tz) VALUES ({ODD + 3}, '294260-01-01 00:00+00')",
    "midnight": f"INSERT INTO r (k, d) VALUES ({ODD + 4}, '5000000-01-01')",
}
"""What the judge's reader refuses, by a column that looks at it."""


class Table(Worded):
    """The table at the server, and as the judge's frame."""

    def __init__(self, old: Database, spark: SparkSession, folder: Path):
        self._old = old
        old.execute(TABLE, *REFUSED.values())
        with old.connect(autocommit=True) as connection, connection.cursor() as cursor:
            marks = ", ".join(["%s"] * (1 + len(COLUMNS)))
            cursor.executemany(f"INSERT INTO r VALUES ({marks})", rows_of_edges(*COLUMNS))
        with PostgresSource(settings_of(old), "words").chunks("r") as chunks:
            super().__init__(chunks, spark, folder, f"k < {ODD}")

    def made(self, said: Said) -> SqlValue | None:
        found = self.expression(said)
        return None if found is None else in_postgres.in_postgres(found, self.schema.columns)

    def by_server(self, made: SqlValue, where: str = f"k < {ODD}") -> tuple[dict[int, Any], set[int]]:
        unknown = " OR ".join(made.unknown) or "false"
        # Times beyond Python's are told apart by their numbers.
        micros = f"(extract(epoch FROM {made.sql}) * 1000000)::bigint"
        value = (
            f"CASE WHEN NOT ({unknown}) THEN {micros if made.type.startswith('timestamp') else made.sql} END"
        )
        found = self._old.query(f"SELECT k, {value}, {unknown} FROM r WHERE {where}")
        assert not [row for row in found if row[2] is None], "NULL is neither known nor unknown"
        return {row[0]: plain(row[1]) for row in found if not row[2]}, {row[0] for row in found if row[2]}

    def plain_time(self, time: Column) -> Column:
        return F.unix_micros(time.cast("timestamp"))

    def plain(self, value: Any, kind: str) -> Any:
        return plain(value)


def plain(value: Any) -> Any:
    """Equal for equal values of either driver."""
    if isinstance(value, bool) or value is None or isinstance(value, (str, date, datetime)):
        return (type(value).__name__, value)
    return ("number", Decimal(value))


@pytest.fixture(scope="module")
def table(
    postgres: PostgresServer, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Table]:
    with fresh_database(postgres, "words") as database:
        yield Table(database, spark, tmp_path_factory.mktemp("words"))


@pytest.mark.parametrize("names", in_groups(SAID), ids=lambda names: names[0])
def test_what_is_said_is_what_spark_makes(table: Table, names: list[str]) -> None:
    made = {name: table.made(SAID[name]) for name in names}
    asked = {name: table.by_server(one) for name, one in made.items() if one is not None}
    assert [name for name in names if name not in asked] == []
    assert [name for name in names if len(asked[name][0]) <= 50] == [], "too few to prove anything"
    conditional = {name for name, one in made.items() if one is not None and one.unknown}
    assert {name for name in names if asked[name][1]} == conditional - UNMET
    found = table.together_by_spark(
        {name: SAID[name] for name in names}, {name: set(asked[name][0]) for name in names}
    )
    assert {name: asked[name][0] for name in names} == found


@pytest.mark.parametrize("name", UNSAID)
def test_for_the_rest_there_are_no_words(table: Table, name: str) -> None:
    assert table.made(UNSAID[name]) is None


@pytest.mark.parametrize("name", ["lower", "upper of varchar", "cut or null", "cases"])
def test_without_its_conditions_it_would_be_wrong(table: Table, name: str) -> None:
    """The negative control: the rows are there that tell."""
    made = table.made(SAID[name])
    assert made is not None
    everything, unknown = table.by_server(replace(made, unknown=()))
    assert not unknown
    assert everything != table.by_spark(SAID[name], set(everything))


def test_without_sizes_a_product_too_large_would_be_taken_for_known(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control of ``SqlValue.digits``."""
    monkeypatch.setattr(SqlValue, "before_point", lambda _: 0)
    made = table.made(SAID["product that may not"])
    assert made is not None
    assert not made.unknown


@pytest.mark.parametrize(
    "name", ["flag", "sum of longs", "product", "product that may not", "case of what fails"]
)
def test_what_the_mapping_refuses_is_not_known(table: Table, name: str) -> None:
    made = table.made(SAID[name])
    assert made is not None
    known, unknown = table.by_server(made)
    for key in sorted(unknown)[:3]:
        assert table.fails_in_spark(SAID[name], key)
    assert not table.fails_in_spark(SAID[name], min(known)), "the control"


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_reader_refuses_is_not_known(table: Table, name: str) -> None:
    """And the server doesn't stumble over it."""
    made = table.made(SAID[name])
    assert made is not None
    _, unknown = table.by_server(made, f"k = {ODD + list(REFUSED).index(name)}")
    assert len(unknown) == 1
