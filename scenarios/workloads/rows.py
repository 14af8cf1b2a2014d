"""Row writes with provenance: each statement stamps the row with its client and number, and is noted."""

from __future__ import annotations

from dataclasses import dataclass, replace

from scenarios.session import Session
from scenarios.workloads.base import Columns, key_text

Key = int | str | tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Stamp:
    """The last writer of a row, and its value (None in tables without)."""

    session: int
    number: int
    value: int | None


class Rows:
    """Writes the rows of one tracked source table.

    Every method takes the transaction and a key: a value, or a tuple in the key's order. ``others`` are further
    columns by name. Where the table has a value column, the value after the write has to be given or is read.
    """

    def __init__(self, columns: Columns):
        self._columns = columns
        self._table = f'"{columns.table}"'
        self._where = " AND ".join(f'"{name}" = %s' for name in columns.keys)

    def insert(self, session: Session, key: Key, value: int | None = None, **others: object) -> None:
        """A new row; the driver's error if the key is taken."""
        row, number = self._row(session, key, value, others)
        self._note_put(session, key, number, value)  # first: a refused one was tried, too
        session.change(self._insert(row), *row.values())

    def insert_numbered(self, session: Session, value: int | None = None, **others: object) -> None:
        """A new row whose key, a column of one, the server gives. The driver's error if it is taken."""
        (key,) = self._columns.keys
        row, number = self._row(session, "", value, others)
        del row[key]
        mark = len(session.notes.writes)
        self._note_put(session, "", number, value)  # first: a refused one was tried, too
        session.change(self._insert(row), *row.values())
        last = "lastval()" if session.database.kind == "postgresql" else "LAST_INSERT_ID()"
        [(assigned,)] = session.rows(f"SELECT {last}")
        session.notes.writes[mark] = replace(session.notes.writes[mark], key=key_text(_values(int(assigned))))

    def put(self, session: Session, key: Key, amount: int, **others: object) -> None:
        """A new row with this value, or the one that has this key raised by it, in one statement (upsert)."""
        row, number = self._row(session, key, amount, others)
        is_postgres = session.database.kind == "postgresql"
        keys = ", ".join(f'"{name}"' for name in self._columns.keys)
        taken = f"ON CONFLICT ({keys}) DO UPDATE SET " if is_postgres else "ON DUPLICATE KEY UPDATE "
        settings = {
            name: f'excluded."{name}"' if is_postgres else f'VALUES("{name}")'
            for name in row
            if name not in self._columns.keys
        }
        value = self._columns.value
        settings[value] = f'{self._table}."{value}" + {settings[value]}'
        taken += ", ".join(f'"{name}" = {new}' for name, new in settings.items())
        session.change(f"{self._insert(row)} {taken}", *row.values())
        self._note_put(session, key, number, self._value(session, key))

    def update(self, session: Session, key: Key, value: int | None = None, **others: object) -> bool:
        """New values for a row; returns whether there is one."""
        row, number = self._row(session, key, value, others)
        changed = {name: row[name] for name in row if name not in self._columns.keys}
        settings = ", ".join(f'"{name}" = %s' for name in changed)
        if not session.change(
            f"UPDATE {self._table} SET {settings} WHERE {self._where}", *changed.values(), *_values(key)
        ):
            return False
        self._note_put(session, key, number, value)
        return True

    def add(self, session: Session, key: Key, amount: int, **others: object) -> bool:
        """``value = value + amount`` in the server; the sum is read back for the note. Whether there is a row."""
        columns, number = self._columns, session.number()
        settings = {columns.session: session.client, columns.number: number, **others}
        statement = f'UPDATE {self._table} SET "{columns.value}" = "{columns.value}" + %s, ' + ", ".join(
            f'"{name}" = %s' for name in settings
        )
        if not session.change(f"{statement} WHERE {self._where}", amount, *settings.values(), *_values(key)):
            return False
        self._note_put(session, key, number, self._value(session, key))
        return True

    def lock(self, session: Session, key: Key) -> Stamp | None:
        """Keeps others from changing the row until the transaction ends; None if there is none."""
        columns = self._columns
        value = f'"{columns.value}"' if columns.value else "NULL"
        for found in session.rows(
            f'SELECT "{columns.session}", "{columns.number}", {value} FROM {self._table} WHERE {self._where}'
            " FOR UPDATE",
            *_values(key),
        ):
            return Stamp(*found)
        return None

    def delete(self, session: Session, key: Key) -> Stamp | None:
        """Removes a row and returns what it was; None if there is none."""
        stamp = self.lock(session, key)
        if stamp is None:
            return None
        session.change(f"DELETE FROM {self._table} WHERE {self._where}", *_values(key))
        session.note_delete(
            self._columns.table, key_text(_values(key)), stamp.session, stamp.number, stamp.value
        )
        return stamp

    def move(self, session: Session, key: Key, to: Key) -> bool:
        """Gives a row another key, its value stays; whether there is one. The driver's error if ``to`` is taken."""
        stamp = self.lock(session, key)
        if stamp is None:
            return False
        columns, number = self._columns, session.number()
        names = [*columns.keys, columns.session, columns.number]
        settings = ", ".join(f'"{name}" = %s' for name in names)
        session.change(
            f"UPDATE {self._table} SET {settings} WHERE {self._where}",
            *_values(to),
            session.client,
            number,
            *_values(key),
        )
        session.note_delete(columns.table, key_text(_values(key)), stamp.session, stamp.number, stamp.value)
        self._note_put(session, to, number, stamp.value)
        return True

    def _row(
        self, session: Session, key: Key, value: int | None, others: dict[str, object]
    ) -> tuple[dict[str, object], int]:
        columns, number = self._columns, session.number()
        row: dict[str, object] = dict(zip(columns.keys, _values(key), strict=True))
        if columns.value:
            row[columns.value] = value
        return row | {columns.session: session.client, columns.number: number} | others, number

    def _value(self, session: Session, key: Key) -> int:
        """Reads the value of a row that this transaction has written: nobody else can change it now."""
        [(value,)] = session.rows(
            f'SELECT "{self._columns.value}" FROM {self._table} WHERE {self._where}', *_values(key)
        )
        return int(value)

    def _insert(self, row: dict[str, object]) -> str:
        names = ", ".join(f'"{name}"' for name in row)
        return f"INSERT INTO {self._table} ({names}) VALUES ({', '.join(['%s'] * len(row))})"

    def _note_put(self, session: Session, key: Key, number: int, value: int | None) -> None:
        session.note_put(self._columns.table, key_text(_values(key)), number, value)


def _values(key: Key) -> tuple[int | str, ...]:
    return key if isinstance(key, tuple) else (key,)
