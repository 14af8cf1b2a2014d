"""A run is killed inside a large transaction, and the mapping reads other tables then: refused; the remedy works."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.manifest_file import newest_manifest
from migrator.config import project as configuration
from migrator.errors import MappingError
from migrator.run.lead import between
from scenarios.bench.orders.old_schema import create
from scenarios.faults.points import PointServer
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.runs.changed.test_late_targets import mapped
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

FIRST = 1001
ROWS = {"u": 55_000, "w": 2_000}
"""In one transaction, in this order. It comes in parts of 50,000."""
LETTERS = """
@mapping.target("{0}2", key="id")
def {0}2({0}):
    return {0}.select("id", "v")
"""
BOTH = LETTERS.format("u"), LETTERS.format("w")


@pytest.fixture(params=["old_pg", "old_maria", "old_mysql"])
def project(request: pytest.FixtureRequest, tmp_path: Path, new_pg: Database, spark: SparkSession) -> Project:
    """A migration of two tables beside orders, which has dumped them."""
    old: Database = request.getfixturevalue(request.param)
    create(scenario_database(old), 20)
    for name in "uw":
        old.execute(
            f"CREATE TABLE {name} (id int PRIMARY KEY, v varchar(20))",
            f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')",
        )
        if old.kind == "postgresql":
            old.execute(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
        new_pg.execute(f"CREATE TABLE {name}2 (id int PRIMARY KEY, v varchar(20))")
    made = run_project.make(tmp_path / "project", old, new_pg)
    made.config.write_text(made.config.read_text() + "\n[capture]\nsegment_rows = 1000\n")
    mapped(made, *BOTH)
    made.run_here()
    return made


def written(database: Database) -> None:
    """One transaction, of each table one after the other."""
    connection = database.connect(autocommit=False)
    cursor = connection.cursor()
    for name, rows in ROWS.items():
        values = ", ".join(f"({number}, '{name}{number}')" for number in range(FIRST, FIRST + rows))
        cursor.execute(f"INSERT INTO {name} VALUES {values}")
    connection.commit()
    connection.close()


def killed_inside(project: Project) -> None:
    """A run that SIGKILL ends when a part of a transaction is durable, and not all of it."""
    log = Layout.of(configuration.load(project.config).event_log())
    running: list[subprocess.Popen[str]] = []

    def look() -> None:
        newest = newest_manifest(log)
        if newest is not None and newest.checkpoint.partial_order is not None:
            os.kill(running[0].pid, signal.SIGKILL)
            running[0].wait(timeout=60)

    with PointServer(project.config.parent / "points") as points:
        for count in range(1, 40):
            points.on("capture.appended", count, look)
        arguments = ("run", "--plain", "--until", "caught-up")
        running.append(project.process(*arguments, environment=points.environment()))
        output, _ = running[0].communicate(timeout=300)
    assert running[0].returncode == -signal.SIGKILL, f"no transaction was stored by half:\n{output}"


def lacking(project: Project, name: str) -> set[tuple[object, ...]]:
    rows = set(map(tuple, project.old.query(f"SELECT id, v FROM {name}")))
    assert rows
    return rows ^ set(map(tuple, project.new.query(f"SELECT id, v FROM {name}2")))


def test_a_table_that_is_taken_out_meanwhile_is_refused_until_it_is_put_back(project: Project) -> None:
    written(project.old)
    killed_inside(project)
    mapped(project, BOTH[1])
    for _ in range(2):
        with pytest.raises(MappingError, match="captured by half") as caught:
            project.run_here()
    assert caught.value.remedy.startswith("give the mapping the tables it had (put ")
    mapped(project, *BOTH)
    project.run_here()
    assert (lacking(project, "u"), lacking(project, "w")) == (set(), set())
    mapped(project, BOTH[1])  # then it may change again
    project.old.execute("UPDATE w SET v = 'changed' WHERE id = 1")
    project.run_here()
    assert lacking(project, "w") == set()


@pytest.mark.parametrize("project", ["old_pg"], indirect=True)
def test_counted_over_other_tables_it_would_lose_rows(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control."""
    written(project.old)
    killed_inside(project)
    mapped(project, BOTH[1])
    monkeypatch.setattr(between, "_refuse_half_transaction", lambda *given: None)
    project.run_here()
    assert lacking(project, "w")
