"""One verdict for many runs, and the order in which a report shows them: violations come first.

A broken variant (``mutant``) is a negative control: it is right if a checker caught it. A control that survived
makes the whole report *violated*, since the passes beside it prove nothing; one that could not be judged makes it
*unknown*.
"""

from __future__ import annotations

from collections.abc import Sequence

from scenarios.play.run_result import RunResult, judgement
from scenarios.report.facts import Fact
from scenarios.report.tables import Tables
from verify.history.result import Outcome

ORDER = (Outcome.VIOLATED, Outcome.UNKNOWN, Outcome.HOLDS)
EXIT_CODES = {Outcome.HOLDS: 0, Outcome.VIOLATED: 1, Outcome.UNKNOWN: 3}
CONTROL_SAID = {Outcome.HOLDS: "caught", Outcome.VIOLATED: "SURVIVED", Outcome.UNKNOWN: "unknown"}


def is_control(run: RunResult) -> bool:
    """Returns whether the run was one of a broken variant."""
    return bool(run.mutant)


def control(run: RunResult) -> Outcome:
    """Judges a broken variant by its run: holds if any checker caught it, violated if it survived, or unknown.

    An ending that no checker looked into is no catch.
    """
    return judgement(run, [check.code for check in run.checks])


def verdict(results: Sequence[RunResult], tables: Tables | None = None) -> Outcome:
    """Sums up all runs, controls and tables in one outcome; without any of them it is unknown."""
    found = {run.outcome for run in results if not is_control(run)}
    found |= {control(run) for run in results if is_control(run)}
    found |= tables.outcomes() if tables else set()
    return next((outcome for outcome in ORDER if outcome in found), Outcome.UNKNOWN)


def in_order(facts: Sequence[Fact]) -> list[Fact]:
    """The runs without controls: violated ones first, then unknown ones, each group ordered by name."""
    proper = [fact for fact in facts if not is_control(fact.run)]
    return sorted(proper, key=lambda fact: (ORDER.index(fact.run.outcome), fact.name, fact.run.seed))


def controls(facts: Sequence[Fact]) -> list[Fact]:
    """The broken variants: survivors first, then unknown ones."""
    found = [fact for fact in facts if is_control(fact.run)]
    return sorted(found, key=lambda fact: (ORDER.index(control(fact.run)), fact.name))
