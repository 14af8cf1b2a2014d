"""Temporary tables that have the name of a captured table: what a session does to its own concerns nobody.

Judged by what the server did: sessions of each format do drawn things to a temporary ``t`` or to the captured one.
"""

from __future__ import annotations

import random
from typing import Any

import pymysql
import pytest

from migrator.adapters.sources.binlog.statements.temporary import TemporaryTables
from migrator.errors import ReplacedError, SourceError
from migrator.model.event import Operation
from tests.integration.binlog_engine import MARIADB, MYSQL, BinlogEngine
from tests.integration.binlog_reading import Read, read_to, read_until, source_of
from tests.servers import Database

pytestmark = pytest.mark.integration

SESSIONS = 40
ROUTINES = {
    "uses_another": "CREATE TEMPORARY TABLE x (a int); TRUNCATE x; TRUNCATE t; DROP TEMPORARY TABLE x",
    "uses_its_own": "CREATE TEMPORARY TABLE t (a int); TRUNCATE t; DROP TEMPORARY TABLE t",
    "uses_both": "CREATE TEMPORARY TABLE t (a int); TRUNCATE t; DROP TEMPORARY TABLE t; TRUNCATE t",
}
"""In a routine, every statement after one on a temporary table has the flag of such."""
STEPS = (
    "CREATE TEMPORARY TABLE t (a int)",
    "CREATE TEMPORARY TABLE IF NOT EXISTS t (a int)",
    "CREATE TEMPORARY TABLE aside (a int)",
    "CREATE TEMPORARY TABLE t LIKE other",
    "ALTER TABLE aside RENAME TO t",
    "ALTER TABLE t RENAME TO aside",
    "ALTER TABLE t ADD b int",
    "ALTER TABLE t DROP a",
    "DROP INDEX i ON t",
    "DROP TEMPORARY TABLE t",
    "DROP TEMPORARY TABLE IF EXISTS `t`, aside",
    "TRUNCATE t",
    "TRUNCATE TABLE `t`",
    "TRUNCATE aside",
    *(f"CALL {name}()" for name in ROUTINES),
    "SET binlog_format = 'ROW'",
)
OF_THE_TEMPORARY = ("ALTER", "DROP INDEX")
"""First words of steps that are taken only while the session has a temporary ``t``."""


@pytest.fixture(params=[MARIADB, MYSQL], ids=lambda engine: engine.kind)
def engine(request: pytest.FixtureRequest) -> BinlogEngine:
    found: BinlogEngine = request.param
    return found


@pytest.fixture
def old(request: pytest.FixtureRequest, engine: BinlogEngine) -> Database:
    database: Database = request.getfixturevalue({"mariadb": "old_maria", "mysql": "old_mysql"}[engine.kind])
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE TABLE other (a int, KEY i (a))",
        "CREATE TABLE mark (id int PRIMARY KEY)",
        *(f"CREATE PROCEDURE {name}() BEGIN {body}; END" for name, body in ROUTINES.items()),
        "INSERT INTO t VALUES (1)",
    )
    return database


class Client:
    """A session that does things, and tells which of them emptied the captured table."""

    def __init__(self, old: Database, form: str):
        self._plain = old.connect()
        self._own = old.connect()
        self._do(f"SET binlog_format = '{form}'")
        self.own: set[str] = set()

    def takes(self, step: str) -> bool:
        return (
            not step.startswith(OF_THE_TEMPORARY) or ("aside" if "TABLE aside" in step else "t") in self.own
        )

    def step(self, number: int, step: str) -> bool:
        """Whether ``t`` lost its row."""
        self._ask(f"INSERT INTO mark VALUES ({number})")
        try:
            self._do(step)
        except pymysql.err.Error:
            return False
        self._follow(step)
        ((left,),) = self._ask("SELECT count(*) FROM t")
        if not left:
            self._ask("INSERT INTO t VALUES (1)")
        return not left

    def close(self) -> None:
        self._own.close()
        self._plain.close()

    def _do(self, statement: str) -> None:
        with self._own.cursor() as cursor:
            cursor.execute(statement)
            while cursor.nextset():
                pass

    def _ask(self, statement: str) -> Any:
        with self._plain.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()

    def _follow(self, step: str) -> None:
        """Which of its temporary tables the session has."""
        for name in ("t", "aside"):
            if step.startswith(
                ("CREATE TEMPORARY TABLE " + name, "CREATE TEMPORARY TABLE IF NOT EXISTS " + name)
            ):
                self.own.add(name)
            elif step.startswith("DROP TEMPORARY") and name in step:
                self.own.discard(name)
        if " RENAME TO " in step:
            self.own ^= {"t", "aside"}
        if step.startswith("CALL"):
            self.own -= {"t"} if "x" not in ROUTINES[step[5:-2]] else set()


