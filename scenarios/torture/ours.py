"""The capture of this project as a tool to torture: its log reader, chunk reader, capture core and event log.

The loop is that of ``migrator.run.capture.loop`` with two differences, both for the comparison only: the dump
of the table begins anew whenever it is asked for (Debezium's incremental snapshots can be repeated, a
migration dumps once), and a segment is cut before and after every chunk, so that the event log tells the
order of delivery.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.chunks.chunk_reader import PostgresChunkReader
from migrator.adapters.sources.postgres.log.log_reader import PostgresLogReader
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.columnar.keys import without_keys
from migrator.core.capture import Capture, EmitChunk, Output
from migrator.core.dump import DumpPlan
from migrator.errors import MigratorError
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.event import Key
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.server import Server
from migrator.model.table import TableId, TableSchema
from migrator.run.capture.inputs import (
    ChunkBounded,
    ChunkRead,
    Halted,
    Inputs,
    Reconnected,
    Records,
    Witnessed,
)
from migrator.run.capture.segment_builder import SegmentBuilder
from migrator.run.capture.source_threads import ChunkPump, LogPump, WitnessPump
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from scenarios.database import Database
from scenarios.torture.deliveries import Deliveries
from scenarios.torture.old_table import COLUMNS, TABLE
from scenarios.torture.segments import deliveries_of
from scenarios.torture.tool import ToolEnded, wait_until

CHUNK_ROWS = 1024
"""The rows of a chunk, as many as Debezium's by default."""
_LINGER_S = 0.03


class RepeatedDump(DumpPlan):
    """A plan that dumps its tables as often as it is told to, one dump after the other."""

    def __init__(self, tables: Sequence[TableId]):
        self._tables = tables
        self._turn = DumpPlan([TableDump(table, done=True) for table in tables], CHUNK_ROWS)
        self.asked = self.done = 0
        self.dropped_rows = self.chunks = 0

    def begin(self) -> None:
        """Another dump of all tables, once those asked for before are over."""
        self.asked += 1
        self._go_on()

    def dumps(self) -> tuple[TableDump, ...]:
        """Progress of the dump under way."""
        return self._turn.dumps()

    def next_request(self) -> ChunkRequest | None:
        """See ``DumpPlan``."""
        return self._turn.next_request()

    def next_table(self) -> TableId | None:
        """See ``DumpPlan``."""
        return self._turn.next_table()

    def bounded(self, request: ChunkRequest) -> None:
        """See ``DumpPlan``."""
        self._turn.bounded(request)

    def arrived(self, chunk: Chunk) -> bool:
        """See ``DumpPlan``."""
        return self._turn.arrived(chunk)

    def is_head(self, chunk: Chunk) -> bool:
        """See ``DumpPlan``."""
        return self._turn.is_head(chunk)

    def emitted(self, chunk: Chunk, dropped_rows: int) -> TableDump:
        """See ``DumpPlan``."""
        dump = self._turn.emitted(chunk, dropped_rows)
        self.dropped_rows += dropped_rows
        if self._over():
            self.done += 1
            self._go_on()
        return dump

    def read_again(self, table: TableId, name: str = "") -> None:
        """See ``DumpPlan``."""
        self._turn.read_again(table, name)

    def requests(self) -> tuple[TableDump, ...]:
        """None: its dumps are begun one after the other."""
        return ()

    def expects(self, chunk: Chunk) -> bool:
        """See ``DumpPlan``."""
        return self._turn.expects(chunk)

    def must_hold(self) -> str:
        """Nobody repairs here."""
        return ""

    def _go_on(self) -> None:
        if self._over() and self.done < self.asked:
            self._turn = DumpPlan([TableDump(table) for table in self._tables], CHUNK_ROWS)

    def _over(self) -> bool:
        return all(dump.done for dump in self._turn.dumps())


