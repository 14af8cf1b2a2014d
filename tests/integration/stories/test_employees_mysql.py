"""The employees story into MySQL, few people of it: every change that the story lists, judged by its oracle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scenarios.database import Database as Old
from scenarios.stories.employees import old_schema, oracle
from scenarios.stories.run import make_sides
from scenarios.stories.stories import STORIES
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.long]

SPARK = ("[spark]", 'master = "local[2]"')
# One transaction each. Who has no row in a table that others have is among them: the awkward rows see to that.
CHANGES = (
    ("UPDATE dept_emp SET to_date = '2020-02-02' WHERE emp_no = 20004",),  # somebody whom others report to
    ("INSERT INTO title VALUES (20001, 'Dean', '1987-01-01', '1990-01-01')",),
    ("INSERT INTO salary VALUES (20003, 7, '1990-06-01', '1991-01-01')",),
    (
        "UPDATE dept_emp SET to_date = '2001-01-01' WHERE emp_no = 20002",
        "INSERT INTO dept_emp VALUES (20002, 'd011', '2001-01-01', '9999-01-01')",
    ),
    (
        "INSERT INTO department VALUES ('d077', 'moving')",
        "UPDATE dept_emp SET dept_no = 'd077' WHERE dept_no = 'd010'",
        "UPDATE dept_manager SET dept_no = 'd077' WHERE dept_no = 'd010'",
        "DELETE FROM department WHERE dept_no = 'd010'",
    ),
    ("DELETE FROM employee WHERE emp_no = 10002",),
    ("UPDATE employee SET hire_date = '1986-05-05', first_name = ' Zoë ' WHERE emp_no = 0",),
    (
        "INSERT INTO title VALUES (20005, 'ENGINEER', '1990-01-01', NULL)",
    ),  # a label of others becomes another
)
CHANGED = {
    "assignment", "department", "department_stats", "employment", "former_employment", "hire_cohort", "job_title",
    "person", "salary_history", "title_history",
}  # fmt: skip


def few(database: Old, *, extra_rows: bool = True) -> None:
    """The story's rows without most of its plain people."""
    old_schema.load(database, extra_rows=extra_rows)
    connection = database.connect()
    connection.cursor().execute(
        "DELETE FROM employee WHERE emp_no BETWEEN 10051 AND 19999"
        " AND emp_no NOT IN (SELECT emp_no FROM dept_manager)"
    )
    connection.commit()
    connection.close()


def test_a_run_follows_every_change_of_the_story(
    old_maria: Database, new_mysql: Database, tmp_path: Path, spark: SparkSession
) -> None:
    old, new = scenario_database(old_maria), scenario_database(new_mysql)
    small = replace(STORIES["employees"], load=few)
    project = Project(
        old_maria, new_mysql, make_sides(small, old, new, tmp_path / "project", lambda text: None, SPARK)
    )
    project.run_here()
    assert oracle.differences(old, new) == []
    connection = old.connect()
    for statements in CHANGES:
        for statement in statements:
            assert connection.cursor().execute(statement) is not None
        connection.commit()
    connection.close()
    assert {found.table for found in oracle.differences(old, new)} == CHANGED
    project.run_here()
    assert oracle.differences(old, new) == []
    assert project.command("verify", "--wait", "20") == 0
