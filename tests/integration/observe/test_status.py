"""`migrator status` tells the truth: beside a run, behind a stopped one, and when the source can't be asked."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.waiting import await_true
from tests.servers import Database
from tests.unit.test_report_schemas import validator

pytestmark = [pytest.mark.integration, pytest.mark.spark]

BEHIND = 199
PATIENCE_S = 120.0


@pytest.fixture(params=["pg", "maria"])
def project(request: pytest.FixtureRequest, tmp_path: Path, new_pg: Database) -> Project:
    """A project that nobody has run, of 300 orders."""
    old: Database = request.getfixturevalue(f"old_{request.param}")
    create(scenario_database(old), 300)
    return run_project.make(tmp_path / "project", old, new_pg)


@contextmanager
def running(project: Project) -> Iterator[subprocess.Popen[str]]:
    process = project.process("run", "--plain")
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0, output
    finally:
        process.kill()
        process.communicate()


class Looks:
    """The command with ``--json``, and what it printed."""

    def __init__(self, project: Project, capfd: pytest.CaptureFixture[str]):
        self._project, self._capfd = project, capfd

    def look(self, *arguments: str) -> dict[str, Any]:
        self._capfd.readouterr()
        code = self._project.command("status", "--json", *arguments)
        found: dict[str, Any] = json.loads(self._capfd.readouterr().out)
        assert found["exit_code"] == code
        assert list(validator("status").iter_errors(found)) == []
        return found

    def caught_up(self, process: subprocess.Popen[str] | None = None) -> bool:
        assert process is None or process.poll() is None, process.communicate()[0]
        return bool(self.look()["standing"] == "caught up")


def test_the_target_is_caught_up_then_behind_by_what_nobody_applies(
    project: Project, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    looks = Looks(project, capfd)
    found = looks.look()
    assert (found["exit_code"], found["phase"], found["applied"]) == (5, "not begun", None)
    with running(project) as process:
        await_true(lambda: looks.caught_up(process), "it has caught up", PATIENCE_S, every_s=0.5)
        await_true(lambda: looks.look()["phase"] == "streaming", "the leader has told its phase", PATIENCE_S)
        found = looks.look()
        assert (found["standing"], found["complete"]) == ("caught up", True)
        assert found["leader"]
        await_true(lambda: looks.look()["lag"]["behind"] == 0, "nothing is behind", PATIENCE_S)
    stopped = looks.look()
    assert (stopped["standing"], stopped["exit_code"], stopped["phase"]) == ("stopped", 5, "stopped")
    assert stopped["ended"]["error"] == ""
    for _ in range(BEHIND):
        project.old.execute("UPDATE orders SET items = items + 1 WHERE id = 7")
    behind = looks.look()
    assert behind["exit_code"] == 5
    least = BEHIND if behind["lag"]["unit"] == "transactions" else BEHIND * 64
    assert behind["lag"]["behind"] - stopped["lag"]["behind"] >= least
    # A stop may come between a segment that tells of the log's end alone and its being applied.
    left = [look["event_log"]["segments_to_apply"] for look in (stopped, behind)]
    assert left[0] == left[1] < 2, "which is why this number alone says nothing"
    assert behind["lag"]["age_s"] > 0
    capfd.readouterr()
    assert project.command("status") == 5
    assert "stopped: nobody applies what is behind" in capfd.readouterr().out
    later = looks.look()
    assert later["lag"]["age_s"] > behind["lag"]["age_s"], "it rises while nobody leads"


def test_where_the_source_cannot_be_asked_the_lag_is_unknown(
    project: Project, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    looks = Looks(project, capfd)
    with running(project) as process:
        await_true(lambda: looks.caught_up(process), "it has caught up", PATIENCE_S, every_s=0.5)
        await_true(lambda: looks.look()["lag"]["at_most_s"] is not None, "the run has seen it", PATIENCE_S)
        whole = project.config.read_text()
        port = f"port = {project.old.port}"
        assert whole.count(port) >= 1
        project.config.write_text(whole.replace(port, "port = 1", 1))
        try:
            found = looks.look()
        finally:
            project.config.write_text(whole)
        assert (found["standing"], found["exit_code"]) == ("unknown", 3)
        assert (found["source_end"], found["lag"]["behind"], found["lag"]["age_s"]) == (None, None, None)
        assert found["lag"]["unknown"] == found["source_problem"] != ""
        assert found["lag"]["at_most_s"] is not None, "what the run saw a moment ago is known all the same"
        assert looks.caught_up()
