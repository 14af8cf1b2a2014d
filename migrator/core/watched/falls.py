"""Tables whose inserts fell off against their own past hour: a job that died, a form that is broken, a lost trigger.

A table's inserts of the last five minutes are compared with those of any five minutes of the hour before. It counts
only if it had at least twenty of them in four fifths of these, so that a table which is filled now and then is never
told of, and if it has less than a quarter of that now. It stays told of, with what was usual before, until it has
more again, or for an hour: then the new amount is the usual one. Minutes in which the source's log wasn't read to its
end say nothing, and end nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
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
_LONGEST_US = 60 * MINUTE_US


def fallen(minutes: Sequence[Minute], before: Sequence[Fallen] = ()) -> tuple[Fallen, ...]:
    """The tables whose inserts fell off, by name.

    Args:
        minutes: whole ones, the oldest first.
        before: those as of the minute before.
    """
    recent = minutes[-WINDOW:]
    if len(recent) < WINDOW or not _in_a_row(recent):
        return tuple(before)
    found = {one.table: one for one in _newly(minutes)}
    for one in before:
        now = sum(_inserts(minute).get(one.table, 0.0) for minute in recent) / WINDOW
        if now < SHARE * one.usual and recent[-1].start_us - one.since_us < _LONGEST_US:
            found[one.table] = replace(one, now=now)
    return tuple(found[table] for table in sorted(found))


def _newly(minutes: Sequence[Minute]) -> Iterator[Fallen]:
    past = minutes[:-WINDOW]
    parts = [past[place : place + WINDOW] for place in range(len(past) - WINDOW + 1)]
    windows = [part for part in parts if _in_a_row(part)]
    if len(windows) < LEAST_PAST - WINDOW + 1:
        return
    by_minute = [_inserts(one) for one in minutes]
    starts = {one.start_us: place for place, one in enumerate(minutes)}
    places = [starts[part[0].start_us] for part in windows]
    for table in {table for inserts in by_minute for table in inserts}:
        row = [inserts.get(table, 0.0) for inserts in by_minute]
        sums = sorted(sum(row[place : place + WINDOW]) for place in places)
        usual, now = sums[len(sums) // _LOW], sum(row[-WINDOW:])
        if usual >= LEAST_USUAL and now < SHARE * usual:
            since_us = _since(minutes, row, SHARE * usual / WINDOW)
            yield Fallen(table, since_us, usual / WINDOW, now / WINDOW)


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
