"""Runs the tests that should notice a change, and says whether they did.

Only a failing test notices a change. Nothing is proved (*unknown*) if a changed module can't be imported, or if
tests can't be collected. Tests that never end do notice: they may take several times as long as without a change.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scenarios.mutants.in_code.change import ROOT, CodeMutant, Copy
from verify.history.result import Outcome

BOUND_S = 300.0
_PASSED, _FAILED = 0, 1
_ENDS = {_PASSED: Outcome.VIOLATED, _FAILED: Outcome.HOLDS}


@dataclass(frozen=True, slots=True)
class TestsRun:
    """The result of the tests in one copy.

    Attributes:
        outcome: holds: a test failed; violated: all passed; unknown: there was nothing to fail.
        said: the first failing test, or what happened instead.
        elapsed_s: of the run.
    """

    __test__ = False  # not a test class, whatever its name

    outcome: Outcome
    said: str
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class CodeRow:
    """The result of one mutant. ``outcome`` is as in ``TestsRun``; for an equivalent mutant it is unknown, with its
    reason."""

    mutant: CodeMutant
    run: TestsRun

    def document(self) -> dict[str, Any]:
        """Returns the row for JSON."""
        return {
            **asdict(self.mutant),
            "outcome": self.run.outcome.value,
            "said": self.run.said,
            "elapsed_s": round(self.run.elapsed_s, 1),
        }


def outcome_of(folder: Path, tests: Sequence[str], bound_s: float = BOUND_S) -> TestsRun:
    """Runs tests in a copy of the tree; the first that fails ends the run."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "--no-header",
        "-rfE",
        *tests,
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / ".hypothesis"),
    }
    started = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=bound_s, check=False
        )
    except subprocess.TimeoutExpired:
        return TestsRun(Outcome.HOLDS, f"the tests did not end within {bound_s:.0f} s", bound_s)
    outcome = _ENDS.get(done.returncode, Outcome.UNKNOWN)
    return TestsRun(outcome, _said(done.returncode, done.stdout), time.monotonic() - started)


def _said(code: int, output: str) -> str:
    lines = output.splitlines()
    failed = next((line for line in lines if line.startswith(("FAILED ", "ERROR "))), "")
    if failed:
        return failed.partition(" ")[2].partition(" - ")[0]
    return "every test passed" if code == _PASSED else f"pytest ended with {code}: {' '.join(lines[-2:])}"


def tried(
    mutants: Sequence[CodeMutant],
    scratch: Path,
    workers: int,
    done: Callable[[CodeRow], None],
    run: Callable[[Path, Sequence[str]], TestsRun] = outcome_of,
) -> list[CodeRow]:
    """Tries each mutant in one of ``workers`` copies below ``scratch``; ``done`` is called with each row as
    it comes.

    Equivalent mutants are left out.
    """
    copies: queue.Queue[Copy] = queue.Queue()
    for number in range(workers):
        folder = scratch / str(number)
        folder.mkdir()
        copies.put(Copy(folder))

    def attempt(mutant: CodeMutant) -> CodeRow:
        copy = copies.get()
        try:
            with copy.broken(mutant):
                row = CodeRow(mutant, run(copy.folder, mutant.tests))
        finally:
            copies.put(copy)
        done(row)
        return row

    with ThreadPoolExecutor(workers, thread_name_prefix="mutant") as pool:
        return list(pool.map(attempt, [mutant for mutant in mutants if not mutant.equivalent]))


def unbroken(
    mutants: Sequence[CodeMutant], run: Callable[[Path, Sequence[str]], TestsRun] = outcome_of
) -> TestsRun:
    """Runs every test that the mutants name on the code as it is: where one fails, a kill would prove nothing."""
    tests = dict.fromkeys(test for mutant in mutants if not mutant.equivalent for test in mutant.tests)
    return run(ROOT, list(tests))


def overall(rows: Sequence[CodeRow], most_survivors: float) -> Outcome:
    """Violated where more than ``most_survivors`` (a share) survive; unknown where nothing or not all was
    judged."""
    found = [row.run.outcome for row in rows]
    if not found:
        return Outcome.UNKNOWN
    if found.count(Outcome.VIOLATED) > most_survivors * len(found):
        return Outcome.VIOLATED
    return Outcome.UNKNOWN if Outcome.UNKNOWN in found else Outcome.HOLDS
