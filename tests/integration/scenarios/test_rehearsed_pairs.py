"""A small user's project is rehearsed to its end between engines, there, back and there again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scenarios.rehearsal.account import HOLDS
from scenarios.rehearsal.rehearsal import Order, Rehearsal
from tests.integration.cutover.two_way import HERE
from tests.integration.scenarios.test_rehearsal import SETTINGS

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

PAIRS = ["mariadb-postgresql", "postgresql-mariadb", "mysql-postgresql", "mariadb-mariadb"]


def order(folder: Path, old: str, new: str, *, kills: bool = False) -> Order:
    """The project that leads both ways between two engines, its old tables with some rows beside it."""
    shutil.copytree(HERE, folder)
    ends = SETTINGS.split('kind = "postgresql"')
    (folder / "migration.toml").write_text(f'{ends[0]}kind = "{old}"{ends[1]}kind = "{new}"{ends[2]}')
    customers = ", ".join(f"({n}, 'name {n}', 'n{n}@example.org', 'kept')" for n in range(1, 21))
    orders = ", ".join(f"({n}, {n % 20 + 1}, {n * 101}, {n % 2}, 'shop')" for n in range(1, 61))
    schema = folder.parent / "old.sql"
    schema.write_text(
        "CREATE TABLE customer (customer_id int PRIMARY KEY, name varchar(80) NOT NULL, email varchar(120),"
        " note varchar(40) DEFAULT 'made new');\n"
        "CREATE TABLE orders (order_id int PRIMARY KEY, customer_id int NOT NULL, cents int NOT NULL,"
        " paid smallint NOT NULL CHECK (paid IN (0, 1)), origin varchar(20) DEFAULT 'web');\n"
        f"INSERT INTO customer VALUES {customers};\nINSERT INTO orders VALUES {orders};\n"
    )
    return Order(folder / "migration.toml", schema, None, seconds=1.0, kills=kills)


@pytest.mark.parametrize("pair", PAIRS)
def test_a_project_holds_between_engines(pair: str, tmp_path: Path) -> None:
    old, new = pair.split("-")
    rehearsal = Rehearsal(order(tmp_path / "project", old, new), print)
    rehearsal.run()
    account = rehearsal.account
    assert account.outcome() == HOLDS, account.document()
    assert len(account.needs["pause"]) == 3
    assert account.steps[-1].name == "verify --reverse"
