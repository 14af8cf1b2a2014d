"""Pinned sessions of the judge on PostgreSQL: it connects by this module only.

Whatever is set in the server's file, for the database, for the role, in a service file or in libpq's variables: a
value has one text, an operator one meaning, and a row that can't be read is an error and never missing.
Settings are asked for as the session begins, against timeouts, and then set one by one where they differ,
because ``PGTZ``,
``PGDATESTYLE`` and ``PGGEQO`` win over what is asked for, and a pooler may drop it.

Written apart from the pipeline's own: with one list, a setting forgotten there would be forgotten here.
``tests/postgres_settings.py`` says of every other setting why it can't change a verdict.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import adbc_driver_manager
import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from migrator.errors import ConnectionFailed
from verify.settings import ServerSettings

CONNECT_TIMEOUT_S = 10
PINS: Mapping[str, str] = {
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "timezone_abbreviations": "Default",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "xmloption": "content",
    "xmlbinary": "base64",
    "lc_monetary": "C",
    "array_nulls": "on",
    "quote_all_identifiers": "off",
    "client_encoding": "UTF8",
    "search_path": "pg_catalog",
    "standard_conforming_strings": "on",
    "backslash_quote": "safe_encoding",
    "transform_null_equals": "off",
    # A policy, a damaged page, a bound of an index, a constraint that isn't true: none of them may hide a row.
    "row_security": "off",
    "zero_damaged_pages": "off",
    "ignore_checksum_failure": "off",
    "gin_fuzzy_search_limit": "0",
    "constraint_exclusion": "partition",
    "restrict_nonsystem_relation_kind": "",
    "default_transaction_read_only": "on",
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    # A view is held while another session reads from it, however long that takes.
    "statement_timeout": "0",
    "transaction_timeout": "0",
    "idle_session_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "lock_timeout": "1min",
    "exit_on_error": "off",
}
"""Setting -> its value, as the server shows it."""
APPLICATIONS: Mapping[str, str] = {name: value for name, value in PINS.items() if name != "search_path"}
"""The same where an application's own queries are asked, whose names are found as its role finds them."""
_NOT_AT_ONCE = (
    "client_encoding",  # the connection string has a word of its own for it
    "zero_damaged_pages",  # a login that may not set them would be refused, also where they are right
    "ignore_checksum_failure",
    "transaction_timeout",  # newer than some servers
    "restrict_nonsystem_relation_kind",
)
_PIN = """
SELECT pg_catalog.set_config(wanted.name, wanted.value, false) FROM (VALUES {}) AS wanted(name, value)
WHERE pg_catalog.current_setting(wanted.name, true) OPERATOR(pg_catalog.<>) wanted.value
"""


def conninfo(
    settings: ServerSettings, pins: Mapping[str, str] = PINS, more: Mapping[str, str] | None = None
) -> str:
    """A libpq connection string, with ``more`` settings of the session; it holds the password: never print it.

    What isn't said here a variable or a service file could say: to whom (``hostaddr``), as what (``replication``).
    """
    asked = {name: value for name, value in {**pins, **(more or {})}.items() if name not in _NOT_AT_ONCE}
    return make_conninfo(
        host=settings.server.host,
        hostaddr="",
        port=settings.server.port,
        dbname=settings.server.database,
        user=settings.server.user,
        password=settings.server.password or None,
        sslmode=settings.server.tls,
        sslrootcert=settings.server.tls_ca or None,
        connect_timeout=CONNECT_TIMEOUT_S,
        application_name="migrator verify",
        client_encoding="UTF8",
        options=" ".join(f"-c {name}={value.replace(' ', chr(92) + ' ')}" for name, value in asked.items()),
        target_session_attrs="any",
        load_balance_hosts="disable",
        replication="",
    )


def connect_postgres(
    settings: ServerSettings, pins: Mapping[str, str] = PINS, more: Mapping[str, str] | None = None
) -> psycopg.Connection[tuple[Any, ...]]:
    """An autocommit connection whose transactions are read-only. Raises ``ConnectionFailed``.

    ``more``: settings that change no result, such as how a query is planned.
    """
    try:
        connection = psycopg.connect(conninfo(settings, pins, more), autocommit=True)
    except psycopg.Error as error:
        raise _unreachable(settings, str(error), isinstance(error, psycopg.OperationalError)) from error
    try:
        connection.execute(_pinned(pins))
    except psycopg.Error as error:
        connection.close()
        raise _not_pinned(settings, error.sqlstate, str(error), pins) from error
    return connection


def connect_bulk(settings: ServerSettings) -> Any:
    """An ADBC connection; it opens transactions by itself (autocommit is off). Raises ``ConnectionFailed``."""
    import adbc_driver_postgresql.dbapi as adbc  # brings pandas with it, which few commands need

    try:
        connection = adbc.connect(conninfo(settings))
    except adbc_driver_manager.Error as error:
        raise _unreachable(settings, str(error), True) from error
    try:
        with connection.cursor() as cursor:
            cursor.execute(_pinned(PINS).as_string())
            cursor.fetchall()
        connection.commit()  # a rollback would take the settings back
    except adbc_driver_manager.Error as error:
        connection.close()
        raise _not_pinned(settings, error.sqlstate, str(error).partition("\n\nQuery")[0], PINS) from error
    return connection


def _pinned(pins: Mapping[str, str]) -> sql.Composed:
    rows = (sql.SQL("({}, {})").format(name, value) for name, value in pins.items())
    return sql.SQL(_PIN).format(sql.SQL(", ").join(rows))


def _unreachable(settings: ServerSettings, words: str, retryable: bool) -> ConnectionFailed:
    remedy = "check host, port, login and TLS settings"
    # One of these with a value that the server doesn't take refuses the login, in words of the server's language.
    variables = [name for name in ("PGTZ", "PGDATESTYLE", "PGGEQO") if name in os.environ]
    if variables:
        remedy = f"unset {', '.join(variables)} where migrator runs; {remedy}"
    return ConnectionFailed(
        "the server can't be reached for verification",
        where=settings.server.url(),
        cause=" ".join(words.split()),
        remedy=remedy,
        retryable=retryable,
    )


def _not_pinned(
    settings: ServerSettings, sqlstate: str | None, words: str, pins: Mapping[str, str]
) -> ConnectionFailed:
    cause = " ".join(words.split())
    named = [name for name in re.findall(r"[A-Za-z_]+", cause) if name in pins]
    if sqlstate is None or not named:
        return _unreachable(settings, words, True)
    role, database, value = (
        sql.Identifier(settings.server.user),
        sql.Identifier(settings.server.database),
        pins[named[0]],
    )
    remedy = sql.SQL("as a superuser: ALTER ROLE {} IN DATABASE {} SET {} = {}").format(
        role, database, sql.SQL(named[0]), value
    )
    return ConnectionFailed(
        f"{named[0]} is set so that a verdict couldn't be trusted, and the login may not set it back",
        where=settings.server.url(),
        cause=cause,
        remedy=remedy.as_string(),
    )
