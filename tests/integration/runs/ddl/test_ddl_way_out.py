"""A column that the mapping reads gets another name: what stops, and the ways out that the documents describe."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.errors import MigratorError, SchemaError
from scenarios.bench.orders.old_schema import create
from tests.fix_postgres_source import drop_slot
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.runs.ddl.altered_shop import halted
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ROWS = 300


def adapt(project: Project, old: str, new: str) -> None:
    mapping = project.config.parent / "mapping.py"
    mapping.write_text(mapping.read_text().replace(f'"{old}"', f'"{new}"'))


def notes(project: Project, wanted: str) -> int:
    ((count,),) = project.new.query("SELECT count(*) FROM purchase WHERE note = %s", [wanted])
    return int(count)


def by_hand(project: Project) -> None:
    ((slot,),) = project.old.query(
        "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()"
    )
    drop_slot(project.old, slot)
    project.new.execute("DELETE FROM migrator.ledger", "TRUNCATE purchase")
    shutil.rmtree(configuration.load(project.config).state)


def by_command(project: Project) -> None:
    assert project.command("reset", "--yes") == 0


@pytest.mark.slow
@pytest.mark.parametrize("anew", [by_command, by_hand])
def test_a_renamed_column_and_the_adapted_mapping(
    anew: Callable[[Project], None], old_pg: Database, new_pg: Database, tmp_path: Path, spark: SparkSession
) -> None:
    create(scenario_database(old_pg), ROWS)
    project = run_project.make(tmp_path / "project", old_pg, new_pg)
    project.run_here()

    # All that was written under the old name is in the target: the adapted mapping goes on.
    old_pg.execute(
        "ALTER TABLE orders RENAME comment TO remark", "UPDATE orders SET remark = 'one' WHERE id <= 10"
    )
    with pytest.raises(MigratorError, match=r"remark|comment"):
        project.run_here()
    adapt(project, "comment", "remark")
    project.run_here()
    assert notes(project, "one") == 10

    # A change under the old name was not read yet: it is read as the column's.
    old_pg.execute(
        "UPDATE orders SET remark = 'two' WHERE id <= 20",
        "ALTER TABLE orders RENAME remark TO words",
        "UPDATE orders SET words = 'three' WHERE id <= 5",
    )
    adapt(project, "remark", "words")
    project.run_here()
    assert (notes(project, "one"), notes(project, "two"), notes(project, "three")) == (0, 15, 5)

    # The column is dropped: it stops by name, and the way out is to start anew.
    stopped = halted(
        project, "ALTER TABLE orders DROP COLUMN words", "UPDATE orders SET items = 77 WHERE id <= 3"
    )
    assert isinstance(stopped, SchemaError)
    assert "'words' was dropped" in stopped.cause
    assert "adapt the mapping and start again (docs/how-to/schema-changes.md" in stopped.remedy
    assert "start the migration anew (docs/how-to/start-anew.md)" in stopped.remedy
    assert (notes(project, "two"), notes(project, "three")) == (15, 5)
    adapt(project, "words", "state")
    anew(project)
    project.run_here()
    assert (notes(project, "two"), notes(project, "SENT")) == (0, ROWS / 4)
    assert project.command("verify", "--wait", "20") == 0
