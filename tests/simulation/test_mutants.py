"""Broken variants of the product: each is killed by the checkers that are there for it, within its budget."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.errors import ConfigError
from scenarios.mutants import verifier
from scenarios.mutants.catalog import MUTANTS, Mutant, mutant
from scenarios.mutants.kill import heading, kill_row, line
from scenarios.mutants.simulated import simulate
from scenarios.mutants.verifier import JUDGES, BrokenJudge, good_history, judge_rows, wrong_on
from verify.history.history import History
from verify.history.judge import judge
from verify.history.result import Outcome


@pytest.mark.parametrize("broken", MUTANTS, ids=lambda broken: broken.name)
def test_mutant_is_killed_within_its_budget(broken: Mutant) -> None:
    row = kill_row(broken)
    assert row.outcome is Outcome.HOLDS, f"{heading()}\n{line(row)}"
    assert row.first is not None
    assert row.first <= broken.seeds


def test_there_are_enough_of_them() -> None:
    names = [each.name for each in MUTANTS]
    assert len(names) == len(set(names)) >= 12
    assert sum(each.on_servers for each in MUTANTS) >= 6
    assert {code for each in MUTANTS for code in each.must_catch} == {"D1", "D2", "D3", "D4", "D5", "D6"}


def test_a_mutant_that_breaks_nothing_survives() -> None:
    harmless = Mutant("harmless", "nothing", ("D1",), 5)
    row = kill_row(harmless)
    assert (row.outcome, row.seeds, row.killed, row.first) == (Outcome.VIOLATED, 5, 0, None)
    assert "SURVIVED" in line(row)


def test_a_mutant_caught_by_others_only_survives() -> None:
    by_others = replace(mutant("deletes-dropped"), must_catch=("D1",), seeds=5)
    row = kill_row(by_others)
    assert row.outcome is Outcome.VIOLATED
    assert row.caught_by["D4"] > 0


def test_the_budget_counts() -> None:
    row = kill_row(replace(mutant("read-under-way-forgotten"), seeds=3), least=10)
    assert (row.outcome, row.seeds) == (Outcome.VIOLATED, 10)


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="no mutant") as caught:
        mutant("nonsense")
    assert "reconciliation-off" in caught.value.remedy
    with pytest.raises(ConfigError, match="simulation only"):
        mutant("chunk-last").patch()


@pytest.fixture(scope="module")
def good() -> History:
    return good_history()


def test_broken_judges_are_found_out_by_planted_differences(good: History) -> None:
    rows = judge_rows(good)
    assert [row.outcome for row in rows] == [Outcome.HOLDS] * len(JUDGES), "\n".join(map(line, rows))
    assert len(rows) >= 5


@pytest.mark.parametrize("broken", JUDGES, ids=lambda broken: broken.name)
def test_a_broken_judge_is_broken_in_one_way(broken: BrokenJudge, good: History) -> None:
    """It is wrong on what it is said to be and on nothing else; without rows it never says that anything holds."""
    assert wrong_on(broken, good) == broken.wrong_on
    if broken.name == "judge-compares-nothing":
        assert {result.outcome for result in judge(broken.sees(good))} == {Outcome.UNKNOWN}


def test_a_judge_that_is_not_broken_survives_the_corpus(
    good: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    harmless = BrokenJudge("harmless", "nothing", lambda history: history, ("value",))
    monkeypatch.setattr(verifier, "JUDGES", (harmless,))
    (row,) = judge_rows(good)
    assert (row.outcome, row.caught_by) == (Outcome.VIOLATED, {})


# -- the command
# ----------------------------------------------------------------------------------------------------


def test_command_holds_violated_unknown(tmp_path: Path) -> None:
    run = CliRunner().invoke
    held = run(simulate, ["--seeds", "12", "--json", str(tmp_path / "numbers.json")])
    assert held.exit_code == 0, held.output
    numbers = json.loads((tmp_path / "numbers.json").read_text())
    assert (numbers["outcome"], numbers["seeds"], numbers["checks"]["D6"]["holds"]) == ("holds", 12, 12)
    broken = run(simulate, ["--seeds", "3", "--mutant", "key-move-by-half"])
    assert broken.exit_code == 1
    assert "replay: migrator scenario simulate --first" in broken.output
    idle = next(seed for seed in range(60) if run(simulate, ["--first", str(seed), "--seeds", "1"]).exit_code)
    assert run(simulate, ["--first", str(idle), "--seeds", "1"]).exit_code == 3


def test_every_patch_for_real_servers_finds_what_it_breaks() -> None:
    """What it does to a migration is for the scenarios on servers to show. In a process of its own: it lasts."""
    code = """
from scenarios.mutants.catalog import MUTANTS
for mutant in MUTANTS:
    if mutant.on_servers:
        patches = (*mutant.shared, *mutant.servers())
        assert patches and all(patch.name in patch.owner.__dict__ for patch in patches), mutant.name
        mutant.patch()
        assert all(patch.owner.__dict__[patch.name] is patch.value for patch in patches), mutant.name
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_the_module_is_the_command_with_a_rule_broken() -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "scenarios.mutants", *arguments]
        return subprocess.run(command, check=False, timeout=120, capture_output=True, text=True)

    version = run("position-apart", "--version")
    assert (version.returncode, "migrator" in version.stdout) == (0, True)
    refused = run("nonsense", "run")
    assert (refused.returncode, "there is no mutant" in refused.stderr) == (2, True)
