"""A project that leads both ways, its databases, and what each side must hold in plain SQL."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from migrator.config import project as configuration
from migrator.config.way_back import way_back
from migrator.run.caught_up import caught_up
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.run.progress import Snapshot
from migrator.wiring import parts as wiring
from scenarios.project import make_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database

HERE = Path(__file__).parent / "two_way_project"
CUSTOMERS, ORDERS = 20, 60
_OLD = (
    "CREATE TABLE customer (customer_id int PRIMARY KEY, name varchar(80) NOT NULL, email varchar(120),"
    " note varchar(40) DEFAULT 'made new')",
    "CREATE TABLE orders (order_id int PRIMARY KEY, customer_id int NOT NULL, cents int NOT NULL,"
    " paid smallint NOT NULL, origin varchar(20) DEFAULT 'web')",
)
PAIRS = {
    "person": ("SELECT customer_id, name FROM customer", "SELECT person_id, full_name FROM person"),
    "contact": ("SELECT customer_id, email FROM customer", "SELECT person_id, email FROM contact"),
    "purchase": (
        "SELECT order_id, customer_id, cents, paid FROM orders",
        "SELECT purchase_id, person_id, CAST(amount * 100 AS {int}), CASE WHEN is_paid THEN 1 ELSE 0 END"
        " FROM purchase",
    ),
    "spending": (
        "SELECT c.customer_id, c.name, count(o.order_id) FROM customer c"
        " LEFT JOIN orders o ON o.customer_id = c.customer_id GROUP BY c.customer_id, c.name",
        "SELECT person_id, full_name, purchases FROM spending",
    ),
}
"""By new table: the same facts asked of the old side and of the new one."""


class TwoWay(Project):
    """Both ways of one project."""

    def run_back(self) -> Snapshot:
        """``migrator run --reverse --until caught-up`` in this process; raises what stopped it."""
        parts = wiring.parts(way_back(configuration.load(self.config)))
        migration = Migration(parts)
        migration.run(Stopping(), caught_up(parts.catalog.position))
        return migration.progress.snapshot()

    def differing(self, *but: str) -> dict[str, list[tuple[str, ...]]]:
        """Facts that only one side has, by new table."""
        found = {}
        for table, (old, new) in PAIRS.items():
            number = "bigint" if self.new.kind == "postgresql" else "signed"
            wanted = sorted(map(_plain, self.old.query(old)))
            actual = sorted(map(_plain, self.new.query(new.replace("{int}", number))))
            assert wanted, f"an empty table {table} proves nothing"
            if table not in but and wanted != actual:
                found[table] = sorted(set(wanted) ^ set(actual))
        return found


def _plain(row: tuple[object, ...]) -> tuple[str, ...]:
    return tuple("" if value is None else str(value) for value in row)


def made(engine: str, request: pytest.FixtureRequest, folder: Path) -> TwoWay:
    """The project, its old tables with rows, not yet run. ``engine``: of the source and of the target."""
    source, target = engine.split("-")
    old: Database = request.getfixturevalue(f"old_{source}")
    new: Database = request.getfixturevalue(f"new_{target}")
    old.execute(*_OLD, *_whole_images(source, "customer", "orders"))
    old.execute(*map(_customer, range(1, CUSTOMERS + 1)), *map(_order, range(1, ORDERS + 1)))
    more = ["[spark]", 'master = "local[2]"']
    config = make_project(folder, scenario_database(old), scenario_database(new), HERE, "shop", more)
    shutil.copy(HERE / "reverse.py", folder)
    wiring.upgrade_user_target(configuration.load(config))
    new.execute(*_whole_images(target, "person", "contact", "purchase"))
    return TwoWay(old, new, config)


def _whole_images(engine: str, *tables: str) -> list[str]:
    return [f"ALTER TABLE {table} REPLICA IDENTITY FULL" for table in tables if engine == "pg"]


def _customer(number: int) -> str:
    email = f"'n{number}@example.org'" if number % 3 else "NULL"
    return f"INSERT INTO customer VALUES ({number}, 'name {number}', {email}, 'kept {number}')"


def _order(number: int) -> str:
    customer = number % CUSTOMERS + 1
    return f"INSERT INTO orders VALUES ({number}, {customer}, {number * 101}, {number % 2}, 'shop {number}')"
