"""Commands that keep no place to stop at end when they are told, once or twice, while they wait for somebody else.
They leave no session that waits on, and change nothing behind that."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from migrator.model.cutover.record import Wanted
from scenarios.bench.orders.old_schema import create
from scenarios.faults.process_tree import alive, send
from tests.integration import run_project
from tests.integration.cutover.led import record_of
from tests.integration.cutover.two_way import made
from tests.integration.run_project import Project, scenario_database
from tests.integration.runs.changed.test_late_targets import JOINED, MADE, mapped
from tests.integration.runs.test_stopping import Started, awaited, sparks, started, waits
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

ON_SPARK = {
    "verify": ["verify", "--wait", "60"],
    "repair": ["repair", "--apply", "--wait", "60"],
    "check": ["check"],
}
Tell = Callable[[Started], None]


@pytest.fixture
def project(tmp_path: Path, old_pg: Database, new_pg: Database) -> Project:
    create(scenario_database(old_pg), 60)
    begun = run_project.make(tmp_path / "project", old_pg, new_pg)
    begun.new.execute(MADE["tally"])
    mapped(begun, JOINED)
    begun.run_here()
    return begun


def ctrl_c(command: Started) -> None:
    command.type(b"\x03")


def group(command: Started) -> None:
    """As systemd, docker and Kubernetes do it."""
    send(command.everything(), signal.SIGTERM)


def alone(command: Started) -> None:
    command.process.send_signal(signal.SIGINT)


def interrupted(command: Started, whole: list[int], within_s: float) -> str:
    """Ends it; what it said. Nothing that it started outlives it."""
    awaited(lambda: command.process.poll() is not None, "it goes on", within_s)
    code, said = command.ended()
    assert code == 130, said
    assert "Traceback" not in said
    assert "Fatal" not in said
    awaited(lambda: not any(map(alive, whole)), "something that it started outlives it")
    return said


@pytest.mark.parametrize(("name", "tell"), [("repair", ctrl_c), ("check", group), ("verify", group)])
def test_while_spark_starts(project: Project, name: str, tell: Tell) -> None:
    with started(project, *ON_SPARK[name], terminal=tell is ctrl_c) as command:
        awaited(lambda: any(map(sparks, command.everything())), "Spark's JVM never starts")
        whole = command.everything()
        tell(command)
        assert "interrupted" in interrupted(command, whole, 90)


@pytest.mark.parametrize(("name", "twice"), [("verify", False), ("repair", True)])
def test_while_the_target_keeps_them_waiting(project: Project, name: str, twice: bool) -> None:
    with project.new.connect(autocommit=False) as blocker:
        blocker.execute("LOCK TABLE purchase")
        with started(project, *ON_SPARK[name]) as command:
            awaited(lambda: waits(project.new), "nothing waits for the table")
            whole = command.everything()
            alone(command)
            if twice:
                time.sleep(0.5)  # a signal that follows at once is the same one
                alone(command)
            interrupted(command, whole, 90)
        awaited(lambda: not waits(project.new), "its session waits on in the target")
        blocker.rollback()
    assert project.command("verify", "--wait", "20") == 0


def test_a_remap_that_waits_changes_nothing(project: Project) -> None:
    with project.new.connect(autocommit=False) as blocker:
        blocker.execute("LOCK TABLE migrator_mirror.filled")
        with started(project, "remap", "tally", "--reason", "a try") as command:
            awaited(lambda: waits(project.new), "nothing waits for the record")
            whole = command.everything()
            group(command)
            interrupted(command, whole, 90)
        awaited(lambda: not waits(project.new), "its session waits on in the target")
        blocker.rollback()
    assert project.new.query("SELECT count(*) FROM migrator_mirror.filled") == [(1,)]


def test_a_cut_over_that_is_waited_for_stays_asked_for(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    project = made("pg-pg", request, tmp_path / "project")
    project.run_here()
    assert project.command("cutover", "plan", "--accept") == 0
    with started(project, "cutover", "start", "--wait", "60") as command:
        awaited(lambda: record_of(project).wanted is Wanted.START, "nothing is asked for")
        whole = command.everything()
        group(command)
        assert "interrupted" in interrupted(command, whole, 60)
    assert record_of(project).wanted is Wanted.START
    assert project.command("cutover", "abort", "--wait", "5") == 0
