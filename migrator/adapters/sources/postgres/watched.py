"""Blocking calls on the source's connections that end when the server isn't at them any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import adbc_driver_manager
import psycopg

from migrator.adapters.sources.postgres.connection import (
    connect,
    connect_failure,
    conninfo,
    login,
    query_failure,
)
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.connections.patience import Line, SilentError, WatchedSession, patiently
from migrator.connections.postgres.refusal import refusal_of
from migrator.connections.postgres.session import open_adbc, pin_adbc
from migrator.errors import ConnectionFailed, MigratorError

Result = TypeVar("Result")

_SESSION = (
    "SELECT pid, backend_start::pg_catalog.text FROM pg_catalog.pg_stat_activity"
    " WHERE pid = pg_catalog.pg_backend_pid()"
)


class SilentSource(ConnectionFailed):
    """A line fell silent. The call was left behind with its connection, which nobody may touch any more."""


class WatchedConnection:
    """An ADBC connection, made by the first call. One thread uses it.

    Args:
        source: the server.
        prepare: a query to run first on the new connection.
    """

    def __init__(self, source: PostgresSource, prepare: str):
        self._source = source
        self._prepare = prepare
        self._connection: Any = None
        self._line = Line(source.server.host, source.server.port)
        self._session: tuple[int, str] = (0, "")

    def call(self, what: str, work: Callable[[Any], Result]) -> Result:
        """The result of ``work(cursor)``; raises what it raises.

        Raises ``ConnectionFailed`` when no connection can be made, ``SilentSource`` when it has fallen silent.
        """

        def run() -> Result:
            with self._opened().cursor() as cursor:
                return work(cursor)

        watched = WatchedSession(
            partial(_ask, self._source), (MigratorError,), lambda: self._session, self._line.carried
        )
        try:
            return patiently(run, self._source.server.silence_s, watched.works, self.close)
        except SilentError as silent:
            raise silent_source(self._source, what, silent) from None

    def close(self) -> None:
        """Ends the connection. Not to be called after it fell silent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _opened(self) -> Any:
        if self._connection is None:
            dsn = conninfo(self._source, "chunks")
            try:
                self._connection = self._line.connected(lambda: open_adbc(dsn))
            except adbc_driver_manager.Error as error:
                words = str(error)
                raise connect_failure(self._source, words, refusal_of(dsn, words)) from error
            with self._connection.cursor() as cursor:

                def asked(query: str) -> None:
                    cursor.execute(query)
                    cursor.fetchall()

                pin_adbc(asked, login(self._source))
                asked(self._prepare)
                cursor.execute(_SESSION)
                pid, start = cursor.fetchone()
                self._session = int(pid), str(start)
        return self._connection


class BriefConnection:
    """A psycopg connection for short statements, made by the first call and again after a failure.

    Args:
        source: the server.
        purpose: part of its ``application_name``.
    """

    def __init__(self, source: PostgresSource, purpose: str):
        self._source = source
        self._purpose = purpose
        self._connection: psycopg.Connection[Any] | None = None

    def call(self, what: str, work: Callable[[psycopg.Connection[Any]], Result]) -> Result:
        """The result of ``work(connection)``. Raises ``SourceError``, and ``ConnectionFailed``, also when
        silent."""
        kept, self._connection = self._connection, None
        connections = [kept] if kept is not None and not kept.closed else []

        def run() -> Result:
            if not connections:
                connections.append(connect(self._source, self._purpose))
                self._connected(connections[0])
            return work(connections[0])

        def close() -> None:
            for connection in connections:
                connection.close()

        try:
            result = self._awaited(what, run, close)
        except psycopg.Error as error:
            close()
            raise query_failure(self._source, what, error) from error
        except SilentSource:  # the call that was left behind closes it
            raise
        except BaseException:
            close()
            raise
        self._connection = connections[0]
        return result

    def _connected(self, connection: psycopg.Connection[Any]) -> None:
        """A connection was made."""

    def _awaited(self, what: str, run: Callable[[], Result], leave: Callable[[], None]) -> Result:
        return within(self._source, what, run, leave)

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class PatientConnection(BriefConnection):
    """The same for statements that may take long: given up only when the server no longer works on them."""

    def __init__(self, source: PostgresSource, purpose: str):
        super().__init__(source, purpose)
        self._session: tuple[int, str] = (0, "")

    def _connected(self, connection: psycopg.Connection[Any]) -> None:
        row = connection.execute(_SESSION).fetchone()
        if row is not None:
            self._session = int(row[0]), str(row[1])

    def _awaited(self, what: str, run: Callable[[], Result], leave: Callable[[], None]) -> Result:
        asking = partial(_ask, self._source)
        watched = WatchedSession(asking, (MigratorError,), lambda: self._session)
        try:
            return patiently(run, self._source.server.silence_s, watched.works, leave)
        except SilentError as silent:
            raise silent_source(self._source, what, silent) from None


def _ask(source: PostgresSource, statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """A query about a session, over a connection of its own."""
    asking = BriefConnection(source, "watching")
    try:
        return asking.call(
            "the session can't be asked for",
            lambda other: other.execute(statement, parameters).fetchall(),
        )
    finally:
        asking.close()


def within(
    source: PostgresSource, what: str, call: Callable[[], Result], leave: Callable[[], None]
) -> Result:
    """The result of a call that a working server answers at once (see ``patiently``).

    Raises ``ConnectionFailed`` (retryable) after ``silence_s``, and what it raises.
    """
    try:
        return patiently(call, source.server.silence_s, lambda: False, leave)
    except SilentError as silent:
        raise silent_source(source, what, silent) from None


def silent_source(source: PostgresSource, what: str, silent: SilentError) -> SilentSource:
    """The named error of a line that fell silent."""
    return SilentSource(
        f"{what}: the connection fell silent",
        where=source.server.address,
        cause=str(silent),
        remedy="the connection is made again by itself; check the network if this repeats",
        retryable=True,
    )
