"""The steps of capture between two waits, for the capture loop's thread and for the simulation."""

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from migrator.columnar.keys import without_keys
from migrator.core.capture import Capture, EmitChunk, EmitPart, Output
from migrator.core.dump import DumpPlan
from migrator.core.hold import MOST_ROWS
from migrator.core.pace import Pacer
from migrator.errors import RequestError
from migrator.model.chunk import Chunk
from migrator.model.event import Key, LogRecord, TransactionPart
from migrator.model.load import Load
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, dump_key
from migrator.model.requests.request import DumpRequest, RequestBook
from migrator.model.retention import Retention
from migrator.model.table import TableId, TableSchema
from migrator.ports.eventlog import SegmentContent, SegmentWriter
from migrator.ports.log_notes import LogNotes
from migrator.ports.requests import RequestStore
from migrator.ports.source import ChunkReader, LoadMeter, LogReader, SourceMeter, WatermarkWriter
from migrator.run.capture.attempt import Attempt
from migrator.run.capture.changes import changes_by_table
from migrator.run.capture.inputs import (
    Asked,
    BookRead,
    ChunkBounded,
    ChunkRead,
    ChunkRefused,
    Input,
    Inputs,
    Reconnected,
    Records,
    Sampled,
    Witnessed,
)
from migrator.run.capture.load_pump import LoadPump
from migrator.run.capture.request_pump import RequestPump
from migrator.run.capture.segment_builder import SegmentBuilder
from migrator.run.capture.silent_tables import silent_tables
from migrator.run.capture.source_threads import ChunkPump, LogPump, WitnessPump
from migrator.run.lead.resume import begin_notes, emptying
from migrator.run.progress import Progress
from migrator.run.steps import Step, no_step

SEGMENT_BYTES = 64 << 20
"""A segment is written at the latest when it holds so much, whatever it is collected for: with rows of 16 MB,
thirty milliseconds of a fast log are a gigabyte."""
_UNREAD = 4
"""Factor by which small segments are collected longer while earlier ones weren't read yet. Who reads them takes
all of them at once, and each costs a file for every table in it: more of them would come no sooner."""


@dataclass(frozen=True, slots=True)
class SourcePorts:
    """Factories of the source connections; each thread makes its own, so they are called by several at once.

    ``retention`` asks, over a connection of its own, how long the source keeps its log, and how much there is
    behind what is captured; ``meter`` where that log ends. ``elsewhere``, where other processes are to read
    chunks: given what shows a text to the operator until the next one, makes the
    factory of the dump's readers. ``notes`` are the log reader's, for the checkpoints. ``has_witness``: see
    ``Capture``.
    """

    log_reader: Callable[[], LogReader]
    chunk_reader: Callable[[], ChunkReader]
    watermarks: Callable[[], WatermarkWriter] | None
    load: Callable[[], LoadMeter] | None = None
    retention: Callable[[Position | None], Retention] | None = None
    meter: Callable[[], SourceMeter] | None = None
    elsewhere: Callable[[Callable[[str], None]], Callable[[], ChunkReader]] | None = None
    notes: LogNotes = field(default_factory=LogNotes)
    has_witness: bool = True


