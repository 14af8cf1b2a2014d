"""Halves in which grains are mapped apart: grains that stand alike in two tables don't always fall together."""

from __future__ import annotations

import pytest

from migrator.run.commands.grain_proof import HALVINGS, on_side


@pytest.mark.parametrize("distance", range(1, 60))
def test_pairs_at_one_distance_are_parted_by_some_halving(distance: int) -> None:
    """As the months of two tables are, numbered one table after the other."""
    pairs = [(number, number + distance) for number in range(max(distance, 4))]
    parted = [
        (one, other)
        for one, other in pairs
        if any(on_side(halving, 0, one) != on_side(halving, 0, other) for halving in range(HALVINGS))
    ]
    assert parted, f"no grain is ever mapped without the one {distance} further on"


def test_each_grain_is_on_one_side() -> None:
    for halving in range(HALVINGS):
        sides = [on_side(halving, 1, number) for number in range(200)]
        assert [not on_side(halving, 0, number) for number in range(200)] == sides
        assert 50 < sum(sides) < 150
