"""Preflight of a MariaDB source: everything that stands in the way, found at once, each with its remedy.

Least grants: SELECT on the captured tables (or the database) and REPLICATION SLAVE on the server. The snapshot's
place (``binlog_snapshot_*``) and ``@@gtid_binlog_pos`` need no more; BINLOG MONITOR is not needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pymysql

from migrator.adapters.sources.binlog import preflight_checks as checks
from migrator.adapters.sources.binlog.past_the_log import who_may_write_past_the_log
from migrator.adapters.sources.binlog.preflight import found
from migrator.adapters.sources.mariadb.types import logical_type
from migrator.connections.mysql.settings import BinlogSource
from migrator.connections.mysql.sql import query, variable
from migrator.model.finding import Finding

MINIMUM_VERSION = (10, 11)
_NOT_ALLOWED = 1227
_SETTINGS = checks.log_settings(("ROW",))


def preflight(source: BinlogSource, names: Sequence[str]) -> list[Finding]:
    """All findings for the named tables. Raises ``ConnectionFailed`` when the server can't be asked."""
    return found(source, names, _server, logical_type, lambda _connection: False)


def _server(connection: Any, source: BinlogSource) -> Iterator[Finding]:
    where = f"{source.server.host}:{source.server.port}"
    ((version,),) = query(connection, "SELECT VERSION()")
    yield from checks.version(version, where, "MariaDB", MINIMUM_VERSION)
    yield from checks.settings(connection, where, _SETTINGS)
    yield from _replica(connection, where)
    yield from checks.own_server_id(connection, source)
    yield from checks.undecided(connection, where)
    if variable(connection, "log_bin") == "1":
        yield from checks.filters(connection, where, source.server.database)
        yield from who_may_write_past_the_log(connection, where)
    yield from checks.retention(connection, where)


def _replica(connection: Any, where: str) -> Iterator[Finding]:
    """A replica whose own log lacks what it replicates, as MariaDB's does unless it is asked for it.

    Where the user may not see replicas, a place in another server's log, which also a server keeps that was
    promoted, counts as one: such a log delivers nothing, in silence.
    """
    if variable(connection, "log_slave_updates") == "1":
        return
    try:
        if not query(connection, "SHOW ALL SLAVES STATUS"):
            return
        problem, more = "this is a replica, and its own log lacks what it replicates", ""
    except pymysql.err.OperationalError as error:
        if error.args[0] != _NOT_ALLOWED:
            raise
        ((running,),) = query(
            connection,
            "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS"
            " WHERE VARIABLE_NAME = 'SLAVES_RUNNING'",
        )
        if running == "0" and not variable(connection, "gtid_slave_pos"):
            return
        problem = "this is or was a replica, whose own log lacks what it replicates"
        more = "; if it is none any more: GRANT SLAVE MONITOR ON *.* TO the user, which shows it"
    yield Finding(
        "log_slave_updates",
        where,
        f"{problem}: log_slave_updates = 0",
        f"set log_slave_updates in the server's configuration and restart it{more}",
    )
