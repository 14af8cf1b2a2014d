"""Preflight of a PostgreSQL target: finds all obstacles to writing at once, with the statement that helps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from migrator.adapters.targets.postgres.checks.tied import keys_of_periods, tied_tables
from migrator.adapters.targets.postgres.mirror.tables import SCHEMA as MIRROR_SCHEMA
from migrator.adapters.targets.postgres.reflect import catalog, reflect
from migrator.adapters.targets.postgres.rows.merge import qualified, quoted
from migrator.adapters.targets.postgres.rows.order import cycles
from migrator.adapters.targets.postgres.rows.writer import relax_grant
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.adapters.targets.postgres.structure import Structure
from migrator.adapters.targets.shared.ledger import REMEDY_OF_OTHERS
from migrator.connections.postgres.collations import stale_orders
from migrator.model.finding import Finding
from migrator.model.grants import NOTHING_BESIDE, Beside
from migrator.model.table import TableId
from migrator.schema import control_problem

_OLDEST = 140000
_UNSTABLE_TYPES = frozenset(
    {
        "money",
        "regclass",
        "regtype",
        "regproc",
        "regprocedure",
        "regoper",
        "regoperator",
        "regrole",
        "regnamespace",
    }
)

_RIGHTS: LiteralString = """
SELECT right_name FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) right_name
WHERE NOT pg_catalog.has_table_privilege(%s::text, right_name)
"""
_TRIGGERS: LiteralString = """
SELECT t.tgname, t.tgenabled IN ('R', 'A'),
       CASE WHEN l.lanname IN ('c', 'internal') OR EXISTS (
           SELECT FROM pg_catalog.unnest(p.proconfig) AS c(word) WHERE c.word LIKE 'search\\_path=%%')
       THEN '' ELSE t.tgfoid::regprocedure::text END
FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
JOIN pg_catalog.pg_language l ON l.oid = p.prolang
WHERE t.tgrelid = %s::text::regclass AND NOT t.tgisinternal AND t.tgenabled <> 'D' ORDER BY t.tgname
"""
_RULES: LiteralString = (
    "SELECT rulename FROM pg_catalog.pg_rewrite WHERE ev_class = %s::text::regclass ORDER BY 1"
)
_CHILDREN: LiteralString = """
SELECT i.inhrelid::regclass::text FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhparent
WHERE c.oid = %s::text::regclass AND c.relkind = 'r' ORDER BY 1
"""
_ROW_SECURITY: LiteralString = "SELECT pg_catalog.row_security_active(%s::text)"
_MAY_RELAX: LiteralString = """
SELECT r.rolsuper OR (pg_catalog.current_setting('server_version_num')::int >= 150000
    AND EXISTS (SELECT 1 FROM pg_catalog.pg_parameter_acl p, pg_catalog.aclexplode(p.paracl) a
        WHERE p.parname = 'session_replication_role' AND a.privilege_type = 'SET'
          AND (a.grantee = 0 OR pg_catalog.pg_has_role(a.grantee, 'USAGE'))))
FROM pg_catalog.pg_roles r WHERE r.rolname = current_user
"""
_MAY_RELAX_14: LiteralString = "SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user"
_MAY_MIRROR: LiteralString = """
SELECT there, CASE WHEN there THEN pg_catalog.has_schema_privilege(name, 'CREATE')
    AND pg_catalog.has_schema_privilege(name, 'USAGE')
  ELSE pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE') END
