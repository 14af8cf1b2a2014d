"""Columns of a mapping in the words of MySQL and MariaDB give what Spark makes of them, or say they don't
know it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
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
from tests.servers import Database, MariaDBServer, fresh_database
from transforms.columns import (
    blank_to_null,
    cents,
    flag,
    instant,
    lower_ascii,
    mysql_date,
    mysql_datetime,
    slug,
)
from verify.readers.mysql.mariadb_source import MariaDBSource
from verify.readers.mysql.mysql_source import MySQLSource
from verify.readers.mysql.session import open_session, rows_and_warnings
from verify.tables.hashed_by_servers import text_hash
from verify.tables.hashed_by_servers.mysql import in_mysql
from verify.tables.hashed_by_servers.spark_numbers import is_number
from verify.tables.hashed_by_servers.sql_value import SqlValue
from verify.tables.hashed_by_servers.text_hash import Cell

pytestmark = [pytest.mark.integration, pytest.mark.spark]

TABLE = """
CREATE TABLE r (k int PRIMARY KEY, s smallint, i int, l bigint, u bigint unsigned, z int unsigned zerofill,
 n decimal(12,2), w decimal(38,0), t text, v varchar(40) CHARACTER SET latin1, c char(8), e enum('a','ß','it''s'),
 y year, d date, at datetime, mu datetime(6), ts timestamp(3) NULL, f double, j json, d2 date NOT NULL,
 raw varbinary(9)) CHARACTER SET utf8mb4
