"""All checkers over one history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from verify.history.checks import (
    atomic_cut,
    convergence,
    exactly_once,
    lost_update,
    monotonic_writes,
    non_vacuity,
    phantom,
    time_travel,
)
from verify.history.checks.verdict import Check
from verify.history.evidence import Evidence
from verify.history.history import History
from verify.history.result import CheckResult

Checker = Callable[[Evidence], CheckResult]
CHECKERS: Mapping[str, tuple[Check, Checker]] = {
    module.CHECK.code: (module.CHECK, module.check)
    for module in (
        time_travel,
        monotonic_writes,
        lost_update,
        phantom,
        exactly_once,
        atomic_cut,
        convergence,
        non_vacuity,
    )
}
"""The checks by code, each with the function that judges it."""
ALL = tuple(CHECKERS)
"""Codes of all checkers: D1 to D8."""


def judge(history: History, codes: Sequence[str] = ALL) -> tuple[CheckResult, ...]:
    """The verdicts of some checkers, in the order asked for.

    A checker that fails, on a record that contradicts itself or by a fault of its own, says *unknown* with
    the error as its reason, and never that anything holds. Raises ``KeyError`` for a code that does not
    exist.
    """
    evidence = Evidence(history)
    return tuple(_judged(evidence, *CHECKERS[code]) for code in codes)


def _judged(evidence: Evidence, check: Check, checker: Checker) -> CheckResult:
    try:
        return checker(evidence)
    except Exception as error:
        return check.unknown(f"the checker failed: {type(error).__name__}: {error}")
