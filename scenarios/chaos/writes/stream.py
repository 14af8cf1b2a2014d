"""The writes of one client: a schema and rows in, a seeded stream of transactions out. Pure: no server, no clock.

The same seed gives the same transactions, as long as each ends the same way. A transaction is drawn, written by
somebody else, and settled; only then the next one is drawn, on the rows as they are then.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from scenarios.chaos.writes.awkward import awkward
from scenarios.chaos.writes.changes import Change, Transaction, Values
from scenarios.chaos.writes.rows_known import Known, unique_sets
from scenarios.chaos.writes.weights import Weights
from scenarios.rehearsal.constraints.conditions import fits, of_table
from scenarios.rehearsal.rows import CannotMake, RowMaker
from scenarios.rehearsal.tables import Column, Table

SPREAD = 1_000_000
"""Added to numbers of new keys, so that they meet no row that was there first."""
_DRAWS = 60
_PATIENCE = 10
"""Refusals of a kind of transaction on a table until it is given up, where none was taken yet."""
_NULLS = 0.15
_GOOD = 0.9
"""Share of values of checked columns that are such as the server has taken before."""
_KEPT = 60
_CHILDREN = 3


class CannotDraw(Exception):
    """Raised where no transaction can be drawn any more; the text says why for each table."""


class Stream:
    """The transactions of one client.

    Args:
        known: the rows that the client knows.
        client: its number, from 0 to ``clients`` - 1.
        clients: how many there are.
        seed: of all draws, together with the client's number.
        weights: of kinds, tables and awkward values.
    """

    def __init__(self, known: Known, client: int, clients: int, seed: int, weights: Weights):
        self._known, self._weights = known, weights
        self._dice = random.Random(f"{seed}/{client}")
        self._maker = RowMaker(f"{seed}/{client}/rows", SPREAD)
        self._client, self._clients = client, clients
        self._count = 0
        self._open: Transaction | None = None
        self._good: dict[tuple[str, str], list[object]] = {}
        self._taken: Counter[tuple[str, str]] = Counter()
        self._refused: Counter[tuple[str, str]] = Counter()
        self.why: dict[str, str] = {}
        for name, rows in known.shared.items():
            for row in rows[:_KEPT]:
                self._note_good(known.tables[name], row)

    def next(self) -> Transaction:
        """Draws a transaction, to be settled before the next. Raises ``CannotDraw``."""
        kinds = [name for name, weight in self._weights.kinds.items() if weight]
        weights = [self._weights.kinds[name] for name in kinds]
        tables = [one for one in self._known.tables.values() if one.key and self._weight(one)]
        for _ in range(_DRAWS if tables else 0):
            kind = self._dice.choices(kinds, weights)[0]
            table = self._dice.choices(tables, [self._weight(one) for one in tables])[0]
            if self._given_up(kind, table.name):
                continue
            try:
                changes = self._changes(kind, table)
            except CannotMake as error:
                self.why[table.name] = str(error)
                self._refused[kind, table.name] += 1
                continue
            if changes:
                self._open = Transaction(kind, tuple(changes), undone=kind == "undone")
                return self._open
        said = "; ".join(f"{name}: {why}" for name, why in self.why.items())
        raise CannotDraw(said or "no table with a primary key has a weight")

    def settled(self, taken: bool, why: str = "") -> None:
        """Says how the drawn transaction ended: committed (or undone, as drawn), or refused by the server."""
        found, self._open = self._open, None
        if found is None:
            return
        place = (found.name, found.changes[-1].table)
        if not taken:
            self._refused[place] += 1
            self.why[place[1]] = why.strip().split("\n")[0]
            return
        self._taken[place] += 1
        for change in found.changes:
            self._note_good(self._known.tables[change.table], change.row)
            if not found.undone:
                self._known.apply(change)

    def lost(self) -> None:
        """Says that nobody knows how the drawn transaction ended: its rows are left alone from now on."""
        found, self._open = self._open, None
        if found is not None:
            self._known.forget(found.changes)

    def _weight(self, table: Table) -> float:
        return self._weights.tables.get(table.name, 1.0)

    def _given_up(self, kind: str, table: str) -> bool:
        return self._refused[kind, table] >= _PATIENCE * (1 + self._taken[kind, table])

    def _changes(self, kind: str, table: Table) -> list[Change]:
        if kind in ("insert", "undone"):
            return [self._insert(table)]
        if kind == "family":
            return self._family(table)
        if kind == "update":
            own = list(self._known.own[table.name].values())
            shared = self._known.shared[table.name]
            return self._update(table, own, True) if self._coin(own, shared) else self._update(table, shared)
        if kind == "hot":
            return self._update(table, self._known.shared[table.name][: self._weights.hot_rows])
        row = self._any(list(self._known.own[table.name].values()))
        if row is None:
            return []
        if kind == "delete":
            return self._delete(table, row, set())
        if kind == "move":
            return self._move(table, row)
        return self._again(table, row)

    def _coin(self, own: Sequence[Values], shared: Sequence[Values]) -> bool:
        return bool(own) and (not shared or self._dice.random() < 0.5)

    def _insert(self, table: Table, above: Mapping[str, Values] | None = None) -> Change:
        """A new row. ``above``: rows of the same transaction that it is to name, by table. Raises ``CannotMake``."""
        for _ in range(_DRAWS):
            self._count += 1
            parents = self._parents(table, above or {})
            number = self._client + self._clients * self._count
            row = self._maker.row(table, number, parents)
            fixed = {*parents, *(name for columns in unique_sets(table) for name in columns)}
            loose = {one.name for one in table.columns if one.nullable} - {*table.key, *parents}
            row = {
                name: self._value(table, table.column(name))
                if name not in fixed
                else (None if name in loose and self._dice.random() < _NULLS else value)
                for name, value in row.items()
            }
            row = self._fitted(table, row, fixed)
            if not self._known.is_taken(table, row):
                return Change("insert", table.name, {}, row)
        raise CannotMake(f"{table.name}: no combination of its unique columns is free")

    def _family(self, table: Table) -> list[Change]:
        parent = self._insert(table)
        found = [parent]
        for child in self._known.tables.values():
            if child.name == table.name or not child.key or not self._weight(child):
                continue
            if any(one.parent == table.name for one in child.foreign_keys):
                found += [
                    self._insert(child, {table.name: parent.row})
                    for _ in range(self._dice.randint(1, _CHILDREN))
                ]
        return found if len(found) > 1 and _all_apart(self._known.tables, found) else []

    def _update(self, table: Table, rows: Sequence[Values], own: bool = False) -> list[Change]:
        row = self._any(rows)
        fixed = {*table.key, *self._named_columns(table)}
        columns = [one for one in table.columns if one.written and one.name not in fixed]
        if row is None or not columns:
            return []
        drawn = self._dice.sample(columns, self._dice.randint(1, min(3, len(columns))))
        unique = {name for names in unique_sets(table) for name in names}
        linked = {name for one in table.foreign_keys for name in one.columns}
        # All columns of a CHECK at once: what others have written to a shared row isn't known here.
        beside = {
            name for one in of_table(table) if one.columns & {of.name for of in drawn} for name in one.columns
        }
        drawn += [one for one in columns if one.name in beside - linked - unique and one not in drawn]
        parents = self._parents(table, {}, shared_only=not own) if linked else {}
        found: dict[str, object] = {}
        for column in drawn:
            if column.name in linked:
                found |= {name: parents[name] for name in _together(table, column.name) if name in parents}
            elif column.name in unique and column.nullable and self._dice.random() < _NULLS:
                found[column.name] = None
            elif column.name in unique:
                self._count += 1
                found[column.name] = self._maker.unique(
                    column, self._client + self._clients * self._count, table
                )
            else:
                found[column.name] = self._value(table, column)
        whole = {**row, **found}
        fitted = self._fitted(table, whole, whole.keys() - {one.name for one in columns} | linked | unique)
        found |= {name: value for name, value in fitted.items() if value != whole[name]}
        if fixed & found.keys() or self._known.is_taken(
            table, {**row, **found} if unique & found.keys() else {}
        ):
            return []
        if self._known.closes_ring(table.name, row, found):
            return []
        return [Change("update", table.name, {name: row[name] for name in table.key}, found)]

    def _delete(self, table: Table, row: Values, seen: set[tuple[object, ...]]) -> list[Change]:
        """The row with all that name it, children first."""
        place = (table.name, *(row[name] for name in table.key))
        if place in seen:
            return []
        seen.add(place)
        found = [
            change
            for child, below in self._known.naming(table.name, row)
            for change in self._delete(self._known.tables[child], below, seen)
        ]
        return [*found, Change("delete", table.name, {name: row[name] for name in table.key}, {})]

    def _move(self, table: Table, row: Values) -> list[Change]:
        """Another key for a row that nothing names; columns of foreign keys stay."""
        linked = {name for one in table.foreign_keys for name in one.columns}
        moved = [
            table.column(name) for name in table.key if name not in linked and table.column(name).written
        ]
        if not moved or self._known.naming(table.name, row):
            return []
        self._count += 1
        number = self._client + self._clients * self._count
        fresh = {moved[-1].name: self._maker.unique(moved[-1], number, table)}
        if self._known.is_taken(table, {**{name: row[name] for name in table.key}, **fresh}):
            return []
        if any(one.refuses({**row, **fresh}) for one in of_table(table)):
            return []
        return [Change("update", table.name, {name: row[name] for name in table.key}, fresh)]

    def _again(self, table: Table, row: Values) -> list[Change]:
        if self._known.naming(table.name, row):
            return []
        key = {name: row[name] for name in table.key}
        fixed = {*key, *(name for one in table.foreign_keys for name in one.columns)}
        fixed |= {name for columns in unique_sets(table) for name in columns}
        fresh = {
            name: row[name] if name in fixed else self._value(table, table.column(name))
            for name in table.written()
            if name in row
        }
        fresh = self._fitted(table, fresh, fixed)
        return [Change("delete", table.name, key, {}), Change("insert", table.name, {}, fresh)]

    def _parents(
        self, table: Table, above: Mapping[str, Values], *, shared_only: bool = False
    ) -> dict[str, object]:
        """Values for all columns of foreign keys. Raises ``CannotMake`` where a needed one has nothing to name."""
        found: dict[str, object] = {}
        # A column may be part of several: first those whose rows are settled, then those that leave least choice.
        for one in sorted(table.foreign_keys, key=lambda one: (one.parent not in above, -len(one.columns))):
            parent = above.get(one.parent)
            if parent is None and one.parent in self._known.tables:
                own = [] if shared_only else list(self._known.own[one.parent].values())
                rows = [
                    row
                    for row in (*self._known.shared[one.parent], *own)
                    if all(row.get(other) is not None for other in one.parent_columns)
                    and all(
                        found.get(name, row[other]) == row[other]
                        for name, other in zip(one.columns, one.parent_columns, strict=True)
                    )
                ]
                parent = self._any(rows)
            free = {name for name in one.columns if table.column(name).nullable}
            if parent is None and not free:
                raise CannotMake(f"{one.parent} has no row that {', '.join(one.columns)} could name")
            loose = parent is None or (
                bool(free) and one.parent not in above and self._dice.random() < _NULLS
            )
            for name, other in zip(one.columns, one.parent_columns, strict=True):
                if loose and name in free:
                    found.setdefault(name, None)
                elif parent is not None:
                    found.setdefault(name, parent[other])
        return found

    def _named_columns(self, table: Table) -> set[str]:
        """Columns of a table by which rows of others name its rows."""
        return {
            name
            for other in self._known.tables.values()
            for one in other.foreign_keys
            if one.parent == table.name
            for name in one.parent_columns
        }

    def _value(self, table: Table, column: Column) -> object:
        if column.nullable and self._dice.random() < _NULLS:
            return None
        good = self._good.get((table.name, column.name))
        if good and self._dice.random() < _GOOD:
            return self._dice.choice(good)
        odd = awkward(column) if self._dice.random() < self._weights.awkward else ()
        found = [value for value in odd if fits(table, column.name, value)]
        return self._dice.choice(found) if found else self._maker.value_or_null(column, table)

    def _fitted(self, table: Table, row: Values, fixed: Collection[str]) -> dict[str, object]:
        """The row, drawn again where a CHECK of several columns surely refuses it; ``fixed`` columns stay."""
        return self._maker.fitted(table, row, row.keys() - fixed, lambda column: self._value(table, column))

    def _note_good(self, table: Table, row: Values) -> None:
        """Keeps values that checks, and types without values of our own, have let pass."""
        for name, value in row.items():
            if value is not None and any(name in check for check in table.checks):
                kept = self._good.setdefault((table.name, name), [])
                if value not in kept and len(kept) < _KEPT:
                    kept.append(value)

    def _any(self, rows: Sequence[Values]) -> Values | None:
        return self._dice.choice(rows) if rows else None


def _together(table: Table, column: str) -> list[str]:
    """The columns of all foreign keys that a column is in."""
    return [name for one in table.foreign_keys if column in one.columns for name in one.columns]


def _all_apart(tables: Mapping[str, Table], changes: Sequence[Change]) -> bool:
    """Tells whether new rows of one transaction differ in their unique columns."""
    seen: set[tuple[object, ...]] = set()
    for change in changes:
        for columns in unique_sets(tables[change.table]):
            values = [change.row.get(name) for name in columns]
            place = (change.table, columns, *values)
            if None not in values and place in seen:
                return False
            seen.add(place)
    return True
