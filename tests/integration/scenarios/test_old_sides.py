"""The old side of a project: revisions, an address or files; rows of CSV and Parquet; what can't be used is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from migrator.errors import ConfigError
from scenarios.chaos import given_rows, old_sides, shadow
from scenarios.chaos.shadow import Shadow
from scenarios.faults.session import execute, query
from scenarios.recording.clock import RunClock
from scenarios.recording.whole_rows import Committed, PostgresRows, RowChange
from scenarios.rehearsal import schema
from tests.integration.run_project import scenario_database
from tests.servers import Database

pytestmark = [pytest.mark.integration]

PROJECT = Path(__file__).parent / "chaos_project"


def test_revisions_make_the_old_schema(old_pg: Database, tmp_path: Path) -> None:
    database = scenario_database(old_pg)
    old_sides.loaded(database, str(PROJECT / "alembic"), tmp_path)
    assert set(schema.tables(database)) == {"person", "purchase"}


def test_an_address_gives_its_structure_and_no_row(
    old_pg: Database, new_pg: Database, tmp_path: Path
) -> None:
    old, new = scenario_database(old_pg), scenario_database(new_pg)
    old_sides.loaded(old, str(PROJECT / "schema.sql"), tmp_path)
    old_pg.execute("INSERT INTO customer VALUES (1, 'secret', NULL, 'new', NULL)")
    address = f"postgresql://{old.user}:{old.password}@{old.host}:{old.port}/{old.database}"
    old_sides.loaded(new, address, tmp_path)
    # A dump writes the text of a CHECK otherwise.
    kept = [
        {name: replace(one, checks=()) for name, one in schema.tables(side).items()} for side in (new, old)
    ]
    assert kept[0] == kept[1]
    assert all(schema.tables(new)[name].checks for name in ("customer", "order_line"))
    assert query(new, "SELECT count(*) FROM customer") == [(0,)]
    assert "secret" not in (tmp_path / "old-structure.sql").read_text()


def test_what_is_no_old_schema_is_named(old_pg: Database, tmp_path: Path) -> None:
    database = scenario_database(old_pg)
    for origin, said in (("gone.sql", "no such file"), ("mysql://u@h/d", "source is postgresql")):
        with pytest.raises(ConfigError, match=said):
            old_sides.loaded(database, origin, tmp_path)


def test_rows_of_files_come_in_parents_first(old_pg: Database, tmp_path: Path) -> None:
    database = scenario_database(old_pg)
    old_sides.loaded(database, str(PROJECT / "schema.sql"), tmp_path)
    (tmp_path / "orders.csv").write_text("order_id,customer_id,note\n1,7,a\n2,7,\n")
    people = {"customer_id": [7], "name": ["Ada"], "state": ["new"], "born": pa.array([None], pa.date32())}
    pq.write_table(pa.table(people), tmp_path / "customer.parquet")
    tables = schema.tables(database)
    given_rows.filled(database, tables, given_rows.files(tmp_path))
    assert query(database, "SELECT name, note FROM orders JOIN customer USING (customer_id) ORDER BY 2") == [
        ("Ada", "a"),
        ("Ada", None),
    ]
    (tmp_path / "orders.csv").write_text("order_id,customer_id\n3,8\n")
    with pytest.raises(ConfigError, match=r"row 1, table orders"):
        given_rows.filled(database, tables, given_rows.files(tmp_path / "orders.csv"))
    (tmp_path / "orders.csv").write_text("order_id,colour\n3,red\n")
    with pytest.raises(ConfigError, match="colour"):
        given_rows.filled(database, tables, given_rows.files(tmp_path / "orders.csv"))
    with pytest.raises(ConfigError, match="doesn't have"):
        given_rows.filled(database, tables, {"nobody": tmp_path / "orders.csv"})


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_the_log_done_again_gives_the_rows_of_its_place(request: pytest.FixtureRequest, kind: str) -> None:
    old: Database = request.getfixturevalue("old_pg" if kind == "postgresql" else "old_maria")
    database = scenario_database(old)
    old.execute(
        "CREATE TABLE t (id int PRIMARY KEY, name varchar(9))", "INSERT INTO t VALUES (1, 'a'), (2, 'b')"
    )
    tables = schema.tables(database)
    copy = shadow.copied(database)
    log = [
        Committed(10, (RowChange("t", {"id": 1, "name": "a"}, {"id": 1, "name": "A"}),)),
        Committed(20, (RowChange("t", {"id": 2, "name": "b"}, {"id": 5, "name": "b"}),)),
        Committed(
            30, (RowChange("t", {"id": 1, "name": "A"}, None), RowChange("t", None, {"id": 9, "name": None}))
        ),
    ]
    again = Shadow(copy, tables, log)
    try:
        for order, rows in (
            (9, [(1, "a"), (2, "b")]),
            (10, [(1, "A"), (2, "b")]),
            (29, [(1, "A"), (5, "b")]),
            (30, [(5, "b"), (9, None)]),
        ):
            again.upto(order)
            assert query(copy, "SELECT id, name FROM t ORDER BY id") == rows
        assert again.changed["t"] == 4
        assert again.unlike(database) == ["t"]
        old.execute("DELETE FROM t", "INSERT INTO t VALUES (5, 'b'), (9, NULL)")
        assert again.unlike(database) == []
    finally:
        again.close()
        execute(database, [f'DROP DATABASE "{copy.database}"'])


def test_a_table_that_computes_columns_is_written_beside_the_recorder(old_pg: Database) -> None:
    """From PostgreSQL 18 on a publication without them has the server refuse UPDATE and DELETE of the application."""
    old_pg.execute(
        "CREATE TABLE stay (id int PRIMARY KEY, days int, nights int GENERATED ALWAYS AS (days - 1) STORED)",
        "ALTER TABLE stay REPLICA IDENTITY FULL",
        "INSERT INTO stay VALUES (1, 3)",
    )
    recorder = PostgresRows(scenario_database(old_pg), ["stay"], RunClock.started_now())
    recorder.start()
    try:
        old_pg.execute("UPDATE stay SET days = 4", "DELETE FROM stay")
    finally:
        recorder.stop()
    changes = [change for one in recorder.rows.transactions for change in one.changes]
    assert [change.before and change.before["days"] for change in changes] == ["3", "4"]
