"""The next state of the last hour, from one more observation.

It is kept whether anybody looks or not, so that who is woken at night sees the hour before. It is bounded: 360 looks,
and 60 minutes of those tables that changed in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from migrator.core.watched.falls import fallen
from migrator.model.observed.hour import (
    LOOK_EVERY_US,
    MINUTE_US,
    MOST_LOOKS,
    MOST_MINUTES,
    Hour,
    Look,
    Minute,
)
from migrator.model.observed.observation import DUMPING, FILLING, LEADER, STREAMING, Counts, Observation
from migrator.model.retention import Retention

AT_END_S = 15.0
"""A log is read to its end while what isn't captured is no older."""
_GAP_US = 3 * LOOK_EVERY_US
_WORKING = (DUMPING, FILLING, STREAMING)


def after(hour: Hour, seen: Observation) -> Hour:
    """The hour with one more look; the same one where the last look was less than ten seconds ago."""
    last = hour.looks[-1] if hour.looks else None
    if last is not None and seen.at_us < last.at_us:  # the clock was put back: nothing before can be compared
        hour, last = Hour(), None
    if last is not None and seen.at_us - last.at_us < LOOK_EVERY_US:
        return hour
    look = look_of(seen)
    oldest_us = seen.at_us - MOST_LOOKS * LOOK_EVERY_US
    looks = tuple(one for one in (*hour.looks, look) if one.at_us >= oldest_us)[-MOST_LOOKS:]
    unbroken = last is not None and seen.at_us - last.at_us <= _GAP_US
    minutes = _minutes(hour, seen, unbroken)
    begun = len(minutes) > 1 and minutes[-1].start_us != (hour.minutes[-1].start_us if hour.minutes else 0)
    next_hour = Hour(looks, minutes, seen.work.changes, hour.fallen, hour.begun_us)
    return replace(next_hour, fallen=fallen(next_hour.whole_minutes(), hour.fallen)) if begun else next_hour


def look_of(seen: Observation) -> Look:
    """One observation as a look."""
    work = seen.work
    return Look(
        at_us=seen.at_us,
        role=seen.role,
        phase=seen.phase,
        lag_s=seen.lag.age_s,
        capture_lag_s=seen.capture_lag.age_s,
        segments=seen.room.segments,
        source_s=seen.source.answer_s,
        target_s=seen.target.answer_s,
        disk_free_bytes=seen.room.disk_free_bytes,
        captured=work.captured_changes,
        applied=work.applied_changes,
        dumped=work.applied_chunk_rows,
        batches=int(sum(number for _, number in work.batches)),
        errors=int(sum(number for _, number in work.errors)),
        standbys=seen.standbys,
        log_left=_log_left(seen.retention),
    )


def _log_left(kept: Retention | None) -> float | None:
    if kept is None:
        return None
    if kept.endangered:
        return 0.0
    return None if kept.left_bytes is None or not kept.bound_bytes else kept.left_bytes / kept.bound_bytes


def _minutes(hour: Hour, seen: Observation, unbroken: bool) -> tuple[Minute, ...]:
    start_us = seen.at_us // MINUTE_US * MINUTE_US
    read = unbroken and _reads_to_the_end(seen)
    risen = _risen(hour.totals, seen.work.changes) if hour.looks else {}
    if hour.minutes and hour.minutes[-1].start_us == start_us:
        going_on = hour.minutes[-1]
        counts = _added(going_on.counts, risen)
        minutes = (*hour.minutes[:-1], Minute(start_us, counts, going_on.read and read))
    else:
        minutes = (*hour.minutes, Minute(start_us, _added((), risen), read))
    oldest_us = start_us - (MOST_MINUTES - 1) * MINUTE_US
    return tuple(one for one in minutes if one.start_us >= oldest_us)


def _reads_to_the_end(seen: Observation) -> bool:
    age_s = seen.capture_lag.age_s
    return seen.role == LEADER and seen.phase in _WORKING and age_s is not None and age_s <= AT_END_S


def _risen(before: Counts, now: Counts) -> Mapping[tuple[str, ...], float]:
    known = dict(before)
    return {names: number - known.get(names, 0) for names, number in now if number > known.get(names, 0)}


def _added(counts: Counts, risen: Mapping[tuple[str, ...], float]) -> Counts:
    if not risen:
        return counts
    found = dict(counts)
    for names, number in risen.items():
        found[names] = found.get(names, 0) + number
    return tuple(sorted(found.items()))
