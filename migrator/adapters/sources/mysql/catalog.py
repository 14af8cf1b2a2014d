"""The structure of a MySQL source, and where its log ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from migrator.adapters.sources.binlog import catalog
from migrator.adapters.sources.binlog.catalog import BinlogCatalog
from migrator.adapters.sources.binlog.tables.captured_tables import CatalogTable
from migrator.adapters.sources.mysql.gtid_set import GtidSet, parse_owned, parse_set
from migrator.adapters.sources.mysql.position import LogPlace
from migrator.adapters.sources.mysql.preflight import preflight
from migrator.adapters.sources.mysql.types import logical_type
from migrator.connections.mysql.sql import query
from migrator.model.finding import Finding
from migrator.model.position import Position
from migrator.model.table import TableId


def read_table(connection: Any, table: TableId) -> CatalogTable | None:
    """A table as the catalog has it now; see ``migrator.adapters.sources.binlog.catalog.read_table``."""
    return catalog.read_table(connection, table, logical_type)


def server_name(connection: Any) -> str:
    """Names the server by its UUID; no two servers have the same name."""
    ((uuid,),) = query(connection, "SELECT @@GLOBAL.server_uuid")
    return str(uuid)


def executed(connection: Any) -> GtidSet:
    """The transactions that are visible to every read view opened from now on."""
    ((text,),) = query(connection, "SELECT @@GLOBAL.gtid_executed")
    return parse_set(text)


def log_end(connection: Any) -> Position:
    """A place at or after every transaction visible now.

    A transaction becomes visible before its GTID enters ``gtid_executed``; until then it is owned by its session.
    Owned ones are asked first: what leaves that set in between is found in the other. Whatever precedes a
    visible one in the log is owned or executed, too, so this many transactions of the log include all that
    are visible.
    """
    ((owned,),) = query(connection, "SELECT @@GLOBAL.gtid_owned")
    return LogPlace(parse_owned(owned).union(executed(connection))).position()


class MysqlCatalog(BinlogCatalog):
    """Structure and readiness of the source. Opens a connection for each call, so it is safe in any thread."""

    def preflight(self, tables: Sequence[str]) -> list[Finding]:
        """Everything that stands in the way, all at once. Changes nothing."""
        return preflight(self._source, tables)

    def _read_table(self, connection: Any, table: TableId) -> CatalogTable | None:
        return read_table(connection, table)

    def _log_end(self, connection: Any) -> Position:
        return log_end(connection)
