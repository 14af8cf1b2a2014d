"""The choice of a transaction's keys: the same for the same seed."""

from __future__ import annotations

import random


def some_key(rng: random.Random, keys: int, hot_percent: int = 0) -> int:
    """A key from 1 to ``keys``; ``hot_percent`` of the draws give the hot key, 1, beside its ordinary share."""
    if hot_percent and rng.randrange(100) < hot_percent:
        return 1
    return rng.randint(1, keys)


def some_keys(rng: random.Random, keys: int, count: int, hot_percent: int = 0) -> list[int]:
    """Picks up to ``count`` different keys, in ascending order: who locks in one order meets few deadlocks."""
    return sorted({some_key(rng, keys, hot_percent) for _ in range(count)})
