"""A second run of a migration that runs: it ends by name, and wakes nobody."""

from __future__ import annotations

import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.waiting import await_true
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

PATIENCE_S = 120.0
PAGE = re.compile(r"the live page is at (http://127\.0\.0\.1:\d+)")
"""The line that tells which port was free."""


def test_a_second_run_takes_another_port_and_its_end_is_no_event_of_the_migration(
    tmp_path: Path, old_pg: Database, new_pg: Database
) -> None:
    create(scenario_database(old_pg), 300)
    project = run_project.make(tmp_path / "project", old_pg, new_pg)
    told = tmp_path / "told"
    setting = f'\n[observe]\nlisten = "127.0.0.1:0"\non_event = "echo $MIGRATOR_EVENT >> {told}"\n'
    project.config.write_text(project.config.read_text() + setting)
    with running(project) as first:
        page = announced(first)
        await_true(lambda: leads(page), "the first one leads", PATIENCE_S, every_s=0.2)
        with running(project) as second:
            said = second.communicate(timeout=PATIENCE_S)[0]
            assert second.returncode == 2
            assert "this migration is already being run" in said
            found = PAGE.search(said)
            assert found is not None
            assert found[1] != page
        assert not told.exists()
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=PATIENCE_S)
    assert told.read_text().split() == ["run.ended"]


@contextmanager
def running(project: Project) -> Iterator[subprocess.Popen[str]]:
    process = project.process("run", "--plain")
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def announced(process: subprocess.Popen[str]) -> str:
    """The page's address, as the run's first lines have it."""
    assert process.stdout is not None
    for line in process.stdout:
        if found := PAGE.search(line):
            return found[1]
    raise AssertionError("the run ended without saying where its page is")


def leads(page: str) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"{page}/healthz", timeout=10) as answer:
        return b"streaming" in answer.read()
    return False
