"""A pinned session of the login that may raise a fence on MySQL or MariaDB.

``lock_wait_timeout`` knows whole seconds only, and while a statement waits for a table everybody queues behind it. So
a second session ends the statement (KILL QUERY) when a try has lasted long enough.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pymysql

from migrator.adapters.fences.shared.session import TRY_S, BusyError, in_state
from migrator.connections.mysql.settings import (
    LOST_CODES,
    BinlogSource,
    default_server_id,
    login_problem,
    named_errors,
    opened,
)
from migrator.connections.mysql.states import state_of
from migrator.errors import ConnectionFailed, CutoverError
from migrator.model.server import Server

_BUSY = frozenset({1205, 1213, 1317, 1969, 3024})
"""A lock not had in time, a deadlock, and statements that were ended."""
_NO_SUCH_SESSION = 1094
_WAITS = "SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = %s AND STATE LIKE 'Waiting for%%lock%%'"
_PURPOSE = {"lock_wait_timeout": "1", "innodb_lock_wait_timeout": "1"}


@dataclass(frozen=True, slots=True)
class Words:
    """The statements in which MySQL and MariaDB differ.

    Attributes:
        xa: lists prepared transactions such that their ids can be read.
        roles: query of pairs: a role, and the account or role that has it; both as grants name them.
        channels: query of the names of replication's channels.
        read_only: variables that make the server read-only, the strictest first.
        keep: the word behind SET by which that outlives a restart, where there is one.
        kept: query of the variables that outlive a restart, and their values; empty where there are none.
        exempt: a right whose owners write all the same; empty where nobody does.
        sees: global rights without which others' transactions and sessions are hidden.
        innodb_tables: the view of all tables of InnoDB, also of databases on which the login has no right.
    """

    xa: str
    roles: str
    channels: str
    read_only: tuple[str, ...]
    keep: str
    kept: str
    exempt: str
    sees: tuple[str, ...]
    innodb_tables: str


class MysqlFenceSession:
    """``FenceSession`` over one autocommit connection, and one that ends its waits.

    Raises ``ConnectionFailed`` where they can't be made.
    """

    def __init__(self, server: Server, migration: str, words: Words):
        self._server = server
        self.words = words
        self._source = BinlogSource(server, migration, default_server_id(migration))
        waits: dict[str, Any] = {"read_timeout": server.silence_s, "write_timeout": server.silence_s}
        with named_errors(self._source, "the server of the fence can't be reached"):
            self._connection = opened(self._source, _PURPOSE, **waits)
        try:
            with named_errors(self._source, "the server of the fence can't be reached"):
                self._ending = opened(self._source, _PURPOSE, **waits)
        except BaseException:
            self._connection.close()
            raise
        self.id = int(self._connection.thread_id())

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Returns all rows of one query (see ``FenceSession``)."""
        with self._named(sql), self._connection.cursor() as cursor:
            cursor.execute(sql, tuple(values) or None)
            return list(cursor.fetchall())

    def change(self, *statements: str | tuple[str, Sequence[Any]]) -> None:
        """Runs statements one by one (see ``FenceSession``): each may be run again."""
        for statement in statements:
            sql, values = statement if isinstance(statement, tuple) else (statement, ())
            with self._named(sql), self._ended_after_a_try(), self._connection.cursor() as cursor:
                cursor.execute(sql, tuple(values) or None)

    def kill(self, id_: int) -> None:
        """Ends a session; one that has ended by itself is no error. Raises as ``rows`` does."""
        with self._named("KILL"), self._connection.cursor() as cursor:
            try:
                cursor.execute("KILL %s", (id_,))
            except pymysql.err.MySQLError as error:
                if error.args[0] != _NO_SUCH_SESSION:
                    raise

    def literal(self, text: str) -> str:
        """A string constant, as sessions like this one and the server's client read it."""
        return str(self._connection.escape(text))

    def close(self) -> None:
        """Ends the sessions."""
        for connection in (self._connection, self._ending):
            with suppress(pymysql.err.MySQLError, OSError):
                connection.close()

    @contextmanager
    def _ended_after_a_try(self) -> Iterator[None]:
        """Ends what waits for a lock when a try is over. A statement that is at work, however slowly, goes on."""
        done, ended = threading.Event(), threading.Event()

        def watch() -> None:
            while not done.wait(TRY_S):
                with suppress(pymysql.err.MySQLError, OSError), self._ending.cursor() as cursor:
                    cursor.execute(_WAITS, (self.id,))
                    if cursor.fetchall():
                        ended.set()
                        cursor.execute("KILL QUERY %s", (self.id,))

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
            if ended.is_set():
                with suppress(pymysql.err.MySQLError):  # an end that came too late meets this one
                    self._connection.query("DO 0")

    @contextmanager
    def _named(self, statement: str) -> Iterator[None]:
        try:
            yield
        except (pymysql.err.MySQLError, OSError) as error:
            code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
            words = str(error.args[1]) if len(error.args) > 1 else str(error)
            if code in _BUSY:
                raise BusyError(words) from None
            lost = isinstance(error, (OSError, pymysql.err.InterfaceError)) or code in LOST_CODES
            if lost or login_problem(error):
                raise ConnectionFailed(
                    "the session of the fence was lost, or can't be had",
                    where=self._server.address,
                    cause=words,
                    remedy="check that the server runs and lets the login in; then do it again",
                    retryable=True,
                ) from None
            if (state := state_of(code, words)) is not None:
                raise in_state(state, self._server.address, f"error {code}: {words}") from None
            raise CutoverError(
                "the server refuses a statement of the fence",
                where=self._server.address,
                cause=f"error {code}: {words} (statement: {' '.join(statement.split())[:300]})",
                remedy="use a login that owns the tables and may end sessions, or an administrator",
            ) from None


def parted(account: str) -> tuple[str, str]:
    """User and host of an account written ``user@host``; any host where it has none."""
    user, at, host = account.rpartition("@")
    return (user, host) if at else (account, "%")
