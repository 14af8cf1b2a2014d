"""Settings and mappings that are edited between two runs, wherever the one before was killed: the target is
right."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from migrator.core import capture
from migrator.model.event import TransactionPart
from migrator.run.lead import carried
from migrator.run.lead.carried import carry_over
from migrator.run.steps import POINTS
from scenarios.simulation import process
from scenarios.simulation.process import ALL_POINTS, Shared
from scenarios.simulation.run import simulate
from scenarios.simulation.setup import CHANGES, MAPPINGS, TRUNCATES, Patch, Setup, edited, patched
from scenarios.simulation.verdict import Tally
from scenarios.simulation.world import CLIENTS, Decision, World, decisions
from verify.history.history import History
from verify.history.judge import judge
from verify.history.result import Outcome

SEEDS = 25
"""Of each point of kill, so many in `make test-all`."""
FEW_SEEDS = 9
PLANNED_AT = (6, 60, 120, 180, 240, 300)
"""Decisions before which a kill is planned, beside the last; the first follows those that make a leader."""

JOINED = ("target.mirrored", "joined.mapped", "joined.filled", "fill.mapped", "fill.committed")
"""Crossed with changes on real servers, for targets in memory join nothing:
``integration/runs/changed/test_changes_at_points.py``."""
AS_MERGED = "within the target's transaction: it leaves what target.merged leaves"
OF_COMMANDS = {
    "remap.": "test_next_mappings.py changes the mapping, kills at each, and judges the next start",
    "reset.": "until a reset is finished no other command goes on: test_reset.py kills between any two steps",
    "fence.": "of a cut-over, whose record says how it goes on: what a run goes on from isn't touched",
    "cutover.": "as those of a fence: test_cutover_killed.py kills at every step",
}
"""Points of commands, by how their names begin."""
NOT_CROSSED = {
    "changes.poll": "nothing of the poll is there yet: it leaves what log.connected leaves",
    "segment.file": "files without a manifest, as segment.data leaves them; nobody reads such",
    "target.begun": AS_MERGED,
    "target.loaded": AS_MERGED,
    "target.moved": AS_MERGED,
    "joined.aside": "in the batch's transaction, which is rolled back; the next process looks for the grains again",
    "target.orphaned": "in the batch's transaction, which is rolled back; the next process tries the batch again",
    "target.refused": "the transaction is rolled back; the next process tries the batch as a whole again",
    "target.unknown": "the COMMIT came or didn't: it leaves what target.committed or target.merged leaves",
}
"""Points of kill that no change is crossed with, and why."""


def test_every_point_is_crossed_with_changes_or_has_a_reason() -> None:
    of_commands = [point for point in POINTS if point.startswith(tuple(OF_COMMANDS))]
    assert sorted([*ALL_POINTS, *JOINED, *NOT_CROSSED, *of_commands]) == sorted(POINTS)


def killed_at(point: str, seed: int, setup: Setup) -> History:
    """A run that is killed at a point, each time that it comes there after one of these decisions."""
    kill = ("kill", ALL_POINTS.index(point))
    taken = list(decisions(seed, setup))
    for place in reversed((*PLANNED_AT, len(taken))):
        taken.insert(place, kill)
    return simulate(seed, setup, taken)


@pytest.mark.parametrize("seeds", [FEW_SEEDS, pytest.param(SEEDS, marks=pytest.mark.slow)])
@pytest.mark.parametrize("point", ALL_POINTS)
def test_every_point_of_kill_meets_edited_settings(point: str, seeds: int) -> None:
    tally, kills = Tally(), 0
    for seed in range(seeds):
        history = killed_at(point, seed, CHANGES)
        tally.add(seed, history)
        assert tally.failed is None, (seed, tally.failed)
        faults = history.faults
        kills += list(zip(faults["name"].to_pylist(), faults["point"].to_pylist(), strict=True)).count(
            ("crash", point)
        )
    assert tally.outcome is Outcome.HOLDS, "\n".join(tally.lines())
    assert kills >= 2 * seeds // 5, "a run may end before it comes there again, not most of them"


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


@pytest.mark.slow
def test_a_counter_whose_meaning_an_edited_setting_changes_would_be_found_and_by_edits_alone() -> None:
    broken = (Patch(capture, "rest_of", whole_parts),)
    assert violated(replace(CHANGES, patches=broken), "capture.appended", 8 * SEEDS)
    assert not violated(replace(CHANGES, changes=False, patches=broken), "capture.appended", SEEDS)


# -- the mapping
# ----------------------------------------------------------------------------------------------------

RUNS = 5
BUSY = (
    "log",
    "take",
    "chunk",
    "take",
    "witness",
    "log",
    "take",
    "segment",
    "map",
    "apply",
    "reveal",
    "requests",
)
MAPPED_SEEDS = 12
"""Of each point of kill, so many in `make test-all`."""
FEW_MAPPED = 5


def killed_runs(point: str, seed: int) -> list[Decision]:
    """Several runs, each with a mapping of its own, and killed at a point, or a while after it."""
    rng, kill = random.Random(f"runs {seed}"), ("kill", ALL_POINTS.index(point))
    taken: list[Decision] = []
    for _ in range(RUNS):
        taken += [("lead", rng.getrandbits(48))] * 6
        busy = [*BUSY * 9, *(f"client {rng.randint(1, CLIENTS)}" for _ in range(8))]
        steps = [(actor, rng.getrandbits(48)) for actor in rng.sample(busy, len(busy))]
        taken += [*steps[:90], kill, *steps[90:], ("crash", 0), ("expire", 0)]
    return taken


def right_at_the_end(point: str, seed: int, setup: Setup, refusals: Counter[str]) -> bool:
    """Whether runs with edited mappings, killed at a point, end with all rows, each by the mapping as it is then.

    Before, an emptied target, and one that was taken out, is no image of the source: of all checkers those of the
    end count, and that no row is there which the source never had, or has no more.
    """
    worlds: list[World] = []
    made = World.__init__

    def noted(self: World, *given: Any) -> None:
        worlds.append(self)
        made(self, *given)

    with patched((Patch(World, "__init__", noted),)):
        history = simulate(seed, setup, killed_runs(point, seed))
    (world,) = worlds
    refusals.update(world.refusals)
    results = {result.code: result.outcome for result in judge(history, ["D4", "D7"])}
    by = {row["made"] for rows in world.target_rows().values() for row in rows.values()}
    ended = history.description.drained and not history.description.halted
    return ended and Outcome.VIOLATED not in results.values() and by == {"1"}


@pytest.mark.parametrize("seeds", [FEW_MAPPED, pytest.param(MAPPED_SEEDS, marks=pytest.mark.slow)])
@pytest.mark.parametrize("point", ALL_POINTS)
def test_every_point_of_kill_meets_edited_mappings(point: str, seeds: int) -> None:
    """Targets come and go, and are mapped otherwise; operators do what a refusal says, half of it, or neither."""
    refusals: Counter[str] = Counter()
    for seed in range(seeds):
        assert right_at_the_end(point, seed, MAPPINGS, refusals), seed
    kinds = 3 if seeds == MAPPED_SEEDS else 2  # few seeds meet no table that was made again
    assert len(refusals) >= kinds, (
        "not one each was refused of added targets, changed ones and those made again"
    )
    assert refusals.total() >= seeds


@pytest.mark.parametrize(
    "broken",
    [
        Patch(
            process,
            "carry_over",
            lambda applied, book, plans, late, mapped: carry_over(None, book, plans, late),
        ),
        Patch(carried, "_compared", lambda before, now, plans: {}),
        Patch(carried, "_replaced", lambda before, now, joined, late, alone: set()),
        Patch(Shared, "holds_rows", lambda self, name: False),
        Patch(carried, "asked_for", lambda applied, book, tables: dict.fromkeys(tables, "")),
    ],
    ids=[
        "nothing is noted",
        "changes aren't noticed",
        "tables made again aren't noticed",
        "rows may stay",
        "rows needn't be asked for",
    ],
)
def test_a_target_that_is_carried_over_wrongly_is_found_out(broken: Patch) -> None:
    setup = replace(MAPPINGS, patches=(broken,))
    seeds = range(8 * MAPPED_SEEDS)
    assert not all(right_at_the_end("apply.committed", seed, setup, Counter()) for seed in seeds)
