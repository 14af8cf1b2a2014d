"""Machines without coordination whose source is a PostgreSQL: where the slot stood when a kill came decides.

A slot follows the event log. A machine with another event log needs all that lies behind the target's ledger: it
goes on where the slot hadn't got beyond that, and is refused by name where it had. Kills are placed by what both
servers say of themselves. ``test_which_log_killed.py`` has the same with a MariaDB, whose log nobody moves.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.adapters.sources.postgres.lsn import parse_lsn
from migrator.errors import GapError
from scenarios.faults.points import PointServer
from tests.integration.run_project import Project
from tests.integration.runs.which_log import machines
from tests.integration.waiting import await_true
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

BEYOND = "the source log doesn't hold the position that is needed"
ELSEWHERE = "no event log which leads on was moved away or is on another machine"


@pytest.fixture
def one(tmp_path: Path, old_pg: Database, new_pg: Database, spark: SparkSession) -> Project:
    """Machine 1."""
    return machines.project_of(tmp_path / "one", old_pg, new_pg)


def ledger(project: Project) -> tuple[int, int]:
    """Segment and place in the source's log that the target has come to; zeros while there is none."""
    if project.new.query("SELECT to_regclass('migrator.ledger')") == [(None,)]:
        return 0, 0
    rows = project.new.query("SELECT segment, position_token FROM migrator.ledger WHERE migration = 'orders'")
    segment, token = rows[0] if rows else (0, None)
    return int(str(segment)), parse_lsn(str(token).partition("@")[0]) if token else 0


def slot(project: Project) -> int:
    """The place that the slot goes back to."""
    ((place,),) = project.old.query(
        "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = 'migrator_orders'"
    )
    return parse_lsn(str(place))


def killed(project: Project, held: str, count: int, meanwhile: Callable[[PointServer], None]) -> None:
    """A run that SIGKILL ends behind ``meanwhile``, while a thread is held at its count-th time at a point."""
    running: list[subprocess.Popen[str]] = []

    def kill() -> None:
        try:
            meanwhile(points)
        finally:
            os.kill(running[0].pid, signal.SIGKILL)
            running[0].wait(timeout=60)

    with PointServer(project.config.parent / "points", ["log.acknowledged"]) as points:
        points.on(held, count, kill)
        arguments = ("run", "--plain", "--until", "caught-up")
        running.append(project.process(*arguments, environment=points.environment()))
        output, _ = running[0].communicate(timeout=300)
        points.raise_failure()
        assert not points.pending(), f"{held} was never reached:\n{output}"
    machines.await_seen(project)


def killed_before_the_slot_moved(project: Project) -> None:
    """The target has got more than it had, and the source was told nothing."""
    before, place = ledger(project)[0], slot(project) if began(project) else 0

    def applied(points: PointServer) -> None:
        await_true(lambda: ledger(project)[0] > before, "the target has got more")

    killed(project, "log.acknowledge", 1, applied)
    assert place in (0, slot(project))
    assert slot(project) <= ledger(project)[1]


def began(project: Project) -> bool:
    return bool(project.old.query("SELECT FROM pg_replication_slots WHERE slot_name = 'migrator_orders'"))


def killed_when_the_slot_had_moved(project: Project, batches: int) -> None:
    """The target has got so many batches, and the source was told of changes behind these."""

    def told(points: PointServer) -> None:
        machines.write(project.old, 3, 110)
        place = slot(project)
        await_true(lambda: slot(project) > max(place, ledger(project)[1]), "the slot has moved")

    killed(project, "target.begun", batches + 1, told)
    assert bool(ledger(project)[0]) == bool(batches)


def test_another_machine_goes_on_where_the_slot_goes_back_to_the_ledger(one: Project) -> None:
    killed_before_the_slot_moved(one)  # in a dump; the event log is ahead of the ledger
    machines.write(one.old, 3, 110)
    two = machines.elsewhere(one, "two")
    killed_before_the_slot_moved(two)
    machines.leave_its_log(one)
    machines.write(one.old, 7, 90)
    killed_before_the_slot_moved(one)
    machines.leave_its_log(two)
    machines.write(one.old, 9, 80)
    machines.ends_equal(two)
    machines.leave_its_log(one)
    machines.write(one.old, 11, 70)
    machines.ends_equal(one)


def test_another_machine_is_refused_where_the_slot_is_beyond_the_ledger_and_the_first_one_goes_on(
    one: Project,
) -> None:
    killed_when_the_slot_had_moved(one, 1)
    two = machines.elsewhere(one, "two")
    assert ELSEWHERE in machines.refused(two, GapError, BEYOND).remedy
    machines.write(one.old, 7, 90)
    machines.ends_equal(one)  # its event log leads on
    machines.write(one.old, 9, 80)
    machines.ends_equal(two)  # all of it is in the target, so that the slot isn't beyond it


def test_another_machine_reads_all_rows_where_the_target_has_none_wherever_the_slot_is(one: Project) -> None:
    killed_when_the_slot_had_moved(one, 0)
    machines.write(one.old, 7, 90)
    two = machines.elsewhere(one, "two")
    killed_when_the_slot_had_moved(two, 1)
    machines.write(one.old, 9, 80)
    machines.leave_its_log(one)
    assert ELSEWHERE in machines.refused(one, GapError, BEYOND).remedy
    machines.ends_equal(two)
