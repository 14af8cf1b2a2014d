"""The two engines with a binary log, as the tests that both must pass see them."""

from __future__ import annotations

from dataclasses import dataclass

from migrator.adapters.sources.binlog.catalog import BinlogCatalog
from migrator.adapters.sources.binlog.chunks.chunk_reader import BinlogChunkReader
from migrator.adapters.sources.binlog.transactions.log_reader import BinlogReader
from migrator.adapters.sources.mariadb.catalog import MariaCatalog
from migrator.adapters.sources.mariadb.chunk_reader import MariaChunkReader
from migrator.adapters.sources.mariadb.log_reader import MariaLogReader
from migrator.adapters.sources.mysql.catalog import MysqlCatalog
from migrator.adapters.sources.mysql.chunk_reader import MysqlChunkReader
from migrator.adapters.sources.mysql.log_reader import MysqlLogReader
from migrator.connections.mysql.settings import BinlogSource
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.position import Position
from migrator.model.table import TableSchema


@dataclass(frozen=True, slots=True)
class BinlogEngine:
    """The adapter of one engine, and what of it shows in results that are otherwise the same.

    Attributes:
        kind: the name of the engine, of its server's fixture, and of ``Database.kind``.
        gtid: how messages name a place in the log of a server of the tests.
        files_in_ids: whether a transaction's id begins with the number of its file, so that ids rise.
        exact_witness: whether a chunk is exactly what its witness contains; else it may be newer, up to ``high``.
        password_tls: the least ``tls`` with which the server takes a password.
    """

    kind: str
    catalog: type[BinlogCatalog]
    log_reader: type[BinlogReader]
    chunk_reader: type[BinlogChunkReader]
    gtid: str
    files_in_ids: bool
    exact_witness: bool
    password_tls: str

    def end(self, source: BinlogSource) -> Position:
        """The end of the log."""
        return self.catalog(source).position()

    def started(self, source: BinlogSource, *names: str) -> tuple[BinlogReader, list[TableSchema]]:
        """A log reader that stands at the end of the log."""
        tables = self.catalog(source).tables(names)
        reader = self.log_reader(source, tables)
        reader.start(None)
        return reader, tables

    def dump(self, source: BinlogSource, schema: TableSchema, limit_rows: int) -> list[Chunk]:
        """All chunks of a table."""
        reader = self.chunk_reader(source)
        chunks: list[Chunk] = []
        try:
            while not chunks or not chunks[-1].final:
                after = chunks[-1].last_key if chunks else None
                chunks.append(
                    reader.read(ChunkRequest(len(chunks) + 1, schema.id, after, limit_rows), schema)
                )
        finally:
            reader.close()
        return chunks


MYSQL = BinlogEngine(
    "mysql",
    MysqlCatalog,
    MysqlLogReader,
    MysqlChunkReader,
    gtid="GTID ",
    files_in_ids=False,
    exact_witness=False,
    password_tls="prefer",
)
MARIADB = BinlogEngine(
    "mariadb",
    MariaCatalog,
    MariaLogReader,
    MariaChunkReader,
    gtid="GTID 0-",
    files_in_ids=True,
    exact_witness=True,
    password_tls="disable",
)
