"""Helpers for tests of the PostgreSQL source adapter: a reader on a fresh database, and waiting with deadlines."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.chunks.chunk_reader import PostgresChunkReader
from migrator.adapters.sources.postgres.log.log_reader import PostgresLogReader
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.event import Key, LogProgress, LogRecord, RowChange, TransactionPart
from migrator.model.position import Position
from migrator.model.table import TableSchema
from migrator.ports.source import LogReader
from tests.servers import Database, needs_postgres, server_and_rest

DEADLINE_S = 30.0

WATERMARK_TABLE = (
    "CREATE SCHEMA migrator",
    "CREATE TABLE migrator.watermark (migration text PRIMARY KEY, token text NOT NULL, kind text NOT NULL)",
    "ALTER TABLE migrator.watermark REPLICA IDENTITY FULL",
)


def source_of(database: Database, /, **changes: Any) -> PostgresSource:
    """Settings for a fresh database; the slot's name is unique on the server, as the database's name is."""
    server, rest = server_and_rest(database, changes)
    return PostgresSource(server, **{"migration": database.database[:31], **rest})


def stream_at_once(database: Database) -> None:
    """The server streams every change at once: a handful of rows does what millions do otherwise."""
    setting = "debug_logical_replication_streaming"
    needs_postgres(16, f"setting {setting}")
    database.execute(f'ALTER DATABASE "{database.database}" SET {setting} = immediate')


def prepared(source: PostgresSource, *tables: str) -> list[TableSchema]:
    """Row schemas of the tables, with publication and slot made."""
    catalog = PostgresCatalog(source)
    schemas = catalog.tables(tables)
    catalog.prepare(schemas)
    return schemas


@contextmanager
def log_reader(
    source: PostgresSource, schemas: Sequence[TableSchema], after: Position | None = None
) -> Iterator[PostgresLogReader]:
    """A started log reader, closed at the end."""
    reader = PostgresLogReader(source, schemas)
    try:
        reader.start(after)
        yield reader
    finally:
        reader.close()


@contextmanager
def chunk_reader(source: PostgresSource) -> Iterator[PostgresChunkReader]:
    """A chunk reader, closed at the end."""
    reader = PostgresChunkReader(source)
    try:
        yield reader
    finally:
        reader.close()


def read_until(
    reader: LogReader, done: Callable[[list[LogRecord]], bool], deadline_s: float = DEADLINE_S
) -> list[LogRecord]:
    """Records until ``done`` holds for all of them; fails after the deadline, showing what came."""
    records: list[LogRecord] = []
    until = time.monotonic() + deadline_s
    while not done(records):
        assert time.monotonic() < until, f"not within {deadline_s} s: {records[-5:]}"
        records += reader.read(0.2)
    return records


def read_to(reader: LogReader, position: Position) -> list[LogRecord]:
    """Records until everything at or before the position was delivered."""
    return read_until(reader, lambda records: reached(records, position))


def reached(records: Sequence[LogRecord], position: Position) -> bool:
    """Whether the records say that everything at or before the position was delivered."""
    return any(
        record.position >= position
        for record in records
        if isinstance(record, LogProgress) or (isinstance(record, TransactionPart) and record.last)
    )


def parts(records: Sequence[LogRecord]) -> list[TransactionPart]:
    """The transaction parts among the records."""
    return [record for record in records if isinstance(record, TransactionPart)]


def changes(records: Sequence[LogRecord]) -> list[RowChange]:
    """All row changes, in order."""
    return [change for part in parts(records) for change in part.changes]


def all_chunks(reader: PostgresChunkReader, schema: TableSchema, limit_rows: int) -> list[Chunk]:
    """The whole table in chunks."""
    chunks: list[Chunk] = []
    after: Key | None = None
    while not chunks or not chunks[-1].final:
        chunks.append(reader.read(ChunkRequest(len(chunks) + 1, schema.id, after, limit_rows), schema))
        after = chunks[-1].last_key
    return chunks


def wait_for(database: Database, statement: str, deadline_s: float = DEADLINE_S) -> None:
    """Waits until the query's first value is true."""
    until = time.monotonic() + deadline_s
    connection = database.connect()
    try:
        while not connection.execute(statement).fetchone()[0]:
            assert time.monotonic() < until, f"not within {deadline_s} s: {statement}"
    finally:
        connection.close()


class Proxy:
    """A TCP proxy on a free local port; set ``stalled`` and it forwards nothing more, but keeps its connections."""

    def __init__(self, host: str, port: int):
        self._to = (host, port)
        self.stalled = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._run(self._accept)
        return self

    def __exit__(self, *exception: object) -> None:
        self.stalled.set()
        for each in [self._listener, *self._sockets]:
            with suppress(OSError):  # the other side may have closed it already
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(10)

    def _run(self, work: Callable[..., None], *arguments: Any) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        with suppress(OSError):  # the listener is closed at the end
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._to)
                self._sockets += [near, far]
                self._run(self._forward, near, far)
                self._run(self._forward, far, near)

    def _forward(self, giver: socket.socket, taker: socket.socket) -> None:
        with suppress(OSError):
            while data := giver.recv(65536):
                if not self.stalled.is_set():
                    taker.sendall(data)
            if not self.stalled.is_set():
                taker.shutdown(socket.SHUT_WR)


def drop_slot(database: Database, slot: str) -> None:
    """Drops a slot whose reader is gone: its walsender has to notice that first, and holds the slot until then."""
    wait_for(database, f"SELECT NOT active FROM pg_replication_slots WHERE slot_name = '{slot}'")
    database.execute(f"SELECT pg_drop_replication_slot('{slot}')")
