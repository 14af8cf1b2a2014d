"""Preflight of a MariaDB source: everything that stands in the way, found at once, each with its remedy.

Least grants: SELECT on the captured tables (or the database) and REPLICATION SLAVE on the server. The snapshot's
place (``binlog_snapshot_*``) and ``@@gtid_binlog_pos`` need no more; BINLOG MONITOR is not needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from migrator.adapters.mariadb.catalog import logical_type, query, quote, quote_table
from migrator.adapters.mariadb.charsets import is_supported, one_byte_charsets
from migrator.adapters.mariadb.settings import MariaSource, connect, named_errors
from migrator.adapters.mariadb.watermark import WATERMARK_TABLE
from migrator.model.finding import Finding
from migrator.model.table import TableId

MINIMUM_VERSION = (10, 11)
_SHORT_RETENTION_S = 86_400
_SETTINGS = (
    ("log_bin", ("1",), "the binary log is off", "set log_bin in the server's configuration and restart it"),
    ("binlog_format", ("ROW",), "rows must be logged as rows", "SET GLOBAL binlog_format = 'ROW'"),
    ("binlog_row_image", ("FULL",), "row images must be complete", "SET GLOBAL binlog_row_image = 'FULL'"),
    (
        "binlog_row_metadata",
        ("FULL",),
        "the log must name columns",
        "SET GLOBAL binlog_row_metadata = 'FULL'",
    ),
    ("log_bin_compress", ("0",), "compressed events can't be read", "SET GLOBAL log_bin_compress = OFF"),
)


def preflight(source: MariaSource, names: Sequence[str]) -> list[Finding]:
    """All findings for the named tables. Raises ``ConnectionFailed`` when the server can't be asked."""
    connection = connect(source)
    with named_errors(source, "preflight can't ask the source"), connection:
        findings = [
            *_server(connection, source),
            *_grants(connection, source),
            *_watermark(connection, source),
        ]
        findings += _tables(connection, source, names)
        findings += _elsewhere(connection, source)
    return findings


def _server(connection: Any, source: MariaSource) -> Iterator[Finding]:
    where = f"{source.host}:{source.port}"
    ((version,),) = query(connection, "SELECT VERSION()")
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if "mariadb" not in version.lower() or numbers < MINIMUM_VERSION:
        yield Finding(
            "version",
            where,
            f"the server is {version}",
            "a MariaDB server of version 10.11 or later is needed",
        )
    for name, wanted, problem, remedy in _SETTINGS:
        value = _variable(connection, name)
        if value.upper() not in wanted:
            yield Finding(
                name, where, f"{problem}: {name} = {value}", f"{remedy}, then reconnect all writers"
            )
    if _variable(connection, "server_id") == str(source.server_id):
        yield Finding(
            "server_id",
            where,
            f"the migration uses the server's own server_id {source.server_id}",
            "choose another",
        )
    keep_s = float(_variable(connection, "binlog_expire_logs_seconds") or 0)
    if 0 < keep_s < _SHORT_RETENTION_S:
        yield Finding(
            "expire_logs",
            where,
            f"binlogs are kept for {keep_s / 3600:.1f} h only: a longer pause of the migration needs a new dump",
            "SET GLOBAL binlog_expire_logs_seconds = 604800",
            fatal=False,
        )


def _variable(connection: Any, name: str) -> str:
    rows = query(connection, "SHOW GLOBAL VARIABLES LIKE %s", (name.replace("_", "\\_"),))
    value = str(rows[0][1]) if rows else ""
    return {"ON": "1", "OFF": "0"}.get(value.upper(), value)


def _grants(connection: Any, source: MariaSource) -> Iterator[Finding]:
    ((user,),) = query(connection, "SELECT CURRENT_USER()")
    grants = " ; ".join(row[0] for row in query(connection, "SHOW GRANTS")).upper()
    # a role's rights show in SHOW GRANTS only while the role is active, and then they count
    on_server = " ; ".join(re.findall(r"GRANT ([^;]*?) ON \*\.\* ", grants))
    rights = {right.strip() for right in on_server.replace(";", ",").split(",")}
    if not rights & {"ALL PRIVILEGES", "REPLICATION SLAVE", "REPLICATION REPLICA"}:
        yield Finding(
            "grants",
            str(user),
            "the user may not read the binary log",
            f"GRANT REPLICATION SLAVE ON *.* TO {_account(user)}",
        )


def _account(user: str) -> str:
    name, _, host = user.rpartition("@")
    return f"{quote(name)}@{quote(host)}"


def _watermark(connection: Any, source: MariaSource) -> Iterator[Finding]:
    if source.placement != "watermark":
        return
    rows = query(
        connection,
        "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
        (WATERMARK_TABLE.schema, WATERMARK_TABLE.name),
    )
    if not rows:
        yield Finding(
            "watermark",
            str(WATERMARK_TABLE),
            "the watermark table does not exist, or the user has no rights to it",
            "create it with the control schema; GRANT SELECT, INSERT, UPDATE ON `migrator`.`watermark` TO the user",
        )


