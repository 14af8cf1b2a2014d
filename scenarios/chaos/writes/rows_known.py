"""The rows that a client knows: its own, which it may move and delete, and those that all clients share. Pure.

A row that is a client's own is named by no row of anybody else, so that the client may delete it together with what
names it, whatever the others do meanwhile.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

from scenarios.chaos.writes.changes import Change, Values
from scenarios.rehearsal.tables import ForeignKey, Table, in_order

Key = tuple[object, ...]
_OWN = 0.5
"""Share of the first rows that get an owner."""


def key_of(table: Table, values: Values) -> Key:
    """The values of a row's primary key, in the key's order."""
    return tuple(values[name] for name in table.key)


class Known:
    """The rows that one client knows.

    Args:
        tables: all tables by name.
        shared: rows by table that every client may update.
        own: rows by table that only this client touches.
        taken: values of unique columns that are there, by table and columns.
    """

    def __init__(
        self,
        tables: Mapping[str, Table],
        shared: Mapping[str, Sequence[Values]],
        own: Mapping[str, Sequence[Values]],
        taken: Mapping[tuple[str, tuple[str, ...]], set[Key]],
    ):
        self.tables = tables
        self.shared = {name: list(rows) for name, rows in shared.items()}
        self.own: dict[str, dict[Key, dict[str, object]]] = {
            name: {key_of(table, row): dict(row) for row in own.get(name, ())}
            for name, table in tables.items()
        }
        self._taken = {place: set(values) for place, values in taken.items()}

    def apply(self, change: Change) -> None:
        """Takes a committed change in."""
        table = self.tables[change.table]
        rows = self.own[change.table]
        before = rows.pop(tuple(change.key.values()), None) if change.kind != "insert" else {}
        if before is None or change.kind == "delete":
            return  # a shared row: nothing of it that others name is ever changed
        after = {**before, **change.row}
        rows[key_of(table, after)] = after
        for columns in unique_sets(table):
            if all(name in after for name in columns):
                self._taken.setdefault((table.name, columns), set()).add(
                    tuple(after[name] for name in columns)
                )

    def forget(self, changes: Sequence[Change]) -> None:
        """Leaves rows alone of which nobody knows what they are, and those that they may name."""
        for change in changes:
            row = self.own[change.table].pop(tuple(change.key.values()), {})
            self._forget_above(change.table, {**row, **change.row})
            self._forget_above(change.table, row)

    def _forget_above(self, table: str, row: Values) -> None:
        for one in self.tables[table].foreign_keys:
            for key, parent in list(self.own.get(one.parent, {}).items()):
                if names(one, row, parent):
                    del self.own[one.parent][key]
                    self._forget_above(one.parent, parent)

    def is_taken(self, table: Table, row: Values) -> bool:
        """Tells whether a row has, or had, the same values in unique columns."""
        return any(
            tuple(row[name] for name in columns) in self._taken.get((table.name, columns), ())
            for columns in unique_sets(table)
            if all(row.get(name) is not None for name in columns)
        )

    def naming(self, table: str, row: Values) -> list[tuple[str, dict[str, object]]]:
        """Own rows that name a row by a foreign key, as (table, row)."""
        return [
            (name, found)
            for name, child in self.tables.items()
            for one in child.foreign_keys
            if one.parent == table
            for found in self.own[name].values()
            if names(one, found, row)
        ]

    def closes_ring(self, table: str, row: Values, changed: Values) -> bool:
        """Tells whether a row with these new values names one that names it, perhaps by others.

        None of them could be removed then: each would have to go before the next one.
        """
        after, own = {**row, **changed}, (table, key_of(self.tables[table], row))
        links = [one for one in self.tables[table].foreign_keys if changed.keys() & {*one.columns}]
        waiting, seen = self.naming(table, row) if links else [], {own}
        while waiting:
            name, below = waiting.pop()
            place = (name, key_of(self.tables[name], below))
            if place not in seen:
                seen.add(place)
                if any(one.parent == name and names(one, after, below) for one in links):
                    return True
                waiting += self.naming(name, below)
        return False


def names(link: ForeignKey, child: Values, parent: Values) -> bool:
    """Tells whether a row names another one by a foreign key."""
    found = tuple(child.get(name) for name in link.columns)
    return None not in found and found == tuple(parent.get(name) for name in link.parent_columns)


def unique_sets(table: Table) -> Iterator[tuple[str, ...]]:
    """The sets of columns that are unique, the primary key first."""
    yield table.key
    yield from (columns for columns in table.unique if columns != table.key)


def shared_out(
    tables: Mapping[str, Table], rows: Mapping[str, Sequence[Values]], clients: int, seed: int
) -> list[Known]:
    """The first rows, shared out to so many clients, numbered from 0; ``rows`` by table, with all their columns."""
    dice = random.Random(f"{seed}/shared out")
    owners: dict[str, list[int | None]] = {}
    places = _places(tables, rows)
    links = [
        ((name, index), (one.parent, at))
        for name, table in tables.items()
        for one in table.foreign_keys
        if one.parent in tables
        for index, row in enumerate(rows.get(name, ()))
        if (at := places.get((one.parent, one.parent_columns), {}).get(_named(one, row))) is not None
    ]
    above: dict[tuple[str, int], list[tuple[str, int]]] = {}
    for below, parent_place in links:
        above.setdefault(below, []).append(parent_place)
    for name in in_order(tables, tables):
        owners[name] = []
        for index, _ in enumerate(rows.get(name, ())):
            own = [
                owners[parent][place]
                for parent, place in above.get((name, index), ())
                if parent in owners and place < len(owners[parent])
            ]
            heirs = [one for one in own if one is not None]
            drawn = dice.randrange(clients) if dice.random() < _OWN else None
            owners[name].append(heirs[0] if heirs else drawn)
    changed = True
    while changed:  # whoever is named by somebody else's row is everybody's
        changed = False
        for (child, index), (parent, place) in links:
            if owners[parent][place] is not None and owners[parent][place] != owners[child][index]:
                owners[parent][place], changed = None, True
    return [_known(tables, rows, owners, client) for client in range(clients)]


def _known(
    tables: Mapping[str, Table],
    rows: Mapping[str, Sequence[Values]],
    owners: Mapping[str, Sequence[int | None]],
    client: int,
) -> Known:
    def of(owner: int | None) -> dict[str, list[Values]]:
        return {
            name: [row for row, whose in zip(rows.get(name, ()), owners[name], strict=True) if whose == owner]
            for name in tables
        }

    taken = {
        (name, columns): {tuple(row.get(one) for one in columns) for row in rows.get(name, ())}
        for name, table in tables.items()
        for columns in unique_sets(table)
    }
    return Known(tables, of(None), of(client), taken)


def _places(
    tables: Mapping[str, Table], rows: Mapping[str, Sequence[Values]]
) -> dict[tuple[str, tuple[str, ...]], dict[Key, int]]:
    wanted = {(one.parent, one.parent_columns) for table in tables.values() for one in table.foreign_keys}
    return {
        (parent, columns): {
            tuple(row.get(name) for name in columns): index for index, row in enumerate(rows.get(parent, ()))
        }
        for parent, columns in wanted
    }


def _named(link: ForeignKey, row: Values) -> Key:
    return tuple(row.get(name) for name in link.columns)
