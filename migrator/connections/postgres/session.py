"""The pinned settings of our sessions on PostgreSQL: source, target and control tables connect by this module only.

A session's settings come from the server's file, the database, the role, a service file and libpq's variables, and
any of them can change a value, an order, a row count, what an operator means, a constraint's force or an error. So
each setting that can is pinned twice. ``options`` of the connection holds while the session begins, against
timeouts. But ``PGTZ``, ``PGDATESTYLE`` and ``PGGEQO`` win over it, a connection pooler may drop it, and a
superuser's settings would refuse the login in it. So ``pin`` follows: it sets what differs, and is refused
where the login may not.

``search_path`` is pg_catalog alone: behind it too an operator for varchar would be taken before that for text. What
is the user's is named with its schema, and operators of the user's types by ``OPERATOR(...)``.

What isn't pinned and why is in ``tests/postgres_settings.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import adbc_driver_manager
import psycopg
from psycopg import pq

from migrator.errors import ConnectionFailed

PINS: Mapping[str, str] = {
    # What a value looks like, and how a text is read.
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "timezone_abbreviations": "Default",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "lc_monetary": "C",
    "array_nulls": "on",
    "xmloption": "content",
    "xmlbinary": "base64",
    "quote_all_identifiers": "off",
    # What a statement means.
    "search_path": "pg_catalog",
    "standard_conforming_strings": "on",
    "backslash_quote": "safe_encoding",
    "transform_null_equals": "off",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "default_transaction_deferrable": "off",
    "default_table_access_method": "heap",
    "restrict_nonsystem_relation_kind": "",
    # Which rows there are, and which constraints hold. With row security off a policy is an error, not a filter.
    "row_security": "off",
    "session_replication_role": "origin",
    "gin_fuzzy_search_limit": "0",
    "constraint_exclusion": "partition",
    "zero_damaged_pages": "off",
    "ignore_checksum_failure": "off",
    # What ends a statement or a session. A cut or frozen process must not hold locks for ever.
    "statement_timeout": "0",
    "transaction_timeout": "0",
    "idle_session_timeout": "0",
    "idle_in_transaction_session_timeout": "1min",
    "lock_timeout": "30s",
    "wal_sender_timeout": "1min",
    "exit_on_error": "off",
    # What we are told: PostgreSQL 18 says by a warning only that a publication is gone, and whether a session works
    # is seen in its activity.
    "client_min_messages": "notice",
    "track_activities": "on",
}
"""Setting -> its value, as the server shows it."""
CONTROL: Mapping[str, str] = {**PINS, "lock_timeout": "0"}
"""The same where control tables are made: whoever makes them first is waited for."""
REVISIONS: Mapping[str, str] = {
    **{name: value for name, value in CONTROL.items() if name != "search_path"},
    "idle_in_transaction_session_timeout": "0",
}
"""The same for the user's revisions: a name without a schema is the role's own affair, and they may take long."""

# Not every server has these, and ``options`` would refuse a login that may not set them, even to what they are.
_LATER = frozenset(
    {
        "client_encoding",
        "transaction_timeout",
        "restrict_nonsystem_relation_kind",
        "session_replication_role",
        "zero_damaged_pages",
        "ignore_checksum_failure",
        "track_activities",
    }
)
_LOST = ("08", "53", "57")


def parts(pins: Mapping[str, str] = PINS, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns the parts of a connection string that fix the session, so that neither variables nor a service file
    can.

    Args:
        pins: the settings.
        more: further settings that change no result, such as memory.
    """
    early = {name: value for name, value in pins.items() if name not in _LATER}
    return {
        "client_encoding": "UTF8",
        "options": " ".join(f"-c {name}={_word(value)}" for name, value in {**early, **(more or {})}.items()),
        "hostaddr": "",
        "target_session_attrs": "any",
        "load_balance_hosts": "disable",
        "replication": "",
    }


@dataclass(frozen=True, slots=True)
class Login:
    """The login of a session, for messages: the server in words, the role and the database."""

    where: str
    user: str
    database: str


