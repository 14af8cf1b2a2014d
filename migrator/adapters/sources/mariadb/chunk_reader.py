"""Reads chunks of a MariaDB source, each in a consistent snapshot that says where in the log it stands."""

from __future__ import annotations

from typing import Any

from migrator.adapters.sources.binlog.chunks.chunk_reader import BinlogChunkReader
from migrator.adapters.sources.binlog.tables.captured_tables import CatalogTable
from migrator.adapters.sources.mariadb.catalog import log_end, read_table, server_name
from migrator.adapters.sources.mariadb.witness import BinlogWitness, take_witness
from migrator.connections.mysql.sql import query
from migrator.model.position import Position
from migrator.model.table import TableId


class MariaChunkReader(BinlogChunkReader):
    """Reads chunks. One thread uses it at a time, another than the log reader's."""

    def _server_name(self, connection: Any) -> str:
        return server_name(connection)

    def _prepare_session(self, connection: Any) -> None:
        # only REPEATABLE READ keeps one read view, and only then is the snapshot taken at once
        query(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")

    def _begin_view(self, connection: Any) -> BinlogWitness:
        return take_witness(connection)

    def _end_view(self, connection: Any) -> None:
        query(connection, "COMMIT")

    def _log_end(self, connection: Any) -> Position:
        return log_end(connection)

    def _read_table(self, connection: Any, table: TableId) -> CatalogTable | None:
        return read_table(connection, table)
