"""Connections to the source: pinned (``postgres_session``), TLS, keepalives, and errors with a name and a remedy.

The settings that shape a value's text are the same in the walsender's session and in a chunk's session, so a
value has one canonical text whichever way it comes.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.adapters.sources.postgres.whole_images import name_of
from migrator.connections.postgres import session as postgres_session
from migrator.connections.postgres.logins import refused_login
from migrator.connections.postgres.refusal import NO_PRIVILEGE, refusal
from migrator.connections.postgres.session import Login
from migrator.errors import ConnectionFailed, MigratorError, SourceError

RECOVERY = "SELECT pg_catalog.pg_is_in_recovery()"
"""A query whether the server is a standby."""


def conninfo(source: PostgresSource, purpose: str, replication: str = "") -> str:
    """The libpq connection string for one purpose (part of ``application_name``). Holds the password: never
    log it. ``replication``: libpq's, for a session that reads the log.
    """
    parts: dict[str, Any] = {
        "host": source.server.host,
        "port": source.server.port,
        "dbname": source.server.database,
        "user": source.server.user,
        "password": source.server.password,
        "sslmode": source.server.tls,
        "sslrootcert": source.server.tls_ca or None,
        "connect_timeout": source.connect_timeout_s,
        "application_name": f"{source.slot}_{purpose}",
        **postgres_session.parts(),
        "keepalives": 1,
        "keepalives_idle": 15,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
        "replication": replication,
    }
    return make_conninfo(**{name: value for name, value in parts.items() if value is not None})


def connect(source: PostgresSource, purpose: str, replication: str = "") -> psycopg.Connection[Any]:
    """An autocommit connection with ``$1`` placeholders (see ``conninfo``). Raises ConnectionFailed, named."""
    try:
        connection = postgres_session.connect(
            conninfo(source, purpose, replication), login(source), cursor_factory=psycopg.RawCursor
        )
    except psycopg.OperationalError as error:
        raise connect_failure(source, str(error), refusal(error)) from error
    return connection


def login(source: PostgresSource) -> Login:
    """The login that the session belongs to."""
    return Login(source.server.address, source.server.user, source.server.database)


def connect_failure(source: PostgresSource, words: str, sqlstate: str) -> ConnectionFailed:
    """The named error for a failed connect, from the server's SQLSTATE (``refusal``) or what libpq says itself."""
    words = " ".join(words.split())
    found = refused_login(words, sqlstate, "source", source.server.user, source.server.database)
    remedy = found.remedy
    if sqlstate == NO_PRIVILEGE:
        remedy += f"; and, for the log, ALTER ROLE {name_of(source.server.user)} REPLICATION"
    return ConnectionFailed(
        found.what, where=source.server.address, cause=words, remedy=remedy, retryable=found.retryable
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
            where=source.server.address,
            cause=words,
            remedy=remedy,
            retryable=True,
        )
    if sqlstate == NO_PRIVILEGE:
        return SourceError(
            f"{what}: permission denied",
            where=source.server.address,
            cause=words,
            remedy="run `migrator check`: it names the grants",
        )
    retryable = sqlstate[:2] in ("40", "53", "55") or sqlstate in ("57014", "25P03", "57P05")
    return SourceError(
        what, where=source.server.address, cause=f"{words} (SQLSTATE {sqlstate})", retryable=retryable
    )
