"""``migrator verify`` at the end of a run, for hazards that leave no trace in a log: it must name the differences."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from migrator.own_modules import python_m
from scenarios.scenario import Verified
from verify.history.result import CheckResult, Outcome, WitnessCase

CODE = "VERIFY"
_TIMEOUT_S = 180.0
_ANSWERS = {0: "equal", 1: "different"}


def verified(
    config: Path,
    report: Path,
    environment: Mapping[str, str],
    expected: Verified,
    timeout_s: float = _TIMEOUT_S,
) -> CheckResult:
    """Runs the command on a project whose pipeline has caught up.

    Args:
        config: the project's ``migration.toml``.
        report: where the command writes ``verify.json``.
        environment: variables over ours.
        expected: the answer that the command must give.
        timeout_s: how long it may take.

    Unknown when the command fails, doesn't end in time, or itself doesn't know.
    """
    report.unlink(missing_ok=True)
    try:
        done = subprocess.run(
            [*python_m("migrator"), "verify", "--config", str(config)],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _result(expected, Outcome.UNKNOWN, reason=f"no answer within {timeout_s:g} s")
    if done.returncode not in _ANSWERS or not report.exists():
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        return _result(
            expected, Outcome.UNKNOWN, reason=f"exit code {done.returncode}; {''.join(said) or 'no word'}"
        )
    return judged(expected, json.loads(report.read_text()))


def judged(expected: Verified, document: Mapping[str, Any]) -> CheckResult:
    """The verdict on the command's report: its answer must be the expected one, over at least one row."""
    tables = document["tables"]
    rows = sum(table["mapped_rows"] + table["target_rows"] for table in tables)
    if document["verdict"] == expected:
        outcome = Outcome.HOLDS if rows else Outcome.UNKNOWN
        return _result(expected, outcome, rows, reason="" if rows else "no row was compared")
    named = tuple(_case(table["target"], sample) for table in tables for sample in table["samples"])
    unseen = WitnessCase(f"the verifier says {document['verdict']}, expected: {expected}", (), ())
    return _result(expected, Outcome.VIOLATED, rows, (named or (unseen,))[:3])


def _case(table: str, sample: Mapping[str, Any]) -> WitnessCase:
    key = ", ".join(f"{name} {value}" for name, value in sample["key"])
    cells = [
        f"{cell['column']}: {cell['target']}, the mapping says {cell['mapped']}"
        for cell in sample["cells"]
        if cell["differs"]
    ]
    return WitnessCase(f"{table}, {key}: {sample['status']}", tuple(cells), ())


def _result(
    expected: str,
    outcome: Outcome,
    checked: int = 0,
    witnesses: Sequence[WitnessCase] = (),
    reason: str = "",
) -> CheckResult:
    title = f"the verifier says {expected}"
    violations = int(outcome is Outcome.VIOLATED)
    return CheckResult(CODE, title, outcome, checked, "rows", violations, tuple(witnesses), reason)
