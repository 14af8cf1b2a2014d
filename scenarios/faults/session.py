"""Sessions of the fault injector on a side's server, past the proxy."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import psycopg
import pymysql

from migrator.errors import MigratorError
from scenarios.database import Connection, Database

SERVER_ERRORS = (psycopg.Error, pymysql.err.MySQLError)


def execute(database: Database, statements: Sequence[str]) -> int:
    """Runs statements one by one on one connection in autocommit mode; returns the number of rows of the last one.

    They may open transactions of their own. Raises ``MigratorError`` naming the statement that failed.
    """
    connection = database.connect(autocommit=True)
    try:
        rows = 0
        for statement in statements:
            rows = _run(connection, statement)[1]
        return rows
    finally:
        connection.close()


def query(database: Database, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of one query, with ``%s`` for each parameter."""
    connection = database.connect(autocommit=True)
    try:
        return run(connection, statement, parameters)
    finally:
        connection.close()


def run(connection: Connection, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """The rows of one statement; none if it has no result. Raises ``MigratorError`` with the server's words."""
    return _run(connection, statement, parameters)[0]


def _run(
    connection: Connection, statement: str, parameters: Sequence[Any] = ()
) -> tuple[list[tuple[Any, ...]], int]:
    cursor = connection.cursor()
    try:
        cursor.execute(statement, tuple(parameters) or None)
        found = [tuple(row) for row in cursor.fetchall()] if getattr(cursor, "description", None) else []
        return found, cursor.rowcount
    except SERVER_ERRORS as error:
        raise MigratorError(
            "the server refuses a fault's statement", where=statement, cause=str(error).strip()
        ) from error
    finally:
        cursor.close()


class HeldTransaction:
    """A transaction that a thread opens, keeps open and ends.

    Args:
        database: the database to connect to.
        statements: run in the transaction, in order; they may have to wait for locks.
        seconds: how long to stay open after the last statement; 0 until ``end``.
        commit: how it ends.
    """

    def __init__(self, database: Database, statements: Sequence[str], seconds: float, commit: bool):
        self._database = database
        self._statements = statements
        self._seconds = seconds
        self._commit = commit
        self._ending = threading.Event()
        self._error: MigratorError | None = None
        self._thread = threading.Thread(target=self._work, name="held transaction", daemon=True)
        self.open = threading.Event()

    def start(self, wait_s: float) -> None:
        """Starts it; waits a moment for its statements, which may need locks that are freed later.

        Raises the error of a statement that failed by then.
        """
        self._thread.start()
        self.open.wait(wait_s)
        self._raise()

    def end(self, timeout_s: float) -> None:
        """Ends it and waits. Raises the error of a statement that failed."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise MigratorError("a fault's transaction doesn't end", where="; ".join(self._statements))
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        try:
            connection = self._database.connect()
            try:
                for statement in self._statements:
                    run(connection, statement)
                self.open.set()
                self._ending.wait(self._seconds or None)
                if self._commit:
                    connection.commit()
                else:
                    connection.rollback()
            finally:
                connection.close()
        except MigratorError as error:
            self._error = error
        except SERVER_ERRORS as error:
            self._error = MigratorError(
                "a fault's transaction was cut", where="; ".join(self._statements), cause=str(error).strip()
            )
        self.open.set()
