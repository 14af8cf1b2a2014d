"""Two migrations that face each other: what one has written the other doesn't carry back."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.cutover.led import leading, ready
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


def test_rows_that_nobody_changed_keep_what_the_way_back_would_lose(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Orders are dumped on the new side, for the mirror of another table: their old rows are none of its business."""
    project = made("pg-pg", request, tmp_path / "project")
    reverse = project.config.parent / "reverse.py"
    text = reverse.read_text()
    for exact, lossy in (
        ('(F.col("amount") * 100)', '(F.floor(F.col("amount")) * 100)'),
        (
            'links=["contact.person_id = person.person_id"]',
            'links=["contact.person_id = person.person_id", "purchase.person_id = person.person_id"]',
        ),
        ("contact: DataFrame)", "contact: DataFrame, purchase: DataFrame)"),
        (
            'person.join(contact, "person_id", "left")',
            'person.join(contact, "person_id", "left").join('
            'purchase.groupBy("person_id").agg(F.min("amount").alias("least")), "person_id", "left")',
        ),
        ('F.col("full_name").alias("name")', 'F.expr("if(least < 0, NULL, full_name)").alias("name")'),
    ):
        assert exact in text
        text = text.replace(exact, lossy)
    reverse.write_text(text)
    project.config.write_text(project.config.read_text() + '\n[back]\naccept_lossy = ["orders.cents"]\n')
    project.run_here()
    assert project.command("verify") == 0
    before = project.old.query("SELECT order_id, cents FROM orders ORDER BY order_id")
    assert any(cents % 100 for _, cents in before)
    assert project.command("cutover", "plan", "--accept") == 0
    with leading(project):
        ready(project)
        assert project.command("cutover", "start", "--wait", "60") == 0
        project.new.execute("UPDATE purchase SET is_paid = NOT is_paid WHERE purchase_id = 1")
        assert project.command("cutover", "back", "--wait", "60") == 0
    after = project.old.query("SELECT order_id, cents FROM orders ORDER BY order_id")
    assert after[1:] == before[1:]
    assert after[0][1] % 100 == 0, "what was changed has lost what it says it loses"