"""
LATIN = [None, "", "  ", "a", "ABC ", "ß", "é€", "it's", "ÀÉ", "x,y"]
DAYS = [None, "1970-01-01", "2024-02-29", "0001-01-01", "9999-12-31", "0000-00-00"]
ODD_DAYS = ["2024-05-00", "2024-00-10", "0000-05-10", "0000-00-05", "2023-02-29", "2024-04-31"]
TIMES = [*DAYS, "2024-03-31 02:30:00", "1900-01-01 00:00:01", "9999-12-31 23:59:59", "0000-00-00 10:00:00"]
MICROS = [*TIMES, "2024-03-31 02:30:00.000001", "2024-03-31 23:59:59.999999", "2024-03-31 10:00:00.500000"]
COLUMNS = (
    SMALL, WHOLE, LONG, [None, 0, 1, 2**64 - 1], [None, 0, 7, 2**32 - 1], CENTS, DIGITS_38, [*TEXTS, "a,b"], LATIN,
    [None, "a", "a b"], [None, "a", "ß", "it's"], [None, 0, 1999, 2024], [*DAYS, *ODD_DAYS], [*TIMES, *ODD_DAYS],
    [*MICROS, *ODD_DAYS], [None, "0000-00-00", "1970-01-02 00:00:00.5", "2024-03-31 02:30:00"], [None, 0.0, -1.5],
    [None, "{}"], [*DAYS[1:], *ODD_DAYS], [None, b"", b"\x00", b"\xc3\x9f\xff"],
)  # fmt: skip


SAID: dict[str, Said] = {
    **OF_TEXTS,
    "constant": lambda _: F.lit("it's \\ {0} %s"),
    "null": lambda _: F.lit(None).cast("timestamp"),
    "lower": lambda _: F.lower("t"),
    "upper of another character set": lambda _: F.upper("v"),
    "lower_ascii": lambda _: lower_ascii("t"),
    "some letters": lambda _: F.translate("t", "Aß", "ax"),
    "trimmed": lambda _: F.trim("t"),
    "left and right": lambda _: F.concat(F.ltrim("t"), F.lit("|"), F.rtrim("v")),
    "blank_to_null": lambda _: blank_to_null("t"),
    "blank_to_null of another character set": lambda _: blank_to_null("v"),
    "length": lambda _: F.length("t"),
    "one of": lambda _: F.when(F.col("t").isin("a", "ß", "it's"), F.col("v")).otherwise(F.col("t")),
    "nullif": lambda _: F.nullif("t", F.lit("")),
    "coalesce": lambda _: F.coalesce("t", "v", "e", F.lit("none")),
    "same": lambda _: F.col("t").eqNullSafe(F.col("v")),
    "equal": lambda _: F.col("e") == F.col("t"),
    "padded": lambda _: F.trim("c"),
    "enum": lambda _: F.when(F.col("e") == "it's", "its").otherwise(F.col("e")),
    "cents": lambda _: cents("n"),
    "flag": lambda _: flag("s"),
    "of zeros in front": lambda _: F.coalesce("z", F.lit(-1)),
    "year": lambda _: F.when(F.col("y") > 0, F.col("y")),
    "day": lambda _: mysql_date("d"),
    "day that is always there": lambda _: mysql_date("d2"),
    "time": lambda _: mysql_datetime("at"),
    "time with a fraction": lambda _: mysql_datetime("mu"),
    "instant": lambda _: instant(mysql_datetime("ts"), "UTC"),
    "instant of a naive time": lambda _: instant(mysql_datetime("mu"), "+00:00"),
    "day of a time": lambda _: mysql_datetime("at").cast("date"),
    "midnight": lambda _: mysql_date("d").cast("timestamp"),
    "no day": lambda _: mysql_date("d").isNull(),
    "is there": lambda _: F.col("d").isNotNull(),
    "earlier": lambda _: F.when(mysql_datetime("at") < mysql_datetime("mu"), "before").otherwise(
        "not before"
    ),
    "the first of two": lambda _: F.coalesce(mysql_datetime("at"), mysql_datetime("mu")),
    "sum": lambda _: F.col("i") + F.col("s"),
    "sum of longs": lambda _: F.col("l") + F.col("i"),
    "of an unsigned": lambda _: F.col("u") - F.col("n"),
    "product": lambda _: F.col("l") * F.col("l") - 1,
    "product of products": lambda _: F.col("l") * F.col("l") * F.col("l"),
    "product of decimals": lambda _: F.col("n") * F.lit(Decimal("1.19")),
    "decimal and int": lambda _: F.col("n") - F.col("i"),
    "product that fits": lambda _: F.col("s").cast("int") * 1000,
    "cut": lambda _: F.col("n").cast("int"),
    "cut or null": lambda _: F.col("w").try_cast("bigint"),
    "digits": lambda _: F.col("l").cast("string"),
    "yes or no": lambda _: (F.col("i") > 1).cast("string"),
    "is it": lambda _: F.col("l").cast("boolean"),
    "three ways": lambda _: (F.col("l").cast("boolean") & (F.col("i") > 1)) | ~(F.col("s") <= 0),
    "cases": lambda _: F.when(F.col("i") > 1, F.lower("t")).when(F.col("s") > 0, F.col("v")),
    "if": lambda _: F.expr("if(i is null, t, v)"),
    "enough": lambda _: F.col("w") >= F.col("l"),
}
"""What there are words for."""
REFUSED_DAYS = {
    "day", "day that is always there", "time", "time with a fraction", "instant of a naive time",
}  # fmt: skip
"""Handed on as they are: PostgreSQL has no such day."""
UNSAID: dict[str, Said] = {
    **NOT_OF_TEXTS,
    "of no row": lambda _: F.when(F.col("i") > 1, F.lit(2**62) * F.lit(4)).otherwise(F.col("l")),
    "quotient": lambda _: F.col("n") / 3,
    "hash": lambda _: F.sha1("t"),
    "order of texts": lambda _: F.col("t") < F.col("v"),
    "text of a day": lambda _: F.concat("d", F.lit("!")),
    "a day as it is": lambda _: F.coalesce("d", F.lit("none")),
    "a cast day": lambda _: F.col("d").cast("date"),
    "a day of another form": lambda _: mysql_date("at"),
    "a time in a text": lambda _: mysql_datetime("t"),
    "another beginning": lambda _: F.col("d").startswith("0000"),
    "day of a fraction": lambda _: mysql_datetime("mu").cast("date"),
    "floating": lambda _: F.col("f") + 1,
    "json": lambda _: F.get_json_object("j", "$.a"),
    "slug": lambda _: slug("t"),
    "a zone with summer": lambda _: instant(mysql_datetime("at"), "Europe/Berlin"),
    "one becomes another": lambda _: F.translate("t", "ab", "bc"),
    "more digits than there are": lambda _: F.col("w") * F.col("w"),
}
CONTROLS = {"lower", "upper of another character set"}
"""Whose conditions alone keep them from being wrong."""


class Table(Worded):
    """The table at the server, and as the judge's frame."""

    def __init__(self, old: Database, spark: SparkSession, folder: Path):
        self._old = old
        with old.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_mode = 'ALLOW_INVALID_DATES'")
            cursor.execute(TABLE)
            marks = ", ".join(["%s"] * (1 + len(COLUMNS)))
            cursor.executemany(f"INSERT INTO r VALUES ({marks})", rows_of_edges(*COLUMNS))
        reader = (MySQLSource if old.kind == "mysql" else MariaDBSource)(settings_of(old))
        with reader.chunks("r") as chunks:
            super().__init__(chunks, spark, folder)

    def made(self, said: Said, strict_times: bool = False) -> SqlValue | None:
        found = self.expression(said)
        return None if found is None else in_mysql(found, self.schema.columns, strict_times)

    def by_server(self, made: SqlValue) -> tuple[dict[int, Any], set[int]]:
        assert not made.unprinted
        unknown = " OR ".join(made.unknown) or "false"
        with open_session(settings_of(self._old), "source") as session:
            found, warnings = rows_and_warnings(
                session, f"SELECT k, CASE WHEN NOT ({unknown}) THEN {made.sql} END, {unknown} FROM r"
            )
        assert not warnings, "what warns makes pieces small"
        assert not [row for row in found if row[2] is None], "NULL is neither known nor unknown"
        known = {int(k): printed(value, made) for k, value, odd in found if odd == "0"}
        return known, {int(k) for k, _, odd in found if odd == "1"}

    def plain_time(self, time: Column) -> Column:
        return time.cast("string")

    def plain(self, value: Any, kind: str) -> Any:
        if value is None or kind == "string" or kind.startswith("timestamp"):
            return value
        return str(int(value)) if kind == "boolean" else str(value) if kind == "date" else Decimal(value)


