"""Weeks of a migration in one test: DDL, a swap, a new target, changed mappings and bad rows, beside writers."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.errors import MappingError, SchemaError
from migrator.wiring.coordination import look
from migrator.wiring.target import bad_rows
from tests.integration import shop
from tests.integration.run_project import Project
from tests.integration.runs.changed.test_added_tables import mapped
from tests.integration.runs.ddl.altered_shop import begun, halted, running, until_applied
from tests.integration.runs.ddl.test_replaced import (
    READ_AGAIN,
    rows_dumped,
    swapped,
    unlinked,
    writing,
)
from tests.integration.waiting import await_true

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

FIRST = ("label", "sales")
ALL = (*FIRST, "order_summary")
LABELS = 2_000
NEXT_LABEL = """
@mapping.next("label", key="category_id")
def next_label(category):
    return category.select("category_id", F.upper("name").alias("name"))
"""


class Story:
    """One migration, its mapping edited as time goes by; ``oracle`` is the SQL of what it makes at present."""

    def __init__(self, project: Project):
        self.project = project
        self.numbers = itertools.count(300)
        self.oracle = {table: shop.expected(project.old, table) for table in ALL}

    def edit(self, old: str, new: str) -> None:
        """The mapping is another one from now on."""
        file = self.project.config.parent / "mapping.py"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    def run(self) -> None:
        """In step with the source, writers beside it for most of the time."""
        with writing(self.project.old, self.numbers):
            self.project.run_here()
        self.project.run_here()

    def holds(self, *tables: str) -> None:
        for table in tables:
            wanted = sorted(map(_plain, self.project.old.query(self.oracle[table])))
            actual = sorted(map(_plain, self.project.new.query(f"SELECT * FROM {table}")))
            assert wanted, f"an empty table {table} proves nothing"
            assert actual == wanted, table


def _plain(row: tuple[object, ...]) -> tuple[str, ...]:
    return tuple("" if value is None else str(value) for value in row)


@contextmanager
def beside_a_run(project: Project) -> Iterator[None]:
    """A run that leads, as a process of its own."""
    process = project.process("run")
    try:
        await_true(lambda: bool(look(configuration.load(project.config)).leader), "it leads", 120)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


@pytest.mark.parametrize("engine", ["pg", "maria"])
def test_a_migration_lives_through_all_that_changes_and_ends_equal(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    """No table is read twice but the swapped one."""
    project = begun(engine, request, tmp_path, only=FIRST)
    unlinked(project, engine)
    numbered = ", ".join(f"({number}, 'group {number % 9}')" for number in range(100, 100 + LABELS))
    project.old.execute(f"INSERT INTO category (category_id, name) VALUES {numbered}")
    project.new.execute(
        "ALTER TABLE label ADD CONSTRAINT fits CHECK (name NOT LIKE '%bad%' AND name NOT LIKE '%BAD%')",
        "ALTER TABLE order_summary ADD CONSTRAINT known CHECK (customer_name NOT LIKE '%BAD%')",
    )
    config = project.config
    config.write_text(config.read_text() + '\n[apply]\nbad_rows = "set_aside"\n')
    story = Story(project)
    story.run()
    story.holds(*FIRST)

    a_column_that_nothing_reads_is_renamed(story, engine)
    source_tables_and_a_joined_target_join(story)
    before = rows_dumped(project)
    a_column_that_is_read_is_renamed(story)
    a_table_is_swapped(story, engine)
    the_joined_target_is_mapped_otherwise(story)
    the_row_wise_target_is_mapped_otherwise(story)
    rows_are_bad_and_mended(story)

    after = rows_dumped(project)
    assert {table for table in before if after[table] != before[table]} <= {"product"}
    assert project.command("verify", "--wait", "30") == 0


def a_column_that_nothing_reads_is_renamed(story: Story, engine: str) -> None:
    word = "RENAME COLUMN worn TO torn" if engine == "pg" else "CHANGE worn torn varchar(20) DEFAULT 'old'"
    with running(story.project) as migration, writing(story.project.old, story.numbers):
        until_applied(migration, story.project)
        story.project.old.execute(f"ALTER TABLE order_line {word}")
    story.run()
    story.holds(*FIRST)


def source_tables_and_a_joined_target_join(story: Story) -> None:
    mapped(story.project, *ALL)
    story.run()
    story.holds(*ALL)


def a_column_that_is_read_is_renamed(story: Story) -> None:
    stopped = halted(
        story.project,
        "UPDATE customer SET name = 'before' WHERE customer_id = 2",
        "ALTER TABLE customer RENAME COLUMN name TO full_name",
        "UPDATE customer SET full_name = 'behind' WHERE customer_id = 3",
    )
    assert isinstance(stopped, SchemaError)
    story.edit('F.col("name").alias("customer_name")', 'F.col("full_name").alias("customer_name")')
    story.oracle["order_summary"] = story.oracle["order_summary"].replace("c.name", "c.full_name")
    story.run()
    story.holds(*ALL)


def a_table_is_swapped(story: Story, engine: str) -> None:
    with running(story.project) as migration:
        until_applied(migration, story.project)
        story.project.old.execute(*swapped(engine, "product"))
        await_true(lambda: READ_AGAIN in "".join(migration.progress.snapshot().warnings), "it is noticed")
    story.run()
    story.holds(*ALL)


def the_joined_target_is_mapped_otherwise(story: Story) -> None:
    story.edit('F.col("full_name").alias', 'F.upper("full_name").alias')
    story.oracle["order_summary"] = story.oracle["order_summary"].replace(
        "c.full_name", "upper(c.full_name)", 1
    )
    with pytest.raises(MappingError, match="order_summary"):
        story.project.run_here()
    assert story.project.command("remap", "order_summary", "--reason", "names are capitals") == 0
    story.run()
    story.holds(*ALL)


def the_row_wise_target_is_mapped_otherwise(story: Story) -> None:
    """Its readers see small letters until all capitals are there."""
    file = story.project.config.parent / "mapping.py"
    file.write_text(file.read_text() + NEXT_LABEL)
    assert story.project.command("remap", "label", "--reason", "labels are capitals") == 0
    story.holds(*ALL)
    story.oracle["label"] = "SELECT category_id, upper(name) FROM category"
    story.run()
    story.holds(*ALL)


def rows_are_bad_and_mended(story: Story) -> None:
    """Ten labels, and all orders of a customer; half is mended in the source, half by a wider target."""
    project = story.project
    project.old.execute(
        "UPDATE category SET name = concat('bad ', category_id) WHERE category_id BETWEEN 100 AND 109",
        "UPDATE customer SET full_name = 'bad' WHERE customer_id = 4",
    )
    story.run()
    orders = {
        str(number) for (number,) in project.old.query("SELECT order_id FROM orders WHERE customer_id = 4")
    }
    aside = {(one.target, one.key[0]) for one in bad_rows(configuration.load(project.config))}
    assert aside == {("label", str(number)) for number in range(100, 110)} | {
        ("order_summary", number) for number in orders
    }
    story.holds("sales")
    assert project.command("verify", "--wait", "30") == 1
    project.old.execute(
        "UPDATE category SET name = 'good' WHERE category_id BETWEEN 100 AND 104",
        "UPDATE customer SET full_name = 'good' WHERE customer_id = 4",
    )
    story.run()
    assert len(bad_rows(configuration.load(project.config))) == 5
    project.new.execute("ALTER TABLE label DROP CONSTRAINT fits")
    with beside_a_run(project):
        assert project.command("rows", "retry", "--wait", "120") == 0
    assert not bad_rows(configuration.load(project.config))
    story.run()
    story.holds(*ALL)
