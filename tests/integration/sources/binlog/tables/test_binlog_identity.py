"""MySQL, MariaDB: whatever gives a captured name to another table stops by name, and the remedy leads on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from migrator.adapters.sources.binlog.tables.captured_tables import CapturedTables
from migrator.adapters.sources.binlog.tables.identity import FormerTables
from migrator.errors import MigratorError, ReplacedError, SchemaError
from migrator.model.limits import CaptureLimits
from migrator.model.requests.request import WHOLE, Scope
from migrator.run.capture.steps import CaptureSteps
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.capturing import Capturing, capturing
from tests.servers import Database

pytestmark = pytest.mark.integration

LIMITS = CaptureLimits(linger_s=0.01)
WRITES = "UPDATE {0} SET v = 'changed' WHERE k <= 5; DELETE FROM {0} WHERE k = 6; INSERT INTO {0} VALUES (100, 'new')"
EMPTY = "CREATE TABLE t (k int PRIMARY KEY, v varchar(20))"
MADE = f"{EMPTY}; INSERT INTO t VALUES (101, 'n'), (102, 'n')"
OTHER = (
    "CREATE TABLE t (v int, k int PRIMARY KEY, w blob); INSERT INTO t VALUES (7, 101, 'w'), (8, 102, NULL)"
)
ASIDE = "CREATE DATABASE {db}_a"
BACK = "RENAME TABLE {db}_a.t TO t; DROP DATABASE {db}_a"
OTHER_TYPES = "columns of other types there than the table has now"
UNLOGGED = "SET sql_log_bin = 0; {0}; SET sql_log_bin = 1"

REPLACED = {
    "dropped and made again": f"{WRITES.format('t')}; DROP TABLE t; {MADE}",
    "renamed and made again": f"ALTER TABLE t COMMENT 'x', RENAME TO gone; {MADE}",
    "swapped": "INSERT INTO t VALUES (50, 'old'); RENAME TABLE t TO c, u TO t; DELETE FROM t WHERE k = 3",
    "swapped twice": "RENAME TABLE t TO c, u TO t; DELETE FROM t WHERE k = 3; RENAME TABLE t TO u, c TO t; "
    + WRITES.format("t"),
    "renamed and back": f"RENAME TABLE t TO m; {WRITES.format('m')}; RENAME TABLE m TO t; "
    "UPDATE t SET v = 'again' WHERE k < 9",
    "moved and back": f"{ASIDE}; RENAME TABLE t TO {{db}}_a.t; {WRITES.format('{db}_a.t')}; {BACK}",
    "its database replaced": "DROP DATABASE {db}; CREATE DATABASE {db}; USE {db}; " + MADE,
    "of other columns": f"{WRITES.format('t')}; DROP TABLE t; {OTHER}",
    "dropped unseen, made again": f"{UNLOGGED.format('DROP TABLE t')}; {MADE}",
    "dropped unseen, another renamed": f"{UNLOGGED.format('DROP TABLE t')}; ALTER TABLE u COMMENT 'x', RENAME t",
}
OF_MARIADB = {
    "made anew in one statement": f"{MADE.replace('CREATE', 'CREATE OR REPLACE')}",
    "its database in one statement": "CREATE OR REPLACE DATABASE {db}; USE {db}; " + MADE,
}
ON_BOTH = (
    "dropped and made again",
    "swapped",
    "moved and back",
    "its database replaced",
    "dropped unseen, made again",
)
"""The others are read by the same code from the same statements: on MariaDB only."""
SAME = {
    "written anew": f"{WRITES.format('t')}; OPTIMIZE TABLE t; ALTER TABLE t FORCE; ALTER TABLE t ADD INDEX (v), "
    "ALGORITHM = COPY",
    "emptied": "TRUNCATE t; INSERT INTO t VALUES (7, 'again')",
    "made if it weren't there": "CREATE TABLE IF NOT EXISTS t (k int PRIMARY KEY); CREATE TABLE x LIKE t; "
    "RENAME TABLE x TO y; ALTER TABLE t ADD INDEX i (v); ALTER TABLE t RENAME INDEX i TO j; "
    + WRITES.format("t"),
}


@pytest.fixture
def captured(old_binlog: Database) -> Capturing:
    """Twenty rows, dumped; u is captured by nobody."""
    old_binlog.execute(
        EMPTY,
        "CREATE TABLE u LIKE t",
        f"INSERT INTO t VALUES {', '.join(f'({k}, {k})' for k in range(1, 21))}",
        f"INSERT INTO u VALUES {', '.join(f'({k}, 9)' for k in range(1, 31))}",
    )
    capture = capturing(old_binlog, ["t"], LIMITS)
    capture.run(capture.dumped)
    return capture


def happen(database: Database, statements: str) -> None:
    database.execute(*statements.format(db=database.database).split("; "))


def ended(capture: Capturing, statements: Callable[[], None], running: bool) -> None:
    """Has it happen, and reads to the end of the log."""
    done: list[Callable[[], bool]] = []

    def caught_up() -> bool:
        if not done and capture.progress.snapshot().captured is not None:
            statements()
            done.append(capture.caught_up())
        return bool(done) and done[0]()

    if not running:
        statements()
        done.append(capture.caught_up())
    capture.run(caught_up)


def ask(capture: Capturing, scope: Scope) -> str:
    """Asks for rows of t; the request's name."""
    (table,) = capture.schemas
    capture.requests.update(lambda book: book.start((table,), scope))
    return capture.requests.read().requests[-1].name()


