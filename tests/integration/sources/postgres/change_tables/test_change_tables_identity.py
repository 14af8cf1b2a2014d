"""Change tables: a table is its number in the server, not its name, and what triggers can't see is looked for."""

from __future__ import annotations

import pytest

from migrator.adapters.sources.postgres.change_tables.catalog import ChangeTableCatalog
from migrator.adapters.sources.postgres.log.unlogged_changes import UnloggedChanges
from migrator.errors import MigratorError, SchemaError
from migrator.model.limits import CaptureLimits
from migrator.model.requests.request import WHOLE, Scope
from migrator.model.table import TableId
from migrator.run.capture.steps import CaptureSteps
from tests.fix_change_tables import source_of
from tests.integration.capturing import Capturing, capturing
from tests.integration.sources.postgres.tables.test_postgres_identity import (
    ASIDE,
    EACH,
    EMPTY,
    GONE,
    ONE,
    SWAPPED,
    WRITES,
    ended,
    happen,
)
from tests.servers import Database

pytestmark = pytest.mark.integration

T = TableId("public", "t")
MADE = f"{EMPTY}; INSERT INTO t SELECT g, 'n' FROM generate_series(101, 110) g"
KEEPS = {
    "renamed and back": f"ALTER TABLE t RENAME TO m; {WRITES.format('m')}; ALTER TABLE m RENAME TO t",
    "moved and back": ASIDE.format("t", WRITES.format("aside.t")),
    "its schema renamed and back": "ALTER SCHEMA public RENAME TO s; "
    + f"{WRITES.format('s.t')}; ALTER SCHEMA s RENAME TO public",
    "swapped and back": f"{SWAPPED}; {WRITES.format('u')}; INSERT INTO t VALUES (77, 'of another'); {SWAPPED}",
    "written anew": f"{WRITES.format('t')}; CLUSTER t USING t_pkey; ALTER TABLE t SET TABLESPACE pg_default",
}
REPLACED = {
    "dropped and made again": f"DROP TABLE t; {MADE}",
    "emptied, dropped and made again": f"TRUNCATE t; DROP TABLE t; {MADE}",
    "renamed and made again": f"{WRITES.format('t')}; ALTER TABLE t RENAME TO gone; {MADE}",
    "swapped, and both written to": f"{SWAPPED}; {WRITES.format('u')}; {WRITES.format('t')}",
    "moved away, another in its place": "ALTER TABLE t SET SCHEMA aside; ALTER TABLE u RENAME TO t; "
    + WRITES.format("aside.t"),
    "its schema replaced": "ALTER SCHEMA public RENAME TO s; CREATE SCHEMA public; SET search_path = public; "
    + f"{MADE}; {WRITES.format('s.t')}",
    "made again twice": f"DROP TABLE t; {MADE}; DROP TABLE t; {MADE}; {WRITES.format('t')}",
    "made again with other columns": "DROP TABLE t; CREATE TABLE t (k int PRIMARY KEY, v varchar(9), w int);"
    " INSERT INTO t VALUES (101, 'n', 1)",
}


@pytest.fixture
def captured(old_pg: Database) -> Capturing:
    """Twenty rows, dumped; u is captured by nobody."""
    old_pg.execute(
        "CREATE SCHEMA aside",
        "CREATE TABLE t (k int PRIMARY KEY, v text)",
        "INSERT INTO t SELECT g, 'a' FROM generate_series(1, 20) g",
        "CREATE TABLE u (k int PRIMARY KEY, v text)",
        "INSERT INTO u SELECT g, 'of another' FROM generate_series(1, 40) g",
    )
    capture = capturing(old_pg, ["t"], CaptureLimits(linger_s=0.01), change_tables=True)
    capture.run(capture.dumped)
    return capture


@pytest.mark.each_value
@pytest.mark.parametrize(("running", "how"), [(True, ONE), (False, EACH)], ids=["while it runs", "stopped"])
@pytest.mark.parametrize("name", KEEPS)
def test_no_change_of_a_table_is_lost_whatever_it_was_called(
    old_pg: Database, captured: Capturing, name: str, running: bool, how: str
) -> None:
    ended(captured, lambda: happen(old_pg, KEEPS[name], how), running)
    assert captured.held()[T] == captured.source(T)


