"""The verifier beside a run, on its own: turns, rate, coverage, and what its failures do (nothing)."""

from __future__ import annotations

import json
import stat
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from migrator.cli.run.verifier import Verifier, coverage_lines
from migrator.errors import ConnectionFailed, VerifyError
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from tests.integration.waiting import await_true
from tests.unit.verify.test_verify_parts import RESULT
from verify.tables.compare.compare import Counts
from verify.tables.continuous import ERROR_REST_S, LEAST_REST_S, Rotation
from verify.tables.coverage import (
    COVERAGE_FILE,
    Coverage,
    TableCoverage,
    read_coverage,
    write_coverage,
)
from verify.tables.report import write_reports
from verify.tables.result import VerifyResult
from verify.verdict import Verdict

EQUAL = Counts(compared=90, equal=90, set_aside=10)
ROGUE = Counts(compared=100, equal=98, different=1, extra=1)


def verified(name: str, counts: Counts, verdict: Verdict, rows: int = 100) -> VerifyResult:
    table = replace(
        RESULT.tables[0],
        target=name,
        counts=counts,
        verdict=verdict,
        mapped_rows=rows,
        target_rows=rows,
        uncompared_columns=("own",),
        reason="",
    )
    return replace(RESULT, tables=(table,), verdict=verdict, differing_file="verify-keys.jsonl")


class Judge:
    """Answers as told, and writes its report as the real one does."""

    def __init__(self, answers: Callable[[str], VerifyResult]):
        self.answers = answers
        self.asked: list[str] = []

    def __call__(self, table: str, folder: Path) -> VerifyResult:
        self.asked.append(table)
        result = self.answers(table)
        folder.mkdir(parents=True, exist_ok=True)
        write_reports(result, folder)
        columns = [["id", "int", "int4"], ["name", "text", "text"]]
        head = {"table": table, "key": ["id"], "columns": columns, "differ": 0, "listed": 0, "verdict": ""}
        lines = {"format": 1, "migration": "m", "tables": [head]}
        (folder / "verify-keys.jsonl").write_text(json.dumps(lines) + "\n")
        return result


def rotation(
    judge: Judge, directory: Path, turns: int = 1, rate: float = 1e9
) -> tuple[Rotation, list[float]]:
    rests: list[float] = []

    def wait(seconds: float) -> bool:
        rests.append(seconds)
        return len(rests) >= turns

    return Rotation(("a", "b"), judge, directory, rate, wait), rests


def test_tables_take_turns_at_the_given_rate(tmp_path: Path) -> None:
    judge = Judge(lambda name: verified(name, EQUAL, Verdict.EQUAL, rows=50_000))
    made, rests = rotation(judge, tmp_path, turns=3, rate=1000)
    made.run()
    assert judge.asked == ["a", "b", "a"]
    assert all(90 < rest <= 100 for rest in rests), "100,000 rows of both sides at 1,000 a second"
    made, rests = rotation(Judge(lambda name: verified(name, EQUAL, Verdict.EQUAL)), tmp_path)
    made.run()
    assert rests == [LEAST_REST_S]


def test_coverage_counts_keys_and_columns_by_what_was_verified_when(tmp_path: Path) -> None:
    made, _ = rotation(Judge(lambda name: verified(name, EQUAL, Verdict.UNKNOWN)), tmp_path)
    made.run()
    found = read_coverage(tmp_path)
    assert found is not None
    assert stat.S_IMODE((tmp_path / COVERAGE_FILE).stat().st_mode) == 0o600
    assert found.of("a").key_share() == 0.9
    assert found.of("a").column_share() == pytest.approx(2 / 3)
    assert (found.of("b").at_us, found.of("b").key_share()) == (0, 0.0)
    lines = coverage_lines(found, lambda _: "now")
    assert lines == ["a: unknown, 90.0% of 100 keys, 2 of 3 columns, now", "b: not verified yet"]


