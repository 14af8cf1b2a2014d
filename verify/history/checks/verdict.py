"""The way from counts to a three-valued verdict, the same for all checkers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from verify.history.result import CheckResult, Outcome, WitnessCase


@dataclass(frozen=True, slots=True)
class Check:
    """The condition that a checker judges.

    Attributes:
        code: ``D1`` ... ``D8``.
        title: in a few words.
        unit: of its count, e.g. row versions.
    """

    code: str
    title: str
    unit: str

    def verdict(
        self, checked: int, violations: int, witnesses: Sequence[WitnessCase], nothing: str
    ) -> CheckResult:
        """Returns *violated* if there are violations, *unknown* (for the reason ``nothing``) if nothing was checked,
        else *holds*."""
        if violations:
            outcome, reason = Outcome.VIOLATED, ""
        elif not checked:
            outcome, reason = Outcome.UNKNOWN, nothing
        else:
            outcome, reason = Outcome.HOLDS, ""
        return CheckResult(
            self.code, self.title, outcome, checked, self.unit, violations, tuple(witnesses), reason
        )

    def unknown(self, reason: str, checked: int = 0) -> CheckResult:
        """Returns the outcome *unknown*, with its reason."""
        return CheckResult(self.code, self.title, Outcome.UNKNOWN, checked, self.unit, reason=reason)
