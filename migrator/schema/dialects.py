"""The dialects in which control tables are made and read, a row each of one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

CONTROL_SCHEMA = "migrator"
MYSQL_LEDGER = "migrator_ledger"
"""Name of the ledger's table in the database of a MySQL or MariaDB target."""
MYSQL_HISTORY = "migrator_history"
"""Name of the history's table there."""

MYSQL_CUTOVER = "migrator_cutover"
"""Name of the table with the record of a cut-over there."""
MYSQL_FENCE = "migrator_fence"
"""Name of the table with a fence's notes there."""

Remedy = Callable[[str, str, bool], str]


@dataclass(frozen=True, slots=True)
class ControlDialect:
    """One of SQLAlchemy's dialects.

    Attributes:
        schemas: whether a target's control tables have a schema of their own; else they are in its database.
        ledger: name of a target's ledger.
        history: name of its history.
        read_document, stored_document: the ledger's document as text, and as it is written from ``:v1``.
        has_history: query whether that is there.
        cutover, has_cutover: the same of the record of a cut-over.
        now: the time of a row in it, in UTC where it has no zone.
        alone: statement that waits for other processes which make the same tables.
        patience: statement that has the session wait for a lock no longer than so many seconds.
        taken: query that takes the lock ``:name`` until the session ends; false where another session has it.
        resolves: statement by which names without a schema are those of a schema; empty where a database is one.
        busy, forbidden: the driver's codes for a lock that wasn't had in time, and for a right that is missing.
        may_use, may_create: queries whether the role may make tables in the schema, and the schema; empty where only
            trying tells.
        any_table: query for a row if the names without a schema find a table that isn't the tool's, or Alembic's.
        dump: the program that writes a database's structure down, with its options.
        remedies: statements that let a role make the tables of a source, and of a target: of role and database, and
            of whether the tables' schema is there.
    """

    schemas: bool
    ledger: str
    history: str
    read_document: str
    stored_document: str
    has_history: str
    cutover: str
    has_cutover: str
    now: str
    alone: str
    patience: str
    taken: str
    resolves: str
    busy: frozenset[str | int]
    forbidden: frozenset[str | int]
    may_use: str
    may_create: str
    any_table: str
    dump: str
    remedies: tuple[Remedy, Remedy]


def _remedy_of_owner(user: str, _database: str, there: bool) -> str:
    role = '"' + user.replace('"', '""') + '"'
    if not there:
        return f"as the database's owner: CREATE SCHEMA {CONTROL_SCHEMA} AUTHORIZATION {role}"
    return (
        f"as owner of schema {CONTROL_SCHEMA}: GRANT USAGE, CREATE ON SCHEMA {CONTROL_SCHEMA} TO {role};"
        f" GRANT ALL ON ALL TABLES IN SCHEMA {CONTROL_SCHEMA} TO {role}"
    )


def _remedy_on_source(user: str, _database: str, there: bool) -> str:
    grant = f"GRANT ALL ON {CONTROL_SCHEMA}.* TO '{user}'"
    return grant if there else f"CREATE DATABASE {CONTROL_SCHEMA}; {grant}"


def _remedy_on_target(user: str, database: str, _there: bool) -> str:
    return f"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON `{database}`.* TO '{user}'"


_MYSQL = ControlDialect(
    schemas=False,
    ledger=MYSQL_LEDGER,
    history=MYSQL_HISTORY,
    read_document="checkpoint",
    stored_document=":v1",
    has_history="SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()"
    f" AND table_name = '{MYSQL_HISTORY}'",
    cutover=MYSQL_CUTOVER,
    has_cutover="SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()"
    f" AND table_name = '{MYSQL_CUTOVER}'",
    now="UTC_TIMESTAMP()",
    alone="SELECT GET_LOCK('migrator control tables', 60)",
    patience="SET SESSION lock_wait_timeout = {}, innodb_lock_wait_timeout = {}",
    taken="SELECT GET_LOCK(SHA2(:name, 256), 0)",
    resolves="",
    busy=frozenset({1205}),
    forbidden=frozenset({1044, 1142, 1143, 1227, 1370, 1410, 1419}),
    may_use="",
    may_create="",
    any_table="SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'"
    " AND table_name <> 'alembic_version' AND table_name NOT LIKE 'migrator%' LIMIT 1",
    dump="mysqldump --no-data --routines",
    remedies=(_remedy_on_source, _remedy_on_target),
)
DIALECTS: Mapping[str, ControlDialect] = {
    "postgresql": ControlDialect(
        schemas=True,
        ledger=f"{CONTROL_SCHEMA}.ledger",
        history=f"{CONTROL_SCHEMA}.history",
        read_document="CAST(checkpoint AS text)",
        stored_document="CAST(:v1 AS jsonb)",
        has_history="SELECT pg_catalog.to_regclass('migrator.history') IS NOT NULL",
        cutover=f"{CONTROL_SCHEMA}.cutover",
        has_cutover="SELECT pg_catalog.to_regclass('migrator.cutover') IS NOT NULL",
        now="now()",
        alone="SELECT pg_advisory_lock(hashtextextended('migrator control tables', 0))",
        patience="SET lock_timeout = '{}s'",
        taken="SELECT pg_try_advisory_lock(hashtextextended(:name, 0))",
        resolves="SET search_path TO {}, public",
        busy=frozenset({"55P03"}),
        forbidden=frozenset({"42501"}),
        may_use="SELECT has_schema_privilege('migrator', 'CREATE') AND has_schema_privilege('migrator', 'USAGE')",
        may_create="SELECT has_database_privilege(current_database(), 'CREATE')",
        any_table="SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = ANY (pg_catalog.current_schemas(false)) AND n.nspname !~ '^migrator'"
        " AND c.relkind IN ('r', 'p') AND c.relname <> 'alembic_version' LIMIT 1",
        dump="pg_dump -s --no-owner --no-privileges",
        remedies=(_remedy_of_owner, _remedy_of_owner),
    ),
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
}
"""The dialects by SQLAlchemy's name."""


def fence_table(dialect: str, side: str) -> str:
    """Returns the table with the notes of fences of ``source`` or ``target``, as a statement names it."""
    if side == "target" and not DIALECTS[dialect].schemas:
        return MYSQL_FENCE
    return f"{CONTROL_SCHEMA}.fence"
