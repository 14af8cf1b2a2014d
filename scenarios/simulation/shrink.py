"""Makes a failing run small: decisions are dropped for as long as one of its violations stays.

First whole actors (every fault, every client) are dropped, then stretches of decisions, from halves down to single
ones (Zeller, Hildebrandt: Simplifying and Isolating Failure-Inducing Input, 2002), then the choices within decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scenarios.simulation.run import simulate
from scenarios.simulation.setup import Setup
from scenarios.simulation.world import Decision, decisions
from verify.history.judge import judge
from verify.history.result import Outcome

Fails = Callable[[Sequence[Decision]], bool]
LONGEST = 1_500
"""Runs that shrinking may take."""


def shrink(seed: int, setup: Setup, codes: Sequence[str]) -> tuple[Decision, ...]:
    """The fewest decisions found under which one of these checkers (or, without any, a halt) still fails."""

    def fails(taken: Sequence[Decision]) -> bool:
        history = simulate(seed, setup, taken)
        if not codes:
            return bool(history.description.halted) or not history.description.drained
        return any(result.outcome is Outcome.VIOLATED for result in judge(history, codes))

    return smallest(decisions(seed, setup), fails)


def smallest(found: Sequence[Decision], fails: Fails, runs: int = LONGEST) -> tuple[Decision, ...]:
    """Shrinks a failing list. The result fails too, whatever ``runs`` allows."""
    tried = _Tried(tuple(found), fails, runs)
    for actor in sorted({actor for actor, _ in found}):
        tried.keep([decision for decision in tried.best if decision[0] != actor])
    length = len(tried.best) // 2
    while length and tried.left:
        before = len(tried.best)
        at = 0
        while at < len(tried.best):
            if not tried.keep(tried.best[:at] + tried.best[at + length :]):
                at += length
        if length > 1 or len(tried.best) == before:
            length //= 2
    for at, (actor, number) in enumerate(tried.best):
        if number:
            tried.keep((*tried.best[:at], (actor, 0), *tried.best[at + 1 :]))
    return tried.best


class _Tried:
    """The smallest failing list so far."""

    def __init__(self, best: tuple[Decision, ...], fails: Fails, runs: int):
        self.best = best
        self.left = runs
        self._fails = fails

    def keep(self, candidate: Sequence[Decision]) -> bool:
        """Takes a candidate if it fails."""
        if not self.left:
            return False
        self.left -= 1
        if not self._fails(candidate):
            return False
        self.best = tuple(candidate)
        return True
