"""A leader that is killed at any step of a cut-over, in both directions."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.model.cutover.record import SWITCH, Phase, Side
from tests.integration.cutover.clients import Clients, as_application
from tests.integration.cutover.led import leading, open_side, ready, record_of, settled
from tests.integration.cutover.test_cutover import begun
from tests.integration.cutover.two_way import TwoWay
from tests.integration.waiting import await_true

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.long]

PATIENCE_S = 400
"""Seconds: before a switch begins, Spark starts to compare what has changed; on a busy machine that takes minutes."""
STEPS = ("begun", *(f"{phase}{end}" for phase in SWITCH for end in ("", "_done")))
HOOKED = """
[cutover]
hook = "true"
pause_s = 600.0
max_lag_s = 120.0
"""
UNDONE = """
[cutover]
hook = 'test "$MIGRATOR_SIDE" = old'
"""


def killed(project: TwoWay, step: str, wanted: str) -> None:
    """The leader is killed at a step of what is wanted; the next one brings it to an end."""
    with leading(project, crash_at=f"cutover.{step}") as process:
        ready(project)
        project.command("cutover", wanted, "--wait", "0.1")
        process.wait(PATIENCE_S)
    with leading(project):
        await_true(lambda: settled(project), "the cut-over came to an end", PATIENCE_S)


@pytest.mark.parametrize("engine", ["pg-pg", "maria-pg"])
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_every_step_one_side_is_open_in_the_end(
    step: str, engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """There with a kill, and back with one: the next leader goes on with the step, and nothing is lost."""
    project = begun(engine, request, tmp_path, HOOKED)
    with Clients(project) as clients:
        for wanted, side in (("start", Side.NEW), ("back", Side.OLD)):
            killed(project, step, wanted)
            assert open_side(project) is side, record_of(project).reason
            clients.write_for(0.5)
    with leading(project):
        await_true(lambda: project.differing("spending") == {}, "both sides are equal", PATIENCE_S)
    clients.check()


@pytest.mark.parametrize("step", ["undoing", "undoing_done"])
def test_killed_while_it_undoes_the_old_side_is_open(
    step: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    project = begun("pg-pg", request, tmp_path, UNDONE)
    killed(project, step, "start")
    assert open_side(project) is Side.OLD
    as_application(project.old).execute("UPDATE customer SET name = 'goes on' WHERE customer_id = 1")
    with pytest.raises(Exception, match="handed over: write to"):
        as_application(project.new).execute("UPDATE person SET full_name = 'no' WHERE person_id = 1")


@pytest.mark.parametrize("step", ["finishing", "finishing_done"])
def test_killed_while_it_finishes_the_new_side_stays_open(
    step: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    project = begun("pg-pg", request, tmp_path, HOOKED)
    with leading(project):
        ready(project)
        assert project.command("cutover", "start", "--wait", str(PATIENCE_S)) == 0
    with leading(project, crash_at=f"cutover.{step}") as process:
        project.command("cutover", "finish", "--wait", "0.1")
        process.wait(PATIENCE_S)
    with leading(project):
        await_true(lambda: record_of(project).phase is Phase.FINISHED, "it is finished", PATIENCE_S)
    as_application(project.new).execute("UPDATE person SET full_name = 'yes' WHERE person_id = 1")
    with pytest.raises(Exception, match="handed over: write to"):
        as_application(project.old).execute("UPDATE customer SET name = 'no' WHERE customer_id = 1")
