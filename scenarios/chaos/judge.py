"""The verdicts on a project's run, by what was seen of both databases, and by the mapping on replayed old rows.

The codes are those of the catalogue's checkers, and mean the same: D1 no time travel, D3 no lost update, D6 atomic
consistent cut, D7 convergence, D8 non-vacuity. Nothing compared is *unknown*.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from scenarios.chaos.snapshots import Seen
from scenarios.chaos.states import Difference, TableState, Texts
from scenarios.chaos.writes.changes import Kind
from scenarios.recording.whole_rows import Committed
from verify.history.checks import atomic_cut, convergence, lost_update, non_vacuity, time_travel
from verify.history.result import CheckResult, WitnessCase

SHOWN = 3
_REFUSED = 0.2
"""Share of refused transactions from which on too little was tried."""
States = Callable[[Seen], Sequence[TableState]]


@dataclass(frozen=True)
class Facts:
    """The record of a run beside the rows.

    Attributes:
        drained: whether the target had caught up in the end.
        halted: the named error with which the run stopped, or "".
        log: the source's transactions.
        acknowledged: row changes that clients were told of as committed, by table and kind.
        ends: how the clients' transactions ended, by outcome.
        replay_differs: old tables that the replayed log doesn't give as they are.
        targets: names of all new tables.
        silent: faults that never did anything.
        left_out: tables that no client could write, with the reason.
    """

    drained: bool
    halted: str
    log: Sequence[Committed]
    acknowledged: Mapping[tuple[str, Kind], int]
    ends: Mapping[str, int]
    replay_differs: Sequence[str]
    targets: Sequence[str]
    silent: Sequence[str] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Found:
    """The sums over all snapshots that were compared; ``whole``: targets that had all their rows once."""

    snapshots: int = 0
    rows: int = 0
    wrong: list[WitnessCase] = field(default_factory=list)
    wrong_number: int = 0
    back: list[WitnessCase] = field(default_factory=list)
    back_number: int = 0
    versions: int = 0
    filled: Counter[str] = field(default_factory=Counter)
    orders: set[int] = field(default_factory=set)
    whole: set[str] = field(default_factory=set)


def sampled(seen: Sequence[Seen], most: int) -> list[Seen]:
    """The snapshots to compare, by place in the log: all, or so many of them, the first and the last among them."""
    ordered = sorted(seen, key=lambda one: (one.ledger.order, one.number))
    if len(ordered) <= most:
        return ordered
    step = (len(ordered) - 1) / max(most - 1, 1)
    return [ordered[round(place * step)] for place in range(most)]


def looked_at(seen: Sequence[Seen], states: States, most: int, seconds: float) -> Found:
    """Compares snapshots with the mapping at their places in the log.

    Args:
        seen: all snapshots in the order in which they were taken.
        states: both sides of a snapshot, at its place in the log; asked with rising places.
        most: how many snapshots are compared at most.
        seconds: how long comparing may take; where it is late, snapshots are passed over, never the last one.
    """
    found, began = Found(), time.monotonic()
    _ledger_back(seen, found)
    history: dict[tuple[str, Texts], list[Texts | None]] = {}
    chosen = sampled(seen, most)
    for place, one in enumerate(chosen):
        late = time.monotonic() - began > seconds * (place + 1) / len(chosen)
        if not late or place in (0, len(chosen) - 1):
            _look(one, states(one), history, found)
    return found


def judged(
    facts: Facts, seen: Sequence[Seen], found: Found, ended: Sequence[TableState]
) -> tuple[CheckResult, ...]:
    """All verdicts.

    Args:
        facts: of the run.
        seen: all snapshots.
        found: of ``looked_at``.
        ended: both sides of the last snapshot and the old database as it is.
    """
    return (
        time_travel.CHECK.verdict(
            found.versions if len(found.orders) > 1 else 0,
            found.back_number,
            found.back[:SHOWN],
            "fewer than two states were compared",
        ),
        _lost(facts, seen),
        atomic_cut.CHECK.verdict(
            found.snapshots if found.rows else 0,
            found.wrong_number,
            found.wrong[:SHOWN],
            "no snapshot with rows was compared",
        ),
        _converged(facts, ended),
        _vacuous(facts, found, len(seen)),
    )


def _look(
    one: Seen,
    states: Sequence[TableState],
    history: dict[tuple[str, Texts], list[Texts | None]],
    found: Found,
) -> None:
    found.snapshots += 1
    found.orders.add(one.ledger.order)
    for state in states:
        found.rows += len(state.found)
        found.filled[state.target] += len(state.found)
        differences = state.differences()
        lacking = [difference for difference in differences if difference.status == "missing"]
        if state.target not in found.whole:  # rows are still on their way: dumped, or filled
            if one.dumped() and not lacking:
                found.whole.add(state.target)
            differences = [difference for difference in differences if difference not in lacking]
        for difference in differences:
            found.wrong_number += 1
            place = f"snapshot {one.number}, place {one.ledger.order}"
            found.wrong.append(WitnessCase(f"{place}: {state.said(difference)}", (), ()))
            earlier = history.get((state.target, difference.key), [])
            if _went_back(difference, earlier):
                found.back_number += 1
                because = ("the row seen is that of an earlier place in the log",)
                found.back.append(WitnessCase(f"{place}: {state.said(difference)}", because, ()))
        expected = state.by_key(state.expected)
        gone = [key for (table, key) in history if table == state.target and key not in expected]
        for key in (*expected, *gone):
            versions = history.setdefault((state.target, key), [])
            row = expected.get(key)
            found.versions += 1
            if not versions or versions[-1] != row:
                versions.append(row)


def _went_back(difference: Difference, earlier: Sequence[Texts | None]) -> bool:
    """Tells whether what was seen is what the mapping made at an earlier place."""
    return difference.status != "twice" and difference.found in earlier


def _ledger_back(seen: Sequence[Seen], found: Found) -> None:
    for before, after in pairwise(seen):
        if after.ledger.order < before.ledger.order:
            found.back_number += 1
            headline = f"the ledger stands at {after.ledger.order} after {before.ledger.order}"
            found.back.append(WitnessCase(headline, (f"snapshots {before.number} and {after.number}",), ()))


def _lost(facts: Facts, seen: Sequence[Seen]) -> CheckResult:
    check = lost_update.CHECK
    logged = Counter[tuple[str, Kind]]()
    for transaction in facts.log:
        for change in transaction.changes:
            kind: Kind = "insert" if change.before is None else "delete" if change.after is None else "update"
            logged[change.table, kind] += 1
    lacking = {
        place: number - logged[place]
        for place, number in facts.acknowledged.items()
        if number > logged[place]
    }
    witnesses = [
        WitnessCase(f"{table}: {number} acknowledged {kind}(s) are not in the source's log", (), ())
        for (table, kind), number in lacking.items()
    ]
    last = max((one.ledger.order for one in seen), default=0)
    behind = [one for one in facts.log if one.order > last]
    if facts.drained and behind:
        headline = f"{len(behind)} transaction(s) of the log lie behind the ledger's last place"
        witnesses.append(WitnessCase(headline, (f"ledger at {last}, log at {behind[-1].order}",), ()))
    if not witnesses and facts.replay_differs:
        return check.unknown(f"the recorded log doesn't give these tables: {', '.join(facts.replay_differs)}")
    return check.verdict(
        sum(facts.acknowledged.values()), len(witnesses), witnesses[:SHOWN], "no write was acknowledged"
    )


def _converged(facts: Facts, ended: Sequence[TableState]) -> CheckResult:
    check = convergence.CHECK
    if facts.halted:
        return check.unknown(f"the run stopped: {facts.halted}")
    if not facts.drained:
        return check.unknown("the target had not caught up")
    wrong = [(state, one) for state in ended for one in state.differences()]
    witnesses = [WitnessCase(state.said(one), (), ()) for state, one in wrong[:SHOWN]]
    rows = sum(len(state.expected) for state in ended)
    return check.verdict(rows, len(wrong), witnesses, "the mapping makes no row of the old tables")


def _vacuous(facts: Facts, found: Found, seen: int) -> CheckResult:
    """Judges D8: whether enough happened that the other verdicts mean something."""
    tried = sum(facts.ends.values())
    refused = facts.ends.get("failed", 0)
    reasons = [f"faults that did nothing: {', '.join(facts.silent)}"] if facts.silent else []
    if tried and refused > tried * _REFUSED:
        why = "; ".join(f"{name}: {said}" for name, said in facts.left_out.items())
        reasons.append(f"the old database refused {refused} of {tried} transactions ({why})")
    if len(found.orders) < 2:
        reasons.append(f"{len(found.orders)} place(s) of the log were compared, of {seen} snapshots")
    empty = [name for name in facts.targets if not found.filled[name]]
    if empty:
        reasons.append(f"no row was seen of {', '.join(empty)}")
    if reasons:
        return non_vacuity.CHECK.unknown("; ".join(reasons), found.snapshots)
    return non_vacuity.CHECK.verdict(found.rows + tried, 0, (), "nothing was compared")
