"""Source tables and targets join a begun migration, and leave it: the new tables alone are dumped."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.errors import PreflightError
from tests.integration import shop
from tests.integration.run_project import Project
from tests.integration.runs.ddl.altered_shop import ENGINES, begun, changes
from tests.integration.runs.ddl.test_replaced import rows_dumped, writing

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

ONLY = "\nfor name in mapping._targets.keys() - "
ADDED = ("label", "order_summary", "article")


def mapped(project: Project, *targets: str) -> None:
    """The mapping makes these from now on."""
    file = project.config.parent / "mapping.py"
    text = file.read_text().partition(ONLY)[0]
    file.write_text(f"{text}{ONLY}{set(targets)!r}:\n    del mapping._targets[name]\n")


@pytest.mark.parametrize("engine", ENGINES)
def test_new_tables_are_dumped_beside_writers_and_no_other(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    """The mirror gets four new tables, a joined target and a grouped one are filled from them."""
    project = begun(engine, request, tmp_path, only=("label",))
    project.run_here()
    before = rows_dumped(project)
    project.old.execute(*changes(1))
    mapped(project, *ADDED)
    with writing(project.old):
        project.run_here()
    project.run_here()
    assert shop.differences(project, ADDED) == {}
    after = rows_dumped(project)
    assert after.keys() > before.keys()
    assert {table: after[table] for table in before} == before
    assert project.command("verify", "--wait", "30") == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_that_joins_the_mirror_alone_is_read_once_more_and_no_other(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    """``category`` is captured for a row-wise target; the mapping joins it from now on. A kill begins it again."""
    project = begun(engine, request, tmp_path, only=ADDED)
    project.run_here()
    before = rows_dumped(project)
    project.old.execute(*changes(1), "DELETE FROM order_line WHERE product_id = 3")
    mapped(project, *ADDED, "sales")
    process = project.process("run", crash_at="capture.segment:2")
    assert process.wait(120) != 0
    with writing(project.old):
        project.run_here()
    project.run_here()
    assert shop.differences(project, (*ADDED, "sales")) == {}
    after = rows_dumped(project)
    assert {table for table in before if after[table] != before[table]} <= {"category"}
    assert project.command("verify", "--wait", "30") == 0


@pytest.mark.parametrize("engine", ["pg", "maria"])
def test_tables_that_left_and_come_back_bring_what_they_have_then(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    """Rows that went meanwhile are in the mirror still."""
    project = begun(engine, request, tmp_path, only=ADDED)
    project.run_here()
    mapped(project, "label")
    project.run_here()
    project.old.execute(*changes(4), "DELETE FROM order_line WHERE order_id < 9", *changes(5))
    project.run_here()
    if engine == "pg":
        project.old.execute("ALTER PUBLICATION migrator_shop DROP TABLE order_line", *changes(7))
    mapped(project, *ADDED)
    project.run_here()
    project.old.execute(*changes(6))
    project.run_here()
    assert shop.differences(project, ADDED) == {}


@pytest.mark.parametrize("engine", ["pg", "maria"])
def test_killed_at_any_time_while_tables_join_it_ends_equal(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    project = begun(engine, request, tmp_path, only=("label",))
    project.run_here()
    mapped(project, *ADDED)
    with writing(project.old):
        for after_s in (9.0, 13.0, 17.0):
            process = project.process("run")
            time.sleep(after_s)
            assert process.poll() is None, process.communicate()[0]
            process.send_signal(signal.SIGKILL)
            process.communicate()
    project.run_here()
    assert shop.differences(project, ADDED) == {}


def test_a_transaction_that_was_open_when_a_table_joined_is_waited_for_by_name(
    request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    """1. it writes; 2. the table joins the publication; 3. it commits: the log never has its rows."""
    project = begun("pg", request, tmp_path, only=("label",))
    project.run_here()
    mapped(project, *ADDED)
    with project.old.connect(autocommit=False) as writer:
        writer.execute("UPDATE product SET price = price + 1000")
        process = project.process("run", "--until", "caught-up")
        try:
            time.sleep(25)
            assert process.poll() is None, process.communicate()[0]
            assert project.command("status") in (3, 4), "it leads, and isn't done"
        finally:
            writer.commit()
            process.communicate(timeout=300)
    assert process.returncode == 0
    assert shop.differences(project, ADDED) == {}


def test_without_the_right_to_publish_it_the_statement_is_named(
    request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    project = begun("pg", request, tmp_path, only=("label",))
    project.run_here()
    mapped(project, *ADDED)
    name = f"{project.old.database}_role"
    project.old.execute(
        f"CREATE ROLE {name} LOGIN REPLICATION",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}",
        f"GRANT USAGE ON SCHEMA public TO {name}",
    )
    text = project.config.read_text()
    project.config.write_text(text.replace(f'user = "{project.old.user}"', f'user = "{name}"', 1))
    with pytest.raises(PreflightError, match="1 problem") as caught:
        project.run_here()
    assert "ADD TABLE" in caught.value.remedy
    project.old.execute(caught.value.remedy.partition(": ")[2])
    project.run_here()
    assert shop.differences(project, ADDED) == {}
