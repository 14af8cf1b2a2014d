"""A run without a history, such as a project's, is reported with its faults, its counts and how to run it again."""

from __future__ import annotations

import json
from pathlib import Path

from scenarios.play import bundle
from scenarios.play.run_result import RunResult
from scenarios.report import write
from scenarios.report.facts import recorded
from scenarios.scenario import FaultSpec, Scenario, WorkloadSpec
from verify.history.result import Outcome

AGAIN = "migrator scenario run --project . --old-schema schema.sql --hazard pause"


def run(folder: Path) -> RunResult:
    folder.mkdir()
    fault = {"name": "stop_continue", "point": "apply.mapped:3", "fired": True, "fired_us": 2_000_000,
             "healed_us": None, "detail": "slept"}  # fmt: skip
    (folder / bundle.FAULTS).write_text(json.dumps([fault]))
    scenario = Scenario("pause", "A pause", WorkloadSpec("project"), faults=(FaultSpec("stop_continue"),))
    result = RunResult(
        scenario, "postgresql", 1, "halts", "refused", (), Outcome.VIOLATED, folder, 1.0, reason="it stopped",
        counts={"row changes": 7},
    )  # fmt: skip
    bundle.write_result(result, {"python": "3"}, AGAIN)
    return result


def test_faults_counts_and_command_come_from_the_bundle(tmp_path: Path) -> None:
    result = run(tmp_path / "bundle")
    found = recorded(result.bundle)
    assert [fault.fired_s for fault in found.faults] == [2.0]
    assert found.counts == (("row changes", 7),)
    text = write([result], tmp_path / "report")
    assert f"again: {AGAIN}" in text
    assert "scenario replay" not in text
    page = (tmp_path / "report" / "report.html").read_text()
    assert "Run it again" in page
    assert "slept" in page
    assert json.loads((tmp_path / "report" / "report.json").read_text())["runs"][0]["replay"] == AGAIN


def test_a_folder_without_a_result_says_so(tmp_path: Path) -> None:
    assert recorded(tmp_path).problem == "no history was recorded"
    assert recorded(tmp_path).command == ""
