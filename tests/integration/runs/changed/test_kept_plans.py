"""A start takes the plans of the last one over; a function that changed without its code is met before it maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from migrator.errors import MappingError
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database
from transforms.analysis.plan import analyse

pytestmark = [pytest.mark.integration, pytest.mark.spark]

MORE = """
import os

@mapping.target("busy", key="customer", grain="orders.customer")
def busy(orders):
    least = int(os.environ.get("LEAST_ORDERS", "1"))
    return orders.groupBy("customer").agg(F.count("*").alias("orders")).where(F.col("orders") > least)

@mapping.target("late", key="id")
def late(orders):
    return orders.select("id", F.lit(os.environ.get("MARK", "a")).alias("mark"))
"""
BUSY = "SELECT customer, count(*) FROM orders GROUP BY customer HAVING count(*) > 1"


@pytest.fixture
def project(tmp_path: Path, old_pg: Database, new_pg: Database, spark: SparkSession) -> Project:
    """A migration that has dumped everything, of a row-wise and of a joined target beside the usual one."""
    create(scenario_database(old_pg), 40)
    old_pg.execute("UPDATE orders SET customer = id % 7")
    made = run_project.make(tmp_path / "project", old_pg, new_pg)
    made.new.execute(
        "CREATE TABLE busy (customer bigint PRIMARY KEY, orders bigint)",
        "CREATE TABLE late (id bigint PRIMARY KEY, mark text)",
    )
    file = made.config.parent / "mapping.py"
    file.write_text(file.read_text() + MORE)
    made.run_here()
    return made


def busy(project: Project) -> set[tuple[Any, ...]]:
    return set(map(tuple, project.new.query("SELECT customer, orders FROM busy")))


def test_a_start_analyses_no_function_again_until_one_is_another(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[str] = []

    def noted(spark: Any, target: Any, *more: Any) -> Any:
        looked_at.append(target.name)
        return analyse(spark, target, *more)

    monkeypatch.setattr("migrator.run.analysed.analyse", noted)
    project.old.execute("UPDATE orders SET customer = 8 WHERE id % 4 = 0")
    project.run_here()
    assert looked_at == []
    assert project.differences() == []
    assert busy(project) == set(map(tuple, project.old.query(BUSY)))

    # The same code makes other rows: the joined one is met by its proof, the row-wise one too.
    before = busy(project)
    for variable, value, target in (("LEAST_ORDERS", "2", "busy"), ("MARK", "b", "late")):
        monkeypatch.setenv(variable, value)
        project.old.execute("UPDATE orders SET customer = 9 WHERE id % 4 = 0")
        with pytest.raises(MappingError, match="mapping of a target was changed") as caught:
            project.run_here()
        assert caught.value.where == f"target table {target}"
        assert target in looked_at
        assert busy(project) == before
        assert project.new.query("SELECT DISTINCT mark FROM late") == [("a",)]
        monkeypatch.delenv(variable)
    project.run_here()
    assert busy(project) == set(map(tuple, project.old.query(BUSY))) != before
