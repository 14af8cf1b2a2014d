"""Commands on Spark print what they have to say, and no warning of a library's to whoever can do nothing about it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

WARNS = re.compile(
    r"^.*(Warning:|warnings\.warn|\bWARN(ING)?\b|\bERROR\b|log4j|incubator|native-hadoop).*$", re.M
)
"""A warning of Python's, of the JVM, or of what Spark logs with."""
COMMANDS = (
    ("check",),
    ("explain",),
    ("run", "--plain", "--until", "caught-up"),
    ("try", "purchase"),
    ("verify",),
    ("repair",),
    ("sequences",),
)


@pytest.fixture(params=["new_pg", "new_maria"])
def project(request: pytest.FixtureRequest, tmp_path: Path, old_pg: Database) -> Project:
    create(scenario_database(old_pg), 50)
    return run_project.make(tmp_path / "project", old_pg, request.getfixturevalue(request.param))


def warned(output: str) -> list[str]:
    return [found.group() for found in WARNS.finditer(output)]


@pytest.mark.slow
def test_no_command_prints_a_warning_of_a_library(project: Project) -> None:
    """Each as a process of its own: only the first of a process would print what Python says once."""
    said = {}
    for command in COMMANDS:
        arguments = ["-m", "migrator", *command, "--config", str(project.config)]
        done = subprocess.run(
            [sys.executable, "-W", "always::UserWarning", "-W", "always::FutureWarning", *arguments],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        said[command[0]] = warned(done.stdout + done.stderr)
    assert {name: lines for name, lines in said.items() if lines} == {}


def test_a_warning_is_noticed() -> None:
    assert warned("/x/pyspark/context.py:375: UserWarning: Spark is old\n  warnings.warn(") != []
    assert warned("26/01/01 12:00:00 WARN NativeCodeLoader: Unable to load native-hadoop library") != []
    assert warned("2026-01-01T00:00:00Z round 1: reading item; 0 of 1 tables read") == []
