"""A row-wise target that gets rows of its next function: beside the stream, in one switch, or given up."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.model.progress import Phase, Remap
from migrator.wiring.target import peek
from scenarios.bench.orders.old_schema import OrderWriters, create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ROWS = 300
MADE = "CREATE TABLE late (id bigint PRIMARY KEY, customer bigint, kept int DEFAULT 7)"
NOW = """
@mapping.target("late", key="id")
def late(orders):
    return orders.where("id % 3 > 0").select("id", "customer")
"""
# Rows go (id % 5 = 0) and come (id % 3 = 0), others get another value.
NEXT = """
@mapping.next("late", key="id")
def next_late(orders):
    return orders.where("id % 5 > 0").select("id", (F.col("customer") * 10).alias("customer"))
"""
BEFORE = "SELECT id, customer FROM orders WHERE id % 3 > 0"
AFTER = "SELECT id, customer * 10 FROM orders WHERE id % 5 > 0"
BESIDE = "late_migrator_next"


@pytest.fixture
def project(tmp_path: Path, old_pg: Database, request: pytest.FixtureRequest, spark: SparkSession) -> Project:
    """A migration that has dumped everything; ``late`` has a next function."""
    create(scenario_database(old_pg), ROWS)
    made = run_project.make(
        tmp_path / "project", old_pg, request.getfixturevalue(getattr(request, "param", "new_pg"))
    )
    made.new.execute(MADE)
    mapped(made, NOW)
    made.run_here()
    mapped(made, NOW, NEXT)
    return made


def mapped(project: Project, *more: str) -> None:
    """The mapping has these functions, beside purchase's."""
    file = project.config.parent / "mapping.py"
    file.write_text(file.read_text().partition("# -- more\n")[0] + "# -- more\n" + "".join(more))


def rows(project: Project) -> set[tuple[object, ...]]:
    return set(map(tuple, project.new.query("SELECT id, customer FROM late")))


def made_by(project: Project, query: str) -> set[tuple[object, ...]]:
    found = set(map(tuple, project.old.query(query)))
    assert found
    return found


def remaps(project: Project) -> tuple[Remap, ...]:
    ledger = peek(configuration.load(project.config))
    assert ledger is not None
    assert ledger.checkpoint is not None
    return ledger.checkpoint.remaps


def tables(project: Project) -> set[str]:
    found = project.new.query(
        "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'late%'"
    )
    return {str(name) for (name,) in found}


@pytest.mark.parametrize(
    "project", ["new_pg", pytest.param("new_maria", marks=pytest.mark.slow)], indirect=True
)
def test_a_next_function_comes_into_force_under_writers_and_stays(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.run_here()  # declared, and not asked for: nothing happens
    assert rows(project) == made_by(project, BEFORE)
    project.new.execute("UPDATE late SET kept = 8 WHERE id = 1")
    capsys.readouterr()
    assert project.command("remap", "late", "--reason", "tenfold") == 0
    said = capsys.readouterr().out
    assert f"the run fills {BESIDE} by the next function" in said
    assert "MB now: the target needs about as much again" in said
    assert rows(project) == made_by(project, BEFORE)
    assert remaps(project) == (Remap("late", BESIDE, Phase.FILLING),)
    writers = OrderWriters(scenario_database(project.old), ROWS, rate_per_s=200)
    writers.start()
    project.run_here()
    assert writers.stop().row_changes > 0
    project.run_here()
    assert project.differences() == []
    assert rows(project) == made_by(project, AFTER)
    assert project.new.query("SELECT kept FROM late WHERE id = 1") == [(8,)]
    assert remaps(project) == (Remap("late", "", Phase.IN_FORCE),)
    assert tables(project) == {"late"}
    assert project.command("verify", "--wait", "20") == 0
    project.old.execute("UPDATE orders SET customer = customer + 1 WHERE id % 2 = 0")
    mapped(project, NEXT.replace("mapping.next", "mapping.target").replace("next_late", "late"))
    project.run_here()
    assert rows(project) == made_by(project, AFTER)
    assert remaps(project) == ()
