"""Drawn inputs of tests: the same in every run, others with another number in ``MIGRATOR_TEST_SEED``.

Slow tests take as many as ``MIGRATOR_TEST_EXAMPLES`` says.
"""

from __future__ import annotations

import os
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

SEED = int(os.environ.get("MIGRATOR_TEST_SEED", "0"))
MANY = int(os.environ.get("MIGRATOR_TEST_EXAMPLES", "1000"))
GENERATED = settings(
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
"""Settings of drawn examples that are generated only: to shrink one would ask a server hundreds of times."""
T = TypeVar("T")


def seeds(many: int) -> list[int]:
    """Numbers for tests that draw by themselves."""
    return [1000 * SEED + number for number in range(many)]


def drawn(strategy: st.SearchStrategy[T], many: int) -> list[T]:
    """So many examples of a strategy, for whoever asks a server or Spark once for all of them."""
    found: list[T] = []

    @seed(SEED)
    @settings(GENERATED, max_examples=many)
    @given(strategy)
    def take(value: T) -> None:
        found.append(value)

    take()
    return found
