"""Remedies that say to put something back, to name a value, or to give a table a key, followed to the letter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.errors import MappingError, MigratorError, PreflightError, TargetError
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.runs.changed.test_late_targets import EXPECTED, LATE, MADE, mapped
from tests.integration.runs.changed.test_replaced_targets import SMALL, meddled
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

PLAIN = """
@mapping.target("priced", key="id", grain="orders.id", links=["orders.weight = kind.weight"])
def priced(orders, kind):
    return orders.join(kind, orders.weight == kind.weight, "left").select(orders.id, kind.name)
"""
NAMED = """
@mapping.target("priced", key="id", grain="orders.id", links=["orders.weighed = kind.weighed"],
                values={"orders.weighed": lambda orders: orders.weight.cast("string"),
                        "kind.weighed": lambda kind: kind.weight.cast("string")})
def priced(orders, kind):
    same = orders.weight.cast("string") == kind.weight.cast("string")
    return orders.join(kind, same, "left").select(orders.id, kind.name)
"""
GROUPED = """
@mapping.target("weights", key="weight", grain="orders.weight")
def weights(orders):
    by = orders.groupBy("weight").agg(F.count("*").alias("orders"))
    return by.select(F.col("weight").cast("decimal(9,2)").alias("weight"), "orders")
"""
GROUPED_BY_A_NAME = GROUPED.replace('"orders.weight"', 'lambda orders: [orders.weight.cast("string")]')


def project_of(folder: Path, old: Database, new: Database) -> Project:
    create(scenario_database(old), 200)
    return run_project.make(folder, old, new)


def refused(project: Project, what: str) -> MigratorError:
    with pytest.raises(MigratorError, match=what) as caught:
        project.run_here()
    return caught.value


def right(project: Project, target: str, query: str) -> bool:
    rows = project.old.query(query)
    assert rows
    found = project.new.query(f"SELECT * FROM {target}")
    return sorted(map(_plain, found)) == sorted(map(_plain, rows))


def _plain(row: tuple[object, ...]) -> tuple[str, ...]:
    return tuple("" if value is None else str(value) for value in row)


def test_a_mapping_that_is_put_back_goes_on(
    tmp_path: Path, old_pg: Database, new_pg: Database, spark: SparkSession
) -> None:
    project = project_of(tmp_path / "project", old_pg, new_pg)
    new_pg.execute(MADE["late"])
    mapped(project, LATE)
    project.run_here()
    for changed in (
        LATE.replace('"customer")', '(F.col("customer") + 1).alias("customer"))'),
        LATE + "\n# a word\n",
    ):
        mapped(project, changed)
        old_pg.execute("UPDATE orders SET customer = customer + 1 WHERE id % 2 = 0")
        if changed.startswith(LATE):
            project.run_here()  # the control: the same mapping in other words
            continue
        error = refused(project, "the mapping of a target was changed")
        assert isinstance(error, MappingError)
        assert "Or put back what was changed" in error.remedy
        mapped(project, LATE)
        project.run_here()
    assert right(project, "late", EXPECTED["late"])


BACKUP = ("CREATE TABLE backup AS SELECT * FROM migrator.ledger", "DELETE FROM migrator.ledger")
PUT_BACK = (
    "DELETE FROM migrator.ledger",
    "INSERT INTO migrator.ledger SELECT * FROM backup",
    "DROP TABLE backup",
)


def test_the_ledgers_row_that_is_put_back_goes_on(
    tmp_path: Path, old_pg: Database, new_pg: Database, spark: SparkSession
) -> None:
    """Lost while we run, and while we are stopped: rows that are there must not be removed then."""
    project = project_of(tmp_path / "project", old_pg, new_pg)
    project.config.write_text(project.config.read_text() + SMALL)
    with pytest.raises(TargetError, match="ledger has no row for migration orders") as caught:
        meddled(project, lambda project: project.new.execute(*BACKUP))
    assert "put the row back as a backup of the target has it" in caught.value.remedy
    new_pg.execute(*PUT_BACK)
    project.run_here()
    assert project.differences() == []
    new_pg.execute(*BACKUP)
    old_pg.execute("DELETE FROM orders WHERE id % 2 = 0")
    error = refused(project, "the ledger says that nothing was applied yet")
    assert "If this migration has run before, its ledger's row is lost: leave the rows" in error.remedy
    new_pg.execute(*PUT_BACK)
    project.run_here()
    assert project.differences() == []


@pytest.mark.parametrize(
    ("given", "followed", "target", "query"),
    [
        (
            PLAIN,
            NAMED,
            "priced",
            "SELECT o.id, k.name FROM orders o LEFT JOIN kind k ON k.weight = o.weight",
        ),
        (
            GROUPED,
            GROUPED_BY_A_NAME,
            "weights",
            "SELECT weight::numeric(9,2), count(*) FROM orders GROUP BY weight",
        ),
    ],
    ids=["link", "grain"],
)
def test_a_value_that_is_named_with_values_or_a_lambda_is_taken(
    tmp_path: Path,
    old_pg: Database,
    new_maria: Database,
    spark: SparkSession,
    given: str,
    followed: str,
    target: str,
    query: str,
) -> None:
    old_pg.execute(
        "CREATE TABLE kind (id int PRIMARY KEY, weight double precision, name text)",
        "ALTER TABLE kind REPLICA IDENTITY FULL",
        "INSERT INTO kind VALUES (1, 0.25, 'light'), (2, 1.5, 'heavy')",
    )
    project = project_of(tmp_path / "project", old_pg, new_maria)
    old_pg.execute(
        "ALTER TABLE orders ADD weight double precision", "UPDATE orders SET weight = (id % 7) * 0.25"
    )
    new_maria.execute(
        "CREATE TABLE priced (id bigint PRIMARY KEY, name varchar(20))",
        "CREATE TABLE weights (weight decimal(9,2) PRIMARY KEY, orders bigint)",
    )
    mapped(project, given)
    error = refused(project, "links or groups .* by a floating-point column")
    assert error.remedy.startswith("name the value with values= (for a grain: grain=lambda ...)")
    mapped(project, followed)
    project.run_here()
    assert right(project, target, query)
    old_pg.execute(
        "UPDATE orders SET weight = 1.5 WHERE id % 5 = 0",
        "DELETE FROM orders WHERE id % 9 = 0",
        "UPDATE kind SET weight = 0.5 WHERE id = 1",
    )
    project.run_here()
    assert right(project, target, query)


@pytest.mark.parametrize("way", ["a primary key", "a unique index"])
@pytest.mark.parametrize("kind", ["new_pg", "new_maria"])
def test_a_table_without_a_key_is_written_once_it_has_one(
    kind: str,
    way: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    old_pg: Database,
    spark: SparkSession,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A unique index on columns that may be NULL is no key: the control."""
    project = project_of(tmp_path / "project", old_pg, request.getfixturevalue(kind))
    mapped(project, LATE)
    project.new.execute("CREATE TABLE late (id bigint, customer bigint, UNIQUE (id))")
    error = refused(project, ".")
    assert isinstance(error, PreflightError | TargetError)
    capfd.readouterr()
    assert project.command("check", "--value-seconds", "0") == 2
    said = " ".join(capfd.readouterr().out.split())
    assert "the table has no key that rows can be merged by" in said
    (statement,) = re.findall(r"(ALTER TABLE \S+) ADD PRIMARY KEY \(\.\.\.\)", said)
    assert "NOT NULL columns" in said
    if way == "a unique index":  # which is there already, on a column that may be NULL
        null = "ALTER id SET NOT NULL" if kind == "new_pg" else "MODIFY id bigint NOT NULL"
        project.new.execute(f"{statement} {null}")
    else:
        project.new.execute(f"{statement} ADD PRIMARY KEY (id)")
    assert project.command("check", "--value-seconds", "0") == 0
    project.run_here()
    old_pg.execute(
        "UPDATE orders SET customer = customer + 1 WHERE id % 2 = 0", "DELETE FROM orders WHERE id = 3"
    )
    project.run_here()
    assert right(project, "late", EXPECTED["late"])
