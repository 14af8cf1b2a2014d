"""Many tables on a page, and names and values that somebody chose to do harm."""

from __future__ import annotations

from dataclasses import replace

from migrator.core.watched.hour import after
from migrator.model.observed.hour import Hour
from migrator.model.observed.observation import Ended, Judged, Observation, VerifiedTable
from migrator.model.progress import Filling, TableDump
from migrator.model.table import TableId
from tests.unit.observers.troubles import BEGAN_US, WELL, work

LONG = "x" * 10_000
TURNED = "safe\u202egnp.elbat"
MARKUP = "<img src=x onerror=\"document.title='owned'\">"
SCRIPT = "</script><script>document.title='owned'</script>"
HOSTILE = (
    MARKUP,
    SCRIPT,
    TURNED,
    LONG,
    "'; DROP TABLE x; --",
    "a\x00b\x1b[31m",
    "\u2066\u200b\ufeff",
    "{{7*7}}",
    "__proto__",
)
DIFFERENT, FALLEN, LEFT = 123, 321, 222
"""Numbers of the tables of a crowd that aren't as the others."""


def crowd(number: int) -> tuple[Observation, Hour]:
    """A run of so many tables over three quarters of an hour, three of which are in trouble."""
    hour, seen = Hour(), WELL
    for second in range(0, 2700, 10):
        changes = tuple(
            ((f"shop.t{place:03}", kind), min(second, 2100) if place == FALLEN else second)
            for place in range(number)
            for kind in ("insert", "update")
            if place % 5 or kind == "update"
        )
        total = replace(work(second), changes=changes, captured_changes=second * number)
        seen = replace(WELL, at_us=BEGAN_US + second * 1_000_000, work=total)
        hour = after(hour, seen)
    dumps = tuple(
        TableDump(TableId("shop", f"t{place:03}"), None, place != LEFT, 400, 0, 3, 1000)
        for place in range(number)
    )
    verified = tuple(
        VerifiedTable(
            f"new{place:03}",
            "different" if place == DIFFERENT else "equal",
            seen.at_us - 60_000_000,
            1.0,
            1.0,
        )
        for place in range(number)
    )
    return replace(seen, dumps=dumps, judged=Judged(verified), fallen=hour.fallen), hour


def hostile() -> tuple[Observation, Hour]:
    """A run whose every text is hostile."""
    hour, seen = Hour(), WELL
    for second in range(0, 120, 10):
        changes = tuple(((name, "insert"), second) for name in HOSTILE)
        seen = replace(WELL, at_us=BEGAN_US + second * 1_000_000, work=replace(work(second), changes=changes))
        hour = after(hour, seen)
    seen = replace(
        seen,
        migration=MARKUP,
        note=SCRIPT + LONG,
        warnings=tuple((name, f"row has {name}; remedy: {name}") for name in HOSTILE),
        dumps=tuple(TableDump(TableId(name, name)) for name in HOSTILE),
        filling=tuple(Filling(name, 1, 2, 3) for name in HOSTILE),
        judged=Judged(tuple(VerifiedTable(name, "different", seen.at_us, 0.5, 0.5, 7) for name in HOSTILE)),
        ended=Ended(seen.at_us, MARKUP, f"value {TURNED} of {MARKUP}{LONG}"),
        leader=MARKUP,
        source=replace(seen.source, problem=MARKUP + TURNED),
    )
    return seen, hour
