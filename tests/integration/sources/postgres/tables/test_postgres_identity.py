"""A table is its number in the server, not its name: renamed, moved, swapped, dropped and made again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from migrator.adapters.sources.postgres.log.log_reader import PostgresLogReader
from migrator.adapters.sources.postgres.log.pgoutput import Relation
from migrator.adapters.sources.postgres.log.relations import Relations
from migrator.errors import MigratorError, ReplacedError, SchemaError
from migrator.model.event import TransactionPart
from migrator.model.limits import CaptureLimits
from migrator.model.requests.request import WHOLE, Scope
from migrator.model.table import TableId, TableSchema
from migrator.run.capture.steps import CaptureSteps
from tests.fix_postgres_source import log_reader, prepared, source_of
from tests.integration.capturing import Capturing, capturing
from tests.servers import Database

pytestmark = pytest.mark.integration

T = TableId("public", "t")
LIMITS = CaptureLimits(linger_s=0.01)
WRITES = "UPDATE {0} SET v = 'changed' WHERE k <= 5; DELETE FROM {0} WHERE k = 6; INSERT INTO {0} VALUES (100, 'new')"
FULL = "ALTER TABLE t REPLICA IDENTITY FULL; ALTER PUBLICATION {publication} ADD TABLE t"
EMPTY = "CREATE TABLE t (k int PRIMARY KEY, v text)"
FULL_BOTH = [f"ALTER TABLE {name} REPLICA IDENTITY FULL" for name in ("t", "u")]
MADE = f"{EMPTY}; {FULL}; INSERT INTO t SELECT g, 'n' FROM generate_series(101, 110) g"
SWAPPED = "ALTER TABLE t RENAME TO x; ALTER TABLE u RENAME TO t; ALTER TABLE x RENAME TO u"
ASIDE = "ALTER TABLE {0} SET SCHEMA aside; {1}; ALTER TABLE aside.{0} SET SCHEMA public"

KEEPS = {
    "renamed and back": f"ALTER TABLE t RENAME TO m; {WRITES.format('m')}; ALTER TABLE m RENAME TO t",
    "moved and back": ASIDE.format("t", WRITES.format("aside.t")),
    "its schema renamed and back": "ALTER SCHEMA public RENAME TO s; "
    + f"{WRITES.format('s.t')}; ALTER SCHEMA s RENAME TO public",
    "swapped and back": f"{SWAPPED}; {WRITES.format('u')}; INSERT INTO t VALUES (77, 'of another'); {SWAPPED}",
    "written anew": f"{WRITES.format('t')}; CLUSTER t USING t_pkey; ALTER TABLE t SET TABLESPACE pg_default",
    "emptied": "TRUNCATE t; INSERT INTO t VALUES (7, 'again')",
}
REPLACED = {
    "dropped and made again": f"DROP TABLE t; {MADE}",
    "renamed and made again": f"{WRITES.format('t')}; ALTER TABLE t RENAME TO gone; {MADE}",
    "swapped": f"{SWAPPED}; {FULL}",
    "moved away, another in its place": f"ALTER TABLE t SET SCHEMA aside; ALTER TABLE u RENAME TO t; {FULL}",
    "its schema replaced": "ALTER SCHEMA public RENAME TO s; CREATE SCHEMA public; SET search_path = public; "
    + MADE,
    "made again twice": f"DROP TABLE t; {MADE}; DROP TABLE t; {MADE}; {WRITES.format('t')}",
    "made again, not captured": f"DROP TABLE t; {EMPTY}; INSERT INTO t VALUES (9, 'n')",
}
GONE = {
    "renamed": f"ALTER TABLE t RENAME TO m; {WRITES.format('m')}",
    "moved": f"ALTER TABLE t SET SCHEMA aside; {WRITES.format('aside.t')}",
    "renamed and moved": f"ALTER TABLE t RENAME TO m; ALTER TABLE m SET SCHEMA aside; {WRITES.format('aside.m')}",
    "its schema renamed": f"ALTER SCHEMA public RENAME TO s; {WRITES.format('s.t')}",
}
READER = "migrator.adapters.sources.postgres.log.log_reader"
ONE, EACH = "in one transaction", "one by one"


@pytest.fixture(autouse=True)
def looks_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{READER}._LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(f"{READER}._BACK_S", 0.0)


@pytest.fixture
def captured(old_pg: Database) -> Capturing:
    """Twenty rows, dumped; u is captured by nobody."""
    old_pg.execute(
        "CREATE SCHEMA aside",
        "CREATE TABLE t (k int PRIMARY KEY, v text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t SELECT g, 'a' FROM generate_series(1, 20) g",
        "CREATE TABLE u (k int PRIMARY KEY, v text)",
        "INSERT INTO u SELECT g, 'of another' FROM generate_series(1, 40) g",
    )
    capture = capturing(old_pg, ["t"], LIMITS)
    capture.run(capture.dumped)
    return capture


def happen(database: Database, statements: str, how: str) -> None:
    publication = f"migrator_{database.database[:31]}"
    each = statements.format(publication=publication).split("; ")
    with database.connect(autocommit=how == EACH) as connection:
        for statement in each:
            connection.execute(statement)
        if how == ONE:
            connection.commit()


def while_it_runs(capture: Capturing, statements: Callable[[], None]) -> None:
    """Has it happen once the log is being read, and reads to the end of it."""
    done: list[Callable[[], bool]] = []

    def caught_up() -> bool:
        if not done and capture.progress.snapshot().captured is not None:
            statements()
            done.append(capture.caught_up())
        return bool(done) and done[0]()

    capture.run(caught_up)


def ended(capture: Capturing, statements: Callable[[], None], running: bool) -> None:
    if running:
        while_it_runs(capture, statements)
    else:
        statements()
    capture.run(capture.caught_up())


@pytest.mark.each_value
@pytest.mark.parametrize("how", [ONE, EACH])
@pytest.mark.parametrize("running", [True, False], ids=["while it runs", "while it is stopped"])
@pytest.mark.parametrize("name", KEEPS)
def test_no_change_of_a_table_is_lost_whatever_it_was_called(
    old_pg: Database, captured: Capturing, monkeypatch: pytest.MonkeyPatch, name: str, running: bool, how: str
) -> None:
    monkeypatch.setattr(f"{READER}._LOOK_EVERY_S", 1e9)
    ended(captured, lambda: happen(old_pg, KEEPS[name], how), running)
    assert captured.held()[T] == captured.source(T)


@pytest.mark.each_value
@pytest.mark.parametrize("how", [ONE, EACH])
@pytest.mark.parametrize("running", [True, False], ids=["while it runs", "while it is stopped"])
@pytest.mark.parametrize("name", REPLACED)
def test_another_table_stops_until_all_of_its_rows_are_asked_for_and_then_no_row_of_the_first_is_left(
    old_pg: Database, captured: Capturing, name: str, running: bool, how: str
) -> None:
    before = captured.held()[T]
    # A look between two statements may find no table of that name.
    with pytest.raises(
        SchemaError, match=r"public\.t was replaced by another table of its name|no table public\.t any"
    ):
        ended(captured, lambda: happen(old_pg, REPLACED[name], how), running)
    captured.requests.update(lambda book: book.start((T,), Scope(low=("1",), high=("200",))))
    with pytest.raises(SchemaError, match="replaced") as caught:  # of a part of its rows isn't enough
        captured.run(captured.caught_up())
    assert captured.held()[T].keys() <= before.keys() | {(100,)}, "no row of the other one came"
    follow(old_pg, captured, caught.value)
    assert captured.held()[T] == captured.source(T)
    old_pg.execute("INSERT INTO t VALUES (500, 'later')", "DELETE FROM t WHERE k = 101")
    captured.run(captured.caught_up())
    assert captured.held()[T] == captured.source(T)


def test_rows_asked_for_again_before_the_log_has_passed_the_first_table(
    old_pg: Database, captured: Capturing
) -> None:
    """Stopped behind the look that saw the other table, and before the place up to which the first had the name."""
    with pytest.raises(SchemaError, match="replaced"):
        ended(captured, lambda: happen(old_pg, REPLACED["renamed and made again"], EACH), running=False)
    for _ in range(2):
        captured.requests.update(lambda book: book.start((T,), WHOLE))
        captured.run(lambda: captured.progress.snapshot().captured is not None)
    captured.run(lambda: all(dump.done for dump in captured.progress.snapshot().requests))
    captured.run(captured.caught_up())
    assert captured.held()[T] == captured.source(T)


def test_a_request_that_is_cancelled_leaves_the_rest_of_the_rows_to_the_first_dump(
    old_pg: Database, captured: Capturing
) -> None:
    """The rows of the table that was replaced are gone by then."""
    with pytest.raises(SchemaError, match="replaced"):
        ended(captured, lambda: happen(old_pg, REPLACED["swapped"], EACH), running=False)
    captured.requests.update(lambda book: book.start((T,), WHOLE))
    captured.run(lambda: captured.progress.snapshot().captured is not None)
    captured.requests.update(lambda book: book.cancel("r1"))
    captured.run(captured.dumped)
    captured.run(captured.caught_up())
    assert captured.held()[T] == captured.source(T)


def test_without_emptying_rows_of_the_first_are_left(
    old_pg: Database, captured: Capturing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the one above."""
    monkeypatch.setattr(CaptureSteps, "_empty", lambda *_: False)
    with pytest.raises(SchemaError, match="replaced") as caught:
        ended(captured, lambda: happen(old_pg, REPLACED["dropped and made again"], EACH), running=False)
    follow(old_pg, captured, caught.value)
    assert captured.held()[T].keys() - captured.source(T).keys() == {(k,) for k in range(1, 21)}


