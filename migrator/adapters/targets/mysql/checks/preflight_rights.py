"""Rights that a run needs for what it makes itself beside the mapping's tables: control tables, mirror, key maps.

The server is asked statement by statement for what can't be done: the table doesn't exist, or the columns have one
name. It checks rights before that, so that its answer tells them, and nothing is changed.
"""

from __future__ import annotations

import re
import secrets

import pymysql

from migrator.adapters.targets.mysql.checks.grants import CONTROL_RIGHTS
from migrator.adapters.targets.mysql.key_maps import TABLES as KEY_MAPS
from migrator.adapters.targets.mysql.mirror.names import mirror_database
from migrator.adapters.targets.mysql.mirror.tables import RIGHTS
from migrator.adapters.targets.mysql.reflect import Catalog
from migrator.adapters.targets.mysql.refusal import NO_PRIVILEGE
from migrator.adapters.targets.mysql.rows.merge import qualified, quoted
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.connections.mysql.sql import account
from migrator.model.finding import Finding
from migrator.model.table import TableId

_KEY_MAP_RIGHTS = ("SELECT", "INSERT", "UPDATE", "CREATE")
_ASKED = {
    "SELECT": "SELECT 1 FROM {0} WHERE false",
    "INSERT": "INSERT INTO {0} VALUES (1)",
    "UPDATE": "UPDATE {0} SET n = 1",
    "DELETE": "DELETE FROM {0} WHERE n = 1",
    "CREATE": "CREATE TABLE {0} (n INT, n INT)",
    "DROP": "DROP TABLE {0}",
    "ALTER": "ALTER TABLE {0} ADD COLUMN n INT",
    "INDEX": "CREATE INDEX n ON {0} (n)",
}
_EXPLAINED = {
    "SELECT": "SELECT 1 FROM {0} WHERE false",
    "INSERT": "EXPLAIN INSERT INTO {0} SELECT * FROM {0} WHERE false",
    "UPDATE": "EXPLAIN UPDATE {0} SET {1} = {1} WHERE false",
    "DELETE": "EXPLAIN DELETE FROM {0} WHERE false",
}
"""Statements that are asked of a table that there is: they change nothing."""


def mirror_rights(session: Catalog, settings: MysqlTarget) -> list[Finding]:
    """Finds the rights that the login lacks on the mirror's database."""
    database = mirror_database(settings.server.database)
    # A name that nobody has: what is asked for must not be possible.
    nobodys = TableId(database, f"migrator_preflight_{secrets.token_hex(8)}")
    lacking = _lacking(session, nobodys, tuple(RIGHTS.split(", ")))
    if not lacking:
        return []
    make = f"CREATE DATABASE IF NOT EXISTS {quoted(database)} CHARACTER SET utf8mb4"
    grant = f"GRANT {RIGHTS} ON {quoted(database)}.* TO {account(settings.server.user)}"
    problem = f"joined mappings need a mirror there, and the user lacks {', '.join(lacking)}"
    return [Finding("mirror", f"database {database}", problem, f"{make}; {grant}")]


def control_rights(session: Catalog, settings: MysqlTarget) -> list[Finding]:
    """Finds the rights that the login lacks on ledger, history and their version, made or not."""
    findings = []
    for name, rights in CONTROL_RIGHTS.items():
        table = TableId(settings.server.database, name)
        if _exists(session, table):
            lacking = _lacking_there(session, table, rights)
        else:
            lacking = _lacking(session, table, rights)
        if lacking:
            grant = f"GRANT {', '.join(lacking)} ON {qualified(table)} TO {account(settings.server.user)}"
            problem = f"a run keeps its progress and acts there, and the user lacks {', '.join(lacking)}"
            findings.append(Finding("control_tables", str(table), problem, grant))
    return findings


def key_map_rights(session: Catalog, settings: MysqlTarget) -> list[Finding]:
    """Finds the rights that the login lacks on the key maps, the tables that keep new keys."""
    findings = []
    for name in KEY_MAPS:
        table = TableId(settings.server.database, name)
        if _exists(session, table):  # it has rows, so only what changes nothing may be asked
            lacking = [
                *_lacking_there(session, table, _KEY_MAP_RIGHTS),
                *_lacking(session, table, ("CREATE",)),
            ]
        else:
            lacking = _lacking(session, table, _KEY_MAP_RIGHTS)
        if lacking:
            grant = (
                f"GRANT {', '.join(_KEY_MAP_RIGHTS)} ON {qualified(table)} TO {account(settings.server.user)}"
            )
            problem = f"surrogate keys are kept there, and the user lacks {', '.join(lacking)}"
            findings.append(Finding("key_maps", str(table), problem, grant))
    return findings


def _exists(session: Catalog, table: TableId) -> bool:
    query = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
    return bool(session.rows(query, [table.schema, table.name]))


def _lacking(session: Catalog, table: TableId, rights: tuple[str, ...]) -> list[str]:
    return [right for right in rights if _refused(session, _ASKED[right].format(qualified(table)), right)]


def _lacking_there(session: Catalog, table: TableId, rights: tuple[str, ...]) -> list[str]:
    """Rights that are missing on a table that there is; none to make it is asked for."""
    query = (
        "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"
        " ORDER BY ordinal_position LIMIT 1"
    )
    found = session.rows(query, [table.schema, table.name])
    column = found[0][0] if found else "n"  # none is shown to who may do nothing with them
    statements = {
        right: _EXPLAINED[right].format(qualified(table), quoted(str(column)))
        for right in rights
        if right in _EXPLAINED
    }
    return [right for right, statement in statements.items() if _refused(session, statement, right)]


def _refused(session: Catalog, statement: str, right: str) -> bool:
    """Tells whether the server refuses a statement for want of that right; other refusals don't count."""
    try:
        session.rows(statement)
    except pymysql.err.MySQLError as error:
        if not error.args or error.args[0] not in NO_PRIVILEGE:
            return False
        named = re.match(r"([A-Z, ]+) command denied", str(error.args[1]))
        return named is None or right in named[1].split(", ")
    return False
