"""Tables that other commands left beside the bundles join the report, and may spoil it."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from migrator.errors import VerifyError
from scenarios.report import tables_beside, write
from scenarios.report.verdict import verdict
from tests.made_runs import HOLDS, UNKNOWN, VIOLATED, result
from verify.history.result import Outcome


def test_tables_beside_the_bundles_join_the_report(tmp_path: Path) -> None:
    mutant = {
        "mutant": "fencing-off",
        "broken": "a lower epoch may write",
        "must_catch": ["D1", "D6"],
        "caught_by": {"D1": 3, "D6": 1},
        "halted": 2,
        "first": 4,
        "rate": 0.75,
        "seeds": 4,
        "outcome": "holds",
    }
    (tmp_path / "mutants.json").write_text(json.dumps({"mutants": [mutant]}))
    counts = {"holds": 1990, "violated": 0, "unknown": 10, "checked": 123_456}
    simulated = {"seeds": 2000, "commits": 9, "faults": 7, "failed": None, "checks": {"D1": counts}}
    (tmp_path / "simulation.json").write_text(json.dumps(simulated))
    tables = tables_beside(tmp_path)
    text = write([result(tmp_path)], tmp_path / "report", tables)
    page = (tmp_path / "report" / "report.html").read_text()
    assert text.endswith("HOLDS: 1 holds")
    assert "caught: fencing-off" in page
    assert "75.0% of 4" in page
    assert "None of 2,000 seeds fails: with 95% confidence fewer than 0.15% of such seeds do." in page


@pytest.mark.parametrize(
    ("holds", "violated", "failed", "outcome"),
    [
        (2, 0, None, HOLDS),
        (0, 0, None, UNKNOWN),
        (2, 1, {"seed": 17, "why": "D1"}, VIOLATED),
        (3, 0, {"seed": 17, "why": "the target never came to hold everything"}, VIOLATED),
    ],
)
def test_a_seed_that_fails_in_simulation_spoils_the_report(
    tmp_path: Path, holds: int, violated: int, failed: dict[str, object] | None, outcome: Outcome
) -> None:
    counts = {"holds": holds, "violated": violated, "unknown": 0, "checked": 5}
    simulated = {"seeds": 3, "commits": 9, "faults": 7, "failed": failed, "checks": {"D1": counts}}
    (tmp_path / "simulation.json").write_text(json.dumps(simulated))
    assert verdict([result(tmp_path)], tables_beside(tmp_path)) is outcome


def test_another_tool_does_not_colour_the_verdict(tmp_path: Path) -> None:
    row = {
        **dict.fromkeys(("hazard", "title", "tool", "server", "ended"), ""),
        **dict.fromkeys(("rows_read", "stale_reads", "stale_events", "wrong_keys"), 7),
        "verdict": "violated",
    }
    (tmp_path / "torture").mkdir()
    (tmp_path / "torture" / "torture.json").write_text(json.dumps({"rows": [row]}))
    tables = tables_beside(tmp_path)
    assert verdict([result(tmp_path)], tables) is HOLDS
    _ = write([result(tmp_path)], tmp_path / "report", tables)
    assert ElementTree.parse(tmp_path / "report" / "junit.xml").getroot().get("failures") == "0"


def test_a_file_that_is_no_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "mutants.json").write_text("{}")
    with pytest.raises(VerifyError, match="can't be read"):
        tables_beside(tmp_path)
