"""A run that ends because it has caught up leaves nothing in the event log that the target lacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.run.apply.loop import ApplyLoop
from migrator.run.caught_up import caught_up
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.run.progress import Snapshot
from migrator.wiring import parts as wiring
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database
from verify.readers.pending import resume_lsn

pytestmark = [pytest.mark.integration, pytest.mark.spark]


@pytest.fixture
def project(tmp_path: Path, old_pg: Database, new_pg: Database) -> Project:
    create(scenario_database(old_pg), 50)
    return run_project.make(tmp_path / "project", old_pg, new_pg)


class Told(Stopping):
    """Keeps the flag of the attempt under way: a run that has caught up stops by that one."""

    given: Stopping

    def attempt(self) -> Stopping:
        self.given = super().attempt()
        return self.given


class LateChange:
    """Has caught up, but one change more is captured before the stop, and is applied no sooner than that."""

    def __init__(self, project: Project, stopping: Told, reached: Callable[[Snapshot], bool]):
        self._project, self._stopping, self._reached = project, stopping, reached
        self._written = False

    def until(self, now: Snapshot) -> bool:
        if not self._written:
            if self._reached(now):
                self._written = True
                self._project.old.execute("UPDATE orders SET state = 'LATE' WHERE id = 7")
            return False
        return now.captured_changes > 0

    def step(self, name: str) -> None:
        if name == "apply.mapped" and self._written:
            while not self._stopping.given.wait(1):
                pass


def ended(project: Project) -> Snapshot:
    """A run with such a change; its last counters."""
    stopping = Told()
    parts = wiring.parts(configuration.load(project.config))
    late = LateChange(project, stopping, caught_up(parts.catalog.position))
    migration = Migration(replace(parts, step=late.step))
    migration.run(stopping, late.until)
    return migration.progress.snapshot()


def slot_after_ledger(project: Project) -> bool:
    """Whether the source was told of more than the target holds: verification at rest can't say equal then."""
    ((confirmed,),) = project.old.query(
        "SELECT confirmed_flush_lsn - '0/0'::pg_lsn FROM pg_replication_slots WHERE database = current_database()"
    )
    ((order, token),) = project.new.query("SELECT position_order, position_token FROM migrator.ledger")
    return bool(confirmed > max(order, resume_lsn(token) or 0))


def test_what_was_captured_by_then_is_applied(project: Project, spark: SparkSession) -> None:
    last = ended(project)
    assert last.applied == last.captured
    assert not slot_after_ledger(project)
    assert project.differences() == []


def test_a_run_that_just_ends_leaves_it_behind(
    project: Project, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ApplyLoop, "finish", lambda _: None)
    last = ended(project)
    assert last.applied is not None
    assert last.captured is not None
    assert last.applied < last.captured
    assert project.differences() != []
