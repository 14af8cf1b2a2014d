"""Commands that keep no place to stop at end when they are told, once or twice, while they wait for somebody else.
They leave no session that waits on, and change nothing behind that."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from migrator.adapters.targets.mysql.mirror.names import control_table
from migrator.model.cutover.record import Wanted
from scenarios.bench.orders.old_schema import create
from scenarios.faults.process_tree import alive, send
from tests.integration import run_project
from tests.integration.cutover.led import record_of
from tests.integration.cutover.two_way import made
from tests.integration.run_project import Project, scenario_database
from tests.integration.runs.changed.test_late_targets import JOINED, MADE, mapped
from tests.integration.runs.test_stopping import MARIADB, Started, awaited, locked, sparks, started, waits

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

ON_SPARK = {
    "verify": ["verify", "--wait", "60"],
    "repair": ["repair", "--apply", "--wait", "60"],
    "check": ["check"],
}
POSTGRES = ("old_pg", "new_pg")
Tell = Callable[[Started], None]


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    """Between two databases of PostgreSQL, unless a test names others."""
    old, new = map(request.getfixturevalue, getattr(request, "param", POSTGRES))
    create(scenario_database(old), 60)
    begun = run_project.make(tmp_path / "project", old, new)
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


def twice(tell: Tell) -> Tell:
    """Tells it once more, unless it has ended by then."""

    def told(command: Started) -> None:
        tell(command)
        time.sleep(0.5)  # a signal that follows at once is the same one
        if command.process.poll() is None:
            tell(command)

    return told


def in_terminal(tell: Tell) -> bool:
    return tell in (ctrl_c, CTRL_C_TWICE)


CTRL_C_TWICE = twice(ctrl_c)


def interrupted(command: Started, whole: list[int], within_s: float) -> str:
    """Ends it; what it said. Nothing that it started outlives it."""
    awaited(lambda: command.process.poll() is not None, "it goes on", within_s)
    code, said = command.ended()
    assert code == 130, said
    assert "Traceback" not in said
    assert "Fatal" not in said
    awaited(lambda: not any(map(alive, whole)), "something that it started outlives it")
    return said


@pytest.mark.parametrize(
    ("project", "name", "tell"),
    [
        (POSTGRES, "repair", ctrl_c),
        (POSTGRES, "check", group),
        (POSTGRES, "verify", group),
    ],
    indirect=["project"],
)
def test_while_spark_starts(project: Project, name: str, tell: Tell) -> None:
    with started(project, *ON_SPARK[name], terminal=in_terminal(tell)) as command:
        awaited(lambda: any(map(sparks, command.everything())), "Spark's JVM never starts")
        whole = command.everything()
        tell(command)
        assert "interrupted" in interrupted(command, whole, 90)


@pytest.mark.parametrize(
    ("project", "name", "tell"),
    [
        (POSTGRES, "verify", alone),
        (POSTGRES, "repair", twice(alone)),
    ],
    indirect=["project"],
)
def test_while_the_target_keeps_them_waiting(project: Project, name: str, tell: Tell) -> None:
    with locked(project.new, "purchase"):
        with started(project, *ON_SPARK[name]) as command:
            awaited(lambda: waits(project.new), "nothing waits for the table")
            whole = command.everything()
            tell(command)
            interrupted(command, whole, 90)
        awaited(lambda: not waits(project.new), "its session waits on in the target")
    assert project.command("verify", "--wait", "20") == 0


@pytest.mark.parametrize(
    ("project", "tell"),
    [(POSTGRES, group), (POSTGRES, ctrl_c), (POSTGRES, CTRL_C_TWICE), (MARIADB, group), (MARIADB, ctrl_c)],
    indirect=["project"],
)
def test_a_remap_that_waits_changes_nothing(project: Project, tell: Tell) -> None:
    on_postgres = project.new.kind == "postgresql"
    filled = "migrator_mirror.filled" if on_postgres else control_table(project.new.database, "filled")
    with locked(project.new, filled):
        command = started(project, "remap", "tally", "--reason", "a try", terminal=in_terminal(tell))
        with command as remap:
            awaited(lambda: waits(project.new), "nothing waits for the record")
            whole = remap.everything()
            tell(remap)
            interrupted(remap, whole, 90)
        awaited(lambda: not waits(project.new), "its session waits on in the target")
    assert project.new.query(f"SELECT count(*) FROM {filled}") == [(1,)]


@pytest.mark.parametrize(
    ("engine", "tell"),
    [("pg-pg", group), ("pg-pg", ctrl_c), ("pg-pg", CTRL_C_TWICE), ("maria-maria", group)],
)
def test_a_cut_over_that_is_waited_for_stays_asked_for(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str, tell: Tell
) -> None:
    project = made(engine, request, tmp_path / "project")
    project.run_here()
    assert project.command("cutover", "plan", "--accept") == 0
    with started(project, "cutover", "start", "--wait", "60", terminal=in_terminal(tell)) as command:
        awaited(lambda: record_of(project).wanted is Wanted.START, "nothing is asked for")
        whole = command.everything()
        tell(command)
        assert "interrupted" in interrupted(command, whole, 60) or tell is CTRL_C_TWICE
    assert record_of(project).wanted is Wanted.START
    assert project.command("cutover", "abort", "--wait", "5") == 0
