"""Tables whose inserts fell off against their own past hour: a job that died, a form that is broken, a lost trigger.

A table's inserts of the last five minutes are compared with those of any five minutes of the hour before. It counts
only if it had at least twenty of them in four fifths of these, so that a table which is filled now and then is never
told of, and if it has less than a quarter of that now. Minutes in which the source's log wasn't read to its end say
nothing. After an hour the new amount is the usual one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from migrator.model.observed.hour import MINUTE_US, Minute
from migrator.model.observed.observation import Fallen

WINDOW = 5
"""Minutes that are compared with others."""
LEAST_PAST = 20
"""Minutes before them that must be known."""
LEAST_USUAL = 20
"""Inserts in a window below which a table says nothing: few events come and go by chance."""
SHARE = 0.25
_INSERT = "insert"
_LOW = 5


def fallen(minutes: Sequence[Minute]) -> tuple[Fallen, ...]:
    """The tables whose inserts fell off, by name. ``minutes``: whole ones, the oldest first."""
    recent, past = minutes[-WINDOW:], minutes[:-WINDOW]
    if len(recent) < WINDOW or not _in_a_row(recent):
        return ()
    windows = [
        part for part in (past[i : i + WINDOW] for i in range(len(past) - WINDOW + 1)) if _in_a_row(part)
    ]
    if len(windows) < LEAST_PAST - WINDOW + 1:
        return ()
    by_minute = [_inserts(one) for one in minutes]
    starts = {one.start_us: place for place, one in enumerate(minutes)}
    places = [starts[part[0].start_us] for part in windows]
    found = []
    for table in sorted({table for inserts in by_minute for table in inserts}):
        row = [inserts.get(table, 0.0) for inserts in by_minute]
        sums = sorted(sum(row[place : place + WINDOW]) for place in places)
        usual, now = sums[len(sums) // _LOW], sum(row[-WINDOW:])
        if usual >= LEAST_USUAL and now < SHARE * usual:
            since_us = _since(minutes, row, SHARE * usual / WINDOW)
            found.append(Fallen(table, since_us, usual / WINDOW, now / WINDOW))
    return tuple(found)


def _in_a_row(minutes: Sequence[Minute]) -> bool:
    """Tells whether all of them were read, and none between them is missing."""
    spans = {after.start_us - before.start_us for before, after in pairwise(minutes)}
    return spans <= {MINUTE_US} and all(one.read for one in minutes)


def _inserts(minute: Minute) -> dict[str, float]:
    return {names[0]: number for names, number in minute.counts if names[1:] == (_INSERT,)}


def _since(minutes: Sequence[Minute], row: Sequence[float], few: float) -> int:
    """The beginning of the first of the last minutes without a break that had few."""
    found = minutes[-1].start_us
    for minute, number in zip(reversed(minutes), reversed(row), strict=True):
        if number >= few:
            break
        found = minute.start_us
    return found
