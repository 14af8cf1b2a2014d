"""Repair of joined targets, beside a row-wise one, under writers."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.model.requests.request import RequestState
from migrator.run.commands.repair import Wanted, Way, repair_steps
from migrator.wiring import parts as wiring
from migrator.wiring import repair as wiring_repair
from tests.integration import shop
from tests.integration.commands.repair.test_repair import running
from tests.integration.joined.test_joined_run import writing
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

TABLES = ("label", "buyer", "order_summary", "party")
"""Both that are repaired, and joined ones of the same rows beside them."""
DAMAGE = (
    "UPDATE buyer SET orders = orders + 7 WHERE customer_id = 1",
    "DELETE FROM buyer WHERE customer_id = 2",
    "INSERT INTO buyer SELECT 900001, orders, last_order_id FROM buyer WHERE customer_id = 1",
    "UPDATE label SET name = 'rogue' WHERE category_id = 1",
    "INSERT INTO label VALUES (900001, 'rogue')",
)
WANTED = (
    Wanted("buyer", ("customer_id",), (("1",), ("2",), ("900001",))),
    Wanted("label", ("category_id",), (("1",), ("900001",))),
)


@pytest.mark.slow
def test_wrong_missing_and_extra_rows_of_joined_targets(
    tmp_path: Path, old_pg: Database, new_pg: Database, spark: SparkSession
) -> None:
    shop.create(old_pg, 100)
    project = shop.make(tmp_path / "project", old_pg, new_pg, TABLES)
    project.run_here()
    project.new.execute(*DAMAGE)
    assert set(shop.differences(project, TABLES)) == {"buyer", "label"}
    settings = configuration.load(project.config)
    steps = repair_steps(wiring.parts(settings), WANTED)
    assert {step.target: step.way for step in steps} == {"buyer": Way.REMAP, "label": Way.LISTED}
    with running(project), writing(project, 3):
        names = wiring_repair.begin_repair(settings, steps)
        done = wiring_repair.await_repair(settings, names, 300)
    assert [request.state for request in done] == [RequestState.DONE] * 2
    project.run_here()
    assert shop.differences(project, TABLES) == {}
