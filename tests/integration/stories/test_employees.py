"""A real database with awkward rows, its row-wise part migrated: foreign keys, cascades, infinity, merged
tables."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.wiring import parts as wiring
from scenarios.project import make_project
from scenarios.stories.employees import old_schema
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

HERE = Path(__file__).parent / "employees_project"
NAMESPACE = uuid.UUID("9d2b7f14-6a0e-5c33-8e5d-2f7a1c9b4402")


@pytest.mark.slow
def test_employees_arrive_by_the_rules_of_their_story(
    old_pg: Database, new_pg: Database, tmp_path: Path, spark: SparkSession
) -> None:
    old, new = scenario_database(old_pg), scenario_database(new_pg)
    old_schema.load(old)
    config = make_project(
        tmp_path / "project", old, new, HERE, "employees", ["[spark]", 'master = "local[2]"']
    )
    wiring.upgrade_user_target(configuration.load(config))
    project = Project(old_pg, new_pg, config)
    project.run_here()
    old_pg.execute(
        "UPDATE employee SET birth_date = 'infinity', last_name = ' Renamed ' WHERE emp_no = 10001",
        "UPDATE dept_emp SET to_date = '2020-02-02' WHERE emp_no = 20002",
        "UPDATE dept_emp SET dept_no = 'd999' WHERE dept_no = 'd005' AND mod(emp_no, 7) = 0",  # keys change
        "DELETE FROM employee WHERE emp_no = 20003",  # cascades
    )
    project.run_here()

    def person(number: object) -> str:
        return str(uuid.uuid5(NAMESPACE, f"emp|{number}"))

    people = {
        (person(n), n, first.strip(" "), last.strip(" "), None if born == "infinity" else born, gender)
        for n, first, last, born, gender in old_pg.query(
            "SELECT emp_no, first_name, last_name, birth_date::text, gender FROM employee"
        )
    }
    assert people == set(
        new_pg.query(
            "SELECT person_id::text, emp_no, given_name, family_name, birth_date::text, gender_code FROM person"
        )
    )
    members = (
        "SELECT substr(dept_no, 2)::int, emp_no, '{0}', from_date::text,"
        " nullif(to_date, '9999-01-01')::text FROM {1}"
    )
    assigned = old_pg.query(
        members.format("member", "dept_emp") + " UNION ALL " + members.format("manager", "dept_manager")
    )
    assert {(d, person(n), *rest) for d, n, *rest in assigned} == set(
        new_pg.query(
            "SELECT dept_id, person_id::text, role, valid_from::text, valid_to::text FROM assignment"
        )
    )
    paid = old_pg.query(
        "SELECT emp_no, from_date::text, nullif(to_date, '9999-01-01')::text, amount::bigint * 100 FROM salary"
    )
    assert {(person(n), *rest) for n, *rest in paid} == set(
        new_pg.query(
            "SELECT person_id::text, valid_from::text, valid_to::text, amount_cents FROM salary_history"
        )
    )
    assert len(people) > 10_000
    assert project.command("verify", "--wait", "20") == 0
