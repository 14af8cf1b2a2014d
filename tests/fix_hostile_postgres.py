"""PostgreSQL whose settings are what nobody wants, at every level: the server, a database, a role, variables."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from migrator.embedded.postgres import EmbeddedPostgres
from migrator.embedded.process import scratch_directory
from tests.servers import Database, embedded_postgres

HOSTILE: Mapping[str, tuple[str, ...]] = {
    "client_encoding": ("LATIN1", "SQL_ASCII"),
    "DateStyle": ("German, DMY", "SQL, DMY", "Postgres, YMD"),
    "IntervalStyle": ("iso_8601", "sql_standard", "postgres_verbose"),
    "TimeZone": ("Asia/Kathmandu", "America/New_York"),
    "timezone_abbreviations": ("India", "Australia"),
    "extra_float_digits": ("-15", "0"),
    "bytea_output": ("escape",),
    "array_nulls": ("off",),
    "xmloption": ("document",),
    "xmlbinary": ("hex",),
    "quote_all_identifiers": ("on",),
    "search_path": ("evil, pg_catalog", "evil", "public, pg_temp"),
    "standard_conforming_strings": ("off",),
    "backslash_quote": ("on", "off"),
    "transform_null_equals": ("on",),
    "default_transaction_isolation": ("serializable", "repeatable read"),
    "default_transaction_read_only": ("on",),
    "default_transaction_deferrable": ("on",),
    "restrict_nonsystem_relation_kind": ("view",),
    "row_security": ("on",),
    "session_replication_role": ("replica", "local"),
    "gin_fuzzy_search_limit": ("1",),
    "constraint_exclusion": ("on", "off"),
    "zero_damaged_pages": ("on",),
    "ignore_checksum_failure": ("on",),
    "statement_timeout": ("1", "5"),
    "transaction_timeout": ("20000",),
    "idle_session_timeout": ("1",),
    "idle_in_transaction_session_timeout": ("1",),
    "lock_timeout": ("1",),
    "wal_sender_timeout": ("1000",),
    "exit_on_error": ("on",),
    "client_min_messages": ("error",),
    "track_activities": ("off",),
}
"""Setting -> values that change a result, an error or what we are told. Of locales and access methods the
servers of tests have one only, so nobody can set another."""
ENVIRONMENT = {
    "PGCLIENTENCODING": "LATIN1",
    "PGTZ": "Asia/Kathmandu",
    "PGDATESTYLE": "German, DMY",
    "PGGEQO": "off",
    "PGOPTIONS": "-c search_path=evil -c statement_timeout=1 -c bytea_output=escape",
    "PGAPPNAME": "somebody else",
    "PGHOSTADDR": "192.0.2.1",
    "PGTARGETSESSIONATTRS": "standby",
    "PGLOADBALANCEHOSTS": "random",
    "PGSERVICE": "elsewhere",
}
"""What libpq heeds unless it is told otherwise; the address is nobody's (RFC 5737)."""
SERVICE = "[elsewhere]\nhostaddr=192.0.2.2\nreplication=true\ntarget_session_attrs=standby\nclient_encoding=LATIN1\n"
SHADOWS = (
    "CREATE SCHEMA IF NOT EXISTS evil",
    "CREATE FUNCTION evil.same(varchar, varchar) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT true'",
    "CREATE FUNCTION evil.same(text, text) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT true'",
    "CREATE OPERATOR evil.= (FUNCTION = evil.same, LEFTARG = varchar, RIGHTARG = varchar)",
    "CREATE OPERATOR evil.= (FUNCTION = evil.same, LEFTARG = text, RIGHTARG = text)",
    "CREATE FUNCTION evil.never(text, text) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT false'",
    "CREATE OPERATOR evil.<> (FUNCTION = evil.never, LEFTARG = text, RIGHTARG = text)",
    "CREATE FUNCTION evil.hashtextextended(text, bigint) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT 1::int8'",
    "CREATE FUNCTION evil.format(text, VARIADIC \"any\") RETURNS text IMMUTABLE LANGUAGE internal AS 'text_format'",
    "CREATE FUNCTION evil.current_setting(text, bool) RETURNS text LANGUAGE sql AS 'SELECT ''UTC'''",
)
"""Operators and functions that a path may put before those of pg_catalog."""


