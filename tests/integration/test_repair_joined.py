"""Repair of joined targets, beside a row-wise one, under writers."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration import shop
from tests.integration.test_joined_run import writing
from tests.integration.test_repair import running
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

DAMAGE = (
    "UPDATE buyer SET orders = orders + 7 WHERE customer_id = 1",
    "DELETE FROM buyer WHERE customer_id = 2",
    "INSERT INTO buyer SELECT 900001, orders, last_order_id FROM buyer WHERE customer_id = 1",
    "UPDATE label SET name = 'rogue' WHERE category_id = 1",
    "INSERT INTO label VALUES (900001, 'rogue')",
)


def test_wrong_missing_and_extra_rows_of_joined_targets(
    tmp_path: Path, old_pg: Database, new_pg: Database, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    shop.create(old_pg, 100)
    project = shop.make(tmp_path / "project", old_pg, new_pg)
    project.run_here()
    assert shop.differences(project) == {}
    project.new.execute(*DAMAGE)
    assert set(shop.differences(project)) == {"buyer", "label"}
    with running(project):
        with writing(project, 3):
            assert project.command("repair", "--table", "buyer", "--table", "label") == 1
            shown = capfd.readouterr().out
            assert "buyer: 3 rows by derived anew from the mirror" in shown
        assert project.command("repair", "--table", "buyer", "--table", "label", "--apply") == 0
    shown = capfd.readouterr().out
    assert "buyer: before 1 different, 1 extra, 1 missing; after nothing differs" in shown
    assert "label: before 1 different, 1 extra; after nothing differs" in shown
    project.run_here()
    assert shop.differences(project) == {}
