"""DDL on columns that no mapping needs, while a migration runs and while it doesn't: it goes on, and ends equal."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.errors import MigratorError
from tests.integration import shop
from tests.integration.runs.ddl.altered_shop import (
    ENGINES,
    TARGETS,
    begun,
    changes,
    ddl,
    judged,
    running,
    until_applied,
)

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]


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
    project.run_here()
    assert shop.differences(project, TARGETS) == {}
    project.old.execute(*changes(91))
    project.run_here()
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
    project.run_here()
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
    numbers, one_at_a_time = itertools.count(100), threading.Lock()

    def step(name: str) -> None:
        if name == "chunk.snapshot" and waiting:
            thread = threading.Thread(target=alter)
            thread.start()
            thread.join(2)  # it may wait for our own read view

    def alter() -> None:
        with one_at_a_time:
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
    assert "migrator dump start --table category" in refused.value.remedy
    mapping.write_text(text)
    project.run_here()
    judged(project)
