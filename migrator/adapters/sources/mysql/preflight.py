"""Preflight of a MySQL source: everything that stands in the way, found at once, each with its remedy.

Least grants: SELECT on the captured tables (or the database) and REPLICATION SLAVE on the server.
``@@gtid_executed`` and ``@@gtid_owned`` need no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from migrator.adapters.sources.binlog import preflight_checks as checks
from migrator.adapters.sources.binlog.past_the_log import who_may_write_past_the_log
from migrator.adapters.sources.binlog.preflight import found
from migrator.adapters.sources.mysql.types import logical_type
from migrator.connections.mysql.settings import BinlogSource
from migrator.connections.mysql.sql import query, variable
from migrator.model.finding import Finding

MINIMUM_VERSION = (8, 0, 17)
"""Older ones can't print a FLOAT with all its digits (CAST AS DOUBLE)."""
_SETTINGS = (
    *checks.log_settings(("ROW", "")),
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
    return found(source, names, _server, logical_type, logs_cascades)


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
