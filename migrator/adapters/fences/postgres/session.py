"""A pinned session of the login that may raise a fence on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import make_conninfo
from sqlalchemy import URL

from migrator.adapters.fences.shared.session import TRY_S, BusyError, in_state
from migrator.connections.patience import SilentError, patiently
from migrator.connections.postgres.refusal import for_good, refusal
from migrator.connections.postgres.session import PINS, Login, connect, parts
from migrator.connections.postgres.states import state_of
from migrator.errors import ConnectionFailed, CutoverError
from migrator.model.server import Server
from migrator.model.table import TableId

_CONNECT_S = 10
SESSION_ID = "{0}pid || '@' || coalesce(extract(epoch FROM {0}backend_start)::text, '')"
"""A session as ``OpenTransaction.id`` names it, of ``pg_stat_activity``: when it began is hidden from logins without
``pg_read_all_stats``."""
_BUSY = frozenset({"55P03", "40P01", "XX000"})
"""A lock not had in time, a deadlock, and a catalog row that another session changed at the same moment."""
_LOST = ("08", "57P")
Result = TypeVar("Result")


class PostgresFenceSession:
    """``FenceSession`` over one autocommit connection. Raises ``ConnectionFailed`` where it can't be made."""

    def __init__(self, server: Server, migration: str):
        self._server = server
        pins = {**PINS, "lock_timeout": f"{int(TRY_S * 1000)}ms"}
        conninfo = make_conninfo(
            **_address(server), application_name=f"migrator {migration} fence", **parts(pins)
        )
        login = Login(server.address, server.user, server.database)
        self._statements, self._left_behind = 0, False
        connections: list[psycopg.Connection[Any]] = []
        with self._named("the connection"):
            self._answered(
                lambda: connections.append(connect(conninfo, login, pins)),
                lambda: connections[0].close() if connections else None,
            )
        (self._connection,) = connections

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Returns all rows of one query (see ``FenceSession``)."""

        def ask() -> list[tuple[Any, ...]]:
            with self._connection.cursor() as cursor:
                cursor.execute(sql.encode(), values or None)
                return cursor.fetchall()

        with self._named(sql):
            return self._answered(ask, self._connection.close)

    def change(self, *statements: str | tuple[str, Sequence[Any]]) -> None:
        """Runs statements in one transaction (see ``FenceSession``)."""

        def run() -> None:
            with self._connection.transaction():
                for statement in statements:
                    sql, values = statement if isinstance(statement, tuple) else (statement, None)
                    self._connection.execute(sql.encode(), values)
                    self._statements += 1

        with self._named(str(statements[0])):
            self._answered(run, self._connection.close)

    def alone(self, statement: str) -> None:
        """Runs a statement that may not stand in a transaction. Raises as ``change`` does."""
        with self._named(statement):
            self._answered(lambda: self._connection.execute(statement.encode()), self._connection.close)

    def close(self) -> None:
        """Ends the session. One that was left behind ends when its last call returns."""
        if not self._left_behind:
            self._connection.close()

    def _answered(self, call: Callable[[], Result], leave: Callable[[], None]) -> Result:
        """The result of a call that ends, or does its next statement, within ``silence_s``; else it is left behind.

        Raises ``psycopg.OperationalError`` then, as for a connection that was cut.
        """
        if self._left_behind:
            raise psycopg.OperationalError("the connection was given up, as nobody answered")
        seen = self._statements

        def works() -> bool:
            nonlocal seen
            before, seen = seen, self._statements
            return seen > before

        try:
            return patiently(call, self._server.silence_s, works, leave)
        except SilentError as silent:
            self._left_behind = True
            raise psycopg.OperationalError(str(silent)) from None

    @contextmanager
    def _named(self, statement: str) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            state, where = refusal(error), self._server.address
            cause = " ".join(str(error).split())
            if state in _BUSY:
                raise BusyError(cause) from None
            if not state or state.startswith(_LOST):
                raise ConnectionFailed(
                    "the session of the fence was lost, or can't be had",
                    where=where,
                    cause=cause,
                    remedy="check that the server runs and lets the login in; then do it again",
                    retryable=not for_good(state, str(error)),
                ) from None
            if (known := state_of(state)) is not None:
                raise in_state(known, where, f"{cause} (SQLSTATE {state})") from None
            raise CutoverError(
                "the server refuses a statement of the fence",
                where=where,
                cause=f"{cause} (SQLSTATE {state}, statement: {' '.join(statement.split())[:300]})",
                remedy="use a login that owns the tables and may end sessions, or a superuser",
            ) from None


def database_url(server: Server) -> URL:
    """The database as Alembic takes it."""
    address = _address(server)
    return URL.create(
        "postgresql+psycopg",
        username=server.user,
        password=server.password,
        host=server.host,
        port=server.port,
        database=server.database,
        query={
            name: str(address[name])
            for name in ("connect_timeout", "sslmode", "sslrootcert")
            if address[name]
        },
    )


def _address(server: Server) -> dict[str, Any]:
    return {
        "host": server.host,
        "port": server.port,
        "dbname": server.database,
        "user": server.user,
        "password": server.password,
        "connect_timeout": _CONNECT_S,
        "sslmode": server.tls or None,
        "sslrootcert": server.tls_ca or None,
    }


def quoted(name: str) -> str:
    """An identifier, quoted."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A string constant, whatever ``standard_conforming_strings`` says."""
    doubled = text.replace("'", "''")
    return "E'" + doubled.replace("\\", "\\\\") + "'" if "\\" in text else f"'{doubled}'"


def quoted_table(table: TableId) -> str:
    """A table's full name, quoted."""
    return f"{quoted(table.schema)}.{quoted(table.name)}"