def printed(text: str | None, made: SqlValue) -> Any:
    """A value as the server writes it."""
    if text is None:
        return None
    if is_number(made.type):
        return Decimal(text)
    if made.type.startswith("timestamp"):
        return text if made.whole_seconds else text.rstrip("0").rstrip(".")
    return text


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def table(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Table]:
    server: MariaDBServer = request.getfixturevalue(request.param)
    with fresh_database(server, "words") as database:
        yield Table(database, spark, tmp_path_factory.mktemp("words"))


@pytest.mark.parametrize("names", in_groups(SAID), ids=lambda names: names[0])
def test_what_is_said_is_what_spark_makes(table: Table, names: list[str]) -> None:
    made = {name: table.made(SAID[name]) for name in names}
    asked = {name: table.by_server(one) for name, one in made.items() if one is not None}
    assert [name for name in names if name not in asked] == []
    assert [name for name in names if len(asked[name][0]) <= 50] == [], "too few to prove anything"
    found = table.together_by_spark(
        {name: SAID[name] for name in names}, {name: set(asked[name][0]) for name in names}
    )
    assert {name: asked[name][0] for name in names} == found


@pytest.mark.parametrize("name", sorted(CONTROLS))
def test_without_its_conditions_it_would_be_wrong(table: Table, name: str) -> None:
    """The negative control."""
    made = table.made(SAID[name])
    assert made is not None
    everything, _ = table.by_server(replace(made, unknown=()))
    assert everything != table.by_spark(SAID[name], set(everything))


@pytest.mark.parametrize("name", sorted(REFUSED_DAYS))
def test_what_the_mapping_refuses_is_not_known(table: Table, name: str) -> None:
    made = table.made(SAID[name])
    assert made is not None
    known, unknown = table.by_server(made)
    for key in sorted(unknown)[:2]:
        assert table.fails_in_spark(SAID[name], key)
    assert not table.fails_in_spark(SAID[name], min(known)), "the control"


@pytest.mark.parametrize(
    ("name", "of_a_condition"),
    [("time with a fraction", True), ("instant", True), ("the first of two", False)],
)
def test_a_time_is_written_as_postgresql_prints_it(table: Table, name: str, of_a_condition: bool) -> None:
    made = table.made(SAID[name])
    assert made is not None
    assert (made.only_if is not None) == of_a_condition
    values, _ = table.by_server(made)
    fractions = {(value or "").partition(".")[2] for value in values.values()}
    assert {"", "5"} <= fractions, "with zeros to be left out, and without anything but them"
    for only_if in {made.only_if, None}:
        cell = Cell(made.sql, "timestamp", "datetime(6)", "", True, True, only_if)
        written = replace(made, sql=text_hash._mysql(cell, long=False), type="string")
        texts, _ = table.by_server(written)
        assert texts == {key: "-" if value is None else value for key, value in values.items()}


@pytest.mark.parametrize("name", UNSAID)
def test_for_the_rest_there_are_no_words(table: Table, name: str) -> None:
    assert table.made(UNSAID[name]) is None


@pytest.mark.parametrize("name", sorted(REFUSED_DAYS))
def test_a_day_that_postgresql_has_not_is_only_asked_for_beside_mysql(table: Table, name: str) -> None:
    of_mysql, of_postgres = table.made(SAID[name]), table.made(SAID[name], strict_times=True)
    assert of_mysql is not None
    assert of_postgres is not None
    assert of_postgres.unknown == ()
    _, refused = table.by_server(of_mysql)
    values, _ = table.by_server(of_postgres)
    assert refused
    for key in refused:
        with pytest.raises(ValueError, match=r"day|month|year"):
            date.fromisoformat(values[key][:10])
