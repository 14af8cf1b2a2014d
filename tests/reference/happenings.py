"""The table of events, from the ids that the log of a run is written with."""

from __future__ import annotations

from collections.abc import Iterator

from migrator.model.observed.happening import EVENTS, HOOKED
from tests.reference.blocks import table

PAGE = "how-to/observe/log.md"


def lines() -> Iterator[str]:
    """A row for each event."""
    yield from table(
        ("Event", "Says that", "Hook"),
        ((f"`{name}`", meaning, "yes" if name in HOOKED else "") for name, meaning in EVENTS.items()),
    )
