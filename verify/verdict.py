"""The outcome of a comparison: equal, different or unknown."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Verdict(Enum):
    """The three-valued answer. ``exit_code`` is the command's; 2 is an error."""

    EQUAL = "equal"
    DIFFERENT = "different"
    UNKNOWN = "unknown"

    @property
    def exit_code(self) -> int:
        """0 equal, 1 different, 3 unknown."""
        return {"equal": 0, "different": 1, "unknown": 3}[self.value]


def overall_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """Different if any is, else unknown if any is or there is none, else equal."""
    found = set(verdicts)
    for verdict in (Verdict.DIFFERENT, Verdict.UNKNOWN):
        if verdict in found:
            return verdict
    return Verdict.EQUAL if found else Verdict.UNKNOWN
