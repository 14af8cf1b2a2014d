"""Preflight of a MySQL source: everything that stands in the way, found at once, each with its remedy.

Least grants: SELECT on the captured tables (or the database) and REPLICATION SLAVE on the server.
``@@gtid_executed`` and ``@@gtid_owned`` need no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from migrator.adapters.sources.binlog import preflight_checks as checks
from migrator.adapters.sources.binlog.past_the_log import who_may_write_past_the_log
from migrator.adapters.sources.binlog.rows.charsets import one_byte_charsets
from migrator.adapters.sources.mysql.types import logical_type
from migrator.connections.mysql.settings import BinlogSource, connect, named_errors
from migrator.connections.mysql.sql import query, quote, variable
from migrator.model.finding import Finding
from migrator.model.table import TableId

MINIMUM_VERSION = (8, 0, 17)
"""Older ones can't print a FLOAT with all its digits (CAST AS DOUBLE)."""
_SETTINGS = (
    ("log_bin", ("1",), "the binary log is off", "set log_bin in the server's configuration and restart it"),
    ("binlog_format", ("ROW", ""), "rows must be logged as rows", "SET GLOBAL binlog_format = 'ROW'"),
    ("binlog_row_image", ("FULL",), "row images must be complete", "SET GLOBAL binlog_row_image = 'FULL'"),
    (
        "binlog_row_metadata",
        ("FULL",),
        "the log must name columns",
        "SET GLOBAL binlog_row_metadata = 'FULL'",
    ),
    (
        "binlog_row_value_options",
        ("",),
        "partial updates of JSON can't be read",
        "SET GLOBAL binlog_row_value_options = ''",
    ),
    ("gtid_mode", ("1",), "places in the log are GTID sets", "SET GLOBAL gtid_mode = ON (in its steps)"),
    (
        "enforce_gtid_consistency",
        ("1",),
        "every transaction must have one GTID",
        "SET GLOBAL enforce_gtid_consistency = ON",
    ),
)
_ORDERED = (
    (
        "binlog_order_commits",
        ("1",),
        "a watermark is safe only where commits become visible in log order",
        "SET GLOBAL binlog_order_commits = ON, or use placement = 'witness'",
    ),
)
_REPLICA = (
    (
        "log_replica_updates",
        ("1",),
        "this is a replica, and its own log lacks what it replicates",
        "set log_replica_updates in the server's configuration and restart it",
    ),
)


def preflight(source: BinlogSource, names: Sequence[str]) -> list[Finding]:
    """All findings for the named tables. Raises ``ConnectionFailed`` when the server can't be asked."""
    connection = connect(source)
    with named_errors(source, "preflight can't ask the source"), connection:
        findings = [
            *_server(connection, source),
            *checks.grants(connection),
            *checks.watermark_table(connection, source),
        ]
        findings += _tables(connection, source, names)
        if not logs_cascades(connection):
            findings += checks.cascades(connection, source.server.database, names)
        findings += checks.triggers_elsewhere(connection, source)
        findings += checks.packets(connection, source.server.address, source.server.database, names)
    return findings


def logs_cascades(connection: Any) -> bool:
    """Tells whether the server logs the rows that foreign keys cascade to: since 9.6 the SQL layer does it, if
    asked to."""
    return variable(connection, "innodb_native_foreign_keys") == "0"


def _server(connection: Any, source: BinlogSource) -> Iterator[Finding]:
    where = f"{source.server.host}:{source.server.port}"
    ((version,),) = query(connection, "SELECT VERSION()")
    yield from checks.version(version, where, "MySQL", MINIMUM_VERSION)
    yield from checks.settings(connection, where, _SETTINGS)
    if source.placement == "watermark":
        yield from checks.settings(connection, where, _ORDERED)
    if variable(connection, "log_replica_updates"):  # MySQL 8.0.26 renamed it; before, the default is ON
        yield from checks.settings(connection, where, _REPLICA)
    yield from checks.own_server_id(connection, source)
    yield from checks.undecided(connection, where)
    if variable(connection, "log_bin") == "1":
        yield from checks.filters(connection, where, source.server.database)
        yield from who_may_write_past_the_log(connection, where)
    if variable(connection, "binlog_expire_logs_auto_purge") != "0":
        yield from checks.retention(connection, where)


def _tables(connection: Any, source: BinlogSource, names: Sequence[str]) -> Iterator[Finding]:
    one_byte = one_byte_charsets(connection)
    for name in names:
        table = TableId(source.server.database, name)
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
        yield from checks.kind_and_key(connection, table, *rows[0])
        yield from checks.columns(connection, table, one_byte, logical_type)
