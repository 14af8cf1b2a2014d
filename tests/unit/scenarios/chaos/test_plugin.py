"""The fixture ``migration`` is there for users' tests, and passes nothing that wasn't run or doesn't hold."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from migrator.errors import ConfigError
from scenarios.chaos.incident.failure import Failure, Judgement, Wrong
from scenarios.chaos.incident.replay import Replayed
from scenarios.chaos.project_test import ProjectTest
from scenarios.play.run_result import RunResult
from scenarios.scenario import Scenario, WorkloadSpec
from verify.history.checks import atomic_cut
from verify.history.result import CheckResult, Outcome, WitnessCase

SETTINGS = """
[migration]
name = "m"
[source]
kind = "postgresql"
database = "old"
user = "m"
[target]
kind = "postgresql"
database = "new"
user = "m"
"""


def project(folder: Path) -> ProjectTest:
    (folder / "migration.toml").write_text(SETTINGS)
    (folder / "schema.sql").write_text("CREATE TABLE t (id int PRIMARY KEY)")
    return ProjectTest(folder / "migration.toml", folder, folder / "out", lambda _: None)


def result(outcome: Outcome, checks: tuple[CheckResult, ...] = (), reason: str = "") -> RunResult:
    scenario = Scenario("no_fault", "nothing breaks", WorkloadSpec("project"))
    return RunResult(
        scenario, "postgresql", 1, "resumes", "", checks, outcome, Path("bundle"), 1.0, reason=reason
    )


def test_what_was_not_run_does_not_hold(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="nothing was run"):
        project(tmp_path).assert_holds()


def test_only_a_replay_that_compared_rows_and_found_none_wrong_is_mended(tmp_path: Path) -> None:
    test = project(tmp_path)
    with pytest.raises(AssertionError, match="nothing was replayed"):
        test.assert_mended()
    wrong = Wrong("person", "missing", (), {"id": "3"})
    for found, said in (
        (Failure(), "not reproduced"),
        (Failure((wrong,), 1, checked=5), "person, id 3: missing"),
        (Failure(halted="the target refuses a row"), "refuses a row"),
    ):
        test.replayed = Replayed(Judgement.NOT_REPRODUCED, "", found)
        with pytest.raises(AssertionError, match=said):
            test.assert_mended()
    test.replayed = Replayed(Judgement.NOT_REPRODUCED, "", Failure(checked=5))
    test.assert_mended()


def test_only_what_holds_passes_and_the_witness_is_told(tmp_path: Path) -> None:
    test = project(tmp_path)
    test.result = result(Outcome.HOLDS)
    test.assert_holds()
    test.result = result(Outcome.UNKNOWN, reason="nothing was compared")
    with pytest.raises(AssertionError, match="unknown: nothing was compared"):
        test.assert_holds()
    broken = atomic_cut.CHECK.verdict(5, 1, [WitnessCase("person, id 3: missing", (), ())], "")
    test.result = result(Outcome.VIOLATED, (broken,), "violated: D6")
    with pytest.raises(AssertionError, match="person, id 3: missing"):
        test.assert_holds()


def test_mistakes_cost_no_server(tmp_path: Path) -> None:
    test = project(tmp_path)
    with pytest.raises(ConfigError, match="nothing is loaded"):
        test.run()
    test.load("schema.sql")
    with pytest.raises(ConfigError, match="there is no hazard"):
        test.run(under=["no_such_hazard"])
    with pytest.raises(ConfigError, match="the rows can't be read"):
        test.load("schema.sql", rows="gone.parquet")


def test_pytest_gives_the_fixture_to_a_test_of_a_user(tmp_path: Path) -> None:
    (tmp_path / "migration.toml").write_text(SETTINGS)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(
        "def test_it(migration):\n    migration.assert_holds()\n\ndef test_other():\n    assert True\n"
    )
    words = ["-m", "pytest", "-p", "scenarios.chaos.plugin", "-p", "no:cacheprovider", "-q", "tests"]
    # Where the package is installed, the plugin is loaded by its entry point as well.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "nothing was run: call migration.run() first" in done.stdout