def connect(
    conninfo: str, login: Login, pins: Mapping[str, str] = PINS, **more: Any
) -> psycopg.Connection[tuple[Any, ...]]:
    """A pinned autocommit connection.

    Raises ``psycopg.OperationalError`` as the driver does, ``ConnectionFailed`` where a setting can't be pinned.
    """
    connection = psycopg.connect(conninfo, **{"autocommit": True, **more})
    try:
        pin_connection(connection, login, pins)
    except BaseException:
        connection.close()
        raise
    return connection


def pin_connection(connection: Any, login: Login, pins: Mapping[str, str] = PINS) -> None:
    """Pins a connection of psycopg, a walsender's too, outside of any transaction. Raises ``ConnectionFailed``."""
    result = connection.pgconn.exec_(pin(pins).encode())
    if result.status != pq.ExecStatus.TUPLES_OK:
        state = result.error_field(pq.DiagnosticField.SQLSTATE)
        words = result.error_message.decode("utf-8", "replace")
        raise not_pinned(login, state.decode() if state else None, words, pins)


def open_adbc(conninfo: str) -> Any:
    """An ADBC connection in autocommit mode, which is to be pinned next. Raises ``adbc_driver_manager.Error``."""
    # Brings pandas with it, a quarter of what a command takes to start; most commands need neither.
    import adbc_driver_postgresql.dbapi as adbc

    return adbc.connect(conninfo, autocommit=True)


def pin_adbc(run: Callable[[str], object], login: Login, pins: Mapping[str, str] = PINS) -> None:
    """Pins an ADBC connection, whose ``run`` runs a query. Raises ``ConnectionFailed``, and what ``run`` raises."""
    try:
        run(pin(pins))
    except adbc_driver_manager.Error as error:
        raise not_pinned(login, error.sqlstate, str(error).partition("\n\nQuery")[0], pins) from None


def pin(pins: Mapping[str, str] = PINS) -> str:
    """The query that sets each setting that differs, where the server has it."""
    rows = ", ".join(f"({_literal(name)}, {_literal(value)})" for name, value in pins.items())
    return (
        f"SELECT pg_catalog.set_config(pins.name, pins.value, false) FROM (VALUES {rows}) AS pins(name, value)"
        " WHERE pg_catalog.current_setting(pins.name, true) OPERATOR(pg_catalog.<>) pins.value"
    )


def not_pinned(
    login: Login, sqlstate: str | None, words: str, pins: Mapping[str, str] = PINS
) -> ConnectionFailed:
    """The named error for a session that can't be as it has to be, from what the server said to ``pin``."""
    cause = " ".join(words.split())
    if sqlstate is None or sqlstate.startswith(_LOST):
        return ConnectionFailed(
            "the connection was lost as it began",
            where=login.where,
            cause=cause,
            remedy="try again; a setting that ends sessions at once is such a case too (transaction_timeout)",
            retryable=True,
        )
    # The words are the server's language, the name in quotes is not.
    names = [name for name in re.findall(r"[A-Za-z_]+", cause) if name in pins] or [
        "session_replication_role"
    ]
    return ConnectionFailed(
        f"the session's {names[0]} is set to what would change results, and the role may not set it back",
        where=login.where,
        cause=cause,
        # The setting of a role in a database wins over every other place that isn't the session itself.
        remedy=f"as a superuser: ALTER ROLE {_quoted(login.user)} IN DATABASE {_quoted(login.database)}"
        f" SET {names[0]} = {_literal(pins[names[0]])}",
    )


def seconds(number: int) -> str:
    """A time as the server shows it, which is how it sees that nothing differs."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if number and number % size == 0:
            return f"{number // size}{unit}"
    return f"{number}s" if number else "0"


def _word(value: str) -> str:
    """A value inside ``options``, where a blank ends it."""
    return value.replace("\\", "\\\\").replace(" ", "\\ ")


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
