"""The checks of a cut-over, S1 to S8, each with witnesses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from verify.history.checks.verdict import Check
from verify.history.result import CheckResult, WitnessCase
from verify.two_sides.history import (
    FAILED,
    NEW,
    OLD,
    Pointed,
    Read,
    State,
    TwoSides,
    Write,
    acknowledged,
    due,
    periods,
)

LOST = Check("S1", "no acknowledged write is lost", "acknowledged writes")
TWICE = Check("S2", "none is applied twice, none is made up", "rows")
TWO_OPEN = Check("S3", "never two writable sides", "acknowledged writes")
ORDER = Check("S4", "a session's writes are in its order, on either side", "states")
SOMEBODY = Check("S5", "one side takes writes in the end", "looks")
EQUAL = Check("S6", "both sides end equal through the mapping", "rows")
READS = Check("S7", "reads go where they were pointed", "reads")
NUMBERS = Check("S8", "no number is given twice, none below the other side's", "acknowledged writes")
CHECKS = (LOST, TWICE, TWO_OPEN, ORDER, SOMEBODY, EQUAL)
"""The checks of every cut-over. ``READS`` is of those that point reads alone, ``NUMBERS`` of servers that number."""
_SHOWN = 3
_NO_END = "the ways didn't come to their end"


def judge(history: TwoSides) -> tuple[CheckResult, ...]:
    """All verdicts on a history."""
    found = [one(history) for one in (lost, twice, two_open, out_of_order, nobody_writes, unequal)]
    found += [reads_elsewhere(history)] if history.reads or history.pointed else []
    found += [numbered_again(history)] if history.numbered else []
    return tuple(found)


def lost(history: TwoSides) -> CheckResult:
    """Every acknowledged write is on both sides in the end; a side that opens has all that came before, and shows
    what it has answered."""
    known = acknowledged(history.writes)
    cases = [
        *(
            _case(f"{_named(one)} is not on the {state.side} side in the end", one)
            for state in history.last
            for one in _missing(known, state)
        ),
        *_overdue(history),
    ]
    if not history.last and not cases:
        return LOST.unknown(_NO_END, len(known))
    return LOST.verdict(len(known), len(cases), cases[:_SHOWN], "nothing was acknowledged")


def _missing(known: Sequence[Write], state: State) -> list[Write]:
    there = set(state.keys)
    return [one for one in known if one.key not in there]


def _overdue(history: TwoSides) -> Iterator[WitnessCase]:
    """A state that lacks a write which its side has answered, or which it must have had to be opened."""
    times = periods(history.moments)
    for side in (OLD, NEW):
        wanted = due(history.writes, times, side)
        for state in history.seen:
            if state.side != side:
                continue
            there = set(state.keys)
            late = next((one for at, one in wanted if at < state.at and one.key not in there), None)
            if late is not None:
                yield _case(f"{_named(late)} is not on the {side} side at {state.at}", late)


def twice(history: TwoSides) -> CheckResult:
    """Every row is of one write that a client tried and that may have been committed; sums agree with rows."""
    possible = {one.key for one in history.writes if one.outcome != FAILED}
    cases, checked = [], 0
    for state in (*history.seen, *history.last):
        checked += len(state.keys)
        where = f"on the {state.side} side at {state.at}"
        again = [key for key, count in Counter(state.keys).items() if count > 1]
        cases += [WitnessCase(f"row {key} is there twice, {where}", (), ()) for key in again]
        invented = sorted(set(state.keys) - possible)
        cases += [WitnessCase(f"row {key} is there, {where}: no client's write", (), ()) for key in invented]
        cases += [WitnessCase(f"{said}, {where}", (), ()) for said in state.wrong]
    return TWICE.verdict(checked, len(cases), cases[:_SHOWN], "no row was seen")


def two_open(history: TwoSides) -> CheckResult:
    """Every acknowledged write fell into a time in which its side may have been open."""
    times = periods(history.moments)
    known = acknowledged(history.writes)
    cases = []
    for one in known:
        able = (
            time.since <= one.ended and (time.until is None or one.committing <= time.until)
            for time in times
            if time.side == one.side
        )
        if not any(able):
            fenced = [time.until for time in times if time.side == one.side and time.until is not None]
            before = max((at for at in fenced if at <= one.committing), default=None)
            because = f"the {one.side} side was closed" + (f" at {before}" if before is not None else "")
            cases.append(_case(f"{_named(one)} was acknowledged on a closed side", one, because))
    return TWO_OPEN.verdict(len(known), len(cases), cases[:_SHOWN], "nothing was acknowledged")


def out_of_order(history: TwoSides) -> CheckResult:
    """Whoever sees a client's write sees all that were acknowledged to that client before; nothing seen is unseen."""
    by_client: dict[int, list[Write]] = {}
    for one in sorted(acknowledged(history.writes), key=lambda one: (one.client, one.number)):
        by_client.setdefault(one.client, []).append(one)
    cases = [*_gaps(history, by_client), *_unseen(history)]
    states = len(history.seen) + len(history.last)
    return ORDER.verdict(states, len(cases), cases[:_SHOWN], "no state was seen")


