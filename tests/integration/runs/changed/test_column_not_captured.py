"""A mapping that reads a column which changes in the log don't have: never NULL, and the remedy, to the letter."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.adapters.event_log.files import batch_reader
from migrator.columnar import versions
from migrator.errors import MappingError, SchemaError
from migrator.model.table import TableSchema
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.runs.changed.test_late_targets import LATE, MADE, accepting, mapped
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

READS = LATE.replace("return orders.", 'return orders.where(F.col("active") == F.lit(1)).')
ROWS = 60


@pytest.fixture(params=["old_pg", "old_maria", "old_mysql"])
def project(request: pytest.FixtureRequest, tmp_path: Path, new_pg: Database, spark: SparkSession) -> Project:
    """A migration with changes behind its place in the log, whose table then got a column with a default."""
    old: Database = request.getfixturevalue(request.param)
    create(scenario_database(old), ROWS)
    made = run_project.make(tmp_path / "project", old, new_pg)
    new_pg.execute(MADE["late"])
    mapped(made, LATE)
    made.run_here()
    old.execute(
        "UPDATE orders SET customer = customer + 100 WHERE id <= 10",
        "DELETE FROM orders WHERE id = 11",
        "ALTER TABLE orders ADD COLUMN active int NOT NULL DEFAULT 1",
    )
    return made


def late(project: Project) -> set[tuple[object, ...]]:
    return set(map(tuple, project.new.query("SELECT * FROM late")))


def active(project: Project) -> set[tuple[object, ...]]:
    rows = set(map(tuple, project.old.query("SELECT id, customer FROM orders WHERE active = 1")))
    assert rows
    return rows


@pytest.mark.parametrize("written_since", [True, False])
def test_its_default_is_not_taken_for_null_and_the_remedy_works(
    project: Project, written_since: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """All rows so far are active: the operator's word for the changed mapping is true."""
    if written_since:
        project.old.execute("UPDATE orders SET customer = 7 WHERE id = 20")
    mapped(project, READS)
    before = late(project)
    for _ in range(2):
        with pytest.raises(SchemaError, match=r"reads a column of .* that captured changes") as caught:
            accepting(project, "late")
        assert late(project) == before
    remedy = caught.value.remedy
    assert "take it out of the mapping, let `migrator run --until caught-up` end, put it back" in remedy
    mapped(project, LATE)
    project.run_here()
    mapped(project, READS)
    project.old.execute("UPDATE orders SET active = 0 WHERE id = 30")
    with pytest.raises(MappingError, match="mapping of a target was changed") as changed:
        project.run_here()
    assert (
        "ask for the rows: migrator dump start --table orders; then empty the table (late)"
        in changed.value.remedy
    )
    project.command("dump", "start", "--table", "orders")
    project.new.execute("DELETE FROM late")
    project.run_here()
    assert late(project) == active(project)
    assert project.command("verify", "--wait", "20") == 0


@pytest.mark.parametrize("project", ["old_pg"], indirect=True)
def test_with_null_for_what_came_before_rows_would_be_lost(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control."""

    def extends(newer: TableSchema, older: TableSchema) -> bool:
        types = {column.name: column.type for column in newer.columns}
        return newer.key == older.key and all(types.get(one.name) == one.type for one in older.columns)

    project.old.execute("UPDATE orders SET customer = 7 WHERE id = 20")
    mapped(project, READS)
    monkeypatch.setattr(versions, "alike", extends)
    monkeypatch.setattr(batch_reader, "alike", extends)
    accepting(project, "late")
    assert active(project) - late(project)
