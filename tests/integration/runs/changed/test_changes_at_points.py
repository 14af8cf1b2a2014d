"""Joined targets: a run ends at each of their points, then something is edited, and the next run goes on rightly.

The simulation crosses the other points with changes (``tests/simulation/test_changes.py``); it has no joined targets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.errors import MappingError, MigratorError, TargetError
from migrator.run.lead import carried
from migrator.wiring import parts as wiring
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.runs.changed.test_late_targets import ALWAYS, EXPECTED, JOINED, LATE, MADE, mapped
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

POINTS = {
    "target.mirrored": "",
    "joined.mapped": "",
    "joined.filled": "",
    "fill.mapped": "\n[apply]\nslice_grains = 3\n",
    "fill.committed": "\n[apply]\nslice_grains = 3\n",
}
"""The settings with which a run comes to each point."""
OTHERWISE = JOINED.replace('F.count("*")', '(F.count("*") * 10)')
EXPECTED_OTHERWISE = "SELECT customer, count(*) * 10 FROM orders GROUP BY customer"
MOST_STARTS = 4


class Stopped(Exception):
    """What a run meets in place of a kill."""


def _settings(project: Project) -> None:
    text = project.config.read_text().replace("slice_grains = 3", "slice_grains = 5")
    project.config.write_text(text + "\n[capture]\nchunk_rows = 7\nchunk_rows_max = 7\n")


def _mapping(project: Project) -> None:
    mapped(project, ALWAYS, OTHERWISE)


def _made_again(project: Project) -> None:
    project.new.execute("DROP TABLE tally", MADE["tally"])


def _out_and_back(project: Project) -> None:
    mapped(project, ALWAYS)
    project.run_here()
    project.old.execute("UPDATE orders SET customer = customer + 2 WHERE id % 5 = 0")
    mapped(project, ALWAYS, JOINED)


def _joined_by_another(project: Project) -> None:
    mapped(project, ALWAYS, JOINED, LATE)


CHANGES: dict[str, Callable[[Project], None]] = {
    "other settings": _settings,
    "another mapping": _mapping,
    "table made again": _made_again,
    "taken out and put back": _out_and_back,
    "another target joins": _joined_by_another,
}


@pytest.fixture
def project(tmp_path: Path, old_pg: Database, new_pg: Database, spark: SparkSession) -> Project:
    create(scenario_database(old_pg), 60)
    old_pg.execute("UPDATE orders SET customer = id % 7")
    made = run_project.make(tmp_path / "project", old_pg, new_pg)
    made.new.execute(*MADE.values())
    mapped(made, ALWAYS, JOINED)
    return made


def broken_off(project: Project, point: str) -> None:
    """A run that ends when it comes to the point."""

    def step(name: str) -> None:
        if name == point:
            raise Stopped

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(wiring, "step_hook", lambda environment: step)
        with pytest.raises(Stopped):
            project.run_here()


def followed(project: Project, error: MigratorError) -> None:
    """Does what the remedy says, by the words that it has."""
    for name in re.findall(r"empty the tables? \(([^)]+)\)", error.remedy):
        project.new.execute(*(f"DELETE FROM {table}" for table in name.split(", ")))
    for command in re.findall(
        r"migrator (remap \w+ --reason '\.\.\.'|dump start(?: --table \w+)+)", error.remedy
    ):
        assert project.command(*command.replace("'", "").split()) == 0
    assert re.search(r"empty the table|migrator remap|migrator dump start", error.remedy), error.remedy


def starts(project: Project) -> int:
    """Starts it until it goes on, following each refusal; how many were refused."""
    for refused in range(MOST_STARTS):
        try:
            project.run_here()
        except (MappingError, TargetError) as error:
            followed(project, error)
        else:
            return refused
    raise AssertionError("remedies lead in a circle")


def differing(project: Project, change: str) -> list[str]:
    """The targets that aren't what plain SQL makes of the source."""
    tally = EXPECTED_OTHERWISE if change == "another mapping" else EXPECTED["tally"]
    expected = {"busy": EXPECTED["busy"], "tally": tally}
    if change == "another target joins":
        expected["late"] = EXPECTED["late"]
    found = [] if project.differences() == [] else ["purchase"]
    for target, query in expected.items():
        rows = set(map(tuple, project.old.query(query)))
        assert rows
        found += [target] if set(map(tuple, project.new.query(f"SELECT * FROM {target}"))) != rows else []
    return found


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("point", POINTS)
def test_a_change_behind_each_point_of_joined_targets_ends_right(
    project: Project, point: str, change: str
) -> None:
    with project.config.open("a") as file:
        file.write(POINTS[point])
    if not point.startswith("fill."):  # of a change, or where rows are there already
        project.run_here()
        if point.startswith("joined."):
            assert project.command("remap", "tally", "--reason", "once more") == 0
        project.old.execute("UPDATE orders SET customer = customer + 1 WHERE id % 6 = 1")
    broken_off(project, point)
    project.old.execute(
        "DELETE FROM orders WHERE id % 9 = 0", "UPDATE orders SET customer = customer + 1 WHERE id % 4 = 1"
    )
    CHANGES[change](project)
    starts(project)
    project.old.execute("UPDATE orders SET customer = customer + 1 WHERE id % 4 = 3")
    starts(project)
    assert differing(project, change) == []


def test_a_change_that_is_not_noticed_would_be_seen(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control."""
    monkeypatch.setattr(carried, "_compared", lambda before, now, plans: {})
    project.run_here()
    _mapping(project)
    assert starts(project) == 0
    assert "tally" in differing(project, "another mapping")
