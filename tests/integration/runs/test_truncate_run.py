"""TRUNCATE over whole runs: row-wise and joined targets on every engine, under writers, during and after the
dump."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from migrator.errors import MappingError
from migrator.model.table import TableId
from migrator.run.apply import transform_job
from migrator.run.apply.emptied import emptied
from scenarios.bench.orders.old_schema import OrderWriters, create
from tests.integration import run_project, shop
from tests.integration.run_project import scenario_database
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ROWS = 2000
SMALL = "[capture]\nchunk_rows = 100\nchunk_rows_max = 100"
JOINED = ("order_summary", "sales", "referral", "party", "namesake")
"""Of each shape one: grains by columns, computed, of a table linked to itself, of a union, through two links."""
PAIRS = [
    ("old_pg", "new_pg"),
    ("old_maria", "new_mysql"),
    pytest.param("old_mysql", "new_maria", marks=pytest.mark.slow),
]


@contextmanager
def truncating(old: Database, every_s: float, statements: Sequence[str]) -> Iterator[list[int]]:
    """Runs the statements as one transaction again and again; yields how often."""
    stop, done = threading.Event(), [0]

    def empty() -> None:
        while not stop.wait(every_s):
            with old.connect(autocommit=False) as connection, connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                connection.commit()
            done[0] += 1

    thread = threading.Thread(target=empty)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_a_row_wise_target_is_emptied_too(
    old: str, new: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    source: Database = request.getfixturevalue(old)
    create(scenario_database(source), ROWS)
    source.execute("CREATE TABLE saved AS SELECT * FROM orders")
    project = run_project.make(tmp_path / "project", source, request.getfixturevalue(new))
    project.config.write_text(project.config.read_text() + SMALL)
    writers = OrderWriters(scenario_database(source), ROWS, rate_per_s=100)
    writers.start()
    again = "INSERT INTO orders SELECT * FROM saved WHERE id <= 700"
    with truncating(source, 0.8, ["TRUNCATE orders", again]) as times:
        first = project.run_here()
        project.run_here()
    writers.stop()
    assert times[0] > 1
    assert first.applied_changes > 0
    project.run_here()
    assert project.differences() == []
    source.execute("TRUNCATE TABLE orders", "INSERT INTO orders SELECT * FROM saved WHERE id <= 3")
    project.run_here()
    assert project.differences() == []
    assert project.command("verify", "--wait", "20") == 0


@pytest.mark.slow
def test_rows_would_stay_if_nobody_looked_at_it(
    old_pg: Database, new_pg: Database, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(scenario_database(old_pg), 100)
    project = run_project.make(tmp_path / "project", old_pg, new_pg)
    project.run_here()
    old_pg.execute("TRUNCATE orders")
    monkeypatch.setattr(transform_job, "emptied", lambda plan, batch: False)
    project.run_here()
    assert project.new.query("SELECT count(*) FROM purchase") == [(100,)]
    assert project.command("verify", "--wait", "20") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"), [("old_pg", "new_pg"), pytest.param("old_maria", "new_mysql", marks=pytest.mark.slow)]
)
def test_a_joined_target_is_kept_in_step(
    old: str, new: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    """Of a table in the middle of joins, with changes around it; then, where foreign keys allow it, of all
    tables."""
    source: Database = request.getfixturevalue(old)
    shop.create(source, 30)
    source.execute(*(f"CREATE TABLE saved_{table} AS SELECT * FROM {table}" for table in shop.TABLES))
    project = shop.make(tmp_path / "project", source, request.getfixturevalue(new), JOINED)
    project.run_here()
    source.execute(
        "UPDATE order_line SET quantity = 99 WHERE order_id = 3",
        "TRUNCATE order_line",
        "INSERT INTO order_line SELECT * FROM saved_order_line WHERE order_id <= 20",
        "UPDATE order_line SET quantity = 77 WHERE order_id = 5",
        "DELETE FROM order_line WHERE order_id = 6",
        "UPDATE product SET price = 5 WHERE product_id < 9",
    )
    project.run_here()
    assert shop.differences(project, JOINED) == {}
    if source.kind == "postgresql":
        again = (f"INSERT INTO {table} SELECT * FROM saved_{table}" for table in shop.TABLES)
        source.execute("TRUNCATE category, customer CASCADE", *again, "TRUNCATE order_line")
        source.execute("INSERT INTO order_line SELECT * FROM saved_order_line WHERE order_id > 10")
        project.run_here()
        assert shop.differences(project, JOINED) == {}


def test_a_target_of_several_tables_stops_unless_all_of_them_are_emptied() -> None:
    a, b = TableId("public", "a"), TableId("public", "b")
    target = SimpleNamespace(name="both", where=lambda: "mapping.py:3")
    plan = SimpleNamespace(target=target, reads={"a": ("id",), "b": ("id",)})

    def batch(*tables: TableId) -> SimpleNamespace:
        return SimpleNamespace(emptied=lambda: set(tables))

    assert emptied(plan, batch(), None) is False  # type: ignore[arg-type]
    assert emptied(plan, batch(a, b), None) is True  # type: ignore[arg-type]
    with pytest.raises(MappingError, match=r"a was emptied by TRUNCATE, .* 'both' has rows"):
        emptied(plan, batch(a), None)  # type: ignore[arg-type]
