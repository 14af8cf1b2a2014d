"""Reading a MariaDB source in tests: the source of a database, and loops that wait on conditions with deadlines."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from migrator.adapters.mariadb.catalog import MariaCatalog
from migrator.adapters.mariadb.chunk_reader import MariaChunkReader
from migrator.adapters.mariadb.log_reader import MariaLogReader
from migrator.binlog.chunk_reader import BinlogChunkReader
from migrator.binlog.log_reader import BinlogReader
from migrator.binlog.settings import BinlogSource, default_server_id
from migrator.model.chunk import ChunkRequest
from migrator.model.event import (
    LogProgress,
    LogRecord,
    Operation,
    Row,
    RowChange,
    SchemaChange,
    TransactionPart,
)
from migrator.model.position import Position
from migrator.model.table import TableSchema
from tests.servers import Database

DEADLINE_S = 30.0


def source_of(database: Database, /, **settings: Any) -> BinlogSource:
    options = {"tls": "disable", "migration": "test", "server_id": default_server_id(database.database)}
    return BinlogSource(
        **{
            "host": database.host,
            "port": database.port,
            "database": database.database,
            "user": database.user,
            "password": database.password or None,
            **options,
            **settings,
        }
    )


@dataclass
class Read:
    """What a log reader delivered."""

    records: list[LogRecord] = field(default_factory=list)

    def parts(self) -> list[TransactionPart]:
        return [record for record in self.records if isinstance(record, TransactionPart)]

    def changes(self) -> list[RowChange]:
        return [change for part in self.parts() for change in part.changes]

    def schemas(self) -> list[TableSchema]:
        return [record.schema for record in self.records if isinstance(record, SchemaChange)]

    def reached(self) -> int:
        orders = [
            record.position.order
            for record in self.records
            if isinstance(record, LogProgress) or (isinstance(record, TransactionPart) and record.last)
        ]
        return max(orders, default=-1)


def read_until(reader: BinlogReader, done: Callable[[Read], bool], into: Read | None = None) -> Read:
    """Reads until ``done``; fails at the deadline."""
    read = into or Read()
    deadline = time.monotonic() + DEADLINE_S
    while not done(read):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not delivered in {DEADLINE_S} s; read so far: {read.records[-5:]}")
        read.records += reader.read(0.2)
    return read


def read_to(reader: BinlogReader, end: Position, into: Read | None = None) -> Read:
    """Reads until everything up to ``end`` is delivered."""
    return read_until(reader, lambda read: read.reached() >= end.order, into)


def fold(changes: Sequence[RowChange], key_places: Sequence[int]) -> dict[tuple[Any, ...], Row]:
    """The rows a table has after the changes."""
    rows: dict[tuple[Any, ...], Row] = {}
    for change in changes:
        if change.before is not None:
            before = rows.pop(tuple(change.before[place] for place in key_places))
            assert before == change.before
        if change.operation is not Operation.DELETE:
            assert change.after is not None
            rows[tuple(change.after[place] for place in key_places)] = change.after
    return rows


def dump(source: BinlogSource, schema: TableSchema, limit_rows: int) -> list[Any]:
    """All chunks of a table."""
    return dump_with(MariaChunkReader(source), schema, limit_rows)


def dump_with(reader: BinlogChunkReader, schema: TableSchema, limit_rows: int) -> list[Any]:
    """All chunks of a table as this reader reads them; it is closed."""
    chunks, after = [], None
    try:
        while not chunks or not chunks[-1].final:
            chunks.append(reader.read(ChunkRequest(len(chunks) + 1, schema.id, after, limit_rows), schema))
            after = chunks[-1].last_key
    finally:
        reader.close()
    return chunks


def started(source: BinlogSource, *names: str) -> tuple[MariaLogReader, list[TableSchema]]:
    """A log reader that stands at the end of the log."""
    tables = MariaCatalog(source).tables(names)
    reader = MariaLogReader(source, tables)
    reader.start(None)
    return reader, tables
