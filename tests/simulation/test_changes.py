"""Settings that are edited between two runs, wherever the one before was killed: the target is right all the
same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrator.core import capture
from migrator.model.event import TransactionPart
from scenarios.simulation.process import CRASH_POINTS
from scenarios.simulation.run import simulate
from scenarios.simulation.setup import CHANGES, TRUNCATES, Patch, Setup, edited
from scenarios.simulation.verdict import Tally
from scenarios.simulation.world import decisions
from verify.history.history import History
from verify.history.judge import judge
from verify.history.result import Outcome

SEEDS = 25
"""Of each point of kill."""
FEWEST = 10
"""Kills at a point, of all seeds: a run may end before it comes there again."""
PLANNED_AT = (6, 60, 120, 180, 240, 300)
"""Decisions before which a kill is planned; the first follows those that make a leader."""


def killed_at(point: str, seed: int, setup: Setup) -> History:
    """A run that is killed at a point, each time that it comes there after one of these decisions."""
    kill = ("crash", 2 + CRASH_POINTS.index(point))  # before the points stand two ways to be gone at once
    taken = list(decisions(seed, setup))
    for place in reversed(PLANNED_AT):
        taken.insert(place, kill)
    return simulate(seed, setup, taken)


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_every_point_of_kill_meets_edited_settings(point: str) -> None:
    tally, kills = Tally(), 0
    for seed in range(SEEDS):
        history = killed_at(point, seed, CHANGES)
        tally.add(seed, history)
        assert tally.failed is None, (seed, tally.failed)
        faults = history.faults
        kills += list(zip(faults["name"].to_pylist(), faults["point"].to_pylist(), strict=True)).count(
            ("crash", point)
        )
    assert tally.outcome is Outcome.HOLDS, "\n".join(tally.lines())
    assert kills >= FEWEST


def test_the_settings_of_two_starts_differ_in_each_of_them() -> None:
    found = [edited(CHANGES, number) for number in range(40)]
    for name in ("watermarks", "witness", "part_rows", "chunk_rows", "max_keys", "workers"):
        assert len({getattr(setup, name) for setup in found}) > 1, name
    assert edited(TRUNCATES, 7) is TRUNCATES


def whole_parts(part: TransactionPart, index: int) -> TransactionPart:
    """Broken: what was stored of a transaction is taken to end where a part of now does."""
    if index <= part.first_index:
        return part
    return part._replace(first_index=part.first_index + part.size(), runs=())


def violated(setup: Setup, point: str, seeds: int) -> bool:
    return any(
        result.outcome is Outcome.VIOLATED
        for seed in range(seeds)
        for result in judge(killed_at(point, seed, setup))
    )


def test_a_counter_whose_meaning_an_edited_setting_changes_would_be_found_and_by_edits_alone() -> None:
    broken = (Patch(capture, "rest_of", whole_parts),)
    assert violated(replace(CHANGES, patches=broken), "capture.appended", 8 * SEEDS)
    assert not violated(replace(CHANGES, changes=False, patches=broken), "capture.appended", SEEDS)
