"""The pytest plugin that the package registers: the fixture ``migration``. Loads the rest only when it is used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from scenarios.chaos.project_test import ProjectTest
    from scenarios.play.run_result import RunResult

_RESULTS: pytest.StashKey[list[RunResult]] = pytest.StashKey()
_OUT = ".scenarios"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the setting ``migration_project``."""
    parser.addini(
        "migration_project",
        "Folder of the migration project of the fixture `migration`, from the root of the tests;"
        " by default the next folder above a test that has a migration.toml.",
        default="",
    )


@pytest.fixture
def migration(request: pytest.FixtureRequest) -> ProjectTest:
    """The project on throw-away servers: ``load``, ``run``, ``assert_holds``; or ``replay``, ``assert_mended``."""
    from scenarios.chaos.project_test import ProjectTest

    folder = _project(request)
    results = request.config.stash.setdefault(_RESULTS, [])
    out = request.config.rootpath / _OUT / request.node.name.replace("/", "_")
    return ProjectTest(folder / "migration.toml", request.path.parent, out, results.append)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Writes one report of all runs, and says where it is."""
    config = terminalreporter.config
    results = config.stash.get(_RESULTS, [])
    if not results:
        return
    from scenarios.report import write

    folder = config.rootpath / _OUT / "report"
    text = write(results, folder)
    terminalreporter.section("migrations under hazards")
    terminalreporter.write_line(text)
    terminalreporter.write_line(f"report: {folder / 'report.html'}")


def _project(request: pytest.FixtureRequest) -> Path:
    named = str(request.config.getini("migration_project"))
    if named:
        return request.config.rootpath / named
    for folder in request.path.parents:
        if (folder / "migration.toml").exists():
            return folder
    return request.path.parent
