"""One ADBC connection that does everything of a target transaction: statements, parameters, binary COPY.

The driver runs in autocommit mode and ``BEGIN``/``COMMIT`` are sent as statements: in its own transaction mode
(1.13) it refuses ``ROLLBACK TO SAVEPOINT`` after an error. Its statement options leak from one ingest to the next,
so each ingest has a cursor of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import adbc_driver_manager as manager
import psycopg
import pyarrow as pa

from migrator.adapters.targets.postgres.refusal import Refusal, blamed_on_rows, not_reached, telling_detail
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.adapters.targets.shared.refused import ConnectionLost
from migrator.connections.patience import Line, SilentError, WatchedSession, patiently
from migrator.connections.postgres.refusal import refusal_of
from migrator.connections.postgres.session import connect, open_adbc, pin_adbc
from migrator.errors import ConnectionFailed, TargetError
from migrator.model.table import TableId

# The driver repeats the statement in its messages; a user is helped by the server's words alone.
_STATEMENT = re.compile(r"\n\nQuery was:.*| query '.*'(?=: )", re.DOTALL)
Result = TypeVar("Result")
_WATCHING = "migrator watching a session"


class Session:
    """An open session. One thread uses it.

    Raises ``ConnectionFailed`` when the server can't be reached; every method raises ``Refusal`` with the server's
    report, or ``ConnectionLost``: the connection was cut, or has been silent although nothing is worked on.
    """

    def __init__(self, settings: PostgresTarget):
        self._settings = settings
        self._left_behind = False
        self._waiting: list[str] = []
        self._line = Line(settings.server.host, settings.server.port)
        try:
            self._connection = self._line.connected(lambda: open_adbc(settings.conninfo()))
        except manager.Error as error:
            words = str(error)
            raise not_reached(settings, words, refusal_of(settings.conninfo(), words)) from None
        self.pid, self.backend_start = 0, ""
        self._cursor = self._connection.cursor()
        try:
            pin_adbc(
                lambda query: self._patiently(lambda: self._fetched(query, ())),
                settings.login(),
                settings.pins(),
            )
            row = self.one(
                "SELECT pid, backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()"
            )
        except (ConnectionFailed, TargetError):
            self.close()
            raise
        except (Refusal, ConnectionLost) as error:
            self.close()
            raise not_reached(settings, str(error), getattr(error, "sqlstate", "")) from None
        self.pid, self.backend_start = int(row[0]), str(row[1])

    def later(self, statement: str) -> None:
        """Has a statement run before whatever is asked next, together with all others that wait: the server is asked
        once. What they raise, that raises. Inside a transaction alone."""
        self._waiting.append(statement)

    def forget(self) -> None:
        """Drops the statements that wait: their transaction is undone."""
        self._waiting.clear()

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        """Runs one statement without reading a result."""
        if self._waiting and not parameters:
            self.changed(statement)
            return
        self._settle()
        try:
            self._patiently(lambda: self._cursor.execute(statement, tuple(parameters) or None))
        except manager.Error as error:
            raise self._explained(error) from None

    def _settle(self) -> None:
        """Runs the statements that wait."""
        if self._waiting:
            last = self._waiting.pop()
            self.changed(last)

    def changed(self, statement: str) -> int:
        """Runs one statement, or several separated by semicolons, and returns how many rows the last one wrote."""
        together = ";\n".join([*self._waiting, statement])
        self._waiting.clear()

        def executed() -> int:
            with self._connection.cursor() as cursor:
                cursor.adbc_statement.set_sql_query(together)
                return int(cursor.adbc_statement.execute_update())

        try:
            return self._patiently(executed)
        except manager.Error as error:
            raise self._explained(error) from None

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Runs one query and returns its rows."""
        self._settle()
        try:
            return self._patiently(lambda: self._fetched(statement, parameters))
        except manager.Error as error:
            raise self._explained(error) from None

    def one(self, statement: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...]:
        """The first row of a query that has one."""
        return self.rows(statement, parameters)[0]

    def table(self, statement: str) -> pa.Table:
        """Runs one query and returns its rows as Arrow columns."""
        self._settle()

        def fetched() -> pa.Table:
            self._cursor.execute(statement)
            return self._cursor.fetch_arrow_table()

        try:
            return self._patiently(fetched)
        except manager.Error as error:
            raise self._explained(error) from None

    def parts(self, statement: str) -> Iterator[pa.Table]:
        """The same in parts, for results of any size. To be read to its end before the next statement."""
        self._settle()

        def opened() -> pa.RecordBatchReader:
            self._cursor.execute(statement)
            return self._cursor.fetch_record_batch()

        try:
            reader = self._patiently(opened)
            try:
                while True:
                    try:
                        batch = self._patiently(reader.read_next_batch)
                    except StopIteration:
                        return
                    yield pa.Table.from_batches([batch])
            finally:
                reader.close()
        except manager.Error as error:
            raise self._explained(error) from None

    def load(self, table: TableId | str, rows: pa.Table) -> None:
        """Appends rows by binary COPY: to a table, or to a temporary table when only its name is given."""
        self._settle()

        def ingest() -> None:
            with self._connection.cursor() as cursor:
                if isinstance(table, TableId):
                    cursor.adbc_ingest(table.name, rows, mode="append", db_schema_name=table.schema)
                else:
                    cursor.adbc_ingest(table, rows, mode="append", temporary=True)

        try:
            self._patiently(ingest)
        except manager.Error as error:
            raise self._explained(error) from None

    def alive(self) -> bool:
        """Tells whether the server still answers on this connection."""
        try:
            self._patiently(lambda: self._fetched("SELECT 1", ()))
        except manager.Error as error:
            return error.sqlstate is not None  # an aborted transaction answers too: 25P02
        except ConnectionLost:
            return False
        return True

    def close(self) -> None:
        """Ends the session; an open transaction is rolled back by the server. Safe to call twice."""
        if not self._left_behind:  # else the call that was left behind closes it, should it ever return
            self._close()

    def _fetched(self, statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        self._cursor.execute(statement, tuple(parameters) or None)
        return [tuple(row) for row in self._cursor.fetchall()]

    def _close(self) -> None:
        self._cursor.close()
        self._connection.close()

    def _patiently(self, call: Callable[[], Result]) -> Result:
        """A blocking call of the driver. Raises ``ConnectionLost`` when the server isn't at it any more."""
        if self._left_behind:
            raise ConnectionLost("the connection was given up")
        watched = WatchedSession(
            self._ask,
            (psycopg.Error, SilentError),
            lambda: (self.pid, self.backend_start),
            self._line.carried,
        )
        try:
            return patiently(call, self._settings.server.silence_s, watched.works, self._close)
        except SilentError as silent:
            self._left_behind = True
            raise ConnectionLost(str(silent)) from None

    def _ask(self, statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """A query over a connection of its own, with a deadline."""
        connections: list[psycopg.Connection[Any]] = []

        def ask() -> list[tuple[Any, ...]]:
            connections.append(
                connect(
                    self._settings.conninfo(),
                    self._settings.login(),
                    application_name=_WATCHING,
                    cursor_factory=psycopg.RawCursor,
                )
            )
            with connections[0] as connection:
                return connection.execute(statement, parameters).fetchall()

        def close() -> None:
            for connection in connections:
                connection.close()

        return patiently(ask, self._settings.server.silence_s, lambda: False, close)

    def _explained(self, error: manager.Error) -> Exception:
        message = _STATEMENT.sub("", str(error)).replace("\n", " ").strip()
        if error.sqlstate is None:
            if not self.alive():
                return ConnectionLost(message)
            return Refusal(sqlstate="XX000", message=message)
        fields = dict(_details(error))
        return blamed_on_rows(
            Refusal(
                sqlstate=error.sqlstate,
                message=fields.get("MESSAGE_PRIMARY", message),
                detail=telling_detail(error.sqlstate, fields.get("MESSAGE_DETAIL", "")),
                constraint=fields.get("CONSTRAINT_NAME", ""),
                table=fields.get("TABLE_NAME", ""),
                column=fields.get("COLUMN_NAME", ""),
                context=fields.get("CONTEXT", ""),
                hint=fields.get("MESSAGE_HINT", ""),
            )
        )


def _details(error: manager.Error) -> list[tuple[str, str]]:
    found = []
    for name, value in error.details or []:
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        label = name.decode() if isinstance(name, bytes) else str(name)
        found.append((label.removeprefix("PG_DIAG_"), text))
    return found
