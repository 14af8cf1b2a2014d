"""An action's access to its client's transaction: statements, write numbers, and notes of the rows it wrote."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from migrator.errors import MigratorError
from scenarios.database import Connection, Database
from scenarios.row_writes import Notes
from verify.history.history import DELETE, PUT


class Session:
    """One thread's transaction in progress, as actions see it: statements, and the rows they changed.

    Args:
        connection: the thread's.
        rng: the thread's.
        client: number of the client, from 1: the ``session`` of the rows it writes.
        numbers: gives the client's write numbers, over all its transactions.
        notes: takes the row writes.
        database: where the connection leads.
        exact: actions are to write only what comes back unchanged from the new schema, where they can choose.

    Attributes:
        row_changes: rows changed so far.
        bulk_changes: those of them that count neither for the rate nor for the limit of row changes.
    """

    def __init__(
        self,
        connection: Connection,
        rng: random.Random,
        *,
        client: int = 1,
        numbers: Iterator[int] | None = None,
        notes: Notes | None = None,
        database: Database | None = None,
        exact: bool = False,
    ):
        self.rng = rng
        self.exact = exact
        self.client = client
        self.row_changes = 0
        self.bulk_changes = 0
        self.notes = notes or Notes(client, 1, 0)
        self._connection = connection
        self._numbers = numbers or count(1)
        self._database = database

    @property
    def database(self) -> Database:
        """The database that the connection leads to. Raises MigratorError in a session created without one."""
        if self._database is None:
            raise MigratorError("this session does not know its database", remedy="give it one")
        return self._database

    def change(self, statement: str, *parameters: object, bulk: bool = False) -> int:
        """Run an INSERT, UPDATE or DELETE; returns and counts the rows changed, for the rate unless ``bulk``."""
        cursor = self._connection.cursor()
        try:
            cursor.execute(statement, parameters)
            changed = max(cursor.rowcount, 0)
        finally:
            cursor.close()
        self.row_changes += changed
        if bulk:
            self.bulk_changes += changed
        return changed

    def rows(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Run a SELECT and return all its rows."""
        cursor = self._connection.cursor()
        try:
            cursor.execute(statement, parameters)
            return [tuple(row) for row in cursor.fetchall()]
        finally:
            cursor.close()

    def number(self, rows: int = 1) -> int:
        """The client's next write number, or the first of so many; never given twice, whatever comes of it."""
        first = next(self._numbers)
        for _ in range(rows - 1):
            next(self._numbers)
        return first

    def note_put(self, table: str, key: str, number: int, value: int | None = None, *, rows: int = 1) -> None:
        """A row was inserted or updated and now has this number of this client; see ``RowWrite.rows``."""
        self.notes.add(self.client, number, table, key, PUT, value, rows)

    def note_delete(
        self, table: str, key: str, session: int, number: int, value: int | None = None, *, rows: int = 1
    ) -> None:
        """A row was deleted whose provenance was read in this transaction, under a lock."""
        self.notes.add(session, number, table, key, DELETE, value, rows)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """A part of the transaction that is undone, with its notes, if its body raises ``RollBack``."""
        mark, row_changes, bulk_changes = len(self.notes.writes), self.row_changes, self.bulk_changes
        self._run("SAVEPOINT part")
        try:
            yield
        except RollBack:
            self._run("ROLLBACK TO SAVEPOINT part")
            self.notes.undo(mark)
            self.row_changes, self.bulk_changes = row_changes, bulk_changes
        self._run("RELEASE SAVEPOINT part")

    def _run(self, statement: str) -> None:
        cursor = self._connection.cursor()
        try:
            cursor.execute(statement)
        finally:
            cursor.close()


class RollBack(Exception):
    """Raised by an action that changes its mind: everything it did is undone."""


class ClientFailed(Exception):
    """Raised by an action whose work another program does, when that program failed: nobody knows what it did."""