def told(read: Read) -> set[int]:
    """The marks behind which the reader says that ``t`` was emptied."""
    found, number = set[int](), -1
    for change in read.changes():
        if change.table.name == "mark":
            assert change.after is not None
            number = int(str(change.after[0]))
        elif change.operation is Operation.TRUNCATE and change.table.name == "t":
            found.add(number)
    return found


def told_and_done(
    engine: BinlogEngine, old: Database, seed: int
) -> tuple[set[int], set[int], dict[int, str]]:
    """What the reader says, and what the server did."""
    draw, source = random.Random(seed), source_of(old)
    reader, _ = engine.started(source, "mark", "t")
    done, said, number = set[int](), dict[int, str](), 0
    for _ in range(SESSIONS):
        client = Client(old, form := draw.choice(("ROW", "MIXED", "STATEMENT")))
        for step in draw.choices(STEPS, k=6):
            if not client.takes(step):
                continue
            number += 1
            said[number] = f"{form}: {step}"
            done |= {number} if client.step(number, step) else set()
        client.close()
    found = told(read_to(reader, engine.end(source)))
    reader.close()
    return found, done, said


def test_what_sessions_do_to_their_own_tables_is_told_from_what_they_do_to_ours(
    engine: BinlogEngine, old: Database
) -> None:
    found, done, said = told_and_done(engine, old, 5)
    wrong = {number: (said[number], number in done) for number in found ^ done}
    assert wrong == {}
    assert len(done) > 5, "most steps were about the captured table's namesakes"


def test_without_following_them_a_namesake_counts_for_ours(
    engine: BinlogEngine, old: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control."""
    monkeypatch.setattr(TemporaryTables, "judged", lambda self, event, query, statement, captured: statement)
    stopped = False
    try:
        found, done, _ = told_and_done(engine, old, 5)
    except SourceError:
        stopped = True
    assert stopped or found - done


def test_what_a_session_did_before_reading_began_is_doubted_by_name(
    engine: BinlogEngine, old: Database
) -> None:
    """Nobody can tell; another session's TRUNCATE has no such flag, and goes on."""
    source, session = source_of(old), old.connect()
    with session.cursor() as cursor:
        cursor.execute("SET binlog_format = 'STATEMENT'")
        cursor.execute("CREATE TEMPORARY TABLE t (a int)")
        reader, _ = engine.started(source, "mark", "t")
        old.execute("TRUNCATE t", "INSERT INTO t VALUES (2)")
        assert [change.operation for change in read_to(reader, engine.end(source)).changes()] == [
            Operation.TRUNCATE,
            Operation.INSERT,
        ]
        cursor.execute("TRUNCATE t")
    with pytest.raises(ReplacedError, match="or of a temporary table that has this name") as caught:
        read_until(reader, lambda read: False)
    assert "migrator dump start --table t" in caught.value.remedy
    reader.close()
    session.close()


def test_a_temporary_table_that_mariadb_renames_stops_by_name(old_maria: Database) -> None:
    """Its log has that also in ROW format, without a word of the table's making; MySQL renames the captured one."""
    old_maria.execute("CREATE TABLE t (id int PRIMARY KEY)")
    source, session = source_of(old_maria), old_maria.connect()
    reader, _ = MARIADB.started(source, "t")
    with session.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE t (a int)")
        cursor.execute("RENAME TABLE t TO gone")
    with pytest.raises(ReplacedError, match="RENAME TABLE of"):
        read_until(reader, lambda read: False)
    reader.close()
    session.close()
