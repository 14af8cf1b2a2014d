"""Statements in the binlog, judged by what the server did: comments, character sets, quotes, other databases."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from migrator.adapters.sources.binlog.statements.query_event import QueryEvents
from migrator.adapters.sources.binlog.statements.sql_words import Lexer
from migrator.errors import SourceError
from migrator.model.event import Operation
from tests.integration.binlog_engine import MARIADB, MYSQL, BinlogEngine
from tests.integration.binlog_reading import Read, read_to, read_until, source_of
from tests.servers import Database

pytestmark = pytest.mark.integration

NAMES = ("t", "größe", "we ird")
STATEMENTS = 160
BETWEEN = (
    " ", "\n", "/* job */", " /* it's */ ", " -- a word\n", " # a word\n", " /*! */ ", " /*!40000 */ ", " /*M! */ ",
    " /*!99999 x */ ", " /*!50701 */ ", "/*!99999 a /* b */ c */", "/**/",
)  # fmt: skip
OPENED = (
    "/*! {} */",
    "/*!40000 {} */",
    "/*!50000 /* job */ {} */",
    "/*M! {} */",
    "/*M!100100 {} */",
    "/*!50701 {} */",
)


@pytest.fixture(params=[MARIADB, MYSQL], ids=lambda engine: engine.kind)
def engine(request: pytest.FixtureRequest) -> BinlogEngine:
    found: BinlogEngine = request.param
    return found


@pytest.fixture
def old(request: pytest.FixtureRequest, engine: BinlogEngine) -> Database:
    database: Database = request.getfixturevalue({"mariadb": "old_maria", "mysql": "old_mysql"}[engine.kind])
    database.execute("CREATE TABLE mark (id int PRIMARY KEY)")
    for name in NAMES:
        database.execute(f"CREATE TABLE `{name}` (id int PRIMARY KEY)", f"INSERT INTO `{name}` VALUES (1)")
    return database


@pytest.fixture
def other(old: Database) -> Iterator[str]:
    """Another database with tables of the same names."""
    name = f"{old.database}_2"
    old.execute(f"CREATE DATABASE {name}")
    old.execute(*(f"CREATE TABLE {name}.`{table}` (id int PRIMARY KEY)" for table in NAMES))
    yield name
    old.execute(f"DROP DATABASE {name}")


def spelling(draw: random.Random, database: str, ansi: bool) -> str:
    """A TRUNCATE as somebody might write it; some are none, or no SQL at all."""
    name = draw.choice(NAMES)
    quotes = ['"' if ansi else "`", "`", "" if " " not in name else "`"]
    quote = draw.choice(quotes)
    table = f"{quote}{name}{quote}"
    table = draw.choice([table, table, f".{table}", f"{database}.{table}", f"`{database}` . {table}"])
    parts = ["TRUNCATE", draw.choice(["TABLE", "table", ""]), table]
    if draw.random() < 0.4:
        place = draw.randrange(3)
        parts[place] = draw.choice(OPENED).format(parts[place])
    text = "".join(f"{draw.choice(BETWEEN)}{part}{draw.choice((' ', *BETWEEN))}" for part in parts)
    skipped = f"/*!99999 {text} */ DROP TABLE IF EXISTS nothing"
    return draw.choice([text, text, text.lower() if name.islower() else text, skipped])


def emptied(connection: Any, database: str) -> set[str]:
    """The tables without a row; each gets its row again."""
    found = set()
    with connection.cursor() as cursor:
        for name in NAMES:
            cursor.execute(f"SELECT COUNT(*) FROM `{database}`.`{name}`")
            if cursor.fetchone()[0] == 0:
                found.add(name)
                cursor.execute(f"INSERT INTO `{database}`.`{name}` VALUES (1)")
    return found


def told(read: Read) -> dict[int, set[str]]:
    """By the number of the mark before it: the tables that the log reader says were emptied."""
    found: dict[int, set[str]] = {}
    number = -1
    for change in read.changes():
        if change.table.name == "mark":
            assert change.after is not None
            number = int(str(change.after[0]))
        elif change.operation is Operation.TRUNCATE:
            found.setdefault(number, set()).add(change.table.name)
    return found


def wrongly_told(engine: BinlogEngine, old: Database, other: str) -> tuple[dict[int, Any], int, int]:
    """Statements of which the reader says otherwise than the server; how many emptied a table, how many ran."""
    draw = random.Random(16)
    source = source_of(old)
    reader, _ = engine.started(source, "mark", *NAMES)
    plain = old.connect()
    truth: dict[int, set[str]] = {}
    said: dict[int, str] = {}
    ran = 0
    for number in range(STATEMENTS):
        ansi = draw.random() < 0.3
        charset = draw.choice(["utf8mb4", "latin1", "cp1250"])
        default = draw.choice([old.database, old.database, other])
        writer = old.connect(charset=charset, database=default)
        with plain.cursor() as cursor:
            cursor.execute(f"INSERT INTO mark VALUES ({number})")
        said[number] = spelling(draw, old.database, ansi)
        try:
            with writer.cursor() as cursor:
                cursor.execute("SET SESSION sql_mode = %s", ("ANSI_QUOTES" if ansi else "",))
                cursor.execute(said[number])
            ran += 1
        except pymysql.err.Error:
            pass  # not this server's SQL
        finally:
            writer.close()
        if emptied_now := emptied(plain, old.database):
            truth[number] = emptied_now
    plain.close()
    found = told(read_to(reader, engine.end(source)))
    reader.close()
    wrong = {
        number: (text, truth.get(number), found.get(number))
        for number, text in said.items()
        if truth.get(number) != found.get(number)
    }
    return wrong, len(truth), ran


def test_tables_are_emptied_exactly_where_the_server_emptied_them(
    engine: BinlogEngine, old: Database, other: str
) -> None:
    """The oracle is the server: it counts its rows after each statement."""
    wrong, emptying, ran = wrongly_told(engine, old, other)
    assert wrong == {}
    assert emptying > STATEMENTS // 4, "too few of them emptied a table to show anything"
    assert ran > emptying, "none of them was harmless"


@pytest.mark.parametrize("broken", ["comments", "character sets"])
def test_the_comparison_notices_what_is_read_otherwise_than_the_server_reads_it(
    engine: BinlogEngine, old: Database, other: str, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if broken == "comments":
        monkeypatch.setattr(Lexer, "runs", lambda lexer, marked, version: False)
    else:
        monkeypatch.setattr(
            QueryEvents, "_text", lambda self, raw, charset: (raw.decode("utf-8", "replace"), True)
        )
    try:
        wrong, _, _ = wrongly_told(engine, old, other)
    except SourceError:
        return  # what is left of a statement is none, or one that writes rows
    assert wrong


def test_blanks_are_those_of_the_clients_character_set(engine: BinlogEngine, old: Database) -> None:
    """Every byte in every character set that clients may have: space to the server is space to us."""
    source = source_of(old)
    reader, _ = engine.started(source, "mark", *NAMES)
    writer, plain = old.connect(), old.connect()
    truth: dict[int, set[str]] = {}
    said: dict[int, tuple[str, int]] = {}
    with writer.cursor() as cursor, plain.cursor() as marker:
        marker.execute("SHOW CHARACTER SET")
        for charset, *_ in marker.fetchall():
            try:
                cursor.execute(f"SET NAMES {charset}")
            except pymysql.err.Error:
                continue  # none of a client
            for byte in (*range(1, 32), *range(127, 256)):
                if not ran(writer, b"TRUNCATE TABLE%ct" % byte):
                    continue
                said[len(said)] = charset, byte
                marker.execute(f"INSERT INTO mark VALUES ({len(said)})")
                truth[len(said)] = emptied(plain, old.database)
    found = told_before_marks(read_to(reader, engine.end(source)))
    reader.close()
    assert {said[number - 1] for number in truth if truth[number] != found.get(number, set())} == set()
    assert ("latin1", 0xA0) in said.values(), "the control: some blanks are beyond ASCII"


def ran(connection: Any, statement: bytes) -> bool:
    """Whether the server took a statement of these bytes."""
    try:
        connection._execute_command(3, statement)
        connection._read_query_result()
    except pymysql.err.Error:
        return False
    return True


def told_before_marks(read: Read) -> dict[int, set[str]]:
    """By the number of the mark behind it: the tables that the log reader says were emptied."""
    found: dict[int, set[str]] = {}
    emptied_now: set[str] = set()
    for change in read.changes():
        if change.table.name == "mark":
            assert change.after is not None
            found[int(str(change.after[0]))], emptied_now = emptied_now, set()
        elif change.operation is Operation.TRUNCATE:
            emptied_now.add(change.table.name)
    return found


def stops(engine: BinlogEngine, old: Database, statements: list[str], **options: Any) -> str:
    """What the reader of ``t`` and its neighbours ends with, or nothing where it reads on."""
    source = source_of(old)
    reader, _ = engine.started(source, "mark", *NAMES)
    connection = old.connect(**options)
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
    connection.close()
    old.execute("INSERT INTO mark VALUES (99)")
    try:
        read_until(reader, lambda read: any(change.table.name == "mark" for change in read.changes()))
    except SourceError as error:
        return f"{error.what} {error.cause}" if error.remedy else ""
    finally:
        reader.close()
    return ""


STATEMENT_FORMAT = "SET SESSION binlog_format = STATEMENT"


def test_partitions_dropped_by_a_client_with_another_character_set_stop_by_name(
    engine: BinlogEngine, old: Database
) -> None:
    old.execute(
        "DROP TABLE `größe`",
        "CREATE TABLE `größe` (id int PRIMARY KEY) PARTITION BY RANGE (id)"
        " (PARTITION p VALUES LESS THAN (5), PARTITION q VALUES LESS THAN (10))",
        "INSERT INTO `größe` VALUES (1), (7)",
    )
    assert "DROP PARTITION" in stops(engine, old, ["ALTER TABLE größe DROP PARTITION p"], charset="latin1")


@pytest.mark.parametrize("way", ["view", "function", "trigger", "procedure"])
def test_a_statement_elsewhere_that_reaches_our_rows_stops_by_name(
    engine: BinlogEngine, old: Database, other: str, way: str
) -> None:
    ours = f"{old.database}.t"
    made, used = {
        "view": (f"CREATE VIEW v AS SELECT * FROM {ours}", "UPDATE v SET id = id + 100"),
        "function": (
            f"CREATE FUNCTION f() RETURNS int DETERMINISTIC BEGIN DELETE FROM {ours}; RETURN 1; END",
            "INSERT INTO t VALUES (f())",
        ),
        "trigger": (
            f"CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW DELETE FROM {ours}", "INSERT INTO t VALUES (5)",
        ),
        "procedure": (f"CREATE PROCEDURE p() DELETE FROM {ours}", "CALL p()"),
    }[way]  # fmt: skip
    old.execute("SET GLOBAL log_bin_trust_function_creators = 1")
    connection = old.connect(database=other)
    with connection.cursor() as cursor:
        cursor.execute(made)
    connection.close()
    found = stops(engine, old, [STATEMENT_FORMAT, used], database=other)
    assert "logged as a statement" in found
    assert old.query(f"SELECT COUNT(*) FROM {ours} WHERE id = 1") == [(0,)], "the control: it did reach them"


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE x AS SELECT f() AS a",
        "CREATE OR REPLACE TEMPORARY TABLE x (a int) SELECT * FROM w",
        "CREATE TABLE x AS VALUES (f())",
        "CREATE TABLE x (a int) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (5)) SELECT 1 AS a",
    ],
)
def test_a_table_made_from_a_query_that_changes_our_rows_stops_by_name(
    old_maria: Database, made: str
) -> None:
    """Not on MySQL, which logs it row by row. The last is refused though it calls nothing: nobody can tell."""
    old_maria.execute(
        "SET GLOBAL log_bin_trust_function_creators = 1",
        "CREATE TABLE mark (id int PRIMARY KEY)",
        *(f"CREATE TABLE `{name}` (id int PRIMARY KEY)" for name in NAMES),
        "INSERT INTO t VALUES (1)",
        "CREATE FUNCTION f() RETURNS int DETERMINISTIC BEGIN DELETE FROM t; RETURN 1; END",
        "CREATE VIEW w AS SELECT f() AS a",
    )
    assert "CREATE logged as a statement" in stops(MARIADB, old_maria, [STATEMENT_FORMAT, made])
    old_maria.execute("DELETE FROM mark")
    assert stops(MARIADB, old_maria, [made.replace(" x ", " y ")]) == "", "the control: rows are logged"
    assert old_maria.query("SELECT COUNT(*) FROM t") == [(0 if "SELECT 1" not in made else 1,)]


def test_a_sequence_that_replaces_a_table_stops_by_name(old_maria: Database) -> None:
    old_maria.execute(*(f"CREATE TABLE `{name}` (id int PRIMARY KEY)" for name in ("mark", *NAMES)))
    said = ["CREATE OR REPLACE SEQUENCE x", f"CREATE OR REPLACE SEQUENCE .`{NAMES[0]}`"]
    assert "CREATE OR REPLACE SEQUENCE of" in stops(MARIADB, old_maria, said)
    found = old_maria.query(
        f"SELECT TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_NAME = '{NAMES[0]}'"
    )
    assert ("BASE TABLE",) not in found, "the control: the table is gone"


def test_a_way_that_is_made_while_we_read_is_known(engine: BinlogEngine, old: Database, other: str) -> None:
    statements = [
        f"CREATE VIEW v AS SELECT * FROM {old.database}.t", STATEMENT_FORMAT, "DELETE FROM v",
    ]  # fmt: skip
    assert "logged as a statement" in stops(engine, old, statements, database=other)


def test_a_statement_that_stays_in_its_database_is_passed_over(
    engine: BinlogEngine, old: Database, other: str
) -> None:
    statements = [STATEMENT_FORMAT, "INSERT INTO t VALUES (1), (2)", "DELETE FROM t", "TRUNCATE t"]
    assert stops(engine, old, statements, database=other) == ""
