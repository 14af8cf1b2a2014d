"""Preflight of a MySQL or MariaDB target: finds all obstacles to writing at once, with the statement that helps."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pymysql

from migrator.adapters.targets.mysql.checks.preflight_rights import (
    control_rights,
    key_map_rights,
    mirror_rights,
)
from migrator.adapters.targets.mysql.checks.preflight_triggers import trigger_rights
from migrator.adapters.targets.mysql.reflect import Catalog, catalog, reflect
from migrator.adapters.targets.mysql.refusal import NO_PRIVILEGE
from migrator.adapters.targets.mysql.rows.merge import columns, qualified, quoted
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.mysql.structure import Structure
from migrator.adapters.targets.mysql.types import WRITTEN
from migrator.adapters.targets.shared.ledger import REMEDY_OF_OTHERS
from migrator.connections.mysql.states import WRITABLE_REMEDY
from migrator.model.finding import Finding
from migrator.model.grants import NOTHING_BESIDE, Beside
from migrator.model.table import TableId
from migrator.schema import MYSQL_LEDGER, control_problem

_OLDEST = {"mysql": (8, 0), "mariadb": (10, 6)}
_PRIMARY = "primary"
_SERVER = "SELECT VERSION(), @@GLOBAL.read_only, @@GLOBAL.log_bin, @@GLOBAL.binlog_format"
_ENGINE = "SELECT engine FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
_TRIGGERS = (
    "SELECT trigger_name FROM information_schema.triggers WHERE event_object_schema = %s AND event_object_table = %s"
    " ORDER BY 1"
)


def preflight(settings: MysqlTarget, names: Sequence[str], beside: Beside = NOTHING_BESIDE) -> list[Finding]:
    """Findings about the server, the role, the ledger and the named tables. Changes nothing.

    Raises ``ConnectionFailed``.
    """
    with catalog(settings) as session:
        findings = _server(session, settings)
        if any(one.check == _PRIMARY for one in findings):
            return findings  # what else there may be can't be tried
        structures = reflect(session, settings.server.database, names)
        findings += _missing(settings, names, structures)
        for structure in structures.values():
            findings += _table(session, settings, structure)
        findings += _tied(session, settings, structures)
        findings += trigger_rights(session, settings, sorted(structures))
        if beside.mirror:
            findings += mirror_rights(session, settings)
        if beside.key_maps:
            findings += key_map_rights(session, settings)
        lacking = control_rights(session, settings)
        findings += lacking
        applied = _applied(session, settings)
        if not applied and not settings.changes_only:
            findings += _not_empty(session, list(structures.values()))
    obstacle = None if lacking else control_problem(settings.engine())
    if obstacle:
        findings.append(Finding("control_schema", MYSQL_LEDGER, obstacle.problem, obstacle.remedy))
    return findings


def _user(settings: MysqlTarget) -> str:
    return f"'{settings.server.user}'"


def _server(session: Catalog, settings: MysqlTarget) -> list[Finding]:
    findings = []
    where = settings.server.address
    ((version, read_only, logged, log_format),) = session.rows(_SERVER)
    kind = "mariadb" if "mariadb" in str(version).lower() else "mysql"
    found = tuple(int(part) for part in re.findall(r"\d+", str(version))[:2])
    if kind != settings.server.kind:
        remedy = f'set kind = "{kind}" in [target]'
        findings.append(
            Finding("server_kind", where, f"the server is {version}, not {settings.server.kind}", remedy)
        )
    if found < _OLDEST[kind]:
        oldest = ".".join(map(str, _OLDEST[kind]))
        findings.append(
            Finding("server_version", where, f"the server is {version}", f"use {kind} {oldest} or newer")
        )
    if read_only in (1, "1", "ON"):
        problem = "the server is read-only (read_only = ON), as a replica is"
        return [*findings, Finding(_PRIMARY, where, problem, WRITABLE_REMEDY)]
    if logged in (1, "1", "ON") and log_format == "STATEMENT":
        problem = "binlog_format is STATEMENT, with which READ COMMITTED transactions can't write"
        findings.append(Finding("binlog_format", where, problem, "SET GLOBAL binlog_format = 'ROW'"))
    if denied := _denied(
        session, "CREATE TEMPORARY TABLE migrator_preflight (n INT PRIMARY KEY) ENGINE=InnoDB"
    ):
        grant = f"GRANT CREATE TEMPORARY TABLES ON {quoted(settings.server.database)}.* TO {_user(settings)}"
        findings.append(Finding("temporary", where, f"the user may not stage rows: {denied}", grant))
    else:
        session.rows("DROP TEMPORARY TABLE migrator_preflight")
    return findings


def _denied(session: Catalog, statement: str) -> str:
    """The server's words when a statement is denied to the user; empty when it isn't."""
    try:
        session.rows(statement)
    except pymysql.err.MySQLError as error:
        if error.args and error.args[0] in NO_PRIVILEGE:
            return str(error.args[1])
        raise
    return ""


def _missing(
    settings: MysqlTarget, names: Sequence[str], structures: dict[TableId, Structure]
) -> list[Finding]:
    absent = [name for name in names if TableId(settings.server.database, name) not in structures]
    remedy = "run `migrator schema upgrade`, correct the name in the mapping, or grant rights to the table"
    return [
        Finding("table", f"{settings.server.database}.{name}", "the target shows no such table", remedy)
        for name in absent
    ]


def _table(session: Catalog, settings: MysqlTarget, structure: Structure) -> list[Finding]:
    table = structure.table
    subject, name = str(table.id), qualified(table.id)
    findings = []
    ((engine,),) = session.rows(_ENGINE, [table.id.schema, table.id.name])
    if engine != "InnoDB":
        problem = f"the table's engine is {engine}, which takes part in no transaction"
        findings.append(Finding("engine", subject, problem, f"ALTER TABLE {name} ENGINE = InnoDB"))
    if not table.key:
        remedy = f"ALTER TABLE {name} ADD PRIMARY KEY (...), or a unique index on whole NOT NULL columns"
        findings.append(Finding("key", subject, "the table has no key that rows can be merged by", remedy))
    stored = [column.name for column in table.columns if not column.generated]
    lacking = _lacking(session, name, stored)
    if lacking:
        grant = f"GRANT {', '.join(lacking)} ON {name} TO {_user(settings)}"
        findings.append(Finding("grants", subject, f"the user lacks {', '.join(lacking)}", grant))
    for (trigger,) in session.rows(_TRIGGERS, [table.id.schema, table.id.name]):
        remedy = f"DROP TRIGGER {quoted(str(trigger))} until cut-over, if it changes data"
        problem = "the trigger fires for every row that is written, the dump's included"
        findings.append(Finding("trigger", f"{subject}.{trigger}", problem, remedy, fatal=False))
    for storage in structure.storage:
        kind = storage.column.native_type
        rounds = storage.base in ("float", "double") and "," in kind
        if storage.base not in WRITTEN or rounds:
            problem = f"values of type {kind} {'are rounded by the server' if rounds else 'are not written'}"
            remedy = "leave the column out of the mapping, or use another type in the target's schema"
            findings.append(
                Finding("column_type", f"{subject}.{storage.column.name}", problem, remedy, fatal=False)
            )
    return findings


def _tied(session: Catalog, settings: MysqlTarget, structures: dict[TableId, Structure]) -> list[Finding]:
    """Tables that no mapping fills, against which foreign keys of those that mappings fill are checked."""
    findings = []
    ties = {key.parent: key for one in structures.values() for key in one.outgoing}
    ties |= {key.child: key for one in structures.values() for key in one.incoming}
    for table, key in sorted(ties.items()):
        if table not in structures and _denied(session, f"SELECT 1 FROM {qualified(table)} WHERE false"):
            problem = (
                f"the user may not read it, and foreign key {key.name} of {key.child} is checked against it"
            )
            grant = f"GRANT SELECT ON {qualified(table)} TO {_user(settings)}"
            findings.append(Finding("grants", str(table), problem, grant))
    return findings


def _lacking(session: Catalog, table: str, names: Sequence[str]) -> list[str]:
    """Rights that are missing: the server checks them of an explained statement, too, and runs nothing."""
    one, every = quoted(names[0]), columns(names)
    statements = {
        "SELECT": f"SELECT 1 FROM {table} WHERE false",
        "INSERT": f"EXPLAIN INSERT INTO {table} ({every}) SELECT {every} FROM {table} WHERE false",
        "UPDATE": f"EXPLAIN UPDATE {table} SET {one} = {one} WHERE false",
        "DELETE": f"EXPLAIN DELETE FROM {table} WHERE false",
    }
    return [right for right, statement in statements.items() if _denied(session, statement)]


def _applied(session: Catalog, settings: MysqlTarget) -> bool:
    """Tells whether the ledger records an applied segment; a ledger that we may not read may record one."""
    place = TableId(settings.server.database, MYSQL_LEDGER)
    if not session.rows(_ENGINE, [place.schema, place.name]):
        return False
    if _denied(session, f"SELECT 1 FROM {qualified(place)} WHERE false"):
        return True  # reported as a missing grant
    query = f"SELECT 1 FROM {qualified(place)} WHERE migration = %s AND segment > 0"
    return bool(session.rows(query, [settings.migration]))


def _not_empty(session: Catalog, structures: list[Structure]) -> list[Finding]:
    """Tables with rows that no ledger accounts for: they would stay beside the migrated ones."""
    findings = []
    for structure in structures:
        name = qualified(structure.table.id)
        if _denied(session, f"SELECT 1 FROM {name} WHERE false"):
            continue  # reported as a missing grant
        ((count,),) = session.rows(f"SELECT COUNT(*) FROM {name}")
        if count:
            problem = f"the table holds {count} rows, but the ledger says that nothing was applied yet"
            remedy = f"DELETE FROM {name}{REMEDY_OF_OTHERS}"
            findings.append(Finding("not_empty", str(structure.table.id), problem, remedy))
    return findings
