"""The capture core under thousands of seeded interleavings, and its mutants, each of which must be caught."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrator.core.capture import Capture
from migrator.core.touched import Stale, TouchedKeys
from migrator.model.chunk import Chunk, Witness
from tests.simulation.run import Run, Setup, check

WITNESS = Setup()
"""PostgreSQL and MariaDB by default: no watermark, exact witness, commits become visible in any order."""
WATERMARK = Setup(ordered=True, watermarks=True, witness=False)
"""DBLog as published, on an engine that makes commits visible in log order."""
BOTH = Setup(watermarks=True)
SEEDS = range(400)


@pytest.mark.parametrize(
    "setup",
    [
        WITNESS,
        WATERMARK,
        BOTH,
        replace(WITNESS, part_rows=1),
        replace(WITNESS, max_keys=1),
        replace(WATERMARK, max_keys=1),
    ],
    ids=["witness", "watermark", "both", "parts", "witness-few-keys", "watermark-few-keys"],
)
def test_no_interleaving_travels_in_time_or_loses_a_row(setup: Setup) -> None:
    dropped = crashes = 0
    for seed in SEEDS:
        history = Run(seed, setup).go()
        assert check(history) == [], f"seed {seed}"
        assert history.deliveries
        dropped, crashes = dropped + history.dropped, crashes + history.crashes
    # the races that matter must have occurred, else the runs prove nothing
    assert crashes > 100
    assert dropped > 20 or setup.max_keys == 1


class ReconciliationOff(Capture):
    """Mutant: chunk rows go out whatever happened beside the read."""

    def stale(self, chunk: Chunk) -> Stale:
        return Stale(frozenset(), reread=False)


class WitnessIgnored(Capture):
    """Mutant: plain DBLog on an engine whose commits become visible late."""

    def stale(self, chunk: Chunk) -> Stale:
        return super().stale(replace(chunk, witness=None))


class HighIgnored(Capture):
    """Mutant: a chunk goes out before the log was read past its read view."""

    def _reached(self, chunk: Chunk) -> bool:
        return True


class _ForgetsTooEarly(TouchedKeys):
    def confirm(self, witnesses: object) -> None:
        bounds: list[Witness] = list(witnesses)  # type: ignore[call-overload]
        super().confirm(bounds[:1])


class ReadsUnderWayForgotten(Capture):
    """Mutant: keys are forgotten by the newest witness, though an older read view is still under way."""

    def __init__(self, checkpoint, *args, **options) -> None:  # type: ignore[no-untyped-def]
        super().__init__(checkpoint, *args, **options)
        self._touched = _ForgetsTooEarly(20_000, checkpoint.unconfirmed)


class RestartForgets(Capture):
    """Mutant: transactions in the gap at a crash are not inherited."""

    def __init__(self, checkpoint, *args, **options) -> None:  # type: ignore[no-untyped-def]
        super().__init__(replace(checkpoint, unconfirmed=()), *args, **options)


@pytest.mark.parametrize(
    ("setup", "budget"),
    [
        (replace(WITNESS, capture=ReconciliationOff), 50),
        (replace(WATERMARK, capture=ReconciliationOff), 50),
        (replace(WATERMARK, low_after_select=True), 100),
        (replace(BOTH, capture=WitnessIgnored), 100),
        (replace(WITNESS, capture=HighIgnored), 50),
        (replace(WITNESS, capture=ReadsUnderWayForgotten), 400),
        (replace(WITNESS, capture=RestartForgets), 1500),
    ],
    ids=[
        "reconciliation-off",
        "reconciliation-off-watermark",
        "low-after-select",
        "witness-ignored",
        "high-ignored",
        "reads-under-way-forgotten",
        "restart-forgets",
    ],
)
def test_mutant_is_caught_within_its_seed_budget(setup: Setup, budget: int) -> None:
    caught = next((seed for seed in range(budget) if check(Run(seed, setup).go())), None)
    assert caught is not None, f"survived {budget} seeds"
