"""Queries on a SQLAlchemy engine, each in a read-only transaction of its own that knows where it stands.

Nothing here can write: the transaction is READ ONLY by the server's own rules, and it is rolled back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
import pymysql
from sqlalchemy import URL, Connection, Engine, TextClause, create_engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from migrator.errors import MigratorError, VerifyError
from verify.dual_read.answer import Answer, value_of
from verify.dual_read.engines import ASKED, dialect_kind
from verify.dual_read.places import View
from verify.dual_read.verdict import Failure, Read
from verify.readers.snapshot import LedgerState, LogPlace
from verify.settings import ServerSettings

ROWS_MAX = 10_000
_REFUSED = {1052, 1054, 1055, 1064, 1146, 1222, 1305, 1583}
"""Errors of MySQL and MariaDB that say that the statement itself is wrong."""
_NOT_ALLOWED = "42501"
_FAILURES = (SQLAlchemyError, psycopg.Error, pymysql.err.MySQLError, MigratorError, OSError)


def engine_of(settings: ServerSettings, connections: int) -> Engine:
    """An engine for one side of a project: sessions in UTC, read-only, at most ``connections`` of them."""
    asked = ASKED[settings.server.kind]

    def connect() -> Any:
        return asked.connect(settings)

    url = URL.create(
        asked.driver,
        settings.server.user,
        None,
        settings.server.host,
        settings.server.port,
        settings.server.database,
    )
    return create_engine(url, creator=connect, pool_size=connections, max_overflow=0, pool_timeout=60)


def kind_of(engine: Engine) -> str:
    """``postgresql``, ``mariadb`` or ``mysql``. Raises ``VerifyError`` for any other engine."""

    def is_mariadb() -> bool:
        with engine.connect():  # which of the two it is, the server says
            return bool(getattr(engine.dialect, "is_mariadb", False))

    name = engine.dialect.name
    kind = dialect_kind(name, is_mariadb)
    if kind is None:
        raise VerifyError(
            f"an engine of {name} has no positions",
            where=engine.url.render_as_string(hide_password=True),
            remedy="use PostgreSQL, MariaDB or MySQL, or give callables instead of engines",
        )
    return kind


class OldEngine:
    """The old side. ``timeout_s`` limits each query on the server."""

    def __init__(self, engine: Engine, change_tables: bool = False, timeout_s: float = 30.0):
        self._engine = engine
        self._timeout_s = timeout_s
        self._change_tables = change_tables
        self._kind = ""

    def _open(self, connection: Connection) -> View:
        self._kind = self._kind or kind_of(self._engine)
        return ASKED[self._kind].view(self._change_tables)(_driver(connection))

    def read(self, query: TextClause, parameters: Mapping[str, Any]) -> Read:
        """The answer between two places of the log; a failure is a result too."""
        return _guarded(lambda: self._read(query, parameters))

    def view(self) -> View:
        """The places of a read view opened now. Raises ``VerifyError``, ``ConnectionFailed``."""
        with _named(self._engine), _session(self._engine) as connection:
            return self._open(connection)

    def _read(self, query: TextClause, parameters: Mapping[str, Any]) -> Read:
        with _session(self._engine) as connection:
            view = self._open(connection)
            with ASKED[self._kind].limited(_driver(connection), self._timeout_s):
                answer, elapsed_s = _ask(connection, query, parameters)
            return Read(answer, view.low, view.high, elapsed_s)


class NewEngine:
    """The new side: ledger and answer from one transaction."""

    def __init__(self, engine: Engine, migration: str, timeout_s: float = 30.0):
        self._engine = engine
        self._migration = migration
        self._timeout_s = timeout_s
        self._kind = ""

    def read(self, query: TextClause, parameters: Mapping[str, Any]) -> Read:
        """The answer, and the position that it stands for; a failure is a result too."""
        return _guarded(lambda: self._read(query, parameters))

    def ledger(self) -> LedgerState | None:
        """The ledger now; None where nothing was ever applied. Raises ``VerifyError``, ``ConnectionFailed``."""
        with _named(self._engine), _session(self._engine) as connection:
            return self._ledger(connection)

    def _read(self, query: TextClause, parameters: Mapping[str, Any]) -> Read:
        with _session(self._engine) as connection:
            ledger = self._ledger(connection)
            place = LogPlace(ledger.order, ledger.token) if ledger else None
            with ASKED[self._kind].limited(_driver(connection), self._timeout_s):
                answer, elapsed_s = _ask(connection, query, parameters)
            return Read(answer, place, place, elapsed_s)

    def _ledger(self, connection: Connection) -> LedgerState | None:
        """Begins the transaction, then reads the ledger in it."""
        self._kind = self._kind or kind_of(self._engine)
        return ASKED[self._kind].ledger(_driver(connection), self._migration)


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection


@contextmanager
def _named(engine: Engine) -> Iterator[None]:
    """Turns a refusal of the server into an error of ours, where it isn't about a single comparison."""
    try:
        yield
    except (SQLAlchemyError, psycopg.Error, pymysql.err.MySQLError) as error:
        raise VerifyError(
            "a side of the dual read can't tell where it stands",
            where=engine.url.render_as_string(hide_password=True),
            cause=failure_of(error).text,
            remedy="check that the server is up, and the login's rights: migrator grants --print --dual-read LOGIN",
        ) from error


@contextmanager
def _session(engine: Engine) -> Iterator[Connection]:
    """A connection whose transactions we begin ourselves; they are rolled back at the end."""
    with engine.connect() as pooled:
        connection = pooled.execution_options(isolation_level="AUTOCOMMIT")
        try:
            yield connection
        finally:
            if not connection.invalidated:
                _driver(connection).rollback()


def _ask(connection: Connection, query: TextClause, parameters: Mapping[str, Any]) -> tuple[Answer, float]:
    started = time.perf_counter()
    result = connection.execute(query, dict(parameters))
    rows = result.fetchmany(ROWS_MAX + 1)
    elapsed_s = time.perf_counter() - started
    if len(rows) > ROWS_MAX:
        raise VerifyError(
            f"the answer has more than {ROWS_MAX} rows",
            remedy="narrow the query: dual read compares answers as an application asks for them",
        )
    return Answer(tuple(result.keys()), tuple(tuple(map(value_of, row)) for row in rows)), elapsed_s


def _guarded(read: Callable[[], Read]) -> Read:
    try:
        return read()
    except _FAILURES as error:
        return Read(failure_of(error), None, None, 0.0)


def failure_of(error: BaseException) -> Failure:
    """Describes the error of a side in one line, without the parameters that SQLAlchemy would print."""
    orig = error.orig if isinstance(error, DBAPIError) and error.orig else error
    # MySQL's 42000 means a wrong statement or a missing right: there the number tells which.
    state = (orig.sqlstate if isinstance(orig, psycopg.Error) else None) or ""
    code = orig.args[0] if isinstance(orig, pymysql.err.MySQLError) and orig.args else None
    wrong = (state.startswith("42") and state != _NOT_ALLOWED) or code in _REFUSED
    text = " ".join(str(orig).split())
    return Failure(f"{type(orig).__name__}: {text[:300]}", wrong)
