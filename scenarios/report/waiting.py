"""The list of scenarios that can't be played yet, because the product lacks something."""

from __future__ import annotations

from collections.abc import Iterable

from scenarios.report.tables import Row, Table
from scenarios.scenario import Scenario

_NOTE = (
    "Not played, because what they show is still to be built. Nothing of it is silent today: the last column names"
    " the scenario, played here, that shows the stop by name in its place."
)


def waiting(catalog: Iterable[Scenario]) -> Table | None:
    """The table of the scenarios that wait; None if there is none."""
    rows = [
        Row((scenario.name, scenario.title, scenario.waits_for, scenario.until_then))
        for scenario in catalog
        if scenario.waits_for
    ]
    if not rows:
        return None
    return Table("Scenarios that wait", _NOTE, ("scenario", "title", "waits for", "until then"), tuple(rows))
