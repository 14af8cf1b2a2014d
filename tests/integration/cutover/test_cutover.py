"""Cut-overs of a run that is a process of its own, beside clients that find the open side by themselves."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from migrator.config import project as configuration
from migrator.config.way_back import way_back
from migrator.model.cutover.record import Phase, Record, Side
from migrator.wiring.cutover import book
from migrator.wiring.target import peek
from tests.integration.cutover.clients import Clients
from tests.integration.cutover.two_way import TwoWay, made
from tests.integration.waiting import await_true

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]


def record_of(project: TwoWay) -> Record | None:
    kept = book(configuration.load(project.config))
    try:
        return kept.read()
    finally:
        kept.close()


@contextmanager
def leading(project: TwoWay, crash_at: str = "") -> Iterator[subprocess.Popen[str]]:
    """``migrator run`` as a process, which ends with the block."""
    process = project.process("run", "--plain", crash_at=crash_at)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        print(process.communicate(timeout=90)[0][-3000:])


def ready(project: TwoWay) -> None:
    """Waits until both ways have applied something: Spark starts, and the way back begins."""
    back = way_back(configuration.load(project.config))
    await_true(lambda: (found := peek(back)) is not None and found.checkpoint is not None, "it is warm", 120)


def open_side(project: TwoWay) -> Side:
    """The side that is open while nothing is under way."""
    record = record_of(project)
    assert record is not None
    assert record.phase is Phase.IDLE
    return record.open_side


@pytest.mark.parametrize("engine", ["pg-pg"])
def test_there_and_back_and_there_again_loses_nothing_that_was_acknowledged(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    project = made(engine, request, tmp_path / "project")
    project.run_here()
    assert project.command("cutover", "plan", "--accept") == 0
    with leading(project):
        ready(project)
        assert project.command("cutover", "start", "--wait", "60") == 0
        assert open_side(project) is Side.NEW
        with Clients(project) as clients:
            clients.write_for(2)
            assert project.command("cutover", "back", "--wait", "60") == 0
            assert open_side(project) is Side.OLD
            clients.write_for(2)
        clients.check()
        # What the new side's own application hasn't kept up is right again, by a mirror that followed both sides.
        await_true(lambda: project.differing() == {}, "both sides are equal", 30)
        with Clients(project, first=500_000) as others:
            others.write_for(1)
            assert project.command("cutover", "start", "--wait", "60") == 0
            others.write_for(2)
        others.check()
        await_true(lambda: project.differing("spending") == {}, "both sides are equal", 30)
        assert project.command("cutover", "status") == 0
