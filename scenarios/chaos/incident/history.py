"""The history of the old rows: those of the start, and the transactions after it, in commit order."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scenarios.chaos.incident.structure import Structure

Cell = str | bytes | None
"""A value as its server takes it back: its text, or bytes."""
Row = Mapping[str, Cell]
Identity = tuple[str, tuple[Cell, ...]]
"""A table, and a key of it."""


@dataclass(frozen=True, slots=True)
class Change:
    """A row before and after a change; None for no row. Neither: the table was emptied."""

    table: str
    before: Row | None
    after: Row | None


@dataclass(frozen=True, slots=True)
class Transaction:
    """Changes that were committed together; ``order`` is their place in the log."""

    order: int
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class History:
    """Old rows and what became of them.

    Attributes:
        start: rows by table, before the first transaction.
        transactions: in commit order.
    """

    start: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    transactions: tuple[Transaction, ...] = ()

    def rows(self) -> int:
        """The number of row images."""
        images = sum((one.before is not None) + (one.after is not None) for one in self.changes())
        return sum(map(len, self.start.values())) + images

    def changes(self) -> list[Change]:
        """All changes in order."""
        return [change for one in self.transactions for change in one.changes]

    def every(self) -> Iterable[tuple[str, Row]]:
        """All row images, each with its table."""
        for table, rows in self.start.items():
            yield from ((table, row) for row in rows)
        for change in self.changes():
            yield from ((change.table, row) for row in (change.before, change.after) if row is not None)

    def mapped(self, cell: Callable[[str, str, Cell], Cell]) -> History:
        """The same with each value replaced; ``cell`` takes table, column and value."""

        def row(table: str, old: Row) -> Row:
            return {name: cell(table, name, value) for name, value in old.items()}

        def changed(one: Change) -> Change:
            before = None if one.before is None else row(one.table, one.before)
            return Change(one.table, before, None if one.after is None else row(one.table, one.after))

        return History(
            {table: [row(table, one) for one in rows] for table, rows in self.start.items()},
            tuple(Transaction(one.order, tuple(map(changed, one.changes))) for one in self.transactions),
        )


def identity(structure: Structure, table: str, row: Row) -> Identity:
    """A row's table and key."""
    return table, tuple(row.get(name) for name in structure.tables[table].key)


def from_place(history: History, structure: Structure, order: int) -> History:
    """The same history, begun at a place: what lies before it is in the rows of the start."""
    state = {identity(structure, table, row): row for table, rows in history.start.items() for row in rows}
    later = deque(history.transactions)
    while later and later[0].order < order:
        for change in later.popleft().changes:
            _apply(state, structure, change)
    start: dict[str, list[Row]] = {name: [] for name in structure.tables}
    for (table, _), row in state.items():
        start[table].append(row)
    return History(start, tuple(later))


def _apply(state: dict[Identity, Row], structure: Structure, change: Change) -> None:
    if change.before is None and change.after is None:
        for place in [place for place in state if place[0] == change.table]:
            del state[place]
    if change.before is not None:
        state.pop(identity(structure, change.table, change.before), None)
    if change.after is not None:
        state[identity(structure, change.table, change.after)] = change.after


def only(history: History, structure: Structure, kept: Collection[Identity]) -> History:
    """The history of some rows: images of others, and transactions that are left with none, aren't in it."""

    def concerned(change: Change) -> bool:
        rows = [row for row in (change.before, change.after) if row is not None]
        return not rows or any(identity(structure, change.table, row) in kept for row in rows)

    transactions = (
        Transaction(one.order, tuple(filter(concerned, one.changes))) for one in history.transactions
    )
    return History(
        {
            table: [row for row in rows if identity(structure, table, row) in kept]
            for table, rows in history.start.items()
        },
        tuple(one for one in transactions if one.changes),
    )


def around(
    history: History, structure: Structure, seeds: Iterable[Identity], most: int
) -> tuple[set[Identity], int]:
    """The rows that are linked with some rows by foreign keys, nearest first, and how many more there are.

    Links are followed both ways, through every version of a row; rows that took each other's key are linked.
    """
    ways: dict[Identity, set[tuple[object, ...]]] = {}
    members: dict[tuple[object, ...], set[Identity]] = {}

    def tie(place: Identity, knot: tuple[object, ...]) -> None:
        ways.setdefault(place, set()).add(knot)
        members.setdefault(knot, set()).add(place)

    for table, row in history.every():
        place = identity(structure, table, row)
        ways.setdefault(place, set())
        for child, columns, parent, others in structure.linked():
            for side, names in ((child, columns), (parent, others)):
                if side == table and None not in (values := tuple(row.get(name) for name in names)):
                    tie(place, (parent, others, values))
    for number, change in enumerate(history.changes()):
        if change.before is not None and change.after is not None:
            tie(identity(structure, change.table, change.before), ("moved", number))
            tie(identity(structure, change.table, change.after), ("moved", number))
    found, beyond = dict.fromkeys(one for one in seeds if one in ways), 0
    queue = deque(found)
    while queue:
        place = queue.popleft()
        for knot in ways[place]:
            for other in members.pop(knot, ()):
                if other in found:
                    continue
                if len(found) >= most:
                    beyond += 1
                    continue
                found[other] = None
                queue.append(other)
    return {*found}, beyond


def start_lines(history: History) -> Iterable[str]:
    """Rows of the start, a line of JSON each."""
    for table, rows in history.start.items():
        yield from (_line({"table": table, "row": _row(row)}) for row in rows)


def transaction_lines(history: History) -> Iterable[str]:
    """Transactions, a line of JSON each."""
    for one in history.transactions:
        changes = [
            {"table": change.table, "before": _row(change.before), "after": _row(change.after)}
            for change in one.changes
        ]
        yield _line({"order": one.order, "changes": changes})


def parsed(structure: Structure, start: str, transactions: str) -> History:
    """The history that ``start_lines`` and ``transaction_lines`` wrote. Raises ``ValueError``, ``KeyError``."""
    rows: dict[str, list[Row]] = {name: [] for name in structure.tables}
    for line in _lines(start):
        found = json.loads(line)
        rows[found["table"]].append(_cells(found["row"]) or {})
    return History(
        rows,
        tuple(
            Transaction(
                int(one["order"]),
                tuple(
                    Change(change["table"], _cells(change["before"]), _cells(change["after"]))
                    for change in one["changes"]
                ),
            )
            for one in map(json.loads, _lines(transactions))
        ),
    )


def _lines(text: str) -> list[str]:
    return [
        one for one in text.split("\n") if one
    ]  # a text may hold what Python takes for further ends of lines


def _line(document: object) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _row(row: Row | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {name: {"hex": one.hex()} if isinstance(one, bytes) else one for name, one in row.items()}


def _cells(found: Mapping[str, Any] | None) -> Row | None:
    if found is None:
        return None
    return {name: bytes.fromhex(one["hex"]) if isinstance(one, dict) else one for name, one in found.items()}