def test_by_name_alone_changes_under_another_name_would_be_lost(
    old_pg: Database, captured: Capturing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of what a table was called."""
    see = Relations.see

    def by_name(relations: Relations, relation: Relation, *place: Any) -> TableSchema | None:
        if TableId(relation.schema, relation.name) not in {each.id for each in relations.schemas()}:
            relations._captured.pop(relation.oid, None)
            relations._forget_heads(relation.oid)
            return None
        return see(relations, relation, *place)

    monkeypatch.setattr(Relations, "see", by_name)
    ended(captured, lambda: happen(old_pg, KEEPS["renamed and back"], ONE), running=False)
    assert captured.held()[T] != captured.source(T)


def follow(database: Database, capture: Capturing, error: MigratorError) -> None:
    """Does what the remedy says of going on with the present table, to the letter."""
    said = error.remedy.partition("have all of its rows read: ")[2].partition("; then start again")[0]
    *statements, dump = said.split("; ")
    database.execute(*statements)
    assert dump == "migrator dump start --table t"
    whole = capture.requests.read().start((T,), WHOLE).requests[-1]
    capture.requests.update(lambda book: book.start((T,), WHOLE))
    capture.run(
        lambda: any(
            dump.done for dump in capture.progress.snapshot().requests if dump.request == whole.name()
        )
    )
    capture.run(capture.caught_up())


@pytest.mark.each_value
@pytest.mark.parametrize("running", [True, False], ids=["while it runs", "while it is stopped"])
@pytest.mark.parametrize("name", GONE)
def test_a_table_without_its_name_stops_and_once_it_has_it_again_no_change_is_lost(
    old_pg: Database, captured: Capturing, name: str, running: bool
) -> None:
    with pytest.raises(SchemaError, match=r"there is no table public\.t any more"):
        ended(captured, lambda: happen(old_pg, GONE[name], EACH), running)
    # The look may have come between two statements: where the table is by now, a start tells.
    with pytest.raises(SchemaError, match=r"there is no table public\.t any more") as caught:
        captured.run(captured.caught_up())
    old_pg.execute(*caught.value.remedy.partition("; then start again")[0].split("; "))
    captured.run(captured.caught_up())
    assert captured.held()[T] == captured.source(T)


def read_on(reader: PostgresLogReader, parts: list[TransactionPart]) -> None:
    while True:
        parts += [one for one in reader.read(1) if isinstance(one, TransactionPart)]


@pytest.mark.parametrize(
    "touched", ["", "; INSERT INTO t VALUES (900, 'of another')"], ids=["", "and written to"]
)
def test_a_transaction_that_is_handed_out_in_parts_ends_before_a_halt(old_pg: Database, touched: str) -> None:
    """Nobody could go on inside it with another table: its captured changes would be counted otherwise."""
    old_pg.execute(EMPTY, EMPTY.replace("TABLE t", "TABLE u"), *FULL_BOTH)
    source = source_of(old_pg, part_rows=2)
    schemas = prepared(source, "t")
    old_pg.execute(f'ALTER PUBLICATION "{source.slot}" ADD TABLE u')
    with log_reader(source, schemas) as reader:
        old_pg.execute("INSERT INTO t SELECT g, 'n' FROM generate_series(1, 9) g")
        parts = [one for one in reader.read(10) if isinstance(one, TransactionPart)]
        assert parts
        assert not parts[-1].last
        old_pg.execute(*f"{SWAPPED}{touched}".split("; "))
        with pytest.raises(ReplacedError):
            read_on(reader, parts)
    assert parts[-1].last
    assert sum(len(list(part.changes)) for part in parts) == 9


@pytest.mark.parametrize("patience_s", [60.0, 0.0])
def test_a_table_that_is_back_in_a_moment_is_the_same_whoever_looks_meanwhile(
    old_pg: Database, monkeypatch: pytest.MonkeyPatch, patience_s: float
) -> None:
    monkeypatch.setattr(f"{READER}._BACK_S", patience_s)
    monkeypatch.setattr(f"{READER}._LOOK_AGAIN_S", 0.0)
    old_pg.execute(EMPTY, FULL_BOTH[0])
    source = source_of(old_pg)
    with log_reader(source, prepared(source, "t")) as reader:
        old_pg.execute("ALTER TABLE t RENAME TO m", "INSERT INTO m VALUES (1, 'n')")
        if not patience_s:
            with pytest.raises(SchemaError, match="there is no table"):
                read_on(reader, [])
            return
        found = reader.read(1) + reader.read(0.1)
        old_pg.execute("ALTER TABLE m RENAME TO t", "INSERT INTO t VALUES (2, 'n')")
        found += reader.read(1) + reader.read(0.1)
    assert [len(list(part.changes)) for part in found if isinstance(part, TransactionPart)] == [1, 1]
