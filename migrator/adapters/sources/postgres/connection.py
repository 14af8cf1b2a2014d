"""Connections to the source: pinned (``postgres_session``), TLS, keepalives, and errors with a name and a remedy.

The settings that shape a value's text are the same in the walsender's session and in a chunk's session, so a
value has one canonical text whichever way it comes.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.connections.postgres import session as postgres_session
from migrator.connections.postgres.session import Login
from migrator.errors import ConnectionFailed, MigratorError, SourceError

RECOVERY = "SELECT pg_catalog.pg_is_in_recovery()"
"""Whether the server is a standby."""

# (words of the server or libpq, what, remedy, retryable). A failed connect carries no SQLSTATE, only text;
# the texts are English unless the server's lc_messages says otherwise, then the last resort below keeps its
# words.
_CONNECT_FAILURES = (
    (
        "too many connections",
        "the source has no free connection",
        "raise max_connections, or end idle sessions",
        True,
    ),
    (
        "too many clients",
        "the source has no free connection",
        "raise max_connections, or end idle sessions",
        True,
    ),
    ("remaining connection slots", "the source has no free connection", "raise max_connections", True),
    (
        "max_wal_senders",
        "the source has no free WAL sender",
        "raise max_wal_senders and restart the source",
        True,
    ),
    ("password authentication failed", "the source refuses the password", "set the right password", False),
    ("no password supplied", "the source asks for a password", "set source.password_env", False),
    (
        "pg_hba.conf",
        "the source admits no such login",
        "add a line for this user and host to pg_hba.conf",
        False,
    ),
    ("not permitted to log in", "the source refuses the login", "ALTER ROLE ... LOGIN;", False),
    ('role "', "the source knows no such user", "create the role, or correct source.user", False),
    ('database "', "the source has no such database", "correct source.database", False),
    (
        "invalid value for parameter",
        "the source refuses a setting that the environment asks for",
        "unset PGTZ, PGDATESTYLE and PGGEQO where migrator runs: they change nothing here but the login",
        False,
    ),
    (
        "permission denied",
        "the source refuses the login",
        "grant CONNECT, and REPLICATION for the log",
        False,
    ),
    (
        "certificate",
        "the TLS handshake with the source failed",
        "check sslmode, sslrootcert and the host name",
        False,
    ),
    ("ssl error", "the TLS handshake with the source failed", "check sslmode and sslrootcert", False),
    (
        "does not support ssl",
        "the source offers no TLS",
        "turn it on there, or choose another sslmode",
        False,
    ),
    ("starting up", "the source is starting up", "wait until it accepts connections", True),
    ("shutting down", "the source is shutting down", "start it again", True),
)


def conninfo(source: PostgresSource, purpose: str, **more: Any) -> str:
    """The libpq connection string for one purpose (part of ``application_name``). Holds the password: never
    log it.
    """
    parts: dict[str, Any] = {
        "host": source.host,
        "port": source.port,
        "dbname": source.database,
        "user": source.user,
        "password": source.password,
        "sslmode": source.sslmode,
        "sslrootcert": source.sslrootcert or None,
        "sslcert": source.sslcert or None,
        "sslkey": source.sslkey or None,
        "connect_timeout": source.connect_timeout_s,
        "application_name": f"{source.slot}_{purpose}",
        **postgres_session.parts(),
        "keepalives": 1,
        "keepalives_idle": 15,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
        **more,
    }
    return make_conninfo(**{name: value for name, value in parts.items() if value is not None})


def connect(source: PostgresSource, purpose: str, **more: Any) -> psycopg.Connection[Any]:
    """An autocommit connection with ``$1`` placeholders. Raises ConnectionFailed, named."""
    try:
        connection = postgres_session.connect(
            conninfo(source, purpose, **more), login(source), cursor_factory=psycopg.RawCursor
        )
    except psycopg.OperationalError as error:
        raise connect_failure(source, str(error)) from error
    return connection


def login(source: PostgresSource) -> Login:
    """Whose session it is."""
    return Login(source.address, source.user, source.database)


def connect_failure(source: PostgresSource, words: str) -> ConnectionFailed:
    """The named error for a failed connect, told from the words of the server or libpq."""
    words = " ".join(words.split())
    for text, what, remedy, retryable in _CONNECT_FAILURES:
        if text in words.lower():
            return ConnectionFailed(
                what, where=source.address, cause=words, remedy=remedy, retryable=retryable
            )
    return ConnectionFailed(
        "the source can't be reached",
        where=source.address,
        cause=words,
        remedy="check host, port, network and that the server runs",
        retryable=True,
    )


def query_failure(source: PostgresSource, what: str, error: psycopg.Error) -> MigratorError:
    """The named error for a failed statement on an open connection."""
    return named_failure(source, what, error.sqlstate, str(error))


def named_failure(source: PostgresSource, what: str, sqlstate: str | None, words: str) -> MigratorError:
    """A lost connection as ConnectionFailed (retryable), any other refusal of the server as SourceError."""
    words = " ".join(words.split())
    # No SQLSTATE: the error was made by libpq. 08 connection exception, 57P01..57P03 shutdown, 53 out of
    # resources.
    if sqlstate is None or sqlstate[:2] == "08" or sqlstate in ("57P01", "57P02", "57P03"):
        remedy = "the connection is made again by itself; check the network if this repeats"
        return ConnectionFailed(
            f"{what}: the connection was lost",
            where=source.address,
            cause=words,
            remedy=remedy,
            retryable=True,
        )
    if sqlstate == "42501":
        return SourceError(
            f"{what}: permission denied",
            where=source.address,
            cause=words,
            remedy="run preflight: it names the grants",
        )
    retryable = sqlstate[:2] in ("40", "53", "55") or sqlstate in ("57014", "25P03", "57P05")
    return SourceError(
        what, where=source.address, cause=f"{words} (SQLSTATE {sqlstate})", retryable=retryable
    )
