"""Reads chunks of a MySQL source, each by one SELECT with a read view of its own."""

from __future__ import annotations

from typing import Any

from migrator.adapters.sources.binlog.chunks.chunk_reader import BinlogChunkReader
from migrator.adapters.sources.binlog.tables.captured_tables import CatalogTable
from migrator.adapters.sources.mysql.catalog import executed, log_end, read_table, server_name
from migrator.adapters.sources.mysql.witness import GtidWitness, witness_of
from migrator.connections.mysql.sql import query
from migrator.model.position import Position
from migrator.model.table import TableId


class MysqlChunkReader(BinlogChunkReader):
    """Reads chunks. One thread uses it at a time, another than the log reader's."""

    def _server_name(self, connection: Any) -> str:
        return server_name(connection)

    def _prepare_session(self, connection: Any) -> None:
        # with autocommit each SELECT has its own read view anyway; this says so twice
        query(connection, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")

    def _begin_view(self, connection: Any) -> GtidWitness:
        return witness_of(executed(connection))

    def _end_view(self, connection: Any) -> None:
        """Nothing: the SELECT was a transaction of its own."""

    def _log_end(self, connection: Any) -> Position:
        return log_end(connection)

    def _read_table(self, connection: Any, table: TableId) -> CatalogTable | None:
        return read_table(connection, table)
