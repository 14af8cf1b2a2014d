"""PostgreSQL whose settings are what nobody wants, at every level, and every way in which we connect to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from migrator import postgres_session
from migrator.adapters.postgres import connection as source_connection
from migrator.adapters.postgres.replication import ReplicationStream
from migrator.adapters.postgres.watched import BriefConnection, PatientConnection, WatchedConnection
from migrator.adapters.target_postgres import upkeep
from migrator.adapters.target_postgres.key_maps import key_maps
from migrator.adapters.target_postgres.reflect import catalog
from migrator.adapters.target_postgres.session import Session
from migrator.embedded.postgres import EmbeddedPostgres
from migrator.schema.engines import as_engine
from tests.fix_postgres_source import source_of
from tests.integration.judged import settings_of as judged
from tests.integration.target_bench import settings_of as target_of
from tests.servers import Database
from verify import postgres_session as judge
from verify.dual_read.engine_side import engine_of
from verify.postgres_snapshot import open_views

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
"""Setting -> values that change a result, an error or what we are told. Of locales and access methods the servers of
tests have one only, so nobody can set another."""
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
Shows = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Way:
    """A way in which we connect: what its session is to be, and a session of it that shows settings."""

    pins: Mapping[str, str]
    opened: Callable[[Database], Any]


def setting(name: str) -> str:
    """The query for a setting's value, whatever its session is like."""
    return f"SELECT pg_catalog.current_setting('{name}')"


@contextmanager
def _source(database: Database) -> Iterator[Shows]:
    with source_connection.connect(source_of(database), "test") as connection:
        yield lambda name: str(connection.execute(setting(name)).fetchone()[0])  # type: ignore[index]


@contextmanager
def _walsender(database: Database) -> Iterator[Shows]:
    stream = ReplicationStream(source_of(database))
    try:
        yield lambda name: str(stream._simple(setting(name))[0][0])
    finally:
        stream.close()


@contextmanager
def _chunks(database: Database) -> Iterator[Shows]:
    watched = WatchedConnection(source_of(database), "SELECT 1")

    def shown(name: str) -> str:
        def ask(cursor: Any) -> str:
            cursor.execute(setting(name))
            return str(cursor.fetchone()[0])

        return str(watched.call("asking", ask))

    try:
        yield shown
    finally:
        watched.close()


def _held(kind: type[BriefConnection]) -> Callable[[Database], Any]:
    @contextmanager
    def opened(database: Database) -> Iterator[Shows]:
        brief = kind(source_of(database), "test")
        try:
            yield lambda name: brief.call("asking", lambda c: str(c.execute(setting(name)).fetchone()[0]))  # type: ignore[index]
        finally:
            brief.close()

    return opened


@contextmanager
def _writer(database: Database) -> Iterator[Shows]:
    session = Session(target_of(database))
    try:
        yield lambda name: str(session.one(setting(name))[0])
    finally:
        session.close()


@contextmanager
def _watching(database: Database) -> Iterator[Shows]:
    session = Session(target_of(database))
    try:
        yield lambda name: str(session._ask(setting(name), ())[0][0])
    finally:
        session.close()


@contextmanager
def _catalog(database: Database) -> Iterator[Shows]:
    with catalog(target_of(database)) as connection:
        yield lambda name: str(connection.execute(setting(name)).fetchone()[0])  # type: ignore[index]


@contextmanager
def _upkeep(database: Database) -> Iterator[Shows]:
    with upkeep.PostgresUpkeep(target_of(database))._connected() as connection:
        yield lambda name: str(connection.execute(setting(name)).fetchone()[0])  # type: ignore[index]


def _engine(made: Callable[[Database], Any]) -> Callable[[Database], Any]:
    @contextmanager
    def opened(database: Database) -> Iterator[Shows]:
        engine = made(database)
        with engine.connect() as connection:
            yield lambda name: str(connection.exec_driver_sql(setting(name)).scalar())
        engine.dispose()

    return opened


@contextmanager
def _judge(database: Database) -> Iterator[Shows]:
    with judge.connect_postgres(judged(database)) as connection:
        yield lambda name: str(connection.execute(setting(name)).fetchone()[0])  # type: ignore[index]


@contextmanager
def _views(database: Database) -> Iterator[Shows]:
    with open_views(judged(database)) as views, views.view(bulk=True):
        bulk = views._bulk

        def shown(name: str) -> str:
            with bulk.cursor() as cursor:
                cursor.execute(setting(name))
                return str(cursor.fetchone()[0])

        yield shown


@contextmanager
def _next_view(database: Database) -> Iterator[Shows]:
    """The bulk session after a view was rolled back."""
    with open_views(judged(database)) as views:
        with views.view(bulk=True):
            pass
        bulk = views._bulk

        def shown(name: str) -> str:
            with bulk.cursor() as cursor:
                cursor.execute(setting(name))
                return str(cursor.fetchone()[0])

        yield shown


PINS, CONTROL = postgres_session.PINS, postgres_session.CONTROL
_TARGET = {**PINS, "synchronous_commit": "on"}
WAYS: Mapping[str, Way] = {
    "source": Way(PINS, _source),
    "log": Way(PINS, _walsender),
    "chunks": Way(PINS, _chunks),
    "short looks": Way(PINS, _held(BriefConnection)),
    "long looks": Way(PINS, _held(PatientConnection)),
    "writer and executors": Way(_TARGET, _writer),
    "watching the writer": Way(_TARGET, _watching),
    "reflection and preflight": Way(_TARGET, _catalog),
    "upkeep": Way(_TARGET, _upkeep),
    "control tables": Way(CONTROL, _engine(lambda d: as_engine(target_of(d).url()))),
    "revisions": Way(
        postgres_session.REVISIONS,
        _engine(lambda d: as_engine(target_of(d).url(), postgres_session.REVISIONS)),
    ),
    "key maps": Way(CONTROL, _engine(lambda d: key_maps(target_of(d))._engine)),
    "judge": Way(judge.PINS, _judge),
    "judge in bulk": Way(judge.PINS, _views),
    "judge in bulk, later": Way(judge.PINS, _next_view),
    "dual read": Way(judge.APPLICATIONS, _engine(lambda d: engine_of(judged(d), 1))),
}


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
