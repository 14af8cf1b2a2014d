"""The history of a cut-over: writes of clients, states that were seen, and the moments of the machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

OK, FAILED, UNKNOWN = "ok", "failed", "unknown"
OLD, NEW = "old", "new"
FENCED, CLOSED, OPENS, REOPENS = "fenced", "closed", "opens", "reopens"
"""Moments: the open side's fence is up; no transaction is open there any more either; the side across is about to be
opened; so is the side that was closed."""
OPENED_BY_HAND = "opened by hand"
MOMENTS: Mapping[str, str] = MappingProxyType(
    {
        "cutover.fencing_done": FENCED,
        "cutover.waiting_done": CLOSED,
        "cutover.opening": OPENS,
        "cutover.undoing": REOPENS,
    }
)
"""Points of the leader that bound the time in which a side may be open, each with its moment."""


@dataclass(frozen=True, slots=True)
class Write:
    """One row that a client tried to add, once, under a key that nobody else uses.

    Attributes:
        client: number of the client.
        number: of its writes; rises.
        side: where it was tried.
        key: of the row, the same on both sides.
        committing: when the client may have asked for the commit at the earliest, on the history's clock.
        ended: when the answer came.
        outcome: ``ok``, ``failed`` or ``unknown``.
        collided: whether the server refused it because another row has its key.
    """

    client: int
    number: int
    side: str
    key: str
    committing: int
    ended: int
    outcome: str
    collided: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """One answer to a client that reads wherever the application's reads are pointed.

    Attributes:
        asked, ended: when it looked where to read, and when the answer was there.
        side: that answered.
    """

    asked: int
    ended: int
    side: str


@dataclass(frozen=True, slots=True)
class Pointed:
    """A word of an operator, and the side that reads go to by the record once it is carried out.

    Attributes:
        asked, answered: when it was given, and when it was carried out: meanwhile reads may be on either side.
        side: of reads.
    """

    asked: int
    answered: int
    side: str


@dataclass(frozen=True, slots=True)
class State:
    """The rows of one side at one moment, read in one snapshot.

    Attributes:
        side: whose.
        at: when the snapshot was asked for.
        keys: of all rows.
        wrong: sums beside the rows that are no sums of them, in words.
        rows: all that both sides must have in common, as text; only of the last states.
    """

    side: str
    at: int
    keys: tuple[str, ...]
    wrong: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that the machine, or an operator, has done.

    Attributes:
        at: when it was announced: before an opening, behind a closing.
        what: ``fenced``, ``closed``, ``opens``, ``reopens`` or ``opened by hand``.
        side: the side that was opened by hand.
    """

    at: int
    what: str
    side: str = ""


@dataclass(frozen=True, slots=True)
class TwoSides:
    """The whole history.

    Attributes:
        writes: of all clients, in any order.
        seen: states that observers read, in the order of their moments.
        last: the states in the end, of the old and the new side, with everything carried across; empty: it wasn't.
        moments: in their order.
        stuck: words about every time when nobody could write.
        looks: how often somebody looked whether the open side takes writes.
        numbered: whether the servers number the rows: keys are whole numbers that rise.
        reads: of the client that reads; empty: there is none.
        pointed: where reads go, in order.
    """

    writes: tuple[Write, ...]
    seen: tuple[State, ...] = ()
    last: tuple[State, ...] = ()
    moments: tuple[Moment, ...] = ()
    stuck: tuple[str, ...] = ()
    looks: int = 0
    numbered: bool = False
    reads: tuple[Read, ...] = ()
    pointed: tuple[Pointed, ...] = ()


@dataclass(frozen=True, slots=True)
class Period:
    """A time in which a side may have been open.

    Attributes:
        since, until: its first and last moment; None: it lasts.
        by_hand: whether somebody opened it by hand, who may not have waited for what was still to be carried across.
    """

    side: str
    since: int
    until: int | None = None
    by_hand: bool = False


def periods(moments: Iterable[Moment], open_side: str = OLD) -> tuple[Period, ...]:
    """Returns when each side may have been open, the old one from the start on.

    A moment may be announced again by a leader that goes on with a step, or late by one that was replaced while it
    slept: it says nothing where it doesn't follow from the one before. Only the leader of now gets a fence up.
    """
    found, fenced = [Period(open_side, -1)], False
    for moment in sorted(moments, key=lambda one: one.at):
        latest = found[-1]
        closed = latest.until is not None
        if moment.what == FENCED and not closed:
            fenced = True
        elif moment.what == CLOSED and fenced and not closed:
            fenced = False
            found[-1] = replace(latest, until=moment.at)
        elif moment.what == OPENS and closed:
            found.append(Period(across(latest.side), moment.at))
        elif moment.what == REOPENS and closed:
            found.append(Period(latest.side, moment.at))
        elif moment.what == OPENED_BY_HAND and (closed or latest.side != moment.side):
            if not closed:
                found[-1] = replace(latest, until=moment.at)
            found.append(Period(moment.side, moment.at, by_hand=True))
        elif moment.what == REOPENS:
            fenced = False
    return tuple(found)


def due(writes: Iterable[Write], times: Sequence[Period], side: str) -> list[tuple[int, Write]]:
    """Returns the acknowledged writes that a side must show, each with the moment from which on.

    Those that were tried there, once they are answered. Those of the side across, once this one is opened after
    that one was closed: it is opened when everything is carried across. Not by hand, and of that side only those
    that it took while it was open.
    """
    found = []
    for one in acknowledged(list(writes)):
        if one.side == side:
            found.append((one.ended, one))
            continue
        closed = [
            place
            for place, time in enumerate(times)
            if time.side == one.side and time.until is not None and time.since <= one.ended <= time.until
        ]
        later = times[closed[0] + 1 :] if closed else ()
        opened = (time.since for time in later if time.side == side and not time.by_hand)
        if (since := next(opened, None)) is not None:
            found.append((since, one))
    return found


def across(side: str) -> str:
    """Returns the other side."""
    return NEW if side == OLD else OLD


def acknowledged(writes: Sequence[Write]) -> list[Write]:
    """Returns the writes whose commit was answered."""
    return [one for one in writes if one.outcome == OK]
