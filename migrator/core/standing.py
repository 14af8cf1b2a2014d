"""A migration's phase and standing in one word each, from what is known of it."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from migrator.model.observed.observation import DUMPING, FILLING, STARTING, STREAMING, Lag
from migrator.model.progress import TableDump


class Standing(enum.IntEnum):
    """The verdict on a migration as a whole; the numbers are exit codes of `migrator status`."""

    CAUGHT_UP = 0
    DIFFERENT = 1
    UNKNOWN = 3
    BEHIND = 4
    STOPPED = 5


WORDS = {
    Standing.CAUGHT_UP: "caught up",
    Standing.DIFFERENT: "different",
    Standing.UNKNOWN: "unknown",
    Standing.BEHIND: "behind",
    Standing.STOPPED: "stopped",
}


def standing(*, leads: bool, different: bool, lag: Lag, max_lag_s: float, complete: bool) -> Standing:
    """The worst that holds: wrong rows, then nobody at work, then nothing known, then too far behind.

    Args:
        leads: whether a process leads.
        different: whether the last verification of any table found rows that differ.
        lag: of the target.
        max_lag_s: the age up to which a target counts as caught up.
        complete: whether every table is dumped, and every joined target filled.
    """
    if different:
        return Standing.DIFFERENT
    if not leads:
        return Standing.STOPPED
    if not complete:
        return Standing.BEHIND
    if lag.behind == 0:
        return Standing.CAUGHT_UP
    if lag.age_s is None:
        return Standing.UNKNOWN
    return Standing.CAUGHT_UP if lag.age_s <= max_lag_s else Standing.BEHIND


def phase_of(dumps: Sequence[TableDump], requests: Sequence[TableDump], filling: bool, begun: bool) -> str:
    """The phase of a process that leads. ``begun``: whether anything is captured or applied."""
    if not all(dump.done for dump in (*dumps, *requests)):
        return DUMPING
    if filling:
        return FILLING
    return STREAMING if begun else STARTING