FROM (SELECT %s::text) asked (name), LATERAL (SELECT pg_catalog.to_regnamespace(name) IS NOT NULL) found (there)
"""
_LEDGER_EMPTY: LiteralString = (
    "SELECT NOT EXISTS (SELECT 1 FROM migrator.ledger WHERE migration = %s AND segment > 0)"
)


def preflight(
    settings: PostgresTarget, names: Sequence[str], beside: Beside = NOTHING_BESIDE
) -> list[Finding]:
    """Findings about the server, the role, the control schema and the named tables. Changes nothing.

    Raises ``ConnectionFailed``.
    """
    with catalog(settings) as connection:
        version = connection.info.server_version
        findings = _server(connection, settings, version)
        structures = reflect(connection, settings.server.schema, names)
        findings += _missing(settings, names, structures)
        findings += _foreign_keys(connection, settings, list(structures.values()), version)
        if not any(one.check == "schema" for one in findings):  # without USAGE a table can't even be named
            for structure in structures.values():
                findings += _table(connection, settings, structure)
            findings += tied_tables(connection, settings.server.user, structures)
            findings += keys_of_periods(connection, structures)
            findings += _orders(connection, list(structures.values()))
            if not settings.changes_only:
                findings += _not_empty(connection, settings, list(structures.values()))
        findings += _mirror(connection, settings) if beside.mirror else []
    obstacle = control_problem(settings.url())  # its schema has the key maps as well
    if obstacle:
        findings.append(Finding("control_schema", "migrator", obstacle.problem, obstacle.remedy))
    return findings


def _orders(connection: psycopg.Connection[Any], structures: Sequence[Structure]) -> list[Finding]:
    """Collations that sort otherwise than when keys were indexed: the target would find no row by them."""

    def ask(statement: LiteralString, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        return connection.execute(statement, parameters).fetchall()

    return list(stale_orders(ask, ("%s", "%s"), [one.table.id for one in structures]))


def _mirror(connection: psycopg.Connection[Any], settings: PostgresTarget) -> list[Finding]:
    """The mirror's schema: whether the role owns it, or may make it."""
    row = connection.execute(_MAY_MIRROR, [MIRROR_SCHEMA]).fetchone()
    there, may = row if row is not None else (False, True)
    if may:
        return []
    make, give = ("ALTER", "OWNER TO") if there else ("CREATE", "AUTHORIZATION")
    remedy = f"{make} SCHEMA {MIRROR_SCHEMA} {give} {quoted(settings.server.user)}"
    problem = f"joined mappings need a mirror there, and the role may not {'fill' if there else 'make'} it"
    return [Finding("mirror", f"schema {MIRROR_SCHEMA}", problem, f"as the database's owner: {remedy}")]


def _server(connection: psycopg.Connection[Any], settings: PostgresTarget, version: int) -> list[Finding]:
    findings = []
    where = settings.server.address
    if version < _OLDEST:
        found = f"the server is version {version // 10000}"
        findings.append(Finding("server_version", where, found, "use PostgreSQL 14 or newer"))
    row = connection.execute(
        "SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('server_encoding'),"
        " pg_catalog.has_database_privilege(current_database(), 'TEMP')"
    ).fetchone()
    standby, encoding, temporary = row if row is not None else (False, "UTF8", True)
    if standby:
        findings.append(
            Finding("primary", where, "the server is a standby", "configure the primary as the target")
        )
    if encoding != "UTF8":
        remedy = "create the target database with ENCODING 'UTF8', so that every text can be stored"
        findings.append(Finding("server_encoding", where, f"the database's encoding is {encoding}", remedy))
    if not temporary:
        grant = f"GRANT TEMPORARY ON DATABASE {quoted(settings.server.database)} TO {quoted(settings.server.user)}"
        findings.append(Finding("temporary", where, "the role may not create temporary tables", grant))
    row = connection.execute(
        "SELECT pg_catalog.has_schema_privilege(oid, 'USAGE') FROM pg_catalog.pg_namespace WHERE nspname = %s",
        [settings.server.schema],
    ).fetchone()
    if row is None:
        remedy = "run `migrator schema upgrade`, or set [target] schema"
        findings.append(Finding("schema", settings.server.schema, "the target has no such schema", remedy))
    elif not row[0]:
        grant = f"GRANT USAGE ON SCHEMA {quoted(settings.server.schema)} TO {quoted(settings.server.user)}"
        findings.append(Finding("schema", settings.server.schema, "the role may not use the schema", grant))
    return findings


def _missing(
    settings: PostgresTarget, names: Sequence[str], structures: dict[TableId, Structure]
) -> list[Finding]:
    absent = [name for name in names if TableId(settings.server.schema, name) not in structures]
    remedy = "run `migrator schema upgrade`, or correct the name in the mapping"
    return [
        Finding("table", f"{settings.server.schema}.{name}", "the target has no such table", remedy)
        for name in absent
    ]


