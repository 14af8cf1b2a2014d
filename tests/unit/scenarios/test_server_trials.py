"""Broken variants on real servers: the table of trials, and that only a checker's violation is a kill. No
servers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.errors import ConfigError
from scenarios.commands import scenario as command
from scenarios.mutants.catalog import MUTANTS, mutant
from scenarios.mutants.on_servers import TRIALS, Trial, chosen, heading, lines, overall, tried
from scenarios.play import catalog_files, runner
from scenarios.play.run_result import (
    FAILS,
    HALTS,
    MISSED,
    RESUMES,
    STALLS,
    RunResult,
    codes,
    doubts,
    judgement,
    verdict,
)
from scenarios.report import tables_beside, write
from scenarios.report.verdict import verdict as verdict_of
from scenarios.scenario import Scenario, WorkloadSpec
from scenarios.workloads.registry import workload
from verify.history.result import CheckResult, Outcome

HOLDS, VIOLATED, UNKNOWN = Outcome.HOLDS, Outcome.VIOLATED, Outcome.UNKNOWN
SCENARIO = Scenario("concurrent_writes", "Clients write", WorkloadSpec("registers"))
TRIAL = Trial("reconciliation-off", "concurrent_writes", runs=3)
MUST_CATCH = mutant("reconciliation-off").must_catch
DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "scenarios-reference.md"


def run(
    ending: str = RESUMES,
    missed: int = 0,
    seed: int = 1,
    name: str = "reconciliation-off",
    **outcomes: Outcome,
) -> RunResult:
    """A run with the verdict that the runner gives it; checkers that aren't named hold."""
    found = dict.fromkeys(("D1", "D2", "D6", "D7", "D8"), HOLDS) | outcomes
    checks = () if ending == FAILS else tuple(map(check, found, found.values()))
    counts = {MISSED: missed}
    error = "" if ending == RESUMES else "it said why"
    said = verdict(SCENARIO.expect, ending, error, checks, doubts(SCENARIO.expect, counts))
    return RunResult(
        SCENARIO, "postgresql", seed, ending, error, checks, said.outcome, Path("bundle"), 20.0, name,
        said.reason, counts,
    )  # fmt: skip


def check(code: str, outcome: Outcome) -> CheckResult:
    return CheckResult(code, "a check", outcome, 0 if outcome is UNKNOWN else 7, "things", reason="no things")


def played(*results: RunResult) -> Callable[[Trial, int], RunResult]:
    """Plays these, one after the other; fails if asked for more."""
    left = list(results)
    return lambda trial, seed: replace(left.pop(0), seed=seed)


# -- the table --------------------------------------------------------------------------------------------------


def test_at_least_six_variants_are_tried_and_for_every_change() -> None:
    names = [trial.mutant for trial in TRIALS]
    assert len(set(names)) == len(names)
    assert sum(trial.per_change for trial in TRIALS) >= 6


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.mutant)
def test_a_trial_can_be_played_and_lost(trial: Trial) -> None:
    """The variant exists on servers, its scenario runs today and on that engine, and asks those who must
    catch it."""
    broken, scenario = mutant(trial.mutant), catalog_files.load(catalog_files.path_of(trial.scenario))
    assert broken.on_servers
    assert trial.runs >= 1
    assert trial.engine in scenario.engines
    assert not scenario.waits_for
    assert scenario.expect.ending == RESUMES
    assert scenario.per_change or not trial.per_change  # else its control would not be played
    asked = codes(scenario.expect, [each.table for each in workload(scenario.workload.name).tracked])
    assert set(asked) & set(broken.must_catch)


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.mutant)
def test_the_document_shows_every_trial(trial: Trial) -> None:
    must_catch = " or ".join(mutant(trial.mutant).must_catch)
    assert (
        f"| `{trial.mutant}` | `{trial.scenario}` | {trial.engine} | {must_catch} |" in DOCUMENT.read_text()
    )


def test_trials_are_chosen_by_name() -> None:
    assert chosen((), per_change=False) == TRIALS
    assert chosen((), per_change=True) == tuple(trial for trial in TRIALS if trial.per_change)
    assert [trial.mutant for trial in chosen(("ordering-off",), per_change=False)] == ["ordering-off"]
    with pytest.raises(ConfigError, match="'chunk-last' is not tried on servers"):
        chosen(("chunk-last",), per_change=False)


