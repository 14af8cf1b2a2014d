"""The verdict on a run in one line, and every trouble behind it, the worst first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from migrator.core.watched import servers, work
from migrator.model.observed.bounds import Bounds
from migrator.model.observed.hour import Hour
from migrator.model.observed.observation import DUMPING, FILLING, STANDING_BY, STOPPED, STREAMING, Observation
from migrator.model.observed.trouble import LEVELS, LOOK, UNKNOWN, WAIT, WELL, Trouble

_RULES = (
    servers.unreachable,
    work.ended_by_error,
    servers.log_almost_lost,
    servers.disk_filling,
    work.different,
    work.nothing_applied,
    work.nobody_leads,
    work.hot_table,
    servers.network_slow,
    work.inserts_fell_off,
    work.processes,
    work.errors_repeat,
)
_EXPLAIN_LAG = ("TargetDown", "SourceDown", "NothingApplied", "HotTable")
"""Troubles whose mere consequence a lag is."""
_WINDOWED = ("DiskFilling", "ErrorsRepeat", "NetworkSlow")
"""Troubles whose rule looks back over a window of minutes: the moment that it finds moves with the window."""
_NONE = "nothing"


def troubles(seen: Observation, hour: Hour, bounds: Bounds) -> tuple[Trouble, ...]:
    """All that is wrong, what must be acted on first; of that, causes before what follows from them."""
    found = [one for rule in _RULES for one in rule(seen, hour, bounds)]
    if not any(one.name in _EXPLAIN_LAG for one in found):
        found += work.lag(seen, hour, bounds)
    found += _noted(seen)
    return tuple(_dated(one, hour) for one in sorted(found, key=lambda one: LEVELS.index(one.level)))


def dated(hour: Hour, seen: Observation, found: tuple[Trouble, ...]) -> Hour:
    """The hour that remembers when each trouble began, or since when all has been well in this phase."""
    known = dict(hour.begun_us)
    began = {one.name: one.since_us or known.get(one.name, seen.at_us) for one in found}
    if not found:
        began = {seen.phase: known.get(seen.phase, seen.at_us if known else seen.started_us)}
    return replace(hour, begun_us=tuple(began.items()))


def _dated(one: Trouble, hour: Hour) -> Trouble:
    """A trouble with the moment at which it began.

    Its rule knows that moment, but where it sees no further back than the hour or a shorter window, or keeps nothing.
    """
    began_us = dict(hour.begun_us).get(one.name)
    if began_us is None:
        return one
    if one.since_us is None:
        return replace(one, since_us=began_us)
    seen_whole = one.name not in _WINDOWED and (not hour.looks or one.since_us > hour.looks[0].at_us)
    return one if seen_whole else replace(one, since_us=min(one.since_us, began_us))


def verdict(seen: Observation, hour: Hour, found: tuple[Trouble, ...]) -> Trouble:
    """The worst trouble; without any, what the run does, as one of the same form."""
    if found:
        return found[0]
    level, what, remedy = _well(seen)
    began = dict(hour.begun_us)
    since_us = began.get(seen.phase, seen.at_us if began else seen.started_us)
    return Trouble("", level, what, since_us, _NONE, remedy)


def _noted(seen: Observation) -> Iterator[Trouble]:
    """Warnings of the run itself, and verdicts that can't be read."""
    if seen.judged.problem:
        yield Trouble(
            "VerdictsUnreadable",
            LOOK,
            f"what was verified can't be read: {seen.judged.problem}",
            None,
            "rows that differ would not be seen here",
            "run `migrator verify` again",
            "verify",
        )
    if seen.warnings:
        about, text = seen.warnings[0]
        more = f", and of {len(seen.warnings) - 1} more" if len(seen.warnings) > 1 else ""
        yield Trouble(
            "Warned",
            LOOK,
            f"the run warns of {about}{more}: {text}",
            min((since_us for _, since_us in seen.warned_us), default=None),
            "the run goes on for now; the warning says what may follow",
            "do what the warning says",
            "watch",
        )


def _well(seen: Observation) -> tuple[str, str, str]:
    """Level, words and what to do, where no trouble is known."""
    if seen.phase == STANDING_BY:
        return (
            WELL,
            f"nothing is wrong: this process stands by, and {seen.leader or 'another one'} leads",
            _NONE,
        )
    if seen.phase == DUMPING:
        done = sum(dump.done for dump in seen.dumps)
        return (
            WELL,
            f"nothing is wrong: {done:,} of {len(seen.dumps):,} tables are dumped, the others are read",
            _NONE,
        )
    if seen.phase == FILLING:
        return WELL, f"nothing is wrong: {len(seen.filling):,} joined targets are being filled", _NONE
    if seen.phase == STOPPED:
        return WAIT, "the run has ended: this process is about to", "its last lines and its log say why"
    if seen.phase != STREAMING:
        return WAIT, f"it is {seen.phase}: nothing is read or applied yet", "wait, or look at the note"
    if not seen.lag.known:
        return (
            UNKNOWN,
            f"the lag is unknown: {seen.lag.unknown}",
            "wait some seconds: the source is asked once a second",
        )
    if seen.lag.behind == 0:
        return WELL, "nothing is wrong: all that the source has committed is in the target", _NONE
    return WELL, f"nothing is wrong: the target is {seen.lag.age_s or 0.0:,.0f} s behind, and follows", _NONE
