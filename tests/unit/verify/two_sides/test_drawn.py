"""Drawn histories of two sides hold; with one false step each is seen through, or could have happened."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from tests.unit.verify.two_sides.drawn import STEPS, FalseStep, true_history
from verify.history.result import Outcome
from verify.two_sides import checks
from verify.two_sides.checks import judge
from verify.two_sides.history import TwoSides

SEEDS = range(300)


def violated(history: TwoSides) -> set[str]:
    return {check.code for check in judge(history) if check.outcome is Outcome.VIOLATED}


def test_drawn_true_histories_hold() -> None:
    whats = Counter(moment.what for seed in SEEDS for moment in true_history(seed).moments)
    assert min(whats.values()) > 50, whats
    assert [seed for seed in SEEDS if violated(true_history(seed))] == []


@pytest.mark.parametrize("step", STEPS, ids=lambda step: str(step.__name__))
def test_one_false_step_is_seen_unless_it_could_have_happened(
    step: Callable[[TwoSides, random.Random], FalseStep | None],
) -> None:
    drawn = {seed: step(true_history(seed), random.Random(seed)) for seed in SEEDS}
    found = {seed: one for seed, one in drawn.items() if one is not None}
    assert sum(not one.harmless for one in found.values()) > 100
    unlike = {seed for seed, one in found.items() if bool(violated(one.history)) is one.harmless}
    assert unlike == set()


def test_without_the_look_at_what_is_due_stale_states_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control."""
    monkeypatch.setattr(checks, "_overdue", lambda history: iter(()))
    stale = next(step for step in STEPS if step.__name__ == "stale")
    drawn = [stale(true_history(seed), random.Random(seed)) for seed in SEEDS]
    passed = [one for one in drawn if one is not None and not one.harmless and not violated(one.history)]
    assert passed
