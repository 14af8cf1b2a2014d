"""The events between two looks at a run, from what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from migrator.model.observed import happening as events
from migrator.model.observed.happening import ERROR, WARNING, Happening
from migrator.model.observed.observation import Lag


@dataclass(frozen=True, slots=True)
class Outline:
    """A run at one look, as far as events are made of it.

    ``warnings`` and ``errors`` are by what they are about; ``different`` has tables whose last verification found
    rows that differ; ``endangered`` says why log that is needed may be lost.
    """

    phase: str = ""
    epoch: int = 0
    stood_by: bool = False
    note: str = ""
    warnings: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
    lag: Lag = field(default_factory=Lag)
    different: frozenset[str] = frozenset()
    endangered: str = ""


def happened(before: Outline, after: Outline, max_lag_s: float) -> Iterator[Happening]:
    """The events between two looks, the cause before what follows from it."""
    for name, number in after.errors.items():
        if number > before.errors.get(name, 0):
            yield Happening(events.MET, f"{name}, {number:g} so far", WARNING, name)
    if after.epoch and after.epoch != before.epoch:
        event = events.TOOK_OVER if before.stood_by else events.LED
        yield Happening(
            event, f"it leads under epoch {after.epoch}", WARNING if before.stood_by else events.INFO
        )
    if after.phase != before.phase:
        yield Happening(events.PHASE, after.phase)
    if after.note and after.note != before.note:
        yield Happening(events.NOTE, after.note)
    yield from _warnings(before, after)
    yield from _lag(before.lag, after.lag, max_lag_s)
    for table in sorted(after.different - before.different):
        yield Happening(events.DIFFERENT, f"rows of {table} differ", ERROR, table)
    for table in sorted(before.different - after.different):
        yield Happening(events.NOT_DIFFERENT, f"no rows of {table} differ any more", about=table)
    if after.endangered and not before.endangered:
        yield Happening(events.LOG_ENDANGERED, after.endangered, ERROR)


def _warnings(before: Outline, after: Outline) -> Iterator[Happening]:
    for about, text in after.warnings.items():
        if text != before.warnings.get(about):
            yield Happening(events.WARNED, text, WARNING, about)
    for about in before.warnings:
        if about not in after.warnings:
            yield Happening(events.WARNING_OVER, f"{about}: it is as it should be", about=about)


def _lag(before: Lag, after: Lag, max_lag_s: float) -> Iterator[Happening]:
    was, now = (one.age_s is not None and one.age_s > max_lag_s for one in (before, after))
    if now and not was:
        yield Happening(
            events.LAG_BEYOND, f"what isn't applied yet is up to {after.age_s:,.0f} s old", WARNING
        )
    if was and after.age_s is not None and not now:
        yield Happening(events.LAG_WITHIN, f"the lag is within {max_lag_s:g} s again")
    if before.known and not after.known:
        yield Happening(events.LAG_UNKNOWN, after.unknown, WARNING)
