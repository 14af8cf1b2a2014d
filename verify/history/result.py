"""The result of a checker: three-valued, counted, and with the smallest witness it can give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    """Three-valued: a checker that checked nothing says *unknown*, never *holds*."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Moment:
    """One event of a witness's timeline.

    Attributes:
        track: where it happened: ``client``, ``log``, ``chunk``, ``target``, ``observer`` or ``fault``.
        place: ordinal there (log position, commit number, delivery number).
        text: the event in a few words.
        guilty: whether it is one of the events that contradict each other.
    """

    track: str
    place: int
    text: str
    guilty: bool = False


@dataclass(frozen=True, slots=True)
class WitnessCase:
    """One violation, as small as it can be told.

    Attributes:
        headline: e.g. "key 17: version 9 at commit 120 after version 11 at commit 118".
        because: the steps that led there, in order.
        timeline: the events of that key around it.
    """

    headline: str
    because: tuple[str, ...]
    timeline: tuple[Moment, ...]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One checker's verdict.

    Attributes:
        code: ``D1`` ... ``D8``.
        title: e.g. "no time travel".
        outcome: see ``Outcome``.
        checked: the number of comparisons.
        unit: of that number, e.g. "row versions".
        violations: how many contradict the definition.
        witnesses: the first few.
        reason: why the outcome is unknown, or empty.
    """

    code: str
    title: str
    outcome: Outcome
    checked: int
    unit: str
    violations: int = 0
    witnesses: tuple[WitnessCase, ...] = ()
    reason: str = ""


def overall(results: Sequence[CheckResult]) -> Outcome:
    """Returns *violated* if any result is, else *unknown* if any is or there is no result, else *holds*."""
    outcomes = {result.outcome for result in results}
    if Outcome.VIOLATED in outcomes:
        return Outcome.VIOLATED
    if Outcome.UNKNOWN in outcomes or not outcomes:
        return Outcome.UNKNOWN
    return Outcome.HOLDS
