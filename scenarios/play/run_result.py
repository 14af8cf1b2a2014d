"""The result of one run of a scenario, and its three-valued verdict."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from scenarios.scenario import Expectation, Scenario
from verify.history.history import TrackedTable
from verify.history.result import CheckResult, Outcome, overall

RESUMES: Final = "resumes"
RESTARTS: Final = "restarts"
HALTS: Final = "halts"
REFUSED: Final = "refused"
STALLS: Final = "stalls"
FAILS: Final = "fails"
"""Endings of a run. *restarts*: it ended by name, once a fault at most, and went on when started again;
*stalls*: it went on, but the target never caught up; *fails*: the scenario itself could not be played, and
nothing is known of the product."""

_AS_GOOD = {(RESTARTS, RESUMES)}
"""Pairs of an expected ending and a better one that passes too: where a run may end with a named error and be
started again, it may also go on by itself."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """One finished scenario.

    Attributes:
        scenario: what was run.
        engine: of the source.
        seed: of workload and faults.
        ending: see above.
        error: the named error with which the pipeline (or the run itself) ended, or "".
        checks: the checkers' verdicts.
        outcome: of everything together.
        bundle: folder with history and logs.
        elapsed_s: from the first server's start to the verdict.
        mutant: name of the broken variant that was run, or "".
        reason: why the outcome isn't *holds*, or "".
        counts: what was done and seen: changes, chunks, commits, ...
    """

    scenario: Scenario
    engine: str
    seed: int
    ending: str
    error: str
    checks: tuple[CheckResult, ...]
    outcome: Outcome
    bundle: Path
    elapsed_s: float
    mutant: str = ""
    reason: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome with its reason."""

    outcome: Outcome
    reason: str = ""


def codes(expect: Expectation, tables: Sequence[TrackedTable]) -> tuple[str, ...]:
    """The expected checks that a workload with these tables can be judged by: D5 needs a running sum."""
    folds = any(table.fold for table in tables)
    return tuple(code for code in expect.checks if folds or code != "D5")


MISSED, SILENT = "segments missed", "faults silent"
"""Counts that put a record in doubt."""


def doubts(expect: Expectation, counts: Mapping[str, int]) -> list[str]:
    """Tells why the record may prove nothing, unless one of the expected checkers reports that itself."""
    missed, silent = counts.get(MISSED, 0), counts.get(SILENT, 0)
    found = [f"{missed} segments were released before they were recorded"] if missed else []
    if silent and "D8" not in expect.checks:
        found.append(f"{silent} planned faults did not fire")
    return found


def as_expected(expect: Expectation, ending: str) -> bool:
    """Returns whether a run ended as expected, or better."""
    return ending == expect.ending or (expect.ending, ending) in _AS_GOOD


def verdict(
    expect: Expectation, ending: str, error: str, checks: tuple[CheckResult, ...], doubts: Sequence[str]
) -> Verdict:
    """Violated before unknown before holds; an ending other than the expected one is a violation.

    Args:
        expect: the expected ending and checks.
        ending, error: the run's ending, and its named error.
        checks: the checkers' verdicts.
        doubts: the reasons why the record may prove nothing.
    """
    if ending == FAILS:
        return Verdict(Outcome.UNKNOWN, error)
    found = overall(checks)
    if found is Outcome.VIOLATED:
        broken = [f"{check.code} {check.title}" for check in checks if check.outcome is Outcome.VIOLATED]
        return Verdict(found, f"violated: {', '.join(broken)}")
    if not as_expected(expect, ending):
        said = f" ({error})" if error else ""
        return Verdict(Outcome.VIOLATED, f"expected ending: {expect.ending}; found: {ending}{said}")
    if expect.error and ending != RESUMES and not re.search(expect.error, error):
        return Verdict(
            Outcome.VIOLATED, f"the error was to match {expect.error!r}; it is: {error or 'no named error'}"
        )
    unknown = [f"{check.code}: {check.reason}" for check in checks if check.outcome is Outcome.UNKNOWN]
    if doubts or found is Outcome.UNKNOWN:
        return Verdict(Outcome.UNKNOWN, "; ".join([*doubts, *unknown]) or "nothing was checked")
    return Verdict(Outcome.HOLDS)


def judgement(result: RunResult, must_catch: Sequence[str]) -> Outcome:
    """Judges a broken variant by one run: killed (holds), survived (violated), or unknown.

    Args:
        result: the run's result.
        must_catch: codes of checkers; one of them has to catch the variant.

    A run is unknown if it couldn't be played, if its record has holes, or if none of these checkers had anything to
    compare. A stop or a stall without a violation is no kill.
    """
    outcomes = {check.outcome for check in result.checks if check.code in must_catch}
    if result.outcome is Outcome.UNKNOWN or result.counts.get(MISSED, 0) or outcomes <= {Outcome.UNKNOWN}:
        return Outcome.UNKNOWN
    return Outcome.HOLDS if Outcome.VIOLATED in outcomes else Outcome.VIOLATED