def _table(
    connection: psycopg.Connection[Any], settings: PostgresTarget, structure: Structure
) -> list[Finding]:
    table = structure.table
    subject, name = str(table.id), qualified(table.id)
    findings = []
    if not table.key:
        remedy = (
            f"ALTER TABLE {name} ADD PRIMARY KEY (...): not deferrable, or a unique index on NOT NULL columns"
        )
        findings.append(Finding("key", subject, "the table has no key that rows can be merged by", remedy))
    rights = [row[0] for row in connection.execute(_RIGHTS, [name])]
    if rights:
        grant = f"GRANT {', '.join(rights)} ON {name} TO {quoted(settings.server.user)}"
        findings.append(Finding("grants", subject, f"the role lacks {', '.join(rights)}", grant))
    rules = [row[0] for row in connection.execute(_RULES, [name])]
    if rules:
        remedy = f"DROP RULE {quoted(rules[0])} ON {name}: rules rewrite what is merged"
        findings.append(Finding("rules", subject, f"the table has the rules {', '.join(rules)}", remedy))
    children = [row[0] for row in connection.execute(_CHILDREN, [name])]
    if children:
        problem = (
            f"rows of {', '.join(children)}, which inherits from it, would be changed and removed as its own"
        )
        remedy = f"ALTER TABLE {children[0]} NO INHERIT {name}"
        findings.append(Finding("inherited", subject, problem, remedy))
    secured = connection.execute(_ROW_SECURITY, [name]).fetchone()
    if secured is not None and secured[0]:
        role = quoted(settings.server.user)
        remedy = f"ALTER ROLE {role} BYPASSRLS, or ALTER TABLE {name} DISABLE ROW LEVEL SECURITY"
        findings.append(
            Finding("row_security", subject, "row security hides or refuses rows from the role", remedy)
        )
    for trigger, always, pathless in connection.execute(_TRIGGERS, [name]):
        occasion = "also while the dump runs" if always else "for log changes, but not while the dump runs"
        remedy = f"ALTER TABLE {name} DISABLE TRIGGER {quoted(trigger)} until cut-over, if it changes data"
        if pathless:
            occasion += ", and what it names without a schema is looked for in pg_catalog only"
            remedy += f"; else ALTER FUNCTION {pathless} SET search_path = {quoted(settings.server.schema)}, pg_temp"
        findings.append(
            Finding("trigger", f"{subject}.{trigger}", f"the trigger fires {occasion}", remedy, fatal=False)
        )
    for storage in structure.storage:
        if storage.base in _UNSTABLE_TYPES:
            problem = f"values of type {storage.column.native_type} depend on the server's settings"
            remedy = "use numeric or text in the target's schema"
            findings.append(Finding("column_type", f"{subject}.{storage.column.name}", problem, remedy))
    return findings


def _foreign_keys(
    connection: psycopg.Connection[Any], settings: PostgresTarget, structures: list[Structure], version: int
) -> list[Finding]:
    named = [str(one.table.id) for one in structures if one.outgoing or one.incoming]
    if not named:
        return []
    row = connection.execute(_MAY_RELAX if version >= 150000 else _MAY_RELAX_14).fetchone()
    if row is not None and row[0]:
        return []
    grant = (
        relax_grant(settings.server.user)
        if version >= 150000
        else f"as a superuser: ALTER ROLE {quoted(settings.server.user)} SUPERUSER"
    )
    problem = (
        "foreign keys can't hold while the dump runs, and the role may not turn them off for its transactions"
    )
    findings = [Finding("foreign_keys", ", ".join(named), problem, grant)]
    for group in cycles({one.table.id: one.table.references for one in structures}):
        keys = [
            key for one in structures if one.table.id in group for key in one.outgoing if key.parent in group
        ]
        hard = [key for key in keys if not key.deferrable]
        if hard:
            change = (
                f"ALTER TABLE {qualified(hard[0].child)} ALTER CONSTRAINT {quoted(hard[0].name)} DEFERRABLE"
            )
            remedy = f"{change}, or the grant above"
            problem = "the tables reference each other in a circle with a constraint that isn't deferrable"
            findings.append(Finding("foreign_key_cycle", ", ".join(map(str, group)), problem, remedy))
    return findings


def _not_empty(
    connection: psycopg.Connection[Any], settings: PostgresTarget, structures: list[Structure]
) -> list[Finding]:
    """Tables with rows that no ledger accounts for: they would stay beside the migrated ones."""
    try:
        found = connection.execute("SELECT pg_catalog.to_regclass('migrator.ledger')::text").fetchone()
        there = found is not None and found[0] is not None
        row = connection.execute(_LEDGER_EMPTY, [settings.migration]).fetchone() if there else None
    except psycopg.errors.InsufficientPrivilege as error:
        role = quoted(settings.server.user)
        grant = (
            f"GRANT USAGE ON SCHEMA migrator TO {role};"
            f" GRANT SELECT, INSERT, UPDATE ON migrator.ledger TO {role}"
        )
        return [Finding("ledger", "migrator.ledger", str(error).partition("\n")[0], grant)]
    if row is not None and not row[0]:
        return []
    findings = []
    for structure in structures:
        table = structure.table.id
        try:
            row = connection.execute(
                sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table.schema, table.name))
            ).fetchone()
        except psycopg.errors.InsufficientPrivilege:
            continue  # reported as a missing grant
        if row is not None and row[0]:
            problem = f"the table holds {row[0]} rows, but the ledger says that nothing was applied yet"
            remedy = f"TRUNCATE {qualified(table)}{REMEDY_OF_OTHERS}"
            findings.append(Finding("not_empty", str(table), problem, remedy))
    return findings
