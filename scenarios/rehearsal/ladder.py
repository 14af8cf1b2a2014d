"""The doings of one client of the application, as rungs: the rows that are its own, on both sides, at any rung.

A client adds a row to every table that it writes, then changes each of them, then takes the same way down again: rows
are changed back, and removed. What its rows are on the new side at a rung is what the migration makes of them: it was
seen once, rung by rung, before anything else. So the same client can write to the new tables as well as to the old
ones what means the same, whatever the mapping is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from migrator.errors import MigratorError
from scenarios.database import Cursor
from scenarios.rehearsal.tables import Table, in_order

Place = tuple[str, tuple[object, ...]]
"""A table, and the values of the key of a row."""
Rows = dict[Place, tuple[object, ...]]
"""Rows by their places, all written columns in the table's order."""


class RowGone(MigratorError):
    """A row isn't there any more: the side isn't open, or has lost it."""


@dataclass(frozen=True)
class SideRows:
    """One side's tables as clients write and compare them.

    Attributes:
        postgres: whether values are read and written as texts.
        tables: by name.
        keys: by table, the columns that tell rows apart.
        compared: by table, the columns that the other side's rows determine.
    """

    postgres: bool
    tables: Mapping[str, Table]
    keys: Mapping[str, tuple[str, ...]]
    compared: Mapping[str, tuple[str, ...]]

    def read(self, cursor: Cursor, table: str, keys: Sequence[tuple[object, ...]] | None = None) -> Rows:
        """The rows of a table, or those with these keys."""
        columns, key = self.tables[table].written(), self.keys[table]
        chosen = ", ".join(f"{self._q(name)}::text" if self.postgres else self._q(name) for name in columns)
        text, values = f"SELECT {chosen} FROM {self._q(table)}", []
        if keys is not None:
            if not keys:
                return {}
            one = "(" + " AND ".join(f"{self._q(name)} = %s" for name in key) + ")"
            text += " WHERE " + " OR ".join([one] * len(keys))
            values = [value for members in keys for value in members]
        cursor.execute(text, values or None)
        places = [columns.index(name) for name in key]
        return {(table, tuple(row[place] for place in places)): tuple(row) for row in cursor.fetchall()}

    def same(self, place: Place, one: tuple[object, ...] | None, other: tuple[object, ...] | None) -> bool:
        """Tells whether two versions of a row are the same in what is compared."""
        if one is None or other is None:
            return one is other
        columns = self.tables[place[0]].written()
        return all(
            one[number] == other[number]
            for number, name in enumerate(columns)
            if name in self.compared[place[0]]
        )

    def moved(self, cursor: Cursor, before: Rows, after: Rows) -> int:
        """Writes what leads from some rows to others; the number of rows written. Raises ``RowGone``."""
        order = in_order(self.tables, {place[0] for place in (*before, *after)})
        rank = {table: number for number, table in enumerate(order)}
        gone = sorted((place for place in before if place not in after), key=lambda place: -rank[place[0]])
        come = sorted((place for place in after if place not in before), key=lambda place: rank[place[0]])
        kept = [place for place in after if place in before and before[place] != after[place]]
        for place in (*gone, *kept):
            self._hold(cursor, place)
        for place in gone:
            cursor.execute(f"DELETE FROM {self._q(place[0])} WHERE {self._is(place[0])}", place[1])
        for place in come:
            self._insert(cursor, place[0], after[place])
        for place in kept:
            columns = self.tables[place[0]].written()
            changed = [n for n in range(len(columns)) if before[place][n] != after[place][n]]
            sets = ", ".join(f"{self._q(columns[n])} = %s" for n in changed)
            cursor.execute(
                f"UPDATE {self._q(place[0])} SET {sets} WHERE {self._is(place[0])}",
                [*(after[place][n] for n in changed), *place[1]],
            )
        return len(gone) + len(come) + len(kept)

    def touched(self, cursor: Cursor, rows: Rows) -> int:
        """Writes a row as it is; 0 where there is none. Raises ``RowGone``. A fence refuses it as any other write."""
        for place in rows:
            self._hold(cursor, place)
            as_it_is = " = ".join([self._q(self.keys[place[0]][0])] * 2)
            cursor.execute(f"UPDATE {self._q(place[0])} SET {as_it_is} WHERE {self._is(place[0])}", place[1])
            return 1
        return 0

    def _hold(self, cursor: Cursor, place: Place) -> None:
        """Locks a row. A fence that refuses rows doesn't refuse a statement that meets none."""
        cursor.execute(f"SELECT 1 FROM {self._q(place[0])} WHERE {self._is(place[0])} FOR UPDATE", place[1])
        if not cursor.fetchall():
            raise RowGone("a stream has removed the row since it was read", where=f"{place[0]} {place[1]}")

    def _insert(self, cursor: Cursor, table: str, row: Sequence[object]) -> None:
        columns = self.tables[table].written()
        names = ", ".join(map(self._q, columns))
        identity = "OVERRIDING SYSTEM VALUE " if self.postgres else ""
        marks = ", ".join(["%s"] * len(columns))
        cursor.execute(f"INSERT INTO {self._q(table)} ({names}) {identity}VALUES ({marks})", list(row))

    def _is(self, table: str) -> str:
        return " AND ".join(f"{self._q(name)} = %s" for name in self.keys[table])

    @staticmethod
    def _q(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'


@dataclass
class Ladder:
    """The rungs of a client: its rows on each side (``old``, ``new``) at each rung, from none on."""

    rungs: dict[str, list[Rows]] = field(default_factory=lambda: {"old": [{}], "new": [{}]})

    def __len__(self) -> int:
        return len(self.rungs["old"])

    def add(self, old: Rows, new: Rows) -> None:
        """A further rung: the client's rows there, on both sides."""
        self.rungs["old"].append(old)
        self.rungs["new"].append(new)

    def places(self, side: str) -> dict[str, list[tuple[object, ...]]]:
        """The keys of all rows that are its own at any rung, by table."""
        found: dict[str, dict[tuple[object, ...], None]] = {}
        for rows in self.rungs[side]:
            for table, key in rows:
                found.setdefault(table, {})[key] = None
        return {table: list(keys) for table, keys in found.items()}

    def without(self, side: str, places: set[Place]) -> None:
        """Leaves rows out that aren't its own alone."""
        self.rungs[side] = [
            {place: row for place, row in rows.items() if place not in places} for rows in self.rungs[side]
        ]


def changes(before: Rows, after: Rows) -> dict[Place, tuple[object, ...] | None]:
    """The rows that differ, as they are afterwards; None for those that are gone."""
    found: dict[Place, tuple[object, ...] | None] = {
        place: row for place, row in after.items() if before.get(place) != row
    }
    return found | {place: None for place in before if place not in after}
