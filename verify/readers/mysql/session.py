"""A session of the judge on MySQL or MariaDB, shared by the readers of both sides."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pymysql
from pymysql.cursors import Cursor

from migrator.connections.mysql.connection import Connection
from migrator.errors import ConnectionFailed, VerifyError
from verify.readers.mysql.pins import pin_judge
from verify.readers.mysql.warnings import heed
from verify.settings import ServerSettings

CONNECT_TIMEOUT_S = 10


_RIGHTS = "GRANT SELECT on the tables concerned to the login; `migrator grants --print` has all rights"
_GONE = "a table or column vanished while it was read: verify again"
_REMEDIES = {
    1044: _RIGHTS,
    1142: _RIGHTS,
    1143: _RIGHTS,
    1227: _RIGHTS,
    1356: _RIGHTS,
    1370: _RIGHTS,
    1054: _GONE,
    1146: _GONE,
    1412: _GONE,
    1205: "verify again when the lock on the table is released",
    2006: "verify again: the connection was lost",
    2013: "verify again: the connection was lost",
}
"""Remedies by the server's or the driver's number of the error."""


def remedy_for(error: Exception) -> str:
    """Tells the user what to do about a statement of ours that was refused."""
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    return _REMEDIES.get(code, "verify again; if it repeats, report it with the cause: the statement is ours")


@contextmanager
def open_session(settings: ServerSettings, side: str) -> Iterator[Any]:
    """An autocommit connection in UTC whose values are text as the server prints it. ``side``: source or target.

    Raises ``ConnectionFailed``, and ``VerifyError`` for what the server refuses inside.
    """
    connection = connect_mysql(settings, as_text=True)
    try:
        yield connection
    except pymysql.err.MySQLError as error:
        raise VerifyError(
            f"the {side} can't be read for verification",
            where=settings.server.url(),
            cause=str(error),
            remedy=remedy_for(error),
        ) from error
    finally:
        connection.close()


def connect_mysql(settings: ServerSettings, left: tuple[str, ...] = (), as_text: bool = False) -> Any:
    """An autocommit connection as the settings say, pinned but for the settings that are ``left`` to the server.

    ``as_text``: values come as the server prints them.

    Raises ``ConnectionFailed``, and ``VerifyError`` for a session that can't be pinned.
    """
    try:
        connection = Connection(
            host=settings.server.host,
            port=settings.server.port,
            user=settings.server.user,
            password=(settings.server.password or "").encode(),
            database=settings.server.database,
            charset="utf8mb4",
            autocommit=None,  # the pins say
            connect_timeout=CONNECT_TIMEOUT_S,
            conv={} if as_text else None,  # None: PyMySQL's own
            **_tls(settings),
        )
        try:
            pin_judge(connection, settings.server.url(), left)
        except BaseException:
            connection.close()
            raise
        return connection
    except (pymysql.err.MySQLError, OSError, RuntimeError, ValueError) as error:
        raise ConnectionFailed(
            "the server can't be reached for verification",
            where=settings.server.url(),
            cause=str(error),
            remedy="check host, port, login and TLS settings",
            retryable=isinstance(error, pymysql.err.OperationalError),
        ) from error


def rows_of(session: Any, statement: str, parameters: Sequence[str] = ()) -> list[tuple[Any, ...]]:
    """All rows of one statement."""
    return rows_and_warnings(session, statement, parameters)[0]


def rows_and_warnings(
    session: Any, statement: str, parameters: Sequence[str] = ()
) -> tuple[list[tuple[Any, ...]], int]:
    """All rows of one statement, and how many warnings the server has about it."""
    with session.cursor(Cursor) as cursor:
        cursor.execute(statement, tuple(parameters) or None)
        return list(cursor.fetchall()), cursor.warning_count


def whole_rows(session: Any, statement: str) -> list[tuple[Any, ...]]:
    """All rows of a question about values. Raises ``VerifyError`` where the server warns of one."""
    rows, warnings = rows_and_warnings(session, statement)
    heed(session, warnings)
    return rows


def quoted(name: str) -> str:
    """An identifier as the server takes it literally."""
    return "`" + name.replace("`", "``") + "`"


def _tls(settings: ServerSettings) -> dict[str, Any]:
    """PyMySQL's options. With a key that is none, it can't send the password under one that the server hands
    out."""
    never = {"server_public_key": b"none"}
    if settings.server.tls == "disable":
        return {"ssl_disabled": True, **never}
    if settings.server.tls == "prefer":
        return never
    context = ssl.create_default_context(cafile=settings.server.tls_ca or None)
    context.check_hostname = settings.server.tls == "verify-full"
    if settings.server.tls == "require":
        context.verify_mode = ssl.CERT_NONE
    return {"ssl": context, **never}
