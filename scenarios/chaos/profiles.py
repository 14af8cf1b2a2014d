"""Profiles: named plans of several runs of a project under hazards. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CHANGES = 1000
"""Row changes of a run where nobody says another number."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A plan of runs.

    Attributes:
        hazards: names of those that are placed; None for each that fits.
        together: how many of them are in one run at most.
        alone: whether each is placed in a run of its own first, behind a run without any.
        changes: row changes of the clients in each run.
        minutes: time budget: no further run begins after it; None for no end.
    """

    hazards: tuple[str, ...] | None
    together: int
    alone: bool
    changes: int
    minutes: float | None


PROFILES: Mapping[str, Profile] = {
    "quick": Profile(("source_killed_in_chunk", "kill_after_target_commit", "pause"), 3, False, 500, 3),
    "nightly": Profile(None, 3, False, CHANGES, 60),
    "all": Profile(None, 3, True, CHANGES, None),
}
