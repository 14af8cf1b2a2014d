"""The stories' own mappings turned round: what follows of each, and what comes back of their rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.cli import cli
from migrator.config import project as configuration
from migrator.wiring import parts as wiring
from scenarios import demo
from scenarios.flights import old_schema as flights
from scenarios.project import make_project
from scenarios.stories.stories import STORIES
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

SPARK = ["[spark]", 'master = "local[2]"']
DERIVED = {
    "sakila": (
        "film: from film, film_pricing; not carried: description, special_features",
        "store: from store, person\n",
        "rental: from rental, person; not carried: rental_date, return_date",
        "payment: from payment, payment_unallocated; not carried:",
        "category: a skeleton",
    ),
    "employees": (
        "employee: from person, employment; not carried: first_name, last_name",
        "department: from department\n",
        "dept_emp: from assignment, department, person; not carried: to_date",
        "title: a skeleton",
    ),
    "flights": (
        "airlines: from directory_entry\n",
        "flights: from flight, carrier, place, arrival, departure; not carried: dep_time,",
        "weather: a skeleton",
    ),
}
"""By story: what ``init --reverse`` says."""
BACK = {
    "sakila": (
        "film: all 1,003 rows there and back\n",
        "lossy: release_year: 1 of 1003 values come back otherwise: 0 came back as NULL (film_id=1001)",
        "lossy: rating: 1 of 1003 values come back otherwise: '' came back as NULL (film_id=1001)",
        "store: all 3 rows there and back\n             exact: store_id, manager_staff_id, address_id, last_update\n",
        "inventory: all 4,584 rows there and back\n",
    ),
    "employees": ("department: all 12 rows there and back\n             exact: dept_no, dept_name\n",),
    "flights": ("airlines: all 16 rows there and back\n             exact: carrier, name\n",),
}
"""By story: what ``check --reverse`` says."""


def project(name: str, old: Database, new: Database, folder: Path) -> Project:
    """A story's project, its old tables filled and its new schema there."""
    source, target = scenario_database(old), scenario_database(new)
    if name == "flights":
        flights.create(source)
        flights.load(source, every=50)
    else:
        STORIES[name].load(source)
    where = demo.PROJECT if name == "flights" else STORIES[name].folder
    config = make_project(folder, source, target, where, name, SPARK)
    wiring.upgrade_user_target(configuration.load(config))
    return Project(old, new, config)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("sakila", "old_maria", "new_pg"),
        ("employees", "old_pg", "new_maria"),
        ("flights", "old_pg", "new_pg"),
    ],
)
def test_a_story_goes_back_as_far_as_it_follows(
    name: str,
    old: str,
    new: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    spark: SparkSession,
    capfd: pytest.CaptureFixture[str],
) -> None:
    sides = request.getfixturevalue(old), request.getfixturevalue(new)
    story = project(name, *sides, tmp_path / "project")
    assert not cli.main(["init", "--reverse", str(tmp_path / "project")], standalone_mode=False)
    said = capfd.readouterr().out
    assert [line for line in DERIVED[name] if line not in said] == []
    assert story.command("check", "--reverse") == 2, "columns that must be filled are left to the author"
    said = capfd.readouterr().out
    assert [line for line in BACK[name] if line not in said] == [], said
    if name == "sakila":  # joined both ways, of large tables: whole grains of some rows
        assert story.command("check", "--reverse", "--rows", "200") == 2
        said = capfd.readouterr().out
        assert (
            "film: 200 of its rows there and back\n             exact: film_id, title, release_year," in said
        )
        assert "inventory: 200 of its rows there and back\n             exact: inventory_id," in said