def database_of(server: EmbeddedPostgres, name: str) -> Database:
    """A database of a test's own server."""
    return Database(server.host, server.port, name, server.superuser, server.password or "", "postgresql")


@contextmanager
def plain(database: Database) -> Iterator[psycopg.Connection[Any]]:
    """A session of the test's own that heeds no setting: what it needs is set one by one, in its own words."""
    calm = "-c statement_timeout=0 -c idle_session_timeout=0 -c lock_timeout=0 -c search_path=pg_catalog"
    with psycopg.connect(
        database.dsn,
        autocommit=True,
        options=calm,
        client_encoding="UTF8",
        hostaddr="",
        replication="",
        target_session_attrs="any",
    ) as connection:
        for statement in (
            "SET idle_in_transaction_session_timeout = 0",
            "SET default_transaction_read_only = off",
            "SET default_transaction_isolation = 'read committed'",
            "SET session_replication_role = origin",
            "SET standard_conforming_strings = on",
            "SET datestyle = 'ISO, YMD'",
            "SET timezone = 'UTC'",
            "SET intervalstyle = 'postgres'",
            "SET bytea_output = 'hex'",
            "SET extra_float_digits = 1",
            "SET xmloption = 'content'",
            "SET array_nulls = on",
            "SET exit_on_error = off",
        ):
            connection.execute(statement)
        yield connection


def known(connection: psycopg.Connection[Any]) -> set[str]:
    """Names of the server's settings."""
    return {str(name) for (name,) in connection.execute("SELECT name FROM pg_catalog.pg_settings")}


def set_at(
    connection: psycopg.Connection[Any], level: str, where: sql.Composable | None, values: Mapping[str, str]
) -> None:
    """Sets what the server knows: ``SYSTEM``, or ``ROLE`` or ``DATABASE`` of that name."""
    there = known(connection)
    place = sql.SQL(level) if where is None else sql.SQL(level + " {}").format(where)
    for name, value in values.items():
        if name in there:
            words = sql.SQL(value) if name in ("search_path", "DateStyle") else sql.Literal(value)
            connection.execute(sql.SQL("ALTER {} SET {} = {}").format(place, sql.Identifier(name), words))
    if level == "SYSTEM":
        connection.execute("SELECT pg_catalog.pg_reload_conf()")


def set_environment(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """What libpq reads of the environment, of this process too."""
    (folder / "services.conf").write_text(SERVICE)
    for name, value in {**ENVIRONMENT, "PGSERVICEFILE": str(folder / "services.conf")}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def hostile_server() -> Iterator[EmbeddedPostgres]:
    """A server whose settings tests may spoil."""
    with scratch_directory("hostile-settings") as folder, embedded_postgres(folder / "server") as started:
        yield started


@pytest.fixture
def hostile(hostile_server: EmbeddedPostgres) -> Iterator[Database]:
    """A database on it, with what a path may put before pg_catalog; all settings are taken back afterwards."""
    name = f"hostile_{uuid.uuid4().hex[:12]}"
    hostile_server.create_database(name)
    database = database_of(hostile_server, name)
    try:
        with plain(database) as connection:
            for statement in SHADOWS:
                connection.execute(statement)
        yield database
    finally:
        with plain(database) as connection:
            for place in ("SYSTEM", f"DATABASE {name}", "ROLE postgres"):
                connection.execute(f"ALTER {place} RESET ALL")
            connection.execute("SELECT pg_reload_conf()")
        hostile_server.drop_database(name)
