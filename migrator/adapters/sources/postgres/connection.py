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
from migrator.connections.postgres.refusal import OF_THE_CLIENT, for_good, refusal
from migrator.connections.postgres.session import Login
from migrator.errors import ConnectionFailed, MigratorError, SourceError

RECOVERY = "SELECT pg_catalog.pg_is_in_recovery()"
"""A query whether the server is a standby."""

_NO_FREE_CONNECTION = "the source has no free connection"
_REMEDY_ENVIRONMENT = (
    "unset PGTZ, PGDATESTYLE and PGGEQO where migrator runs: they change nothing here but the login"
)
# SQLSTATE -> what, remedy, retryable. The words are the server's language.
_REFUSED = {
    "53300": (_NO_FREE_CONNECTION, "raise max_connections, or end idle sessions", True),
    "28P01": ("the source refuses the password", "set the right password", False),
    "28000": (
        "the source refuses the login",
        "ALTER ROLE {user} LOGIN; or, where there is no such role, create it or correct source.user",
        False,
    ),
    "3D000": ("the source has no such database", "correct source.database", False),
    "22023": ("the source refuses a setting that the environment asks for", _REMEDY_ENVIRONMENT, False),
    "42501": (
        "the source refuses the login",
        "GRANT CONNECT ON DATABASE {database} TO {user}; and, for the log, ALTER ROLE {user} REPLICATION",
        False,
    ),
    "57P03": (
        "the source is starting up or shutting down",
        "wait until it accepts connections, or start it again",
        True,
    ),
}
# (what stands in the words in any language, SQLSTATE, what, remedy): names of files and settings aren't translated.
_NAMED = (
    (
        "max_wal_senders",
        "53300",
        "the source has no free WAL sender",
        "raise max_wal_senders and restart the source",
    ),
    (
        "pg_hba.conf",
        "28000",
        "the source admits no such login",
        "add a line for this user and host to pg_hba.conf",
    ),
)
_OF_LIBPQ = dict(
    zip(
        OF_THE_CLIENT,
        (
            ("the source asks for a password", "set source.password_env"),
            ("the TLS handshake with the source failed", "check `tls`, `tls_ca` and the host name"),
            ("the TLS handshake with the source failed", "check `tls` and `tls_ca`"),
            ("the source offers no TLS", "turn it on there, or choose another `tls`"),
        ),
        strict=True,
    )
)
"""Messages of libpq itself -> what, remedy."""


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

    def failed(what: str, remedy: str, retryable: bool) -> ConnectionFailed:
        names = {"user": name_of(source.server.user), "database": name_of(source.server.database)}
        return ConnectionFailed(
            what, where=source.server.address, cause=words, remedy=remedy.format(**names), retryable=retryable
        )

    if sqlstate:
        for name, state, what, remedy in _NAMED:
            if name in words and state == sqlstate:
                return failed(what, remedy, not for_good(sqlstate))
        known = _REFUSED.get(
            sqlstate, ("the source refuses the login", "see the cause", not for_good(sqlstate))
        )
        return failed(*known)
    for text, (what, remedy) in _OF_LIBPQ.items():
        if text in words.lower():
            return failed(what, remedy, False)
    return ConnectionFailed(
        "the source can't be reached",
        where=source.server.address,
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
            where=source.server.address,
            cause=words,
            remedy=remedy,
            retryable=True,
        )
    if sqlstate == "42501":
        return SourceError(
            f"{what}: permission denied",
            where=source.server.address,
            cause=words,
            remedy="run preflight: it names the grants",
        )
    retryable = sqlstate[:2] in ("40", "53", "55") or sqlstate in ("57014", "25P03", "57P05")
    return SourceError(
        what, where=source.server.address, cause=f"{words} (SQLSTATE {sqlstate})", retryable=retryable
    )
