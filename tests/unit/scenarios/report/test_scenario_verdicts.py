"""From checks and endings to one verdict; pairs of hazards; settings as TOML. No servers."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from migrator.errors import ConfigError, VerifyError
from scenarios.commands import scenario as command
from scenarios.play import bundle, catalog_files, pairs
from scenarios.play.run_result import (
    FAILS,
    HALTS,
    MISSED,
    REFUSED,
    RESTARTS,
    RESUMES,
    SILENT,
    STALLS,
    RunResult,
    doubts,
    verdict,
)
from scenarios.scenario import Expectation, FaultSpec, Scenario, WorkloadSpec
from scenarios.toml_text import merged, toml_text
from verify.history.result import CheckResult, Moment, Outcome, WitnessCase


def checked(*outcomes: Outcome) -> tuple[CheckResult, ...]:
    return tuple(
        CheckResult(f"D{number}", "a check", outcome, 5, "things", reason="no things")
        for number, outcome in enumerate(outcomes, 1)
    )


GOOD = checked(Outcome.HOLDS, Outcome.HOLDS)


@pytest.mark.parametrize(
    ("expect", "ending", "error", "checks", "outcome", "reason"),
    [
        (Expectation(), RESUMES, "", GOOD, Outcome.HOLDS, ""),
        (Expectation(), RESUMES, "", (), Outcome.UNKNOWN, "nothing was checked"),
        (Expectation(), RESUMES, "", checked(Outcome.UNKNOWN), Outcome.UNKNOWN, "D1: no things"),
        (Expectation(), RESUMES, "", checked(Outcome.UNKNOWN, Outcome.VIOLATED), Outcome.VIOLATED, "D2"),
        (Expectation(), STALLS, "it stood still", GOOD, Outcome.VIOLATED, "found: stalls (it stood still)"),
        (Expectation(), HALTS, "gap", GOOD, Outcome.VIOLATED, "expected ending: resumes; found: halts"),
        (Expectation(HALTS, "gap|purged"), HALTS, "the log was purged", GOOD, Outcome.HOLDS, ""),
        (Expectation(HALTS, "gap"), HALTS, "no disk", GOOD, Outcome.VIOLATED, "was to match 'gap'"),
        (Expectation(HALTS, "gap"), RESUMES, "", GOOD, Outcome.VIOLATED, "found: resumes"),
        (Expectation(REFUSED, "wal"), REFUSED, "wal_level", GOOD, Outcome.HOLDS, ""),
        (Expectation(RESTARTS, "full"), RESTARTS, "it was full", GOOD, Outcome.HOLDS, ""),
        (Expectation(RESTARTS, "full"), RESUMES, "", GOOD, Outcome.HOLDS, ""),
        (Expectation(RESTARTS, "full"), RESTARTS, "gap", GOOD, Outcome.VIOLATED, "was to match 'full'"),
        (Expectation(RESTARTS, "full"), HALTS, "full", GOOD, Outcome.VIOLATED, "found: halts"),
        (Expectation(), RESTARTS, "it was full", GOOD, Outcome.VIOLATED, "found: restarts"),
        (Expectation(HALTS, "gap"), FAILS, "no server", (), Outcome.UNKNOWN, "no server"),
    ],
)
def test_the_verdict_of_a_run(
    expect: Expectation,
    ending: str,
    error: str,
    checks: tuple[CheckResult, ...],
    outcome: Outcome,
    reason: str,
) -> None:
    found = verdict(expect, ending, error, checks, [])
    assert found.outcome is outcome
    assert reason in found.reason
    assert bool(found.reason) is (outcome is not Outcome.HOLDS)


def test_a_record_in_doubt_never_holds() -> None:
    found = verdict(Expectation(), RESUMES, "", GOOD, doubts(Expectation(), {MISSED: 2, SILENT: 1}))
    assert found.outcome is Outcome.UNKNOWN
    assert "2 segments were released before they were recorded" in found.reason
    assert doubts(Expectation(), {SILENT: 1}) == []  # D8 says it
    assert doubts(Expectation(checks=("D1",)), {SILENT: 1}) == ["1 planned faults did not fire"]


def one(name: str, **changed: object) -> Scenario:
    made = Scenario(
        name,
        f"Hazard {name}",
        WorkloadSpec("bank", options={"x": 1}),
        (len(name),),
        ("postgresql", "mariadb"),
    )
    return replace(made, faults=(FaultSpec("kill_pipeline", after_changes=5),), **changed)  # type: ignore[arg-type]


def test_pairs_are_of_one_workload_and_come_from_the_seed() -> None:
    able = [one("a"), one("bb", engines=("mariadb",)), one("ccc", settings={"apply": {"interval_s": 1.0}})]
    unable = [
        one("halts", expect=Expectation(HALTS, "x")),
        one("waits", waits_for="schema changes carried through"),
        one("other", workload=WorkloadSpec("registers")),
        replace(one("quiet"), faults=()),
    ]
    every = pairs.pairs([*able, *unable], 100, 1)
    assert {pair.name for pair in every} == {"a_and_bb", "a_and_ccc", "bb_and_ccc"}
    both = next(pair for pair in every if pair.name == "a_and_bb")
    assert (both.engines, both.hazards, len(both.faults)) == (("mariadb",), (1, 2), 2)
    assert pairs.pairs(able, 1, 7) == pairs.pairs(able, 1, 7)
    assert len({pairs.pairs(able, 1, seed)[0].name for seed in range(20)}) == 3


def test_pairs_that_set_the_same_thing_are_none() -> None:
    limits = {"capture": {"chunk_rows": 5}}
    assert pairs.pairs([one("a", settings=limits), one("b", settings=limits)], 5, 1) == []
    assert pairs.pairs([one("a", server={"x": "1"}), one("b", server={"x": "2"})], 5, 1) == []


def test_a_pair_as_a_file_is_read_back_as_it_was(tmp_path: Path) -> None:
    (pair,) = pairs.pairs([one("a"), one("b", settings={"capture": {"chunk_rows": 5}})], 1, 1)
    path = tmp_path / f"{pair.name}.yaml"
    path.write_text(pairs.scenario_yaml(pair))
    assert catalog_files.load(path) == pair


def test_every_pair_of_the_catalog_can_be_written_and_read(tmp_path: Path) -> None:
    found = pairs.pairs(catalog_files.all(), 40, 1)
    assert len(found) == 40
    for pair in found:
        path = tmp_path / f"{pair.name}.yaml"
        path.write_text(pairs.scenario_yaml(pair))
        assert catalog_files.load(path) == pair


def test_settings_are_laid_over_others_and_read_back() -> None:
    below: dict[str, dict[str, Any]] = {
        "capture": {"chunk_rows": 5, "linger_s": 0.5},
        "spark": {"conf": {"a.b": "1"}, "master": "x"},
    }
    above: dict[str, dict[str, Any]] = {
        "capture": {"chunk_rows": 7},
        "spark": {"conf": {"c": 'say "é"\n'}},
        "new": {"list": [1, True]},
    }
    assert tomllib.loads(toml_text(merged(below, above))) == {
        "capture": {"chunk_rows": 7, "linger_s": 0.5},
        "spark": {"conf": {"a.b": "1", "c": 'say "é"\n'}, "master": "x"},
        "new": {"list": [1, True]},
    }
    with pytest.raises(ConfigError, match="can't be written as TOML"):
        toml_text({"a": {"b": None}})


def test_a_result_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    yaml = "title: t\nworkload: {name: bank}\n"
    folder = bundle.create(tmp_path, "some", "mariadb", 4, "no_window", yaml)
    case = WitnessCase("key 1", ("because",), (Moment("log", 3, "put", True),))
    check = CheckResult("D1", "no time travel", Outcome.VIOLATED, 3, "versions", 1, (case,))
    result = RunResult(
        catalog_files.load(folder / "some.yaml"), "mariadb", 4, RESUMES, "", (check,), Outcome.VIOLATED,
        folder, 2.5, "no_window", "violated: D1", {"chunks": 2},
    )  # fmt: skip
    bundle.write_result(result, {"python": "3"}, bundle.command("some", "mariadb", 4, "no_window"))
    assert bundle.read_result(folder) == result
    assert "--mutant no_window" in (folder / bundle.RESULT).read_text()
    [moment] = json.loads((folder / bundle.RESULT).read_text())["checks"][0]["witnesses"][0]["timeline"]
    assert moment == {"lane": "log", "place": 3, "text": "put", "guilty": True}  # names of format 1
    assert bundle.create(tmp_path, "some", "mariadb", 4, "no_window", yaml) == folder
    assert sorted(path.name for path in folder.iterdir()) == ["some.yaml"]  # the run of before is gone
    with pytest.raises(VerifyError, match="no bundle can be read"):
        bundle.read_result(folder)


def test_the_list_names_engines_hazards_and_what_is_waited_for() -> None:
    told = CliRunner().invoke(command, ["list"], standalone_mode=False)
    assert told.exception is None
    lines = told.output.splitlines()
    assert any(line.split()[0] == "concurrent_writes" and "per change" in line for line in lines)
    assert any("waits for: schema changes carried through" in line for line in lines)
    assert "simulate" in CliRunner().invoke(command, ["--help"], standalone_mode=False).output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no scenario was named"),
        (["no_such_thing"], "there is no scenario 'no_such_thing'"),
        (["nowhere.yaml"], "can't be read"),
    ],
)
def test_what_can_not_be_run_is_named(arguments: list[str], said: str) -> None:
    told = CliRunner().invoke(command, ["run", *arguments], standalone_mode=False)
    assert isinstance(told.exception, ConfigError)
    assert said in str(told.exception)


def test_unknown_faults_and_workloads_are_named_before_anything_starts(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("title: t\nworkload: {name: bank}\nfaults: [{do: kill_time}]\n")
    told = CliRunner().invoke(command, ["run", str(path)], standalone_mode=False)
    assert "there is no fault 'kill_time'" in str(told.exception)
    path.write_text("title: t\nworkload: {name: bonk}\n")
    told = CliRunner().invoke(command, ["run", str(path)], standalone_mode=False)
    assert "there is no workload 'bonk'" in str(told.exception)


def test_a_scenario_that_waits_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    waits = "waits_for: schema changes carried through\nuntil_then: column_dropped_in_dump\n"
    path.write_text(f"title: t\nworkload: {{name: bank}}\n{waits}")
    told = CliRunner().invoke(command, ["run", str(path), "--out", str(tmp_path)], standalone_mode=False)
    assert "own waits for: schema changes carried through; until then: column_dropped_in_dump" in told.output
    assert told.return_value == 3