def test_a_rogue_write_is_counted_and_its_report_kept_until_the_table_is_equal(tmp_path: Path) -> None:
    answers = {"a": verified("a", ROGUE, Verdict.DIFFERENT), "b": verified("b", EQUAL, Verdict.EQUAL)}
    made, _ = rotation(Judge(lambda name: answers[name]), tmp_path, turns=2)
    made.run()
    found = read_coverage(tmp_path)
    assert found is not None
    assert found.of("a").differing == 2
    kept = Path(found.of("a").report)
    assert (kept / "verify.html").is_file()
    answers["a"] = verified("a", EQUAL, Verdict.EQUAL)
    made.once("a")
    assert not kept.exists()
    again = read_coverage(tmp_path)
    assert again is not None
    assert (again.of("a").differing, again.of("a").report) == (0, "")


def test_an_error_is_told_and_the_next_table_has_its_turn(tmp_path: Path) -> None:
    def answer(name: str) -> VerifyResult:
        if name == "a":
            raise ConnectionFailed("no way to the source", where="old")
        return verified(name, EQUAL, Verdict.EQUAL)

    made, rests = rotation(Judge(answer), tmp_path, turns=1)
    made.run()
    assert rests == [ERROR_REST_S]
    found = read_coverage(tmp_path)
    assert found is not None
    assert "a can't be verified: no way to the source" in found.problem
    assert "the verifier doesn't work" in coverage_lines(found, lambda _: "now")[-1]
    made.once("b")
    later = read_coverage(tmp_path)
    assert later is not None
    assert later.problem == ""


def test_a_coverage_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert read_coverage(tmp_path) is None
    for text in ("{", '{"format": 1}', '{"format": 2, "tables": []}'):
        (tmp_path / COVERAGE_FILE).write_text(text)
        with pytest.raises(VerifyError, match="what was verified") as caught:
            read_coverage(tmp_path)
        assert str(tmp_path) in caught.value.where


def beside(tmp_path: Path, program: str) -> tuple[Progress, Stopping, threading.Thread]:
    progress, stopping = Progress(), Stopping()
    arguments = [sys.executable, "-c", program]
    repair = ["migrator", "repair", "--config", "other project.toml"]
    made = Verifier(arguments, tmp_path / "reports", tmp_path / "verify.log", progress, repair, again_s=0.05)
    return progress, stopping, stopping.thread("verifier", lambda: made.run(stopping))


@pytest.mark.parametrize("program", ["raise SystemExit(7)", "import os; os.kill(os.getpid(), 9)"])
def test_a_verifier_that_fails_is_told_of_and_hurts_nobody(tmp_path: Path, program: str) -> None:
    progress, stopping, thread = beside(tmp_path, program)
    await_true(lambda: bool(progress.snapshot().warnings), "the failure is told")
    assert "the verifier doesn't work: its process ended" in progress.snapshot().warnings[0]
    found = read_coverage(tmp_path / "reports")
    assert found is not None
    assert "its process ended with code" in found.problem
    assert not stopping.requested(), "the run goes on"
    stopping.request()
    thread.join(10)
    stopping.raise_failure() if hasattr(stopping, "raise_failure") else None
    assert not thread.is_alive()


def test_what_it_finds_is_a_warning_of_the_run_and_it_ends_with_the_run(tmp_path: Path) -> None:
    rogue = TableCoverage("a", "different", 1, 100, 0, 2, 2, 3, "/reports/continuous/a.different")
    write_coverage(Coverage((rogue,)), tmp_path / "reports")
    progress, stopping, thread = beside(tmp_path, "import time; time.sleep(600)")
    await_true(lambda: bool(progress.snapshot().warnings), "the difference is told")
    (warning,) = progress.snapshot().warnings
    assert "a: 3 keys of the target differ" in warning
    words = "migrator repair --config 'other project.toml' --from /reports/continuous/a.different/verify.json"
    assert f"`{words}`" in warning
    stopping.request()
    thread.join(15)
    assert not thread.is_alive()