class CaptureSteps:
    """Pumps, core and segment writer, connected and put together; nothing here waits.

    Args:
        ports: factories of source connections.
        attempt: what is captured, and from where on.
        writer: the event log, already under this leader's epoch.
        requests: where dump requests are kept.
        inputs: where the pumps hand over.
        progress: where counters go.
        step: hook at named points.

    Connects the log. Raises what ``LogReader.start`` and ``RequestStore.read`` raise.

    Attributes:
        chunks: the dump's workers; there may be more of them after a ``take``. Those no longer wanted stay, idle.
        settled: the end of the last batch that the event log holds as a whole; None where it holds none.
    """

    def __init__(
        self,
        ports: SourcePorts,
        attempt: Attempt,
        writer: SegmentWriter,
        requests: RequestStore,
        inputs: Inputs,
        progress: Progress,
        step: Step = no_step,
    ):
        schemas, stored, limits = attempt.schemas, attempt.checkpoint, attempt.limits
        self.inputs = inputs
        self._writer = writer
        self._progress = progress
        self._limits = limits
        self._step = step
        self._estimates = attempt.estimates
        self._tables = frozenset(schemas)
        self._marks = ports.watermarks
        self._notes = ports.notes
        self._dump_reader = ports.chunk_reader
        if ports.elsewhere is not None:
            self._dump_reader = ports.elsewhere(self._warn_of_reading)
        self._asked: Asked = queue.Queue()
        self._workers = 0
        self.chunks: list[ChunkPump] = []
        book = requests.read()
        self._pacer = Pacer(limits, book.pace, metered=ports.load is not None)
        self._dirty = self._load_noted = self._warned = False
        self._stored_notes = stored.notes if stored else ()
        self.settled = stored.position if stored else None
        begin_notes(self._notes, stored, book, attempt.anew.replaced, attempt.anew.joining)
        self.log = LogPump(ports.log_reader, stored.position if stored else None, inputs, progress, step)
        started = self.log.start()  # on a first start, dumps begin only after the log is being kept for us
        self._notes.begun()
        anew = self._notes.replaced() | attempt.anew.unmirrored
        checkpoint = attempt.with_dumps(stored or Checkpoint(started), anew)
        prefix = f"{attempt.run_token}-" if ports.watermarks is not None else ""
        self._plan = DumpPlan(
            checkpoint.dumps,
            self._pacer.limit_rows,
            token_prefix=prefix,
            requests=checkpoint.requests,
            key=lambda table: dump_key(schemas[table]),
        )
        self._core = self._reconciling(checkpoint, attempt, ports.has_witness)
        self._later: list[LogRecord] = []
        self._builder = SegmentBuilder(dict(schemas))
        self._emptying = self._empty(checkpoint, schemas, attempt.anew.emptied(self._notes.replaced()))
        self.witnesses = WitnessPump(ports.chunk_reader, inputs, lambda: progress.snapshot().dumping())
        self.load = None
        if ports.load is not None:
            self.load = LoadPump(
                ports.load, inputs, progress, self._watches_load, lambda: self._pacer.look_again_s
            )
        self.requests = RequestPump(requests, book, inputs, progress)
        self._follow(book)
        self._publish(checkpoint)

    def _reconciling(self, checkpoint: Checkpoint, attempt: Attempt, has_witness: bool) -> Capture:
        """Returns the core."""
        return Capture(
            checkpoint,
            attempt.schemas,
            self._plan,
            _drop_keys,
            attempt.max_keys,
            has_witness,
            attempt.anew.mirrored,
        )

    def _empty(
        self, begin: Checkpoint, schemas: Mapping[TableId, TableSchema], tables: frozenset[TableId]
    ) -> bool:
        """Has the first segment empty tables; tells whether there are any."""
        for part in emptying(begin, [schemas[table] for table in sorted(tables)]):
            self._builder.add(EmitPart(part))
        return bool(tables)

    def ask(self) -> None:
        """Asks for the next chunks, as many as workers are free for, if any is to be read now."""
        if self._emptying:
            return  # a segment holds no dump rows of a table that is emptied in it (see ``SegmentBuilder``)
        while (request := self._core.next_request()) is not None:
            self._asked.put((request, self._core.schema(request.table)))

    def take(self, item: Input) -> None:
        """An input: what the core makes of it goes into the segment being collected."""
        if isinstance(item, Records):
            self._dirty = True
            self._later += item.records
            self._take_records()
        else:
            self._add(self._outputs(item))

    def _take_records(self) -> None:
        """Takes log records, up to a transaction whose changes may not be in one segment with those collected."""
        while records := self._later:
            turn = next((n for n, one in enumerate(records) if self._turns(one)), len(records))
            taken, self._later = records[:turn], records[turn:]
            self._add([output for record in taken for output in self._core.on_record(record)])
            if self._later:
                if self._builder.row_changes:
                    return
                self._builder.echo = not self._builder.echo

    def _turns(self, record: LogRecord) -> bool:
        return isinstance(record, TransactionPart) and record.echo is not self._builder.echo

    def _add(self, outputs: list[Output]) -> None:
        for name in self._core.given_up():
            self.requests.failed(name, str(_too_much(name)))
        for output in outputs:
            self._builder.add(output)
            if isinstance(output, EmitChunk):
                self._dirty = True
                self._step("capture.emitted")
                if output.chunk.request.dump:
                    self._step("capture.requested")

    def _outputs(self, item: Input) -> list[Output]:
        match item:
            case ChunkBounded():
                self._core.on_bounded(item.request)
            case ChunkRead():
                self._step("capture.chunk")
                self._weigh(item.chunk)
                return self._core.on_chunk(item.chunk)
            case ChunkRefused():
                self._core.on_refusal(item.request)
                self.requests.failed(item.request.dump, str(item.error))
            case BookRead():
                self._follow(item.book)
            case Sampled():
                self._slow_down(item.load)
            case Reconnected():
                self._core.on_reconnect()
            case Witnessed():
                self._core.on_witness(item.witness)
        return []

    def _follow(self, book: RequestBook) -> None:
        self._pacer.follow(book.pace)
        self._employ(self._pacer.workers)
        for request in book.requests:
            missing = set(request.tables) - self._tables
            if request.is_open() and missing:
                self.requests.failed(request.name(), str(_not_captured(request, missing)))
        self._doubts = {request.name(): request.doubts for request in book.requests}
        readable = [request for request in book.requests if set(request.tables) <= self._tables]
        before = self._plan.requests()
        self._core.on_requests(readable, self._estimates)
        self._dirty |= self._plan.requests() != before  # the checkpoint says which are open
        self._progress.set(requests_left=book.running())

    def _weigh(self, chunk: Chunk) -> None:
        request = chunk.request
        self._pacer.weigh(request.table, chunk.row_count, chunk.rows.nbytes)
        self._pacer.note(request.table, request.limit_rows, chunk.elapsed_s, full=_full(chunk))

    def _watches_load(self) -> bool:
        return self._pacer.watches and self._progress.snapshot().dumping()

    def _slow_down(self, load: Load | None) -> None:
        said = self._pacer.sampled(load)
        self._employ(self._pacer.workers)
        if said or self._load_noted:
            self._progress.set(note=said)
        self._load_noted = bool(said)

    def _employ(self, workers: int) -> None:
        self._workers = workers
        self._plan.employ(workers)
        while len(self.chunks) < workers:
            number = len(self.chunks)
            self.chunks.append(
                ChunkPump(
                    self._dump_reader,
                    self._marks,
                    self.inputs,
                    self._progress,
                    self._step,
                    self._asked,
                    wanted=lambda number=number: number < self._workers,  # type: ignore[misc]
                )
            )

    def rest_s(self) -> float:
        """Returns how many seconds to rest between two chunk reads."""
        return self._pacer.rest_s

    def due(self, age_s: float) -> bool:
        """Tells whether a segment should be written, ``age_s`` seconds after the last one."""
        if self._core.wants_segment() or self._emptying or self._later:
            return True
        if self._builder.rows:
            full = self._builder.rows >= self._limits.segment_rows or self._builder.bytes >= SEGMENT_BYTES
            patience = 1 if self._writer.awaited() else _UNREAD
            return full or age_s >= self._limits.linger_s * patience
        return age_s >= self._limits.heartbeat_s and (self._dirty or self.noted())

    def noted(self) -> bool:
        """Tells whether there are notes that no segment has yet."""
        return self._notes.kept() != self._stored_notes

    def write(self, admit: Callable[[SegmentContent], bool] = lambda content: True) -> None:
        """Writes what was collected as the next segment. Raises what ``SegmentWriter.append`` raises.

        ``admit`` waits until there is room for it; false: a stop came first, and it will be read again.
        """
        checkpoint = replace(self._core.checkpoint(), notes=self._notes.kept())
        content = self._builder.content(
            checkpoint,
            ends_transaction=not self._core.in_transaction(),
            begins_batch=self._core.begins_batch(),
            continues=self._core.continues(),
            doubts=self._doubts.get(self._core.settles(), ()),
        )
        self._step("capture.segment")
        if not admit(content):
            return
        self._progress.set(captured_segment=self._writer.append(content).number)
        self._progress.count("changes", changes_by_table(content.data))
        self._step("capture.appended")
        if content.ends_transaction and not content.continues:
            self.settled = checkpoint.position
        self._dirty, self._emptying, self._stored_notes = False, False, checkpoint.notes
        # Only now may the source forget: the event log holds everything up to here durably (I5).
        self.log.acknowledge(checkpoint.position)
        self._progress.add(
            segments=1, captured_changes=content.row_changes, captured_transactions=content.transactions
        )
        self._publish(checkpoint)
        self._add(self._core.on_segment())
        self._take_records()

    def _publish(self, checkpoint: Checkpoint) -> None:
        self._progress.warn(
            "silent tables", *silent_tables(checkpoint.last_changes, self._limits.table_silence_s)
        )
        self._progress.set(dumps=checkpoint.dumps, requests=checkpoint.requests, captured=checkpoint.position)
        if self._warned and not self._progress.snapshot().dumping():
            self._warn_of_reading("")  # there is no next read to take it back

    def _warn_of_reading(self, text: str) -> None:
        """Called by the dump's workers, too."""
        self._warned = bool(text)
        self._progress.warn("reading", *filter(None, [text]))


def _drop_keys(schema: TableSchema, rows: object, keys: frozenset[Key]) -> tuple[object, int]:
    kept = without_keys(schema, rows, keys)
    return kept, kept.num_rows


def _full(chunk: Chunk) -> bool:
    """Tells whether the read had as much to do as it might: the end of a table, the rest of a range and listed keys
    say nothing about speed."""
    request = chunk.request
    looked_at = request.boundary_rows() if request.scope.predicate else chunk.row_count
    return not chunk.final and not request.scope.keys and looked_at >= request.boundary_rows()


def _too_much(name: str) -> RequestError:
    return RequestError(
        "more rows than one batch may hold would have to be decided on at once",
        where=f"dump request {name}",
        cause=f"over {MOST_ROWS:,} changes and dump rows came before its last chunk",
        remedy="name fewer keys, or repair while less is written; nothing was removed",
    )


def _not_captured(request: DumpRequest, missing: set[TableId]) -> RequestError:
    return RequestError(
        "the migration doesn't capture every table of the request",
        where=", ".join(sorted(map(str, missing))),
        cause="the mapping no longer reads it",
        remedy=f"start a request without it; request {request.id} was given up",
    )
