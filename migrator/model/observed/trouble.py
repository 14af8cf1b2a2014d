"""Troubles of a run for a stranger with a pager: what is wrong, since when, what is at risk, what to do."""

from __future__ import annotations

from dataclasses import dataclass

ACT, LOOK, UNKNOWN, WAIT, WELL = "act", "look", "unknown", "wait", "well"
LEVELS = (ACT, LOOK, UNKNOWN, WAIT, WELL)
"""Somebody must act now; somebody should look; nobody knows; it isn't begun; nothing is wrong. The worst first."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that is wrong.

    Attributes:
        name: that of its alert in docs/how-to/observe/alerts.yml, without its first word.
        level: ``act`` or ``look``; of a verdict any of ``LEVELS``.
        what: what is wrong.
        since_us: since when, microseconds since 1970 by this machine's clock; None: that isn't known.
        risk: what is at risk while it lasts.
        remedy: what to do.
        document: of `migrator docs` that says more; empty: none.
        tables: which are concerned; none: all, or no table in particular.
    """

    name: str
    level: str
    what: str
    since_us: int | None
    risk: str
    remedy: str
    document: str = "observe"
    tables: tuple[str, ...] = ()
