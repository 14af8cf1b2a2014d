"""The frame of a run: its verdict, its bundle, and what is kept to see why, whatever is played."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from migrator.errors import MigratorError
from scenarios.play.bundle import RESULT, SEGMENTS
from scenarios.play.played import Findings, Run, after_failure, played
from scenarios.play.run_result import FAILS, RESUMES, RunResult
from tests.made_runs import HOLDS, UNKNOWN, VIOLATED, checks, scenario


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "bundle").mkdir()
    return Run(scenario("quiet"), "postgresql", 7, tmp_path / "bundle", "play it again")


def scratch(folder: Path) -> Path:
    """A folder of servers and project, as a stage leaves it."""
    for name in (SEGMENTS, "old", "project"):
        (folder / "scratch" / name).mkdir(parents=True)
    (folder / "scratch" / SEGMENTS / "1").touch()
    (folder / "scratch" / "old" / "postgres.log").write_text("PANIC")
    (folder / "scratch" / "project" / "migration.toml").write_text("[old]")
    return folder / "scratch"


def kept(result: RunResult) -> set[str]:
    return {path.relative_to(result.bundle).as_posix() for path in result.bundle.rglob("*") if path.is_file()}


def test_a_run_that_holds_leaves_its_result_and_no_evidence(run: Run, tmp_path: Path) -> None:
    def play(_: ExitStack, findings: Findings) -> None:
        findings.scratch, findings.versions = scratch(tmp_path), {"source": "18.4"}
        findings.ending, findings.checks, findings.counts = RESUMES, checks(), {"chunks": 3}

    found = played(run, play)
    assert (found.outcome, found.reason, found.seed, found.counts) == (HOLDS, "", 7, {"chunks": 3})
    assert kept(found) == {RESULT}
    written = json.loads((found.bundle / RESULT).read_text())
    assert (written["command"], written["versions"]) == ("play it again", {"source": "18.4"})


def test_what_shows_why_is_kept_before_the_stage_is_taken_down(run: Run, tmp_path: Path) -> None:
    def play(stack: ExitStack, findings: Findings) -> None:
        findings.scratch = scratch(tmp_path)
        stack.callback(findings.scratch.rename, tmp_path / "away")
        findings.ending, findings.checks = RESUMES, checks(D2=VIOLATED)

    found = played(run, play)
    assert found.outcome is VIOLATED
    assert kept(found) == {
        RESULT, f"{SEGMENTS}/1", "old-postgres.log", "project-migration.toml",
    }  # fmt: skip


def test_a_run_that_cannot_be_played_is_unknown_with_the_error(run: Run) -> None:
    def play(_: ExitStack, findings: Findings) -> None:
        findings.ending, findings.checks = RESUMES, checks()
        raise MigratorError("no server")

    found = played(run, play)
    assert (found.ending, found.outcome) == (FAILS, UNKNOWN)
    assert "MigratorError: no server" in found.reason
    assert kept(found) == {RESULT}


def test_a_record_in_doubt_proves_nothing(run: Run) -> None:
    def play(_: ExitStack, findings: Findings) -> None:
        findings.ending, findings.checks = RESUMES, checks()
        findings.doubts = ["2 segments were released before they were recorded"]

    assert (played(run, play).outcome, played(run, play).reason[:10]) == (UNKNOWN, "2 segments")


def test_an_error_that_is_a_defect_is_hidden_nowhere(run: Run) -> None:
    def defect() -> None:
        raise ZeroDivisionError

    def named() -> None:
        raise MigratorError("it was gone already")

    after_failure(named)
    with pytest.raises(ZeroDivisionError):
        after_failure(defect)
    with pytest.raises(ZeroDivisionError):
        played(run, lambda _, __: defect())
