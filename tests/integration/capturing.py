"""Capture of a real source into an event log in memory, without Spark and target; and what that log amounts to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from migrator.adapters.memory.eventlog import (
    MemoryBatchReader,
    MemoryEventLog,
    MemoryRoom,
    MemorySegmentWriter,
)
from migrator.adapters.memory.requests import MemoryRequests
from migrator.adapters.sources.binlog.load import BinlogLoadMeter
from migrator.adapters.sources.binlog.transactions.watermark import WatermarkRowWriter
from migrator.adapters.sources.mariadb.catalog import MariaCatalog
from migrator.adapters.sources.mariadb.chunk_reader import MariaChunkReader
from migrator.adapters.sources.mariadb.log_reader import MariaLogReader
from migrator.adapters.sources.mysql.catalog import MysqlCatalog
from migrator.adapters.sources.mysql.chunk_reader import MysqlChunkReader
from migrator.adapters.sources.mysql.log_reader import MysqlLogReader
from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.change_tables.catalog import ChangeTableCatalog
from migrator.adapters.sources.postgres.change_tables.chunk_views import (
    chunk_reader as change_table_chunks,
)
from migrator.adapters.sources.postgres.change_tables.log_reader import ChangeTableLogReader
from migrator.adapters.sources.postgres.chunks.chunk_reader import PostgresChunkReader
from migrator.adapters.sources.postgres.chunks.watermark import mark_writer
from migrator.adapters.sources.postgres.load import PostgresLoadMeter
from migrator.adapters.sources.postgres.log.log_reader import PostgresLogReader
from migrator.connections.same_server import SameServer
from migrator.model.chunk import ChunkRequest
from migrator.model.limits import CaptureLimits
from migrator.model.table import TableId, TableSchema
from migrator.ports.log_notes import LogNotes
from migrator.ports.source import ChunkReader, LoadMeter, LogReader, SourceCatalog, WatermarkWriter
from migrator.run.capture.attempt import Attempt
from migrator.run.capture.loop import CaptureLoop, SourcePorts
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from migrator.run.steps import Step, no_step
from tests.fix_change_tables import captured as captured_by_triggers
from tests.fix_postgres_source import WATERMARK_TABLE
from tests.fix_postgres_source import source_of as postgres_source
from tests.integration.binlog_reading import make_watermark_table
from tests.integration.binlog_reading import source_of as binlog_source
from tests.servers import Database

DEADLINE_S = 120.0
Rows = dict[tuple[object, ...], dict[str, object]]


class Killed(BaseException):
    """The process is gone at this point."""


@dataclass
class Capturing:
    """Tables of one database, captured by one run after the other; what they leave is in ``event_log``."""

    catalog: SourceCatalog
    chunk_reader: Callable[[], ChunkReader]
    log_reader: Callable[[], LogReader]
    schemas: dict[TableId, TableSchema]
    limits: CaptureLimits
    marks: Callable[[], WatermarkWriter] | None = None
    meter: Callable[[], LoadMeter] | None = None
    notes: LogNotes = field(default_factory=LogNotes)
    requests: MemoryRequests = field(default_factory=MemoryRequests)
    event_log: MemoryEventLog = field(default_factory=MemoryEventLog)
    progress: Progress = field(default_factory=Progress)
    epoch: int = 0

    def run(self, until: Callable[[], bool], step: Step = no_step) -> None:
        """Captures until something holds. Raises what ended it before."""
        self.epoch += 1
        writer = MemorySegmentWriter(self.event_log, self.epoch)
        last = writer.last()
        self.progress = Progress()
        loop = CaptureLoop(
            SourcePorts(self.log_reader, self.chunk_reader, self.marks, self.meter, notes=self.notes),
            Attempt(
                self.schemas,
                None if last is None else last.checkpoint,
                self.limits,
                f"{self.epoch}-test",
            ),
            writer,
            self.requests,
            MemoryRoom(MemoryEventLog()),
            self.progress,
            step,
        )
        stopping = Stopping()
        thread = stopping.thread("capture", lambda: loop.run(stopping))
        deadline = time.monotonic() + DEADLINE_S
        try:
            while not until() and not stopping.requested():
                assert time.monotonic() < deadline, "it never came to that"
                threading.Event().wait(0.02)
        finally:
            stopping.request()
            thread.join(30)
        stopping.raise_failure()

    def dumped(self) -> bool:
        """Whether every table's dump is done."""
        dumps = self.progress.snapshot().dumps
        return bool(dumps) and all(dump.done for dump in dumps)

    def caught_up(self) -> Callable[[], bool]:
        """Whether the event log holds all that is committed now."""
        goal = self.catalog.position()

        def reached() -> bool:
            captured = self.progress.snapshot().captured
            return self.dumped() and captured is not None and captured >= goal

        return reached

    def held(self) -> dict[TableId, Rows]:
        """The rows that the event log amounts to, per table by key."""
        held: dict[TableId, Rows] = {table: {} for table in self.schemas}
        reader, after = MemoryBatchReader(self.event_log), 0
        while (batch := reader.read(after, 100, 0)) is not None:
            after = batch.last
            for table in batch.emptied():
                held[table].clear()
            for schema, paths, _ in batch.chunks:
                for path in paths:
                    held[schema.id].update(rows_of(schema, self.event_log.chunk(path)))
            for delta in batch.deltas:
                for key in rows_of(delta.schema, delta.before):
                    held[delta.schema.id].pop(key, None)
                held[delta.schema.id].update(rows_of(delta.schema, delta.after))
        return held

    def source(self, table: TableId) -> Rows:
        """The table as it is now."""
        reader = self.chunk_reader()
        try:
            chunk = reader.read(ChunkRequest(1, table, None, 1_000_000), self.schemas[table])
        finally:
            reader.close()
        assert chunk.final
        return rows_of(self.schemas[table], chunk.rows)


