"""Runs a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from scenarios.simulation.setup import Setup, patched
from scenarios.simulation.tables import TRACKED
from scenarios.simulation.world import Decision, World, decisions
from verify.history.history import Description, History


def simulate(
    seed: int,
    setup: Setup,
    taken: Sequence[Decision] | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> History:
    """Simulates a run under a seed.

    Args:
        seed: decides everything.
        setup: what is simulated.
        taken: decisions in place of the seed's own (of a shrunk run).
        tell: called with every step that did something, in words.
    """

    def description(drained: bool, halted: str) -> Description:
        return Description(
            scenario=f"simulation {setup.name}",
            engine="simulation",
            seed=seed,
            tables=TRACKED,
            drained=drained,
            halted=halted,
            command=command(seed, setup.mutant),
        )

    # not the seed's remainder: that chooses the setup
    setup = replace(setup, workers=(random.Random(f"workers {seed}").choice(setup.workers),))
    with patched(setup.patches):
        return World(setup, tell).run(decisions(seed, setup) if taken is None else taken, description)


def command(seed: int, mutant: str = "") -> str:
    """Returns the command that replays a seed."""
    name = f" --mutant {mutant}" if mutant else ""
    return f"migrator scenario simulate --first {seed} --seeds 1{name}"
