"""Broken variants on real servers: the scenario in which each is caught most surely, and the trial in it.

The simulation's kill table says that the checkers see a broken rule in a model of databases. This one says
that they see it in a whole ``migrator run`` between servers, through recorders that share no code with the
pipeline.

Only a checker can kill a variant. One that merely stops, hangs or can't be played was caught by nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from migrator.errors import ConfigError
from scenarios.mutants.catalog import ON_SERVERS, mutant
from scenarios.play.run_result import RunResult, judgement
from scenarios.scenario import Engine
from verify.history.result import Outcome


@dataclass(frozen=True, slots=True)
class Trial:
    """One broken variant, and the scenario in which it is tried.

    Attributes:
        mutant: its name in ``scenarios.mutants.catalog``.
        scenario: of the scenarios' catalogue; without the variant, it must hold under the same seeds.
        runs: the budget, one seed each; the trial ends with the first run that kills.
        engine: of the source.
        per_change: tried for every change; then its scenario is played for every change as well.
    """

    mutant: str
    scenario: str
    runs: int = 3
    engine: Engine = "postgresql"
    per_change: bool = True


TRIALS = (
    Trial("reconciliation-off", "writes_behind_a_snapshot"),
    Trial("visibility-off", "hidden_commit_postgresql"),
    Trial("ordering-off", "concurrent_writes"),
    Trial("netting-first-image", "concurrent_writes"),
    Trial("deletes-dropped", "delete_and_insert_again"),
    Trial("key-move-by-half", "key_moves", per_change=False),
    Trial("position-apart", "kill_after_target_commit"),
    Trial("transaction-split", "bank_transfers", per_change=False),
    Trial("fencing-off", "zombie_with_loaded_rows", per_change=False),
    Trial("split-brain", "zookeeper_split_brain_mariadb", engine="mariadb", per_change=False),
    Trial("fence-by-asking", "forgotten_job_on_either_side", per_change=False),
    Trial("not-drained", "switch_asked_while_the_way_there_lags", per_change=False),
    Trial("undo-skipped", "hook_fails_in_the_switch", per_change=False),
    Trial("return-forgets", "return_that_fails_keeps_its_state", per_change=False),
    Trial("finish-opens-both", "finish_killed_and_taken_again", per_change=False),
    Trial("reads-not-pointed", "reads_pointed_alone_and_back", per_change=False),
    Trial("not-numbered", "numbers_given_by_the_servers", per_change=False),
    Trial("back-begins-late", "leader_sleeps_behind_the_opening", per_change=False),
)
"""The trials in the order of the catalogue of variants. What a constraint of the target would stop before a checker
sees it needs a target without one: in ``key_moves`` nothing is unique that an old row left behind would still
hold."""


@dataclass(frozen=True, slots=True)
class TrialRow:
    """The result of a trial.

    Attributes:
        mutant, broken, must_catch: of the catalogue of variants; one of the checkers has to catch it.
        scenario, engine: where it was tried.
        caught_by: every checker that the run which killed it violates.
        seed: of that run; None if none killed it.
        runs: that were needed, or made in vain.
        budget: of runs.
        elapsed_s: of all of them.
        outcome: holds: killed; violated: survived; unknown: not every run of the budget could be judged.
        why: of every run that didn't kill it: what happened instead.
    """

    mutant: str
    broken: str
    must_catch: tuple[str, ...]
    scenario: str
    engine: str
    caught_by: tuple[str, ...]
    seed: int | None
    runs: int
    budget: int
    elapsed_s: float
    outcome: Outcome
    why: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Returns the row for JSON."""
        return {**asdict(self), "outcome": self.outcome.value}


def chosen(names: Sequence[str], per_change: bool) -> tuple[Trial, ...]:
    """The trials of these variants; all if none is named. Raises ``ConfigError`` for one that isn't tried."""
    known = {trial.mutant: trial for trial in TRIALS}
    for name in names:
        if name not in known:
            raise ConfigError(
                f"{name!r} is not tried on servers", where=name, remedy=f"name some of: {', '.join(known)}"
            )
    return tuple(
        trial
        for trial in TRIALS
        if (trial.mutant in names or not names) and (trial.per_change or not per_change)
    )


def tried(trial: Trial, first: int, play: Callable[[Trial, int], RunResult]) -> TrialRow:
    """Plays a variant under one seed after the other until it is killed or its budget is spent.

    Args:
        trial: what to play.
        first: the first seed.
        play: plays it under a seed.
    """
    broken = mutant(trial.mutant)
    why: list[str] = []
    judged: set[Outcome] = set()
    elapsed_s, killer = 0.0, None
    caught: tuple[str, ...] = ()
    for seed in range(first, first + trial.runs):
        result = play(trial, seed)
        elapsed_s += result.elapsed_s
        judged.add(found := judgement(result, broken.must_catch))
        if found is Outcome.HOLDS:
            killer, caught = seed, violated(result)
            break
        why.append(f"seed {seed}: {_instead(result)}")
    outcome = next(
        (outcome for outcome in (Outcome.HOLDS, Outcome.UNKNOWN) if outcome in judged), Outcome.VIOLATED
    )
    return TrialRow(
        trial.mutant, broken.broken, broken.must_catch, trial.scenario, trial.engine, caught, killer,
        len(why) + (killer is not None), trial.runs, round(elapsed_s, 1), outcome, tuple(why),
    )  # fmt: skip


def violated(result: RunResult) -> tuple[str, ...]:
    """Codes of the checkers that a run violates."""
    return tuple(check.code for check in result.checks if check.outcome is Outcome.VIOLATED)


def overall(rows: Sequence[TrialRow]) -> Outcome:
    """Violated if any variant survived, else unknown if any trial is unknown or there was none; else holds."""
    found = {row.outcome for row in rows} or {Outcome.UNKNOWN}
    return next(outcome for outcome in (Outcome.VIOLATED, Outcome.UNKNOWN, Outcome.HOLDS) if outcome in found)


def heading() -> str:
    """The heading above the lines of the table."""
    return (
        f"{'mutant':{_WIDTH}} {'scenario':25} {'engine':10} {'must catch':10} {'verdict':8}"
        f" {'caught by':17} {'runs':>6} {'s':>6}"
    )


def lines(row: TrialRow) -> list[str]:
    """A row for a terminal, and under it what happened in runs that did not kill."""
    runs = f"{row.runs} of {row.budget}"
    first = (
        f"{row.mutant:{_WIDTH}} {row.scenario:25} {row.engine:10} {' '.join(row.must_catch):10}"
        f" {SAID[row.outcome]:8} {' '.join(row.caught_by) or 'nobody':17} {runs:>6} {row.elapsed_s:>6.1f}"
    )
    return [first, *(f"    {reason}" for reason in row.why)]


SAID = {Outcome.HOLDS: "killed", Outcome.VIOLATED: "SURVIVED", Outcome.UNKNOWN: "unknown"}
_WIDTH = max(len(variant.name) for variant in ON_SERVERS)


def _instead(result: RunResult) -> str:
    others = violated(result)
    said = result.reason or (f"violated: {', '.join(others)}" if others else "every checker holds")
    return f"{result.ending}; {said}"
