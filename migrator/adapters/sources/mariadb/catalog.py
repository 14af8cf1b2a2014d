"""The structure of a MariaDB source: its types, and where its log ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from migrator.adapters.sources.binlog import catalog
from migrator.adapters.sources.binlog.catalog import BinlogCatalog
from migrator.adapters.sources.binlog.tables.captured_tables import CatalogTable
from migrator.adapters.sources.mariadb.position import LogPlace, parse_gtids
from migrator.adapters.sources.mariadb.preflight import preflight
from migrator.adapters.sources.mariadb.types import logical_type
from migrator.adapters.sources.mariadb.witness import Snapshot, begin_snapshot
from migrator.connections.mysql.sql import query
from migrator.errors import SourceError
from migrator.model.finding import Finding
from migrator.model.position import Position
from migrator.model.table import TableId


def read_table(connection: Any, table: TableId) -> CatalogTable | None:
    """A table as the catalog has it now; see ``migrator.adapters.sources.binlog.catalog.read_table``."""
    return catalog.read_table(connection, table, logical_type)


def server_name(connection: Any) -> str:
    """Names the server: MariaDB has no UUID of a server, but replicas must have another ``server_id``."""
    ((host, port, server_id),) = query(connection, "SELECT @@hostname, @@port, @@GLOBAL.server_id")
    return f"{host}:{port} (server_id {server_id})"


def log_end(connection: Any) -> Position:
    """The end of the log: at or after every transaction visible now."""
    ((gtids,),) = query(connection, "SELECT @@GLOBAL.gtid_binlog_pos")
    return LogPlace(parse_gtids(gtids), "", 0).position()


class UntoldPlaceError(SourceError):
    """The server doesn't say which GTIDs stand before a snapshot's place; see ``log_walk``."""

    def __init__(self, snapshot: Snapshot):
        super().__init__(
            "the server doesn't say where its snapshot stands in the log",
            where=f"binlog_snapshot_file {snapshot.file!r}, binlog_snapshot_position {snapshot.position}",
            cause="BINLOG_GTID_POS knows no GTID state there",
            remedy="turn the binary log on (log_bin) if it is off",
        )
        self.snapshot = snapshot


def visible_end(connection: Any) -> Position:
    """The newest place of which everything before is visible: where a first start begins.

    The log's end would be wrong there. A commit stands in the log before readers see it (group commit, semi-sync
    AFTER_SYNC). Beginning behind such a commit, the log reader never delivers it, and a chunk read before it
    becomes visible doesn't hold it either: it would be lost. A consistent snapshot says where it stands in
    the log.

    Raises ``UntoldPlaceError`` when the server doesn't say, ``SourceError``.
    """
    # only under REPEATABLE READ is the snapshot taken at once
    query(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    snapshot = begin_snapshot(connection)
    ((gtids,),) = query(connection, "SELECT BINLOG_GTID_POS(%s, %s)", (snapshot.file, snapshot.position))
    query(connection, "COMMIT")
    if gtids is None:
        raise UntoldPlaceError(snapshot)
    return LogPlace(parse_gtids(gtids), "", 0).position()


class MariaCatalog(BinlogCatalog):
    """Structure and readiness of the source. Opens a connection for each call, so it is safe in any thread."""

    def preflight(self, tables: Sequence[str]) -> list[Finding]:
        """Everything that stands in the way, all at once. Changes nothing."""
        return preflight(self._source, tables)

    def _read_table(self, connection: Any, table: TableId) -> CatalogTable | None:
        return read_table(connection, table)

    def _log_end(self, connection: Any) -> Position:
        return log_end(connection)
