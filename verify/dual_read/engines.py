"""The engines that dual reads ask, a row each of one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import pymysql

from migrator.model.grants import Grants
from verify.dual_read import grants
from verify.dual_read.places import (
    OpenView,
    change_table_view,
    mariadb_view,
    mysql_view,
    own_words,
    postgres_view,
)
from verify.readers.ledger_row import ledger_state
from verify.readers.mysql.session import connect_mysql, rows_of
from verify.readers.postgres.pins import APPLICATIONS, connect_postgres
from verify.readers.snapshot import LedgerState
from verify.settings import ServerSettings

_NO_TABLE = 1146
_LEDGER = "SELECT epoch, segment, position_order, position_token, checkpoint FROM {} WHERE migration = %s"
GrantsOf = Callable[[ServerSettings, Sequence[str]], Grants]


@dataclass(frozen=True, slots=True)
class AskedEngine:
    """One kind of server. Its functions take a driver's connection.

    Attributes:
        driver: SQLAlchemy's dialect and driver.
        connect: makes a connection, in UTC and read-only.
        view: opens a read view of the old side; of one that triggers capture.
        ledger: begins a transaction, then reads a migration's ledger in it; None where nothing was ever applied.
        limited: limits the queries within it to some seconds, by the server's own clock; the session is left as it
            was found.
        grants: the rights that queries of the old side need, and of the new side, for some tables.
    """

    driver: str
    connect: Callable[[ServerSettings], Any]
    view: Callable[[bool], OpenView]
    ledger: Callable[[Any, str], LedgerState | None]
    limited: Callable[[Any, float], AbstractContextManager[None]]
    grants: tuple[GrantsOf, GrantsOf]


def _postgres_ledger(raw: Any, migration: str) -> LedgerState | None:
    raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    with own_words(raw, in_transaction=True):
        if raw.execute("SELECT to_regclass('migrator.ledger')").fetchone()[0] is None:
            return None
        query = _LEDGER.format("migrator.ledger").replace("checkpoint", "checkpoint::text")
        row = raw.execute(query, (migration,)).fetchone()
    return ledger_state(row, "migrator.ledger") if row else None


@contextmanager
def _postgres_limited(raw: Any, timeout_s: float) -> Iterator[None]:
    raw.execute(f"SET LOCAL statement_timeout = {int(timeout_s * 1000)}")
    yield


def _mysql_connection(settings: ServerSettings) -> Any:
    # What an application's words mean is what its server says, as the application is told.
    connection = connect_mysql(settings, left=("sql_mode",))
    rows_of(connection, "SET SESSION TRANSACTION READ ONLY")
    return connection


def _mysql_ledger(raw: Any, migration: str) -> LedgerState | None:
    rows_of(raw, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    rows_of(raw, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
    try:
        rows = rows_of(raw, _LEDGER.format("migrator_ledger"), (migration,))
    except pymysql.err.ProgrammingError as error:
        if error.args[0] != _NO_TABLE:  # to be hidden from this login is another error than not to be
            raise
        return None
    return ledger_state(rows[0], "migrator_ledger") if rows else None


@contextmanager
def _mysql_limited(name: str, number: Callable[[float], str], raw: Any, timeout_s: float) -> Iterator[None]:
    [(before,)] = rows_of(raw, f"SELECT @@SESSION.{name}")
    rows_of(raw, f"SET SESSION {name} = {number(timeout_s)}")
    try:
        yield
    finally:
        with suppress(pymysql.err.MySQLError):  # a connection that is gone has no settings either
            rows_of(raw, f"SET SESSION {name} = %s", (before,))


def _of_mysql(
    kind: str, product: str, view: OpenView, limit: str, number: Callable[[float], str]
) -> AskedEngine:
    return AskedEngine(
        driver=f"{kind}+pymysql",
        connect=_mysql_connection,
        view=lambda _change_tables: view,
        ledger=_mysql_ledger,
        limited=partial(_mysql_limited, limit, number),
        grants=(partial(grants.mysql_source_grants, product), partial(grants.mysql_target_grants, product)),
    )


ASKED: Mapping[str, AskedEngine] = {
    "postgresql": AskedEngine(
        driver="postgresql+psycopg",
        connect=lambda settings: connect_postgres(settings, APPLICATIONS),
        view=lambda change_tables: change_table_view if change_tables else postgres_view,
        ledger=_postgres_ledger,
        limited=_postgres_limited,
        grants=(grants.postgres_source_grants, grants.postgres_target_grants),
    ),
    "mariadb": _of_mysql("mariadb", "MariaDB", mariadb_view, "max_statement_time", "{:g}".format),
    "mysql": _of_mysql(
        "mysql", "MySQL", mysql_view, "max_execution_time", lambda timeout_s: f"{timeout_s * 1e3:.0f}"
    ),
}
"""The engines by ``kind`` of a server."""


def dialect_kind(name: str, is_mariadb: Callable[[], bool]) -> str | None:
    """Returns the kind of server behind SQLAlchemy's dialect of this name; None for one that isn't asked.

    ``is_mariadb``: asks the server, whose dialect may be MySQL's.
    """
    kind = "mariadb" if name == "mysql" and is_mariadb() else name
    return kind if kind in ASKED else None


def source_grants(settings: ServerSettings, tables: Sequence[str]) -> Grants:
    """Lists the rights that queries of the old side need: reading these tables."""
    return ASKED[settings.server.kind].grants[0](settings, tables)


def target_grants(settings: ServerSettings, tables: Sequence[str]) -> Grants:
    """Lists the rights that queries of the new side need: reading these tables and the ledger, which a first run
    makes."""
    return ASKED[settings.server.kind].grants[1](settings, tables)
