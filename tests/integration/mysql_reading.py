"""Reading a MySQL source in tests; the loops that wait are MariaDB's."""

from __future__ import annotations

from typing import Any

from migrator.adapters.mysql.catalog import MysqlCatalog
from migrator.adapters.mysql.chunk_reader import MysqlChunkReader
from migrator.adapters.mysql.log_reader import MysqlLogReader
from migrator.binlog.settings import BinlogSource
from migrator.model.table import TableSchema
from tests.integration.mariadb_reading import dump_with


def dump(source: BinlogSource, schema: TableSchema, limit_rows: int) -> list[Any]:
    """All chunks of a table."""
    return dump_with(MysqlChunkReader(source), schema, limit_rows)


def started(source: BinlogSource, *names: str) -> tuple[MysqlLogReader, list[TableSchema]]:
    """A log reader that stands at the end of the log."""
    tables = MysqlCatalog(source).tables(names)
    reader = MysqlLogReader(source, tables)
    reader.start(None)
    return reader, tables
