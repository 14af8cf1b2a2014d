"""Shrinks an incident: fewer transactions, rows, changes and columns, while a judge still sees the failure."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeVar

from migrator.embedded.process import scratch_directory
from migrator.errors import MigratorError
from scenarios.chaos.incident.by_grains import ByGrains
from scenarios.chaos.incident.failure import Judgement
from scenarios.chaos.incident.history import Change, History, Identity, Row, Transaction, identity
from scenarios.chaos.incident.incident_file import Incident
from scenarios.chaos.incident.replay import replay, unpacked_project
from scenarios.chaos.incident.structure import Structure
from scenarios.rehearsal import copied

T = TypeVar("T")
Fails = Callable[[Incident], bool]
"""Tells whether an incident still shows its failure."""


def shrunk(
    incident: Incident,
    seconds: float,
    say: Callable[[str], None] = lambda _: None,
    replayed: Fails | None = None,
    quick: Fails | None = None,
) -> Incident | None:
    """The incident with as little as can be; None where it doesn't show its failure to begin with.

    Args:
        incident: as it was collected.
        seconds: no further attempt begins after so many, but for the replays that prove what was found by then.
        say: hears of the attempts.
        replayed: the judge that counts; a replay on throw-away servers by default.
        quick: a judge that is asked first, where it sees the failure too, and whose answer the other one confirms;
            mapping by grains by default.
    """
    ends = time.monotonic() + seconds
    slow = _Judge(replayed or _reproduced, lambda: time.monotonic() < ends, say)
    with ExitStack() as stack:
        fast = quick if quick is not None or replayed is not None else _by_grains(incident, stack)
        if fast is not None and fast(incident):
            found = _steps(incident, _Judge(fast, lambda: time.monotonic() < ends, say))
            for number, smaller in enumerate(reversed(found)):
                say("a replay of what was found")
                if slow.surely(smaller):
                    return _steps(smaller, slow)[-1] if number else smaller
                say("it doesn't show there")
            say("once more, each attempt a replay")
    return _steps(incident, slow)[-1] if slow.surely(incident) else None


def _steps(incident: Incident, fails: Fails) -> list[Incident]:
    """The incident with fewer transactions, then with fewer rows too, then with fewer columns as well."""
    found = [incident]
    for step in (transactions, rows, columns):
        found.append(step(found[-1], fails))
    return found[1:]


def _by_grains(incident: Incident, stack: ExitStack) -> Fails | None:
    """A judge that maps by grains without servers; None where the mapping can't be loaded."""
    folder = stack.enter_context(scratch_directory("migrator-shrink-"))
    config = unpacked_project(incident, folder)
    try:
        return ByGrains(config.parent / copied.wanted(config).text("migration", "mapping", "mapping.py"))
    except MigratorError:
        return None


def transactions(incident: Incident, fails: Fails) -> Incident:
    """The incident with no transaction that can be left out."""

    def of(kept: Sequence[Transaction]) -> Incident:
        history = replace(incident.history, transactions=tuple(kept))
        return replace(incident, history=consistent(history, incident.structure))

    return of(least(incident.history.transactions, lambda kept: fails(of(kept))))


def rows(incident: Incident, fails: Fails) -> Incident:
    """The incident with no row of the start, and no change, that can be left out."""
    start = [(table, row) for table, found in incident.history.start.items() for row in found]

    def begun(kept: Sequence[tuple[str, Row]]) -> Incident:
        found: dict[str, list[Row]] = {name: [] for name in incident.structure.tables}
        for table, row in kept:
            found[table].append(row)
        return replace(
            incident, history=consistent(replace(incident.history, start=found), incident.structure)
        )

    smaller = begun(least(start, lambda kept: fails(begun(kept))))
    changes = [(one.order, change) for one in smaller.history.transactions for change in one.changes]

    def of(kept: Sequence[tuple[int, Change]]) -> Incident:
        by_order: dict[int, list[Change]] = {}
        for order, change in kept:
            by_order.setdefault(order, []).append(change)
        history = replace(
            smaller.history,
            transactions=tuple(Transaction(order, tuple(found)) for order, found in by_order.items()),
        )
        return replace(smaller, history=consistent(history, smaller.structure))

    return of(least(changes, lambda kept: fails(of(kept))))