def _gaps(history: TwoSides, by_client: dict[int, list[Write]]) -> Iterator[WitnessCase]:
    for state in (*history.seen, *history.last):
        there = set(state.keys)
        for writes in by_client.values():
            gap: Write | None = None
            for one in writes:
                if one.key not in there:
                    gap = gap or one
                elif gap is not None:
                    headline = f"{_named(one)} shows on the {state.side} side at {state.at}"
                    yield _case(headline, one, f"{_named(gap)}, acknowledged before, doesn't")
                    break


def _unseen(history: TwoSides) -> Iterator[WitnessCase]:
    """A row that a side has shown, and shows no more."""
    for side in (OLD, NEW):
        before: set[str] = set()
        for state in (*history.seen, *history.last):
            if state.side != side:
                continue
            gone = before - set(state.keys)
            if gone:
                yield WitnessCase(f"row {min(gone)} is gone from the {side} side at {state.at}", (), ())
            before = set(state.keys)


def nobody_writes(history: TwoSides) -> CheckResult:
    """Whenever a step had come to its end, the side that is open by the record took writes."""
    cases = [WitnessCase(words, (), ()) for words in history.stuck]
    return SOMEBODY.verdict(history.looks, len(cases), cases[:_SHOWN], "nobody looked")


def unequal(history: TwoSides) -> CheckResult:
    """The last states of both sides are the same."""
    if len(history.last) != 2:
        return EQUAL.unknown(_NO_END)
    old, new = history.last
    rows = Counter(old.rows), Counter(new.rows)
    only = [(old.side, row) for row in sorted((rows[0] - rows[1]).elements())]
    only += [(new.side, row) for row in sorted((rows[1] - rows[0]).elements())]
    cases = [WitnessCase(f"only the {side} side has {row}", (), ()) for side, row in only]
    return EQUAL.verdict(len(old.rows) + len(new.rows), len(cases), cases[:_SHOWN], "both sides are empty")


def reads_elsewhere(history: TwoSides) -> CheckResult:
    """Every read is on the side that the last word of an operator has pointed reads to."""
    cases = []
    for one in history.reads:
        sides = _read_sides(history.pointed, one)
        if one.side not in sides:
            headline = f"a read at {one.asked} was on the {one.side} side"
            cases.append(WitnessCase(headline, (f"reads went to the {', '.join(sorted(sides))} side",), ()))
    missed = sorted({one.side for one in history.pointed} - {one.side for one in history.reads})
    if missed and not cases:
        return READS.unknown(f"nobody read on the {', '.join(missed)} side", len(history.reads))
    return READS.verdict(len(history.reads), len(cases), cases[:_SHOWN], "nobody read")


def _read_sides(pointed: Sequence[Pointed], read: Read) -> set[str]:
    """Returns where a read may be: by the word before it, and by those that were being carried out meanwhile."""
    before = [word.side for word in pointed if word.answered <= read.asked]
    meanwhile = {word.side for word in pointed if word.asked <= read.ended and word.answered > read.asked}
    return {before[-1] if before else OLD, *meanwhile}


def numbered_again(history: TwoSides) -> CheckResult:
    """Every write has a number above all that were given before it was tried, on either side; none collides."""
    known = sorted(acknowledged(history.writes), key=lambda one: one.ended)
    collided = [one for one in history.writes if one.collided]
    cases = [_case(f"{_named(one)} was refused: its number was taken", one) for one in collided]
    highest: Write | None = None
    ended = 0
    for one in sorted(known, key=lambda one: one.committing):
        while ended < len(known) and known[ended].ended < one.committing:
            before = known[ended]
            highest = before if highest is None or int(before.key) > int(highest.key) else highest
            ended += 1
        if highest is not None and int(one.key) <= int(highest.key):
            because = f"{_named(highest)} on the {highest.side} side had {highest.key} before"
            cases.append(_case(f"{_named(one)} got {one.key}", one, because))
    return NUMBERS.verdict(len(known) + len(collided), len(cases), cases[:_SHOWN], "nothing was acknowledged")


def _named(one: Write) -> str:
    return f"write {one.number} of client {one.client}"


def _case(headline: str, one: Write, because: str = "") -> WitnessCase:
    tried = f"key {one.key}, tried on the {one.side} side from {one.committing} to {one.ended}"
    return WitnessCase(headline, tuple(filter(None, (tried, because))), ())
