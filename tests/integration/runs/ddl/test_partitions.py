"""Rows come and go with partitions while a migration runs or rests: that table is read again, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.runs.ddl.altered_shop import begun, changes, judged, running, until_applied
from tests.integration.runs.ddl.test_replaced import READ_AGAIN, rows_dumped, unlinked
from tests.integration.waiting import await_true

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

GONE = ["ALTER TABLE category DROP PARTITION high"]
EXCHANGED = [
    "CREATE TABLE aside LIKE category",
    "ALTER TABLE aside REMOVE PARTITIONING",
    "INSERT INTO aside (category_id, name) VALUES (6, 'six'), (7, 'seven'), (8, 'eight')",
    "ALTER TABLE category EXCHANGE PARTITION high WITH TABLE aside",
]


@pytest.mark.parametrize("engine", ["maria", "mysql"])
@pytest.mark.parametrize("statements", [GONE, EXCHANGED], ids=["gone", "exchanged"])
def test_rows_that_go_with_a_partition_go_from_the_target(
    engine: str, statements: list[str], request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    """Rows that were inserted before are in the log, and nothing says that they went."""
    project = begun(engine, request, tmp_path)
    unlinked(project, engine)
    project.old.execute(
        "ALTER TABLE category PARTITION BY RANGE (category_id)"
        " (PARTITION low VALUES LESS THAN (6), PARTITION high VALUES LESS THAN (1000))"
    )
    project.run_here()
    before = rows_dumped(project)
    lost = "INSERT INTO category (category_id, name) VALUES (500, 'lost')"
    if statements is GONE:
        with running(project) as migration:
            until_applied(migration, project)
            project.old.execute(lost, *statements, *changes(3))
            await_true(lambda: READ_AGAIN in "".join(migration.progress.snapshot().warnings), "it is noticed")
    else:
        project.old.execute(*changes(2), lost, *statements, *changes(3))
    project.run_here()
    judged(project)
    project.old.execute(*changes(4), "UPDATE category SET name = 'more' WHERE category_id < 3")
    project.run_here()
    judged(project)
    after = rows_dumped(project)
    assert {table for table in before if after[table] != before[table]} <= {"category"}
