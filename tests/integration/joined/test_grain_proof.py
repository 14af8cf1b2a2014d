"""Grains that aren't right are found by ``check`` and ``try``, on a sample; right ones pass, whatever their
shape."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.run.commands.grain_proof import Verdict, prove
from migrator.run.migration import plans
from migrator.wiring import parts as wiring
from tests.integration import shop
from tests.integration.run_project import Project
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ORDERS = 12
ROWS = 50


@pytest.fixture
def project(tmp_path: Path, old_pg: Database, new_pg: Database, spark: SparkSession) -> Project:
    shop.create(old_pg, ORDERS)
    old_pg.execute("UPDATE orders SET customer_id = 1 + order_id % 3")
    return shop.make(tmp_path / "project", old_pg, new_pg)


def verdicts(project: Project) -> dict[str, Verdict]:
    parts = wiring.parts(configuration.load(project.config))
    found = plans(parts)[2]
    return {name: prove(parts, plan, ROWS) for name, plan in found.items() if plan.reaches}


def of_one_file(project: Project, key: str, grain: str, query: str) -> None:
    """The mapping is this one function."""
    (project.config.parent / "mapping.py").unlink(missing_ok=True)
    text = f"-- target: order_summary\n-- key: order_id\n-- grain: {grain}\nSELECT {key} AS order_id, {query}"
    (project.config.parent / "one.sql").write_text(text)


COUNTED = (
    "'x' AS customer_name, count(*) OVER (PARTITION BY customer_id) AS line_count,"
    " cast(1.5 AS decimal(12,2)) AS total FROM orders"
)


@pytest.mark.slow
def test_right_grains_of_every_shape_pass(project: Project) -> None:
    """Hierarchies, unions, computed ones, roles, several parts of one table: nothing is found, and all are
    tried."""
    found = verdicts(project)
    assert len(found) > 8
    assert {name: verdict for name, verdict in found.items() if verdict.wrong or verdict.untried} == {}
    assert all(verdict.grains > 1 for verdict in found.values())


@pytest.mark.slow
def test_a_row_that_depends_on_other_grains_without_a_clash_of_keys_is_found(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    of_one_file(project, "order_id", "orders.order_id", COUNTED)
    capfd.readouterr()
    assert project.command("check") == 2
    said = capfd.readouterr().out
    assert "refuses  grain: order_summary" in said
    assert "line_count = " in said
    assert "declare a coarser grain" in said
    assert project.command("check", "--grain-rows", "0") == 0
    assert project.command("try", "order_summary", "--limit", "8") == 1
    assert "of the grains together" in capfd.readouterr().out


def test_the_remedy_followed_passes(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    of_one_file(project, "order_id", "orders.customer_id", COUNTED)
    capfd.readouterr()
    assert project.command("check") == 0
    assert "grains tried, together and apart" in capfd.readouterr().out


@pytest.mark.slow
def test_a_grain_of_two_tables_that_meet_in_one_row_is_found(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    """A customer and a category of one number: one row counts both, though they are a grain each."""
    both = "(SELECT customer_id AS id FROM customer UNION ALL SELECT category_id FROM category)"
    counted = "'x' AS customer_name, count(*) AS line_count, cast(1.5 AS decimal(12,2)) AS total"
    query = f"{counted} FROM {both} GROUP BY id"
    of_one_file(project, "id", "customer.customer_id, category.category_id", query)
    capfd.readouterr()
    assert project.command("check") == 2
    said = capfd.readouterr().out
    assert "the grains together make 1 row(s) of it, each for itself 2" in said
    assert 'grain="a.x = b.x"' in said
    of_one_file(project, "id", "customer.customer_id = category.category_id", query)
    assert project.command("check") == 0, "the remedy followed"


def test_what_cant_be_tried_is_a_warning(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    of_one_file(
        project, "order_id", "orders.order_id",
        "'x' AS customer_name, 1 AS line_count, cast(sum(1 / (order_id - 3)) AS decimal(12,2)) AS total FROM orders"
        " GROUP BY order_id",
    )  # fmt: skip
    capfd.readouterr()
    assert project.command("check") == 0
    said = capfd.readouterr().out
    assert "warning  grain: order_summary: it wasn't tried" in said
    assert "DIVIDE_BY_ZERO" in said
