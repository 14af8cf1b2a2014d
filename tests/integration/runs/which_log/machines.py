"""Machines of one migration, each with a state folder of its own, and what their users do."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from migrator.config import project as configuration
from migrator.errors import EventLogError, MigratorError
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.waiting import await_true
from tests.servers import Database

ROWS = 120
SMALL = (
    "\n[capture]\nchunk_rows = 20\nchunk_rows_max = 20\nsegment_rows = 20\ndump_share = 1.0\n"
    "[apply]\nbatch_rows = 40\n"
)
OTHER_LOG = "isn't the one that the target goes on from"


def project_of(folder: Path, old: Database, new: Database) -> Project:
    create(scenario_database(old), ROWS)
    made = run_project.make(folder, old, new)
    made.config.write_text(made.config.read_text() + SMALL)
    return made


def elsewhere(project: Project, name: str, *, state: bool = False) -> Project:
    """The project on another machine: with an empty state folder, or a copy of this one."""
    folder = project.config.parent
    ignored = None if state else shutil.ignore_patterns(".migrator")
    shutil.copytree(folder, folder.with_name(name), ignore=ignored)
    return replace(project, config=folder.with_name(name) / project.config.name)


def write(database: Database, *ids: int) -> None:
    """Changes and deletes rows, by commits of their own."""
    for each in ids:
        database.execute(
            f"UPDATE orders SET items = items + 1000 WHERE id = {each}",
            f"DELETE FROM orders WHERE id = {each + 1}",
        )


def ends_equal(project: Project) -> None:
    project.run_here()
    assert project.differences() == []


def refused(project: Project, error: type[MigratorError], what: str) -> MigratorError:
    """Each time, and before anything was written."""
    before = target_of(project)
    for _ in range(2):
        with pytest.raises(error, match=what) as caught:
            project.run_here()
        assert target_of(project) == before
    return caught.value


def target_of(project: Project) -> list[tuple[object, ...]]:
    return project.new.query("SELECT * FROM purchase ORDER BY purchase_id")


def moved_away(project: Project, error: MigratorError) -> None:
    """Follows the remedy."""
    assert re.search(r"move the (state folder's eventlog|event log's directory) away", error.remedy)
    log = Path(configuration.load(project.config).event_log())
    shutil.move(log, log.with_name(f"away-{len(list(log.parent.iterdir()))}"))


def leave_its_log(project: Project) -> None:
    """Refused for an event log that the target doesn't go on from; follows the remedy."""
    moved_away(project, refused(project, EventLogError, OTHER_LOG))


def fill_log(database: Database) -> None:
    """Brings a PostgreSQL's log beyond a place that another copy of it has come to."""
    database.execute(
        "CREATE TABLE filler (x text)",
        "INSERT INTO filler SELECT repeat('x', 500) FROM generate_series(1, 4000)",
    )


def slot_used(project: Project) -> bool:
    """Whether a session reads PostgreSQL's slot."""
    used = "SELECT FROM pg_replication_slots WHERE slot_name = 'migrator_orders' AND active"
    return bool(project.old.query(used))


def await_seen(project: Project) -> None:
    """Returns once PostgreSQL knows that a killed process is gone; until then its slot is in use."""
    await_true(lambda: not slot_used(project), "the server has seen that it is gone")
