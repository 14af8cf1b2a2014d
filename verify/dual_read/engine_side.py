"""Queries on a SQLAlchemy engine, each in a read-only transaction of its own that knows where it stands.

Nothing here can write: the transaction is READ ONLY by the server's own rules, and it is rolled back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pymysql
from sqlalchemy import URL, Connection, Engine, TextClause, create_engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from migrator.errors import MigratorError, VerifyError
from verify.dual_read.answer import Answer, value_of
from verify.dual_read.places import View, opener, own_words
from verify.dual_read.verdict import Failure, Read
from verify.readers.ledger_row import ledger_state
from verify.readers.mysql.session import connect_mysql, rows_of
from verify.readers.postgres.pins import APPLICATIONS, connect_postgres
from verify.readers.snapshot import LedgerState, LogPlace
from verify.settings import ServerSettings

ROWS_MAX = 10_000
_REFUSED = {1052, 1054, 1055, 1064, 1146, 1222, 1305, 1583}
"""Errors of MySQL and MariaDB that say that the statement itself is wrong."""
_NOT_ALLOWED = "42501"
_NO_TABLE = 1146
_FAILURES = (SQLAlchemyError, psycopg.Error, pymysql.err.MySQLError, MigratorError, OSError)
_LEDGER = "SELECT epoch, segment, position_order, position_token, checkpoint FROM {} WHERE migration = %s"


def engine_of(settings: ServerSettings, connections: int) -> Engine:
    """An engine for one side of a project: sessions in UTC, read-only, at most ``connections`` of them."""
    if settings.server.kind == "postgresql":
        driver, connect = "postgresql+psycopg", lambda: connect_postgres(settings, APPLICATIONS)
    else:
        driver, connect = f"{settings.server.kind}+pymysql", lambda: _mysql(settings)
    url = URL.create(
        driver,
        settings.server.user,
        None,
        settings.server.host,
        settings.server.port,
        settings.server.database,
    )
    return create_engine(url, creator=connect, pool_size=connections, max_overflow=0, pool_timeout=60)


def _mysql(settings: ServerSettings) -> Any:
    # What an application's words mean is what its server says, as the application is told.
    connection = connect_mysql(settings, left=("sql_mode",))
    rows_of(connection, "SET SESSION TRANSACTION READ ONLY")
    return connection


def kind_of(engine: Engine) -> str:
    """``postgresql``, ``mariadb`` or ``mysql``. Raises ``VerifyError`` for any other engine."""
    name = engine.dialect.name
    if name == "mysql":
        with engine.connect():  # which of the two it is, the server says
            name = "mariadb" if getattr(engine.dialect, "is_mariadb", False) else "mysql"
    if name not in ("postgresql", "mariadb", "mysql"):
        raise VerifyError(
            f"an engine of {name} has no positions",
            where=engine.url.render_as_string(hide_password=True),
            remedy="use PostgreSQL, MariaDB or MySQL, or give callables instead of engines",
        )
    return name


class OldEngine:
    """The old side. ``timeout_s`` limits each query on the server."""

    def __init__(self, engine: Engine, change_tables: bool = False, timeout_s: float = 30.0):
        self._engine = engine
        self._timeout_s = timeout_s
        self._change_tables = change_tables
        self._kind = ""

    def _open(self, connection: Connection) -> View:
        self._kind = self._kind or kind_of(self._engine)
        return opener(self._kind, self._change_tables)(_driver(connection))

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
            with _limited(connection, self._kind, self._timeout_s):
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
            with _limited(connection, self._kind, self._timeout_s):
                answer, elapsed_s = _ask(connection, query, parameters)
            return Read(answer, place, place, elapsed_s)

    def _ledger(self, connection: Connection) -> LedgerState | None:
        """Begins the transaction, then reads the ledger in it."""
        self._kind = self._kind or kind_of(self._engine)
        raw = _driver(connection)
        if self._kind == "postgresql":
            raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            with own_words(raw, in_transaction=True):
                if raw.execute("SELECT to_regclass('migrator.ledger')").fetchone()[0] is None:
                    return None
                query = _LEDGER.format("migrator.ledger").replace("checkpoint", "checkpoint::text")
                row = raw.execute(query, (self._migration,)).fetchone()
            return ledger_state(row, "migrator.ledger") if row else None
        rows_of(raw, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        rows_of(raw, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        try:
            rows = rows_of(raw, _LEDGER.format("migrator_ledger"), (self._migration,))
        except (
            pymysql.err.ProgrammingError
        ) as error:  # to be hidden from this login is another error than not to be
            if error.args[0] != _NO_TABLE:
                raise
            return None
        return ledger_state(rows[0], "migrator_ledger") if rows else None


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection


@contextmanager
def _named(engine: Engine) -> Iterator[None]:
    """A refusal of the server as an error of ours, for where no single comparison can take the blame."""
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
    """A connection whose transactions we begin ourselves; whatever was begun is rolled back."""
    with engine.connect() as pooled:
        connection = pooled.execution_options(isolation_level="AUTOCOMMIT")
        try:
            yield connection
        finally:
            if not connection.invalidated:
                _driver(connection).rollback()


@contextmanager
def _limited(connection: Connection, kind: str, timeout_s: float) -> Iterator[None]:
    """Limits queries by the server's own clock; the session is left as it was found."""
    if kind == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {int(timeout_s * 1000)}")
        yield
        return
    name, value = (
        ("max_statement_time", timeout_s) if kind == "mariadb" else ("max_execution_time", timeout_s * 1e3)
    )
    raw = _driver(connection)
    [(before,)] = rows_of(raw, f"SELECT @@SESSION.{name}")
    rows_of(
        raw, f"SET SESSION {name} = {value:.0f}" if kind == "mysql" else f"SET SESSION {name} = {value:g}"
    )
    try:
        yield
    finally:
        with suppress(pymysql.err.MySQLError):  # a connection that is gone has no settings either
            rows_of(raw, f"SET SESSION {name} = %s", (before,))


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