def _tables(connection: Any, source: MariaSource, names: Sequence[str]) -> Iterator[Finding]:
    one_byte = one_byte_charsets(connection)
    for name in names:
        table = TableId(source.database, name)
        rows = query(
            connection,
            "SELECT TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
            (table.schema, table.name),
        )
        if not rows:
            yield Finding(
                "table",
                str(table),
                "the table does not exist, or the user may not SELECT from it",
                f"check the mapping's parameter names; GRANT SELECT ON {quote(table.schema)}.* TO the user",
            )
            continue
        yield from _kind(connection, table, *rows[0])
        yield from _columns(connection, table, one_byte)
        yield from _cascades(connection, table)


def _kind(connection: Any, table: TableId, kind: str, engine: str | None) -> Iterator[Finding]:
    if kind == "VIEW":
        yield Finding("table", str(table), "it is a view", "map the tables that the view reads")
        return
    if kind == "SYSTEM VERSIONED":
        yield Finding(
            "table",
            str(table),
            "it is system-versioned: history rows are logged as rows",
            "leave the table out",
        )
    if (engine or "").upper() != "INNODB":
        yield Finding(
            "engine",
            str(table),
            f"its engine is {engine}: only InnoDB has snapshots that tell their place in the log",
            f"ALTER TABLE {quote_table(table)} ENGINE = InnoDB",
        )
    keys = query(
        connection,
        "SELECT s.INDEX_NAME FROM information_schema.STATISTICS s JOIN information_schema.COLUMNS c"
        " USING (TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME)"
        " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND s.NON_UNIQUE = 0 GROUP BY s.INDEX_NAME"
        " HAVING SUM(c.IS_NULLABLE = 'YES' OR c.EXTRA LIKE '%%VIRTUAL%%') = 0",
        (table.schema, table.name),
    )
    if not keys:
        yield Finding(
            "key",
            str(table),
            "it has neither a primary key nor a unique index over not-null columns",
            f"ALTER TABLE {quote_table(table)} ADD PRIMARY KEY (...)",
        )


def _columns(connection: Any, table: TableId, one_byte: frozenset[str]) -> Iterator[Finding]:
    rows = query(
        connection,
        "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME, EXTRA FROM information_schema.COLUMNS"
        " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION",
        (table.schema, table.name),
    )
    for name, data_type, column_type, charset, extra in rows:
        subject = f"{table}.{name}"
        if logical_type(data_type.lower(), column_type.lower()) is None:
            old = "mariadb-5.3" in column_type
            yield Finding(
                "column type",
                subject,
                f"the type {column_type} can't be read from the log",
                f"ALTER TABLE {quote_table(table)} FORCE with mysql56_temporal_format=ON"
                if old
                else "change the column's type, or leave the table out of the migration",
            )
        elif charset is not None and not is_supported(charset, one_byte):
            yield Finding(
                "character set",
                subject,
                f"text in {charset} can't be read from the log",
                f"ALTER TABLE {quote_table(table)} MODIFY {quote(name)} {column_type} CHARACTER SET utf8mb4",
            )
        elif "VIRTUAL GENERATED" in extra.upper():
            yield Finding(
                "virtual column",
                subject,
                "a virtual column is not captured",
                "compute it in the mapping, or make it STORED",
                fatal=False,
            )


def _cascades(connection: Any, table: TableId) -> Iterator[Finding]:
    """Foreign keys by which the server changes rows of a captured table on its own: those changes aren't logged."""
    rows = query(
        connection,
        "SELECT CONSTRAINT_NAME, REFERENCED_TABLE_NAME, DELETE_RULE, UPDATE_RULE"
        " FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = %s AND TABLE_NAME = %s",
        (table.schema, table.name),
    )
    for constraint, parent, on_delete, on_update in rows:
        rules = [
            f"ON {verb} {rule}"
            for verb, rule in (("DELETE", on_delete), ("UPDATE", on_update))
            if rule not in ("RESTRICT", "NO ACTION")
        ]
        if rules:
            yield Finding(
                "foreign key cascade",
                f"{table} constraint {constraint}",
                f"{' '.join(rules)} from {parent}: MariaDB doesn't log the rows of {table.name} that it changes",
                f"ALTER TABLE {quote_table(table)} DROP FOREIGN KEY {quote(constraint)}, then add it again with"
                " ON DELETE RESTRICT ON UPDATE RESTRICT and let the application change the children (or a trigger:"
                " what triggers do is logged)",
            )


def _elsewhere(connection: Any, source: MariaSource) -> Iterator[Finding]:
    """Triggers of other databases that name ours: a statement-format session there would change our rows unseen."""
    rows = query(
        connection,
        "SELECT TRIGGER_SCHEMA, TRIGGER_NAME FROM information_schema.TRIGGERS"
        " WHERE TRIGGER_SCHEMA <> %s AND LOCATE(%s, ACTION_STATEMENT) > 0",
        (source.database, source.database),
    )
    for schema, name in rows:
        yield Finding(
            "trigger",
            f"{schema}.{name}",
            f"a trigger of another database names {source.database}",
            "make sure that no session there writes with binlog_format = STATEMENT",
            fatal=False,
        )
