"""Dump requests under thousands of interleavings; and that a run which breaks their rules is found out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from migrator.core.dump import DumpPlan
from migrator.core.passes import Passes
from migrator.model.requests.request import RequestState
from scenarios.mutants.broken_capture import RECONCILIATION_OFF
from scenarios.simulation.run import simulate
from scenarios.simulation.setup import SETUPS, Patch, Setup
from scenarios.simulation.verdict import Tally
from scenarios.simulation.world import World
from verify.history.result import Outcome

REQUESTED = [setup for setup in SETUPS if setup.requests]
SEEDS, FEW_SEEDS = 120, 40


def tally_of(setup: Setup, seeds: int) -> Tally:
    tally = Tally()
    for seed in range(seeds):
        tally.add(seed, simulate(seed, setup))
        if tally.failed is not None:
            break
    return tally


@pytest.mark.parametrize("seeds", [FEW_SEEDS, pytest.param(SEEDS, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "setup",
    [REQUESTED[0], *(pytest.param(setup, marks=pytest.mark.slow) for setup in REQUESTED[1:])],
    ids=[setup.name for setup in REQUESTED],
)
def test_requests_break_no_promise_and_all_of_them_end(
    setup: Setup, seeds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The drain ends only when no request runs any more; here we look whether the races did occur."""
    worlds: list[World] = []
    made = World.__init__

    def noted(self: World, *given: Any) -> None:
        worlds.append(self)
        made(self, *given)

    monkeypatch.setattr(World, "__init__", noted)
    tally = tally_of(setup, seeds)
    assert (tally.outcome, tally.failed) == (Outcome.HOLDS, None)
    requests = [request for world in worlds for request in world.requests.read().requests]
    states = Counter(request.state for request in requests)
    assert set(states) == {RequestState.DONE, RequestState.CANCELLED}
    assert states[RequestState.DONE] > seeds
    assert sum(request.generation > 1 for request in requests) > seeds // 4
    assert sum(len(world.requests.read().requests) > 1 for world in worlds) > seeds // 4


@pytest.mark.parametrize(
    "patches",
    [
        (Patch(Passes, "admits", lambda self, table, name: True),),
        (Patch(DumpPlan, "requests", lambda self: ()),),
        RECONCILIATION_OFF,
    ],
    ids=["two dumps in a batch", "progress forgotten", "reconciliation off"],
)
def test_a_broken_rule_is_found_out(patches: tuple[Patch, ...]) -> None:
    tally = tally_of(replace(REQUESTED[0], patches=patches), SEEDS)
    assert tally.failed is not None
