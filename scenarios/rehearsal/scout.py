"""Finds out, rung by rung, what a client's rows are on the new side: it writes them to the old one, and looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from scenarios.database import Connection, Database
from scenarios.faults.session import SERVER_ERRORS
from scenarios.rehearsal.clients import Side
from scenarios.rehearsal.ladder import Ladder, Place, Rows, changes
from scenarios.rehearsal.rows import CannotMake, RowMaker
from scenarios.rehearsal.tables import Row, Table, in_order

DRAWS = 40
_SPREADS = (700_000, 30_000, 9_000_000, 9_000, 80_000_000, 90, 150)


@dataclass
class Scouted:
    """The ladders of all clients.

    Attributes:
        ladders: one a client.
        left_out: tables of the old side that no client writes, each with the reason.
        shared: tables of the new side with rows that depend on several clients' rows.
    """

    ladders: list[Ladder] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)


class Scout:
    """Climbs for clients.

    Args:
        sides: by name, with the application's login.
        written: the old tables to write, as the mapping reads them.
        seen: the new tables to look at.
        applied: waits until what was written is applied.
    """

    def __init__(
        self,
        sides: Mapping[str, Side],
        written: Mapping[str, Table],
        seen: Sequence[str],
        applied: Callable[[], None],
    ):
        self._sides, self._written, self._seen, self._applied = sides, written, seen, applied
        self.found = Scouted()

    def climb(self, number: int) -> None:
        """One client's ladder; it stays at its top."""
        ladder, steps = Ladder(), list[tuple[Rows, dict[Place, tuple[object, ...] | None]]]()
        base = last = self._look()
        for old in _Climber(self, number).rungs():
            self._applied()
            now = self._look()
            steps.append((old, changes(last, now)))
            last = now
        places = {place for _, found in steps for place in found}
        rows = {place: base[place] for place in places if place in base}
        ladder.rungs["new"][0] = dict(rows)
        for old, found in steps:
            rows = {place: row for place, row in (rows | found).items() if row is not None}
            ladder.add(old, dict(rows))
        self.found.ladders.append(ladder)

    def done(self) -> Scouted:
        """The ladders, without rows that several clients' rows make."""
        touched: dict[Place, int] = {}
        for one in self.found.ladders:
            for table, keys in one.places("new").items():
                for key in keys:
                    touched[table, key] = touched.get((table, key), 0) + 1
        several = {place for place, times in touched.items() if times > 1}
        for one in self.found.ladders:
            one.without("new", several)
        self.found.shared = {table for table, _ in several}
        return self.found

    def _look(self) -> Rows:
        side = self._sides["new"]
        connection = side.database.connect(autocommit=True)
        try:
            found: Rows = {}
            for table in self._seen:
                found |= side.rows.read(connection.cursor(), table)
            return found
        finally:
            connection.close()


class _Climber:
    """The writes of one client on the old side."""

    def __init__(self, scout: Scout, number: int):
        self._side, self._written = scout._sides["old"], scout._written
        self._left_out, self._number = scout.found.left_out, number
        self._connection: Connection = self._side.database.connect(autocommit=True)
        self._own: dict[str, Row] = {}
        self._places: dict[str, tuple[object, ...]] = {}

    def rungs(self) -> Iterator[Rows]:
        """Makes one write after the other; the client's rows after each."""
        try:
            order = in_order(self._written, self._written)
            for name in order:
                if self._inserted(self._written[name]):
                    yield self._rows()
            for name in order:
                if name in self._own and self._updated(self._written[name]):
                    yield self._rows()
        finally:
            self._connection.close()

    def _inserted(self, table: Table) -> bool:
        if table.name in self._left_out:
            return False
        if not table.key:
            self._left_out[table.name] = "it has no primary key"
            return False
        why = ""
        for draw in range(DRAWS):
            spread = _SPREADS[draw % len(_SPREADS)]
            try:
                row = RowMaker(self._number * 1_000 + draw, spread).row(
                    table, self._number, self._parents(table, draw)
                )
                insert(self._connection, self._side.database, table, row)
            except (CannotMake, *SERVER_ERRORS) as error:
                why = str(error).strip().split("\n")[0]
                continue
            self._own[table.name] = row
            self._places[table.name] = tuple(row[name] for name in table.key)
            return True
        self._left_out[table.name] = f"no row of {DRAWS} was taken: {why}"
        return False

    def _parents(self, table: Table, draw: int) -> Row:
        found: dict[str, object] = {}
        for one in table.foreign_keys:
            if one.parent in self._own:
                values = [self._own[one.parent].get(name) for name in one.parent_columns]
            else:
                values = (
                    existing(self._connection, self._side.database, one.parent, one.parent_columns, draw)
                    or []
                )
            if not values:
                if not all(table.column(name).nullable for name in one.columns):
                    raise CannotMake(f"{one.parent} has no row that {', '.join(one.columns)} could name")
                values = [None] * len(one.columns)
            for name, value in zip(one.columns, values, strict=True):
                found.setdefault(name, value)
        return found

    def _updated(self, table: Table) -> bool:
        row = self._own[table.name]
        fixed = {*table.key, *(name for one in table.unique for name in one)}
        fixed |= {name for one in table.foreign_keys for name in one.columns}
        referenced = {
            name
            for other in self._written.values()
            for one in other.foreign_keys
            if one.parent == table.name
            for name in one.parent_columns
        }
        for draw in range(DRAWS):
            try:
                maker = RowMaker(self._number * 1_000 + 500 + draw)
                kept = {name: value for name, value in row.items() if name in fixed | referenced}
                fresh = maker.row(table, self._number, kept)
            except CannotMake:
                return False
            changed = [name for name, value in fresh.items() if value != row[name]]
            if not changed:
                continue
            cursor = self._connection.cursor()
            sets = ", ".join(f"{_q(name)} = %s" for name in changed)
            is_it = " AND ".join(f"{_q(name)} = %s" for name in table.key)
            try:
                cursor.execute(
                    f"UPDATE {_q(table.name)} SET {sets} WHERE {is_it}",
                    [*(fresh[name] for name in changed), *(row[name] for name in table.key)],
                )
            except SERVER_ERRORS:
                continue
            self._own[table.name] = fresh
            return True
        return False

    def _rows(self) -> Rows:
        found: Rows = {}
        for table, key in self._places.items():
            found |= self._side.rows.read(self._connection.cursor(), table, [key])
        return found


def insert(connection: Connection, database: Database, table: Table, row: Row) -> None:
    """Inserts one row. Raises a driver's error where the server refuses it."""
    names = ", ".join(map(_q, row))
    identity = "OVERRIDING SYSTEM VALUE " if database.kind == "postgresql" else ""
    marks = ", ".join(["%s"] * len(row))
    connection.cursor().execute(
        f"INSERT INTO {_q(table.name)} ({names}) {identity}VALUES ({marks})", list(row.values())
    )


def existing(
    connection: Connection, database: Database, table: str, columns: Sequence[str], number: int
) -> list[object] | None:
    """Values of some row of a table; None where it is empty."""
    cursor = connection.cursor()
    postgres = database.kind == "postgresql"
    chosen = ", ".join(f"{_q(name)}::text" if postgres else _q(name) for name in columns)
    cursor.execute(f"SELECT {chosen} FROM {_q(table)} ORDER BY {', '.join(map(_q, columns))} LIMIT 50")
    found = cursor.fetchall()
    return list(found[number % len(found)]) if found else None


def _q(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
