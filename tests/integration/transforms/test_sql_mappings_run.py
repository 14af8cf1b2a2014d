"""A mapping of nothing but SQL over a whole run: streamed, verified, derived anew, explained."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.errors import MigratorError
from tests.integration import shop
from tests.integration.run_project import Project
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

TABLES = ("label", "order_summary", "referral", "band")
ORDERS = 40


@pytest.fixture
def project(tmp_path: Path, old_maria: Database, new_pg: Database) -> Project:
    shop.create(old_maria, ORDERS)
    made = shop.make(tmp_path / "project", old_maria, new_pg)
    (made.config.parent / "mapping.py").unlink()
    (made.config.parent / "shop.sql").write_text((shop.HERE.parent / "shop_queries.sql").read_text())
    return made


@pytest.mark.slow
def test_queries_are_kept_in_step_verified_derived_anew_and_explained(
    project: Project, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    project.run_here()
    for statements in islice(shop.changes(5, ORDERS), 30):
        project.old.execute(*statements)
    project.run_here()
    assert shop.differences(project, TABLES) == {}
    assert project.command("verify", "--wait", "20") == 0
    project.new.execute("UPDATE label SET name = 'wrong' WHERE category_id = 3")
    assert project.command("verify", "--wait", "20", "--table", "label") == 1, "the judge sees a wrong name"

    file = project.config.parent / "shop.sql"
    text = file.read_text()
    file.write_text(
        text.replace("count(*) AS products\nFROM product p", "count(*) + 1 AS products\nFROM product p")
    )
    assert project.command("remap", "band") == 0
    project.old.execute("UPDATE category SET name = 'the next batch' WHERE category_id = 1")
    project.run_here()
    assert set(shop.differences(project, ("order_summary", "referral", "band"))) == {"band"}
    assert project.command("verify", "--wait", "20", "--table", "band") == 0

    capfd.readouterr()
    assert project.command("explain", "referral") == 0
    assert (
        "link     referred.referrer_id = customer.customer_id  (referred is customer)"
        in capfd.readouterr().out
    )


def test_a_table_that_the_source_lacks_is_named_with_file_and_line(
    project: Project, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    file = project.config.parent / "shop.sql"
    file.write_text(file.read_text().replace("FROM category;", "\nFROM categories;"))
    with pytest.raises(MigratorError, match=r"categories.*shop\.sql:6"):
        project.command("explain")
    assert project.command("check") == 2
    assert "shop.sql:6" in capfd.readouterr().out