def rows_of(schema: TableSchema, rows: pa.Table) -> Rows:
    """Rows by their key."""
    return {tuple(row[name] for name in schema.key): row for row in rows.to_pylist()}


def capturing(
    database: Database,
    tables: list[str],
    limits: CaptureLimits,
    placement: str = "witness",
    metered: bool = False,
    change_tables: bool = False,
) -> Capturing:
    """A capture of these tables, which exist. ``metered``: it sees how busy the source is, and may give way.

    ``change_tables``: by triggers, which are made.
    """
    catalog: SourceCatalog
    if change_tables:
        source, schemas = captured_by_triggers(database, *tables)
        same, notes, known = SameServer(), LogNotes(), {schema.id: schema for schema in schemas}
        return Capturing(
            ChangeTableCatalog(source),
            lambda: change_table_chunks(source, same=same),
            lambda: ChangeTableLogReader(source, list(known.values()), same=same, notes=notes),
            known,
            limits,
            notes=notes,
        )
    if database.kind == "postgresql":
        if placement == "watermark":
            database.execute(*WATERMARK_TABLE)
        source = postgres_source(database, placement=placement)
        catalog = PostgresCatalog(source)
        schemas = catalog.tables(tables)
        catalog.prepare(schemas)
        notes = LogNotes()
        return Capturing(
            catalog,
            lambda: PostgresChunkReader(source),
            lambda: PostgresLogReader(source, schemas, notes=notes),
            {schema.id: schema for schema in schemas},
            limits,
            mark_writer(source),
            (lambda: PostgresLoadMeter(source)) if metered else None,
            notes,
        )
    tls = "prefer" if database.kind == "mysql" else "disable"
    if placement == "watermark":
        make_watermark_table(database)
    log = binlog_source(database, tls=tls, placement=placement, migration=database.database[:31])
    catalogs, chunks, logs = (
        (MysqlCatalog, MysqlChunkReader, MysqlLogReader)
        if database.kind == "mysql"
        else (MariaCatalog, MariaChunkReader, MariaLogReader)
    )
    catalog = catalogs(log)
    schemas = catalog.tables(tables)
    catalog.prepare(schemas)
    notes = LogNotes()
    return Capturing(
        catalog,
        lambda: chunks(log),
        lambda: logs(log, schemas, None, notes),
        {schema.id: schema for schema in schemas},
        limits,
        (lambda: WatermarkRowWriter(log)) if placement == "watermark" else None,
        (lambda: BinlogLoadMeter(log)) if metered else None,
        notes,
    )