@pytest.mark.each_value
@pytest.mark.parametrize(("running", "how"), [(True, EACH), (False, ONE)], ids=["while it runs", "stopped"])
@pytest.mark.parametrize("name", REPLACED)
def test_another_table_stops_until_all_of_its_rows_are_asked_for_and_then_no_row_of_the_first_is_left(
    old_pg: Database, captured: Capturing, name: str, running: bool, how: str
) -> None:
    before = captured.held()[T]
    with pytest.raises(MigratorError) as stopped:
        ended(captured, lambda: happen(old_pg, REPLACED[name], how), running)
    said = ("replaced by another table of its name", "no table public.t any", "emptied by TRUNCATE")
    assert any(each in str(stopped.value) for each in said), stopped.value
    captured.requests.update(lambda book: book.start((T,), Scope(low=("1",), high=("200",))))
    with pytest.raises(SchemaError, match="replaced") as caught:  # of a part of its rows isn't enough
        captured.run(captured.caught_up())
    assert captured.held()[T].keys() <= before.keys() | {(100,)}, "no row of the other one came"
    follow(old_pg, captured, caught.value)
    assert captured.held()[T] == captured.source(T)
    old_pg.execute("INSERT INTO t VALUES (500, 'later')", "DELETE FROM t WHERE k = 101")
    captured.run(captured.caught_up())
    assert captured.held()[T] == captured.source(T)


def follow(database: Database, capture: Capturing, error: MigratorError) -> None:
    """Does what the remedy says of going on with the present table, to the letter."""
    said = error.remedy.partition("have all of its rows read: ")[2].partition("; then start again")[0]
    *statements, dump = said.split("; ")
    for statement in statements:
        if statement == "as the owner of the tables, run what `migrator changetables` prints":
            script = ChangeTableCatalog(source_of(database)).script(["t"])
            with database.connect() as owner:
                owner.execute(script)
        else:
            database.execute(statement)
    assert dump == "migrator dump start --table t"
    schemas = ChangeTableCatalog(source_of(database)).tables(["t"])  # as a start finds them
    capture.schemas.update({schema.id: schema for schema in schemas})
    whole = capture.requests.read().start((T,), WHOLE).requests[-1]
    capture.requests.update(lambda book: book.start((T,), WHOLE))
    capture.run(
        lambda: any(
            dump.done for dump in capture.progress.snapshot().requests if dump.request == whole.name()
        )
    )
    capture.run(capture.caught_up())


def test_without_emptying_rows_of_the_first_are_left(
    old_pg: Database, captured: Capturing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A control of the one above."""
    monkeypatch.setattr(CaptureSteps, "_empty", lambda *_: False)
    with pytest.raises(SchemaError, match="replaced") as caught:
        ended(captured, lambda: happen(old_pg, REPLACED["dropped and made again"], EACH), running=False)
    follow(old_pg, captured, caught.value)
    assert captured.held()[T].keys() - captured.source(T).keys() == {(k,) for k in range(1, 21)}


def test_without_a_place_where_the_other_one_begins_changes_of_the_first_come_too(
    old_pg: Database, captured: Capturing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A control of what a change table has of the former table."""
    monkeypatch.setattr(UnloggedChanges, "former", lambda _: {})
    with pytest.raises(SchemaError, match="replaced") as caught:
        ended(captured, lambda: happen(old_pg, REPLACED["renamed and made again"], EACH), running=False)
    follow(old_pg, captured, caught.value)
    assert captured.held()[T] != captured.source(T)


@pytest.mark.each_value
@pytest.mark.parametrize("running", [True, False], ids=["while it runs", "while it is stopped"])
@pytest.mark.parametrize("name", GONE)
def test_a_table_without_its_name_stops_and_once_it_has_it_again_no_change_is_lost(
    old_pg: Database, captured: Capturing, name: str, running: bool
) -> None:
    with pytest.raises(SchemaError, match=r"there is no table public\.t any more") as caught:
        ended(captured, lambda: happen(old_pg, GONE[name], ONE if running else EACH), running)
    old_pg.execute(*caught.value.remedy.partition("; then start again")[0].split("; "))
    captured.run(captured.caught_up())
    assert captured.held()[T] == captured.source(T)
