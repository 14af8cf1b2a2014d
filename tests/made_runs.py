"""Results of scenario runs, made up for the tests of their report."""

from __future__ import annotations

from pathlib import Path

from scenarios.play.run_result import RunResult
from scenarios.play.run_result import verdict as judged
from scenarios.scenario import FaultSpec, Scenario, WorkloadSpec
from verify.history.result import CheckResult, Moment, Outcome, WitnessCase

HOLDS, VIOLATED, UNKNOWN = Outcome.HOLDS, Outcome.VIOLATED, Outcome.UNKNOWN

CODES = [f"D{number}" for number in range(1, 9)]


def scenario(name: str, title: str = "The target is killed while it commits") -> Scenario:
    return Scenario(name, title, WorkloadSpec("registers"), hazards=(13,), faults=(FaultSpec("kill_server"),))


def checks(**outcomes: Outcome) -> tuple[CheckResult, ...]:
    return tuple(
        CheckResult(
            code,
            f"title of {code}",
            outcomes.get(code, HOLDS),
            0 if outcomes.get(code) is UNKNOWN else 1203,
            "row versions",
            violations=2 if outcomes.get(code) is VIOLATED else 0,
            witnesses=(witness(),) if outcomes.get(code) is VIOLATED else (),
            reason="nothing was delivered" if outcomes.get(code) is UNKNOWN else "",
        )
        for code in CODES
    )


def witness() -> WitnessCase:
    return WitnessCase(
        "key 17: version 9 at commit 120 after version 11 at commit 118",
        ("client 3 wrote version 11", "the chunk read version 9, because its snapshot is older"),
        (
            Moment("log", 11, "version 11"),
            Moment("chunk", 4, "read version 9", True),
            Moment("target", 120, "9", True),
        ),
    )


def made(
    scenario: Scenario,
    bundle: Path,
    checks: tuple[CheckResult, ...] = (),
    *,
    ending: str = "resumes",
    error: str = "",
    mutant: str = "",
    engine: str = "postgresql",
    doubts: tuple[str, ...] = (),
) -> RunResult:
    """A result with the verdict that the runner gives it."""
    found = judged(scenario.expect, ending, error, checks, list(doubts))
    return RunResult(
        scenario, engine, 7, ending, error, checks, found.outcome, bundle, 17.3, mutant, found.reason
    )


def result(tmp_path: Path, name: str = "target_killed", mutant: str = "", **outcomes: Outcome) -> RunResult:
    return made(scenario(name), tmp_path / "bundles" / name, checks(**outcomes), mutant=mutant)