def follow(capture: Capturing, error: MigratorError) -> None:
    """Does what the remedy says, to the letter."""
    assert "have all of its rows read: migrator dump start --table t; then start again" in error.remedy
    name = ask(capture, WHOLE)
    capture.run(
        lambda: capture.progress.snapshot().captured is not None
    )  # and stopped before all of it is read
    capture.run(lambda: any(d.done for d in capture.progress.snapshot().requests if d.request == name))
    capture.run(capture.caught_up())


def held_and_source(capture: Capturing) -> tuple[object, object]:
    (table,) = capture.schemas
    return capture.held()[table], capture.source(table)


@pytest.mark.each_value
@pytest.mark.parametrize("name", [*REPLACED, *OF_MARIADB])
def test_another_table_stops_until_all_of_its_rows_are_asked_for_and_then_no_row_of_the_first_is_left(
    engine: BinlogEngine, old_binlog: Database, captured: Capturing, name: str
) -> None:
    if engine.kind == "mysql" and name not in ON_BOTH:
        return
    everything = {**REPLACED, **OF_MARIADB}
    running = list(everything).index(name) % 2 == (engine.kind == "mysql")
    (table,) = captured.schemas
    before = captured.held()[table]
    with pytest.raises(
        ReplacedError, match=rf"\.t may be another table, or have other rows, now|{OTHER_TYPES}"
    ):
        ended(captured, lambda: happen(old_binlog, everything[name]), running)
    ask(captured, Scope(low=("1",), high=("200",)))
    with pytest.raises(
        ReplacedError, match=f"may be another table|{OTHER_TYPES}"
    ) as caught:  # of a part of its rows isn't enough
        captured.run(captured.caught_up())
    assert captured.held()[table].keys() <= before.keys() | {(100,), (50,)}, "no row of the other one came"
    captured.schemas = {each.id: each for each in captured.catalog.tables(["t"])}
    follow(captured, caught.value)
    held, source = held_and_source(captured)
    assert held == source
    old_binlog.execute("INSERT INTO t (k, v) VALUES (500, 5)", "DELETE FROM t WHERE k IN (1, 101)")
    captured.run(captured.caught_up())
    held, source = held_and_source(captured)
    assert held == source
    with pytest.raises(SchemaError, match="may be another table"):  # what comes later wasn't answered
        ended(captured, lambda: happen(old_binlog, f"DROP TABLE t; {MADE}"), not running)


RETYPED = (
    "UPDATE t SET v = '55' WHERE k <= 5; DELETE FROM t WHERE k = 6; ALTER TABLE t MODIFY v int; "
    "UPDATE t SET v = 77 WHERE k = 9; ALTER TABLE t MODIFY v bigint; DELETE FROM t WHERE k = 10"
)
"""Nobody reads the log meanwhile, so that rows of three structures are in it."""


def retyped(database: Database, capture: Capturing) -> MigratorError:
    happen(database, RETYPED)
    capture.schemas.update({each.id: each for each in capture.catalog.tables(["t"])})
    with pytest.raises(ReplacedError, match=OTHER_TYPES) as caught:
        capture.run(capture.caught_up())
    return caught.value


def test_rows_of_before_a_column_got_another_type_stop_until_all_are_asked_for(
    old_binlog: Database, captured: Capturing
) -> None:
    """They can't be read as the table is now: the target's rows go, and all come again."""
    follow(captured, retyped(old_binlog, captured))
    held, source = held_and_source(captured)
    assert held == source


def test_rows_of_before_stop_for_good_where_they_are_read_all_the_same(
    old_binlog: Database, captured: Capturing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the one above."""
    error = retyped(old_binlog, captured)
    monkeypatch.setattr(CapturedTables, "outdated", lambda *_: None)
    with pytest.raises(ReplacedError, match=OTHER_TYPES):
        follow(captured, error)


@pytest.mark.parametrize("name", SAME)
def test_the_same_table_goes_on(old_binlog: Database, captured: Capturing, name: str) -> None:
    ended(captured, lambda: happen(old_binlog, SAME[name]), running=True)
    held, source = held_and_source(captured)
    assert held == source


SWAPPED_THEN_MADE_AGAIN = (
    f"RENAME TABLE t TO c, u TO t; INSERT INTO t VALUES (200, 'of u'); DROP TABLE t; {MADE}"
)
"""The reader stops at the first statement: what comes behind it can't be delivered before the target is emptied."""


def after_the_remedy(database: Database, capture: Capturing) -> tuple[object, object]:
    with pytest.raises(SchemaError, match="may be another table") as caught:
        ended(capture, lambda: happen(database, SWAPPED_THEN_MADE_AGAIN), running=False)
    follow(capture, caught.value)
    return held_and_source(capture)


def test_changes_of_a_table_between_are_of_no_row(old_binlog: Database, captured: Capturing) -> None:
    held, source = after_the_remedy(old_binlog, captured)
    assert held == source


def test_without_emptying_rows_of_the_first_are_left(
    old_binlog: Database, captured: Capturing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A control of the one above."""
    monkeypatch.setattr(CaptureSteps, "_empty", lambda *_: False)
    held, source = after_the_remedy(old_binlog, captured)
    assert held != source


def test_by_name_alone_changes_of_the_first_would_be_taken_for_the_other_ones(
    old_binlog: Database, captured: Capturing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one."""
    monkeypatch.setattr(FormerTables, "has", lambda *_: False)
    held, source = after_the_remedy(old_binlog, captured)
    assert held != source