class OurCapture:
    """Implements ``Tool``.

    Args:
        old: the database, as the role that captures.
        folder: gets the event log; must not hold one. Raises MigratorError if it does.
    """

    version = f"dbmigrator {metadata.version('dbmigrator')}, visibility witness"

    def __init__(self, old: Database, folder: Path):
        source = PostgresSource(
            Server(
                kind="postgresql",
                host=old.host,
                port=old.port,
                database=old.database,
                schema=old.schema,
                user=old.user,
                password=old.password or None,
            ),
            migration="torture",
        )
        self._catalog = PostgresCatalog(source)
        self._folder = folder / "eventlog"
        if self._folder.exists():
            raise MigratorError(
                "the folder holds another run's event log",
                where=str(self._folder),
                remedy="name an empty folder",
            )
        schemas = self._catalog.tables([TABLE])
        self._catalog.prepare(schemas)
        self._inputs: Inputs = queue.Queue(maxsize=16)
        self._stopping = Stopping()
        self._dumps_asked = 0
        self._delivered = Position(-1, "")
        self._plan = RepeatedDump([schema.id for schema in schemas])
        self.chunks = 0
        self.rows_read = 0
        log = LogPump(lambda: PostgresLogReader(source, schemas), None, self._inputs, Progress())
        chunks = ChunkPump(lambda: PostgresChunkReader(source), None, self._inputs, Progress())
        witnesses = WitnessPump(lambda: PostgresChunkReader(source), self._inputs, lambda: True)
        started = log.start()
        pumps = {"log": log.run, "chunks": chunks.run, "witnesses": witnesses.run}
        self._threads = [
            self._stopping.thread(name, lambda run=run: run(self._stopping))  # type: ignore[misc]
            for name, run in pumps.items()
        ]
        self._threads.append(
            self._stopping.thread("capture", lambda: self._capture(schemas, started, log, chunks))
        )

    def dump(self) -> None:
        """See ``Tool.dump``."""
        self._dumps_asked += 1
        goal = self._dumps_asked
        self._await(lambda: self._plan.done >= goal, f"the end of dump {goal}")

    def drain(self) -> None:
        """See ``Tool.drain``."""
        goal = self._catalog.position()
        self._await(lambda: self._delivered >= goal, "catching up")

    def close(self) -> None:
        """See ``Tool.close``."""
        self._stopping.request()
        for thread in self._threads:
            thread.join(timeout=20)

    def deliveries(self) -> Deliveries:
        """See ``Tool.deliveries``: as read from the event log."""
        return deliveries_of(self._folder, [COLUMNS])

    def _await(self, reached: Callable[[], bool], what: str) -> None:
        def done() -> bool:
            if self._stopping.requested():
                self._raise_ended(what)
            return reached()

        wait_until(done, what)

    def _raise_ended(self, what: str) -> None:
        try:
            self._stopping.raise_failure()
        except MigratorError as error:
            raise ToolEnded(
                f"our capture ended during {what}", cause=str(error), remedy="see the cause"
            ) from error

    # -- the capture thread -------------------------------------------------------------------------------------

    def _capture(
        self, schemas: list[TableSchema], started: Position, log: LogPump, chunks: ChunkPump
    ) -> None:
        checkpoint = Checkpoint(started, dumps=self._plan.dumps())
        capture = Capture(checkpoint, {schema.id: schema for schema in schemas}, self._plan, _drop_keys)
        segments = _Segments(schemas, self._folder, capture)
        while not self._stopping.requested():
            while self._plan.asked < self._dumps_asked:
                self._plan.begin()
            request = capture.next_request()
            if request is not None:
                chunks.ask(request, capture.schema(request.table))
            for output in self._outputs(capture):
                segments.add(output)
            if segments.due():
                segments.write()
                log.acknowledge(capture.checkpoint().position)
            if not segments.waiting():
                self._delivered = capture.checkpoint().position

    def _outputs(self, capture: Capture) -> list[Output]:
        try:
            item = self._inputs.get(timeout=_LINGER_S)
        except queue.Empty:
            return []
        if isinstance(item, Records):
            return [output for record in item.records for output in capture.on_record(record)]
        if isinstance(item, ChunkBounded):
            capture.on_bounded(item.request)
        if isinstance(item, ChunkRead):
            self.chunks += 1
            self.rows_read += item.chunk.row_count
            return capture.on_chunk(item.chunk)
        if isinstance(item, Witnessed):
            capture.on_witness(item.witness)
        if isinstance(item, Reconnected):
            capture.on_reconnect()
        if isinstance(item, Halted):
            raise item.error
        return []


class _Segments:
    """Outputs on their way into the event log; every chunk gets a segment of its own."""

    def __init__(self, schemas: Sequence[TableSchema], folder: Path, capture: Capture):
        self._capture = capture
        self._builder = SegmentBuilder({schema.id: schema for schema in schemas})
        self._writer = FileSegmentWriter(folder, epoch=1)
        self._since = time.monotonic()

    def add(self, output: Output) -> None:
        """Takes the next output."""
        alone = isinstance(output, EmitChunk)
        if alone and self.waiting():
            self.write()
        if not self.waiting():
            self._since = time.monotonic()
        self._builder.add(output)
        if alone and self.waiting():
            self.write()

    def waiting(self) -> bool:
        """Returns whether rows wait to be written."""
        return self._builder.rows > 0

    def due(self) -> bool:
        """Returns whether the rows have waited long enough."""
        return self.waiting() and time.monotonic() - self._since >= _LINGER_S

    def write(self) -> None:
        """Appends a segment; durable on return."""
        checkpoint = self._capture.checkpoint()
        self._writer.append(
            self._builder.content(checkpoint, ends_transaction=not self._capture.in_transaction())
        )


def _drop_keys(schema: TableSchema, rows: object, keys: frozenset[Key]) -> tuple[object, int]:
    kept = without_keys(schema, rows, keys)
    return kept, kept.num_rows
