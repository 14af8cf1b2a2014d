"""What a scenario makes of the verifier's answer. The command itself runs in the scenario rogue_write_at_target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scenarios.play.verified import judged, verified
from verify.history.result import Outcome


def report(verdict: str, rows: int = 40, samples: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    table = {"target": "gauge", "mapped_rows": rows, "target_rows": rows, "samples": samples or []}
    return {"verdict": verdict, "tables": [table]}


ROGUE = {
    "status": "different",
    "key": [["gauge_id", "7"]],
    "cells": [
        {"column": "level", "mapped": "3", "target": "3", "differs": False},
        {"column": "remark", "mapped": None, "target": "rogue", "differs": True},
    ],
}


def test_the_expected_answer_holds() -> None:
    for answer in ("equal", "different"):
        found = judged(answer, report(answer))
        assert (found.code, found.outcome, found.checked) == ("VERIFY", Outcome.HOLDS, 80)


def test_a_difference_that_should_not_be_is_shown() -> None:
    found = judged("equal", report("different", samples=[ROGUE]))
    assert (found.outcome, found.violations) == (Outcome.VIOLATED, 1)
    assert found.witnesses[0].headline == "gauge, gauge_id 7: different"
    assert found.witnesses[0].because == ("remark: rogue, the mapping says None",)


def test_a_verifier_that_sees_nothing_is_violated() -> None:
    found = judged("different", report("equal"))
    assert found.outcome is Outcome.VIOLATED
    assert found.witnesses[0].headline == "the verifier says equal, expected: different"


def test_an_answer_about_no_rows_proves_nothing() -> None:
    found = judged("equal", report("equal", rows=0))
    assert (found.outcome, found.reason) == (Outcome.UNKNOWN, "no row was compared")


def test_a_command_that_fails_says_nothing(tmp_path: Path) -> None:
    found = verified(tmp_path / "migration.toml", tmp_path / "verify.json", {}, "equal")
    assert found.outcome is Outcome.UNKNOWN
    assert found.reason.startswith("exit code 2; ")
