"""Joined mappings over whole runs on real servers."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration import shop
from tests.integration.run_project import Project
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]


@pytest.fixture
def project(tmp_path: Path, old_pg: Database, new_pg: Database) -> Project:
    shop.create(old_pg, 200)
    return shop.make(tmp_path / "project", old_pg, new_pg)


def test_joined_targets_are_filled_and_kept_in_step(project: Project, spark: SparkSession) -> None:
    project.run_here()
    assert shop.differences(project) == {}
    project.old.execute(
        "UPDATE order_line SET quantity = 9 WHERE order_id = 3 AND line_no = 1",
        "UPDATE order_line SET order_id = 5, line_no = 9 WHERE order_id = 6 AND line_no = 1",
        "DELETE FROM order_line WHERE order_id = 7",
        "DELETE FROM orders WHERE order_id = 7",
        "UPDATE product SET name = 'renamed' WHERE product_id = 11",
        "UPDATE category SET name = 'all new' WHERE category_id = 2",
        "UPDATE customer SET name = 'somebody else', referrer_id = 1 WHERE customer_id = 12",
        "INSERT INTO product VALUES (900, 'RENAMED ', 3.5, 2)",
    )
    project.run_here()
    assert shop.differences(project) == {}