# -- what a run says --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "found"),
    [
        (run(D6=VIOLATED), HOLDS),
        (run(D1=UNKNOWN, D6=VIOLATED), HOLDS),
        (run(HALTS, D1=VIOLATED), HOLDS),  # caught, and stopped as well
        (run(), VIOLATED),
        (run(D2=VIOLATED), VIOLATED),  # by one who needn't
        (run(HALTS), VIOLATED),  # a crash is no catch
        (run(STALLS), VIOLATED),
        (run(FAILS), UNKNOWN),
        (run(D8=UNKNOWN), UNKNOWN),  # the fault did not fire
        (run(D1=UNKNOWN, D6=UNKNOWN), UNKNOWN),
        (run(HALTS, D1=UNKNOWN, D6=UNKNOWN), UNKNOWN),  # a crash before anything could be compared
        (run(missed=2), UNKNOWN),
        (run(missed=2, D6=VIOLATED), UNKNOWN),  # what is missing may be the recorder's
    ],
)
def test_only_a_violation_seen_by_one_who_must_see_it_is_a_kill(result: RunResult, found: Outcome) -> None:
    assert judgement(result, MUST_CATCH) is found


@pytest.mark.parametrize(
    ("results", "outcome", "runs", "seed"),
    [
        ([run(D6=VIOLATED)], HOLDS, 1, 5),
        ([run(), run(FAILS), run(D1=VIOLATED)], HOLDS, 3, 7),
        ([run(), run(HALTS), run()], VIOLATED, 3, None),
        ([run(), run(FAILS), run()], UNKNOWN, 3, None),
        ([run(FAILS), run(FAILS), run(FAILS)], UNKNOWN, 3, None),
    ],
)
def test_a_trial_ends_with_the_first_kill_or_its_budget(
    results: list[RunResult], outcome: Outcome, runs: int, seed: int | None
) -> None:
    row = tried(TRIAL, 5, played(*results))
    assert (row.outcome, row.runs, row.seed) == (outcome, runs, seed)
    assert row.elapsed_s == 20.0 * runs
    assert bool(row.caught_by) == (outcome is HOLDS)
    assert len(row.why) == runs - (outcome is HOLDS)


def test_who_caught_it_and_what_happened_instead_is_told() -> None:
    row = tried(TRIAL, 1, played(run(HALTS), run(), run(D2=VIOLATED, D6=VIOLATED)))
    assert row.caught_by == ("D2", "D6")
    first, *others = lines(row)
    assert len(first) >= len(heading()) - 2
    assert "killed" in first
    assert "3 of 3" in first
    assert others == [
        "    seed 1: halts; expected ending: resumes; found: halts (it said why)",
        "    seed 2: resumes; every checker holds",
    ]


def test_a_survivor_comes_before_an_unknown_and_nothing_is_unknown() -> None:
    killed = tried(TRIAL, 1, played(run(D6=VIOLATED)))
    survived = tried(TRIAL, 1, played(run(), run(), run()))
    unknown = tried(TRIAL, 1, played(run(FAILS), run(FAILS), run(FAILS)))
    assert overall([killed]) is HOLDS
    assert overall([killed, unknown]) is UNKNOWN
    assert overall([killed, unknown, survived]) is VIOLATED
    assert overall([]) is UNKNOWN


# -- the command and the report ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "code", "said"),
    [
        (run(D6=VIOLATED), 0, "1 of 1 killed"),
        (run(HALTS), 1, "SURVIVED"),
        (run(FAILS), 3, "unknown"),
    ],
)
def test_exit_codes_and_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: RunResult, code: int, said: str
) -> None:
    monkeypatch.setattr(runner, "run", lambda *_: result)
    numbers = tmp_path / "mutants_on_servers.json"
    done = CliRunner().invoke(command, ["mutants", "reconciliation-off", "--json", str(numbers)])
    assert done.exit_code == code, done.output
    assert said in done.output
    assert "reconciliation-off" in json.loads(numbers.read_text())["mutants"][0]["mutant"]
    tables = tables_beside(tmp_path)
    assert verdict_of([run(name="")], tables) is {0: HOLDS, 1: VIOLATED, 3: UNKNOWN}[code]
    text = write([run(name="")], tmp_path / "report", tables)
    assert f"Kill table on servers: {int(code == 0)} of 1 as they should be" in text
    assert "concurrent_writes [postgresql]" in (tmp_path / "report" / "report.html").read_text()
    told = json.loads((tmp_path / "report" / "report.json").read_text())["kill_table_on_servers"]
    assert told["rows"][0]["outcome"] == {0: "holds", 1: "violated", 3: "unknown"}[code]


def test_a_variant_that_nobody_tries_is_named(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["mutants", "chunk-last", "--out", str(tmp_path)])
    assert isinstance(done.exception, ConfigError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [each.name for each in MUTANTS])
def test_a_mutant_breaks_something_that_is_there(name: str) -> None:
    """A patch of what has moved elsewhere would break nothing, or couldn't be undone."""
    broken = mutant(name)
    patches = [*broken.shared, *broken.simulated, *(broken.servers() if broken.servers is not None else ())]
    assert patches
    assert [patch.name for patch in patches if patch.name not in patch.owner.__dict__] == []
