"""A joined target that is emptied by hand, while we run or not, is derived anew; nor is one taken for emptied that a
batch has left empty by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.adapters.targets.shared.identities import Identities
from migrator.config import project as configuration
from migrator.errors import TargetError
from migrator.model.position import Position
from migrator.ports.target import TargetRows
from migrator.run.caught_up import caught_up
from migrator.run.failure import Stopping
from migrator.run.lead import carried
from migrator.run.migration import Migration
from migrator.run.progress import Snapshot
from migrator.wiring import parts as wiring
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.runs.changed.test_emptied_targets import behind_the_start
from tests.integration.runs.changed.test_late_targets import EXPECTED, JOINED, LATE, MADE, mapped
from tests.integration.waiting import await_true
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

CHANGE = "UPDATE orders SET customer = customer + 1 WHERE id % 3 = 0"
ENGINES = ["new_pg", "new_maria", "new_mysql"]


class Killed(Exception):
    """Ends a run at a point."""


@pytest.fixture(params=ENGINES)
def project(request: pytest.FixtureRequest, tmp_path: Path, old_pg: Database, spark: SparkSession) -> Project:
    create(scenario_database(old_pg), 60)
    old_pg.execute("UPDATE orders SET customer = id % 7")
    made = run_project.make(tmp_path / "project", old_pg, request.getfixturevalue(request.param))
    made.new.execute(MADE["late"], MADE["tally"])
    mapped(made, LATE, JOINED)
    return made


def right(project: Project, *names: str) -> bool:
    return all(
        {*map(tuple, project.old.query(EXPECTED[name]))}
        == {*map(tuple, project.new.query(f"SELECT * FROM {name}"))}
        for name in names or ("late", "tally")
    )


def meddled(project: Project, what: Callable[[Project], None]) -> None:
    """A run in which somebody does so once the joined target has rows; the source goes on. Raises what ends it."""
    done: list[bool] = []

    def step(name: str) -> None:
        if (
            name == "apply.committed"
            and not done
            and project.new.query("SELECT count(*) FROM tally") != [(0,)]
        ):
            what(project)
            project.old.execute(CHANGE)
            done.append(True)

    parts = replace(wiring.parts(configuration.load(project.config)), step=step)
    reached = caught_up(parts.catalog.position)

    def until(now: Snapshot) -> bool:
        return bool(done) and reached(now)

    Migration(parts).run(Stopping(), until)
    assert done


def truncated(project: Project) -> None:
    project.new.execute("TRUNCATE TABLE tally")


def deleted(project: Project) -> None:
    project.new.execute("DELETE FROM tally")


@pytest.mark.parametrize("emptied", [truncated, deleted])
def test_one_that_is_emptied_while_we_are_stopped_is_derived_anew(
    project: Project, emptied: Callable[[Project], None], capsys: pytest.CaptureFixture[str]
) -> None:
    project.run_here()
    assert right(project)
    emptied(project)
    project.old.execute(CHANGE)
    project.run_here()
    assert right(project)
    project.run_here()
    capsys.readouterr()
    project.command("history")
    assert capsys.readouterr().out.count("tally: emptied by somebody else") == 1


def test_without_the_look_only_touched_grains_come_back(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control."""
    project.old.execute("UPDATE orders SET customer = id")
    project.run_here()
    deleted(project)
    project.old.execute("UPDATE orders SET customer = 1000 WHERE id % 3 = 0")
    monkeypatch.setattr(carried, "emptied", lambda *_: set[str]())
    monkeypatch.setattr(Identities, "begun", lambda *_: None)
    project.run_here()
    assert project.new.query("SELECT count(*) FROM tally") != [(0,)]
    assert not right(project, "tally")
    assert right(project, "late")


def test_one_that_the_source_has_emptied_stays_so(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """The control: nobody else did it."""
    project.run_here()
    project.old.execute("DELETE FROM orders")
    project.run_here()
    assert project.new.query("SELECT count(*) FROM tally") == [(0,)]
    project.run_here()
    capsys.readouterr()
    project.command("history")
    assert "emptied by somebody else" not in capsys.readouterr().out


@pytest.mark.parametrize("emptied", [truncated, deleted])
def test_one_that_is_emptied_while_we_run_ends_the_run_and_gets_all_rows(
    project: Project, emptied: Callable[[Project], None]
) -> None:
    with pytest.raises(TargetError, match="was replaced while we run: tally"):
        meddled(project, emptied)
    assert project.new.query("SELECT count(*) FROM tally") == [(0,)]
    project.run_here()
    assert right(project)


@pytest.mark.parametrize("emptied", [truncated, deleted])
def test_without_the_look_while_we_run_rows_go_into_an_emptied_one(
    project: Project, monkeypatch: pytest.MonkeyPatch, emptied: Callable[[Project], None]
) -> None:
    """Negative control."""
    project.old.execute("UPDATE orders SET customer = id")
    monkeypatch.setattr(Identities, "among_holding", lambda self, tables: [])
    meddled(project, emptied)
    assert project.new.query("SELECT count(*) FROM tally") != [(0,)]
    assert not right(project, "tally")


@pytest.mark.parametrize("emptied", [truncated, deleted])
def test_one_that_is_emptied_before_a_runs_first_batch_is_named_and_derived_anew_by_the_next_start(
    project: Project, emptied: Callable[[Project], None]
) -> None:
    project.run_here()
    project.old.execute(CHANGE)
    with pytest.raises(TargetError, match="was replaced while we run: tally"):
        behind_the_start(project, lambda: emptied(project))
    assert project.new.query("SELECT count(*) FROM tally") == [(0,)]
    project.run_here()
    assert right(project)


def dumped_and_deleted(project: Project) -> None:
    """A run that is killed before its first batch is committed, once the source has deleted all rows again, and the
    event log has that: the next run applies both as one batch."""

    def step(name: str) -> None:
        if name == "apply.mapped":
            await_true(has_dumped, "all rows to be dumped")
            project.old.execute("DELETE FROM orders")
            goal = parts.catalog.position()
            await_true(lambda: has_captured(goal), "the deletion to be captured")
            raise Killed

    def has_dumped() -> bool:
        now = migration.progress.snapshot()
        return bool(now.dumps) and not now.dumping()

    def has_captured(goal: Position) -> bool:
        captured = migration.progress.snapshot().captured
        return captured is not None and captured >= goal

    parts = replace(wiring.parts(configuration.load(project.config)), step=step)
    migration = Migration(parts)
    with pytest.raises(Killed):
        migration.run(Stopping(), caught_up(parts.catalog.position))


def test_rows_that_are_dumped_and_deleted_in_one_batch_leave_a_target_rightly_empty(project: Project) -> None:
    dumped_and_deleted(project)
    project.run_here()
    assert project.new.query("SELECT (SELECT count(*) FROM late) + (SELECT count(*) FROM tally)") == [(0,)]
    project.run_here()


@pytest.mark.parametrize("project", ["new_pg"], indirect=True)
def test_a_batch_whose_dump_rows_count_as_left_would_be_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control of the last one."""
    dumped_and_deleted(project)
    monkeypatch.setattr(TargetRows, "leaves_rows", TargetRows.brings_rows)
    project.run_here()
    with pytest.raises(TargetError, match="a target is empty, though"):
        project.run_here()