def columns(incident: Incident, fails: Fails) -> Incident:
    """The incident with no column that can be left out; keys and columns of foreign keys stay."""
    linked = {
        (table, name)
        for child, names, parent, others in incident.structure.linked()
        for table, of in ((child, names), (parent, others))
        for name in of
    }
    free = [
        (name, column)
        for name, table in incident.structure.tables.items()
        for column in table.names()
        if column not in table.key and (name, column) not in linked
    ]

    def of(kept: Sequence[tuple[str, str]]) -> Incident:
        dropped = {*free} - {*kept}
        return replace(
            incident,
            structure=incident.structure.without(dropped),
            history=_without(incident.history, dropped),
        )

    return of(least(free, lambda kept: fails(of(kept))))


def least(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """A part of a list of which no single piece can be left out (delta debugging: Zeller and Hildebrandt, 2002).

    ``fails`` is asked of parts in the list's order; it holds of the whole list.
    """
    kept, pieces = list(items), 2
    if kept and fails([]):
        return []
    while len(kept) > 1:
        size = -(-len(kept) // pieces)
        for begin in range(0, len(kept), size):
            rest = kept[:begin] + kept[begin + size :]
            if rest and fails(rest):
                kept, pieces = rest, max(pieces - 1, 2)
                break
        else:
            if pieces >= len(kept):
                break
            pieces = min(pieces * 2, len(kept))
    return kept


def consistent(history: History, structure: Structure) -> History:
    """A history of which parts were taken out, as a server takes it: what was an update may become an insert.

    A change of a row that isn't there any more inserts it, a deletion of one is left out, and an insertion of one
    that is there updates it.
    """
    state: dict[Identity, Row] = {
        identity(structure, table, row): row for table, found in history.start.items() for row in found
    }
    result = []
    for transaction in history.transactions:
        changes = [
            done for change in transaction.changes if (done := _again(change, state, structure)) is not None
        ]
        if changes:
            result.append(Transaction(transaction.order, tuple(changes)))
    return replace(history, transactions=tuple(result))


def _again(change: Change, state: dict[Identity, Row], structure: Structure) -> Change | None:
    table = change.table
    if change.before is None and change.after is None:
        gone = [place for place in state if place[0] == table]
        for place in gone:
            del state[place]
        return change if gone else None
    before: Row | None = None
    if change.before is not None:
        before = state.pop(identity(structure, table, change.before), None)
    if change.after is None:
        return None if before is None else Change(table, before, None)
    place = identity(structure, table, change.after)
    if before is None:
        before = state.pop(place, None)
    state[place] = change.after
    return None if before == change.after else Change(table, before, change.after)


def _without(history: History, dropped: set[tuple[str, str]]) -> History:
    def row(table: str, old: Row | None) -> Row | None:
        return (
            None if old is None else {name: one for name, one in old.items() if (table, name) not in dropped}
        )

    start: Mapping[str, Sequence[Row]] = {
        table: [row(table, one) or {} for one in found] for table, found in history.start.items()
    }
    return History(
        start,
        tuple(
            Transaction(
                one.order,
                tuple(
                    Change(change.table, row(change.table, change.before), row(change.table, change.after))
                    for change in one.changes
                ),
            )
            for one in history.transactions
        ),
    )


class _Judge:
    """A judge that is asked once of the same incident, and says no once the time is over."""

    def __init__(self, fails: Fails, more: Callable[[], bool], say: Callable[[str], None]):
        self._fails, self._more, self._say = fails, more, say
        self._known: dict[str, bool] = {}

    def surely(self, incident: Incident) -> bool:
        """Asks also when the time is over: without this answer there is none."""
        return self._asked(incident, more=True)

    def __call__(self, incident: Incident) -> bool:
        return self._asked(incident, self._more())

    def _asked(self, incident: Incident, more: bool) -> bool:
        words = "\n".join(incident.content().values())
        if words not in self._known:
            if self._known and not more:
                return False
            self._known[words] = self._fails(incident)
            start = sum(map(len, incident.history.start.values()))
            self._say(
                f"attempt {len(self._known)}: {start} rows, {len(incident.history.transactions)} transactions: "
                + ("the same failure" if self._known[words] else "another result")
            )
        return self._known[words]


def _reproduced(incident: Incident) -> bool:
    return replay(incident).judgement is Judgement.REPRODUCED
