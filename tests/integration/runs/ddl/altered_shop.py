"""A shop whose old tables are altered while a migration runs: what is done, the changes beside it, and runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from migrator.config import project as configuration
from migrator.errors import MigratorError
from migrator.run.caught_up import caught_up
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.wiring import parts as wiring
from tests.integration import shop
from tests.integration.run_project import Project
from tests.servers import Database

TARGETS = ("label", "order_summary", "article", "sales")
ORDERS = 60
ENGINES = ("pg", "maria", "mysql")
UNNEEDED = ("gone int DEFAULT 7", "worn varchar(20) DEFAULT 'old'", "odd int DEFAULT 1", "Fit decimal(6,2)")


def begun(
    engine: str, request: pytest.FixtureRequest, folder: Path, only: tuple[str, ...] = TARGETS
) -> Project:
    """A shop whose tables have columns that no mapping needs; not yet run."""
    old: Database = request.getfixturevalue(f"old_{engine}")
    new: Database = request.getfixturevalue("new_maria" if engine == "maria" else "new_pg")
    shop.create(old, ORDERS)
    for table in ("orders", "product", "order_line", "category"):
        old.execute(*(f"ALTER TABLE {table} ADD {column}" for column in UNNEEDED))
    return shop.make(folder / "project", old, new, only)


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


def halted(project: Project, *statements: str) -> MigratorError:
    """What ends a run beside which these statements are run, once it is in step."""
    migration = Migration(wiring.parts(configuration.load(project.config)))
    ended = list[MigratorError]()

    def run() -> None:
        try:
            migration.run(Stopping())
        except MigratorError as error:
            ended.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    until_applied(migration, project)
    project.old.execute(*statements)
    thread.join(120)
    return ended[0]


def until_applied(migration: Migration, project: Project) -> None:
    reached = caught_up(wiring.parts(configuration.load(project.config)).catalog.position)
    until = time.monotonic() + 90
    while not reached(migration.progress.snapshot()):
        assert time.monotonic() < until, migration.progress.snapshot()
        time.sleep(0.2)


def judged(project: Project) -> None:
    assert shop.differences(project, TARGETS) == {}
    assert project.command("verify", "--wait", "30") == 0
