"""Two migrations that face each other: what one has written the other doesn't carry back."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.cutover.two_way import made

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("engine", ["pg-pg", "maria-pg", "pg-maria", "maria-maria", "mysql-pg"])
def test_changes_go_both_ways_and_none_comes_back(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    """Columns that nothing carries back keep their values; echoes are in neither target, and in both mirrors."""
    project = made(engine, request, tmp_path / "project")
    project.run_here()
    assert project.differing() == {}
    project.run_back()  # begins here: the mirror is filled, and nothing is written to the old tables
    notes = project.old.query("SELECT customer_id, note FROM customer")

    project.old.execute("UPDATE customer SET name = 'from old' WHERE customer_id = 1")
    project.run_here()
    back = project.run_back()
    assert back.applied_changes == 0, "what the way there had written is no change of the way back"
    assert project.differing() == {}

    project.new.execute(
        "UPDATE person SET full_name = 'from new' WHERE person_id = 2",
        "UPDATE contact SET email = 'new@example.org' WHERE person_id = 1",
        "INSERT INTO person VALUES (100, 'born new')",
        "INSERT INTO purchase VALUES (1000, 100, 12.34, true)",
        "DELETE FROM purchase WHERE purchase_id = 3",
    )
    project.run_back()
    assert project.old.query(
        "SELECT name, email, note FROM customer WHERE customer_id IN (1, 2) ORDER BY 1"
    ) == [
        ("from new", "n2@example.org", "kept 2"),
        ("from old", "new@example.org", "kept 1"),
    ]
    assert project.old.query("SELECT name, email, note FROM customer WHERE customer_id = 100") == [
        ("born new", None, "made new")
    ]
    assert project.old.query("SELECT cents, paid, origin FROM orders WHERE order_id = 1000") == [
        (1234, 1, "web")
    ]
    assert project.old.query("SELECT order_id FROM orders WHERE order_id = 3") == []
    kept = project.old.query("SELECT customer_id, note FROM customer WHERE customer_id < 100")
    assert sorted(kept) == sorted(notes)

    there = project.run_here()
    assert there.applied_changes == 0, "nor is it the other way about"
    project.old.execute("UPDATE customer SET name = 'after all' WHERE customer_id = 100")
    project.run_here()  # the mirror has what came back: the joined target counts on
    assert project.new.query("SELECT full_name, purchases FROM spending WHERE person_id = 100") == [
        ("after all", 1)
    ]
