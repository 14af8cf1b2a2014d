"""A client of a rehearsal finds the open side, and notices when a write that was acknowledged to it is gone."""

from __future__ import annotations

import time

import pytest

from scenarios.rehearsal.clients import Clients, Side
from scenarios.rehearsal.ladder import Ladder, SideRows
from scenarios.rehearsal.tables import Column, Table
from tests.integration.run_project import scenario_database
from tests.servers import Database

pytestmark = [pytest.mark.integration]

TABLE = Table("t", (Column("id", "integer", nullable=False), Column("said", "text", nullable=True)), ("id",))
ROWS = SideRows(postgres=True, tables={"t": TABLE}, keys={"t": ("id",)}, compared={"t": ("id", "said")})
PLACE = ("t", ("1",))
CLOSED = (
    "CREATE FUNCTION closed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'handed over'; END $$",
    "CREATE TRIGGER closed BEFORE INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION closed()",
)


def clients(old: Database, new: Database) -> Clients:
    """One client whose row is the same on both sides; it stands at its top."""
    ladder = Ladder()
    ladder.add({PLACE: ("1", "a")}, {PLACE: ("1", "a")})
    ladder.add({PLACE: ("1", "b")}, {PLACE: ("1", "b")})
    for database in (old, new):
        database.execute("CREATE TABLE t (id int PRIMARY KEY, said text)", "INSERT INTO t VALUES (1, 'b')")
    sides = {"old": Side(scenario_database(old), ROWS), "new": Side(scenario_database(new), ROWS)}
    return Clients([ladder], sides)


def test_it_goes_to_the_side_that_lets_it_write(old_pg: Database, new_pg: Database) -> None:
    writing = clients(old_pg, new_pg)
    new_pg.execute(*CLOSED)
    with writing:
        writing.write_for(0.3, "old")
        writing.rest()
        [(said,)] = old_pg.query("SELECT coalesce(max(said), '') FROM t")
        old_pg.execute(*CLOSED)
        new_pg.execute("DROP TRIGGER closed ON t", "DELETE FROM t")
        new_pg.execute(*([f"INSERT INTO t VALUES (1, '{said}')"] if said else []))
        writing.write_for(0.3, "new")
        writing.rest()
    assert writing.log.lost == []
    assert "handed over" in writing.log.refused["old"]
    assert writing.log.commits["new"] > 1


def test_a_write_that_was_acknowledged_and_is_gone_is_lost(old_pg: Database, new_pg: Database) -> None:
    writing = clients(old_pg, new_pg)
    new_pg.execute(*CLOSED)
    with writing:
        writing.write_for(0.3, "old")
        writing.rest()
        old_pg.execute("DELETE FROM t", "INSERT INTO t VALUES (1, 'never written')")
        assert any(line.startswith("old side, t 1: it must be ") for line in writing.differing())
        writing.go()
        until = time.monotonic() + 20
        while not writing.log.lost and time.monotonic() < until:
            time.sleep(0.05)
        writing.rest()
    assert "it is (1, never written)" in writing.log.lost[0]
