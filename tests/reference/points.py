"""The named points of a run, at which it can be killed or held, from ``migrator.run.steps``."""

from __future__ import annotations

from migrator.run.steps import POINTS
from tests.reference.blocks import table

PAGE = "reference/fault-points.md"


def lines() -> list[str]:
    """A row for each point."""
    return table(
        ("Point", "What is true when it is reached"),
        ((f"`{point}`", meaning) for point, meaning in POINTS.items()),
    )
