"""DDL on columns that no mapping needs, while a migration runs and while it doesn't: it goes on, and ends equal."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.errors import MigratorError
from migrator.run.caught_up import caught_up
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.wiring import parts as wiring
from tests.integration import shop
from tests.integration.run_project import Project
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

TARGETS = ("label", "order_summary", "article", "sales")
ORDERS = 60
ENGINES = ("pg", "maria", "mysql")
UNNEEDED = ("gone int DEFAULT 7", "worn varchar(20) DEFAULT 'old'", "odd int DEFAULT 1", "Fit decimal(6,2)")


def begun(engine: str, request: pytest.FixtureRequest, folder: Path) -> Project:
    """A shop whose tables have columns that no mapping needs; not yet run."""
    old: Database = request.getfixturevalue(f"old_{engine}")
    new: Database = request.getfixturevalue("new_maria" if engine == "maria" else "new_pg")
    shop.create(old, ORDERS)
    for table in ("orders", "product", "order_line", "category"):
        old.execute(*(f"ALTER TABLE {table} ADD {column}" for column in UNNEEDED))
    return shop.make(folder / "project", old, new, TARGETS)


def ddl(engine: str, table: str) -> list[str]:
    """All that can be done to the columns."""
    retype = "ALTER odd TYPE text USING odd || ' of'" if engine == "pg" else "MODIFY odd varchar(30)"
    shorten = "ALTER Fit TYPE int USING 5" if engine == "pg" else "MODIFY Fit int unsigned"
    rename = (
        "RENAME COLUMN worn TO torn" if engine != "maria" else "CHANGE worn torn varchar(20) DEFAULT 'old'"
    )
    return [
        f"ALTER TABLE {table} DROP COLUMN gone",
        f"ALTER TABLE {table} {rename}",
        f"ALTER TABLE {table} {retype}",
        f"ALTER TABLE {table} {shorten}",
        f"ALTER TABLE {table} ADD gone varchar(9) DEFAULT 'again'",
    ]


def changes(number: int) -> list[str]:
    """Changes of all that mappings read; no two numbers change a row to the same values."""
    order, product = number % ORDERS + 1, number % 40 + 1
    fresh = 1000 + number
    return [
        f"UPDATE order_line SET quantity = quantity + 1 WHERE order_id = {order}",
        f"UPDATE product SET price = price + 1, name = ' Thing {number % 15}' WHERE product_id = {product}",
        f"UPDATE category SET name = 'group {number}' WHERE category_id = {number % 7 + 1}",
        f"INSERT INTO orders (order_id, customer_id, day) VALUES ({fresh}, {number % 30 + 1}, 3)",
        "INSERT INTO order_line (order_id, line_no, product_id, quantity)"
        f" VALUES ({fresh}, 1, {product}, {number % 9 + 1})",
        f"DELETE FROM order_line WHERE order_id = {(number + 7) % ORDERS + 1} AND line_no = 1",
    ]


def go_on(project: Project) -> None:
    """Runs until all is applied, again where the connections were lost meanwhile."""
    project.run_here()


@contextmanager
def running(project: Project) -> Iterator[Migration]:
    """A run beside the block; what stopped it is raised at the end."""
    parts = wiring.parts(configuration.load(project.config))
    migration, stopping, failed = Migration(parts), Stopping(), list[BaseException]()

    def run() -> None:
        try:
            migration.run(stopping)
        except MigratorError as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield migration
    finally:
        stopping.request()
        thread.join()
    if failed:
        raise failed[0]


def until_applied(migration: Migration, project: Project) -> None:
    reached = caught_up(wiring.parts(configuration.load(project.config)).catalog.position)
    until = time.monotonic() + 90
    while not reached(migration.progress.snapshot()):
        assert time.monotonic() < until, migration.progress.snapshot()
        time.sleep(0.2)


def judged(project: Project) -> None:
    assert shop.differences(project, TARGETS) == {}
    assert project.command("verify", "--wait", "30") == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_done_while_nobody_reads_goes_on(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    project = begun(engine, request, tmp_path)
    project.run_here()
    for number, table in enumerate(("orders", "product", "order_line", "category")):
        for place, statement in enumerate(ddl(engine, table)):
            project.old.execute(*changes(number * 10 + place), statement)
    project.old.execute(*changes(90))
    go_on(project)
    assert shop.differences(project, TARGETS) == {}
    project.old.execute(*changes(91))
    go_on(project)
    judged(project)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_done_beside_a_run_goes_on(
    engine: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("migrator.adapters.sources.postgres.log.log_reader._LOOK_EVERY_S", 0.5)
    project = begun(engine, request, tmp_path)
    with running(project) as migration:
        until_applied(migration, project)
        for number, table in enumerate(("orders", "product", "order_line", "category")):
            for place, statement in enumerate(ddl(engine, table)):
                project.old.execute(*changes(number * 10 + place), statement)
                time.sleep(0.3)
        project.old.execute(*changes(90))
        until_applied(migration, project)
        assert shop.differences(project, TARGETS) == {}
    project.old.execute(*changes(91))
    go_on(project)
    judged(project)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_done_during_the_dump_goes_on(
    engine: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = begun(engine, request, tmp_path)
    tables = ("orders", "product", "order_line", "category")
    waiting = [statement for table in tables for statement in ddl(engine, table)]
    numbers = itertools.count(100)

    def step(name: str) -> None:
        if name == "chunk.snapshot" and waiting:
            thread = threading.Thread(target=alter)
            thread.start()
            thread.join(2)  # it may wait for our own read view

    def alter() -> None:
        for statement in waiting[:5]:
            waiting.remove(statement)
            project.old.execute(*changes(next(numbers)), statement)

    monkeypatch.setattr("migrator.wiring.parts.step_hook", lambda _: step)
    with running(project) as migration:
        until_applied(migration, project)
        while waiting:
            alter()
        project.old.execute(*changes(90))
        until_applied(migration, project)
    judged(project)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_column_changed_unneeded_is_refused_once_it_is_needed(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    """Rows dumped before have other values in it: the mapping that reads it waits for them to be read again."""
    project = begun(engine, request, tmp_path)
    project.run_here()
    project.old.execute("ALTER TABLE category DROP COLUMN gone", "ALTER TABLE category ADD gone varchar(9)")
    project.old.execute(*changes(1), "UPDATE category SET gone = 'g' WHERE category_id = 1")
    project.run_here()
    mapping = project.config.parent / "mapping.py"
    text = mapping.read_text()
    needing = text.replace(
        'return category.select("category_id", "name")',
        'return category.select("category_id", F.coalesce("gone", "name").alias("name"))',
    )
    assert needing != text
    mapping.write_text(needing)
    with pytest.raises(MigratorError) as refused:
        project.run_here()
    assert "category" in f"{refused.value.where}{refused.value.what}"
    mapping.write_text(text)
    project.run_here()
    judged(project)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_column_that_a_mapping_needs_still_stops(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    project = begun(engine, request, tmp_path)
    project.run_here()
    project.old.execute(
        "UPDATE product SET name = 'x' WHERE product_id = 1",
        "ALTER TABLE product ADD cost decimal(10,2)",
        "UPDATE product SET cost = price",
        "ALTER TABLE product DROP COLUMN price",
    )
    mapping = project.config.parent / "mapping.py"
    text = mapping.read_text().replace('"price"', '"cost"').replace(".price", ".cost")
    mapping.write_text(text)
    with pytest.raises(MigratorError) as stopped:
        project.run_here()
    assert "product" in f"{stopped.value.where}{stopped.value.cause}{stopped.value.what}"
