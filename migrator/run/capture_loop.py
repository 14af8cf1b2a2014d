"""Source ports -> core -> event log."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from migrator.columnar.keys import without_keys
from migrator.core.capture import Capture, EmitChunk, Output
from migrator.core.dump import DumpPlan, next_limit
from migrator.model.event import Key
from migrator.model.limits import CaptureLimits
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.table import TableId, TableSchema
from migrator.ports.eventlog import SegmentWriter
from migrator.ports.source import ChunkReader, LogReader, WatermarkWriter
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from migrator.run.segment_builder import SegmentBuilder
from migrator.run.source_threads import (
    ChunkPump,
    ChunkRead,
    Input,
    Inputs,
    LogPump,
    Records,
    WitnessPump,
    started_threads,
)
from migrator.run.steps import Step, no_step


@dataclass(frozen=True, slots=True)
class SourcePorts:
    """Factories of the source connections; each thread makes its own."""

    log_reader: Callable[[], LogReader]
    chunk_reader: Callable[[], ChunkReader]
    watermarks: Callable[[], WatermarkWriter] | None


class CaptureLoop:
    """Reads log and chunks at the same time and appends segments.

    Args:
        ports: factories of source connections.
        writer: the event log, already under this leader's epoch.
        schemas: the captured tables as they are now.
        checkpoint: where to go on from; None starts at the log's present end with a dump of every table.
        estimates: the source's row estimates, for a dump that begins now.
        backlog_bytes: how much the event log holds.
        progress: where counters go.
        run_token: distinguishes this process's watermarks from an earlier attempt's.
        step: hook at named points.
    """

    def __init__(
        self,
        ports: SourcePorts,
        writer: SegmentWriter,
        schemas: Mapping[TableId, TableSchema],
        checkpoint: Checkpoint | None,
        estimates: Mapping[TableId, int],
        backlog_bytes: Callable[[], int],
        progress: Progress,
        limits: CaptureLimits,
        run_token: str,
        step: Step = no_step,
    ):
        self._ports = ports
        self._writer = writer
        self._schemas = dict(schemas)
        self._given = checkpoint
        self._estimates = estimates
        self._backlog_bytes = backlog_bytes
        self._progress = progress
        self._limits = limits
        self._run_token = run_token
        self._step = step
        self._inputs: Inputs = queue.Queue(maxsize=16)
        self._limit_rows = limits.chunk_rows
        self._dirty = False

    def run(self, stopping: Stopping) -> None:
        """Captures until a stop is requested; what was read but isn't durable then will be read again."""
        log = LogPump(
            self._ports.log_reader,
            self._given.position if self._given else None,
            self._inputs,
            self._progress,
            self._step,
        )
        checkpoint = self._first_checkpoint(log)
        plan = DumpPlan(checkpoint.dumps, self._limit_rows, token_prefix=self._token_prefix())
        capture = Capture(checkpoint, self._schemas, plan, _drop_keys)
        builder = SegmentBuilder(dict(self._schemas))
        chunks = ChunkPump(
            self._ports.chunk_reader, self._ports.watermarks, self._inputs, self._progress, self._step
        )
        witnesses = WitnessPump(self._ports.chunk_reader, self._inputs, lambda: not self._dump_done(plan))
        self._publish(capture.checkpoint())
        threads = started_threads(
            stopping, {"log": log.run, "chunks": chunks.run, "witnesses": witnesses.run}
        )
        written = time.monotonic()
        while not stopping.requested():
            self._ask_for_chunks(capture, chunks)
            for output in self._next_outputs(capture, plan):
                builder.add(output)
                self._count(output)
            if self._due(builder, written):
                self._write(capture, builder, log)
                written = time.monotonic()
        for thread in threads:
            thread.join(timeout=10)

    # -- start --------------------------------------------------------------------------------------------------

    def _token_prefix(self) -> str:
        return f"{self._run_token}-" if self._ports.watermarks is not None else ""

    def _first_checkpoint(self, log: LogPump) -> Checkpoint:
        """Connects the log; on a first start, dumps begin only after the log is being kept for us."""
        started = log.start()
        known = self._given or Checkpoint(started)
        dumps = [
            known.dump_of(table) or TableDump(table, estimated_rows=self._estimates.get(table, 0))
            for table in self._schemas
        ]
        return replace(known, dumps=tuple(dumps))

    # -- one turn -----------------------------------------------------------------------------------------------

    def _ask_for_chunks(self, capture: Capture, chunks: ChunkPump) -> None:
        if self._backlog_bytes() > self._limits.backlog_bytes:
            return
        request = capture.next_request()
        if request is not None:
            chunks.ask(request, capture.schema(request.table))

    def _next_outputs(self, capture: Capture, plan: DumpPlan) -> list[Output]:
        """Waits for an input, at most until the pending segment is due."""
        try:
            item: Input = self._inputs.get(timeout=self._limits.linger_s)
        except queue.Empty:
            return []
        match item:
            case Records():
                self._dirty = True
                return [output for record in item.records for output in capture.on_record(record)]
            case ChunkRead():
                self._step("capture.chunk")
                self._resize(plan, item.chunk.elapsed_s, item.chunk.row_count)
                return capture.on_chunk(item.chunk)
        capture.on_witness(item.witness)
        return []

    def _resize(self, plan: DumpPlan, elapsed_s: float, rows: int) -> None:
        if rows < self._limit_rows:
            return  # the end of a table says nothing about speed
        limits = self._limits
        self._limit_rows = next_limit(
            self._limit_rows,
            elapsed_s,
            target_s=limits.chunk_target_s,
            least=limits.chunk_rows_min,
            most=limits.chunk_rows_max,
        )
        plan.resize(self._limit_rows)

    def _due(self, builder: SegmentBuilder, written: float) -> bool:
        age_s = time.monotonic() - written
        if builder.rows:
            return builder.rows >= self._limits.segment_rows or age_s >= self._limits.linger_s
        return self._dirty and age_s >= self._limits.heartbeat_s

    def _write(self, capture: Capture, builder: SegmentBuilder, log: LogPump) -> None:
        checkpoint = capture.checkpoint()
        content = builder.content(checkpoint, ends_transaction=not capture.in_transaction())
        self._step("capture.segment")
        self._writer.append(content)
        self._step("capture.appended")
        self._dirty = False
        # Only now may the source forget: the event log holds everything up to here durably (I5).
        log.acknowledge(checkpoint.position)
        self._progress.add(
            segments=1, captured_changes=content.row_changes, captured_transactions=content.transactions
        )
        self._publish(checkpoint)

    def _count(self, output: Output) -> None:
        if isinstance(output, EmitChunk):
            self._dirty = True
            self._step("capture.emitted")

    def _publish(self, checkpoint: Checkpoint) -> None:
        self._progress.set(dumps=checkpoint.dumps, captured=checkpoint.position)

    @staticmethod
    def _dump_done(plan: DumpPlan) -> bool:
        return all(dump.done for dump in plan.dumps())


def _drop_keys(schema: TableSchema, rows: object, keys: frozenset[Key]) -> tuple[object, int]:
    kept = without_keys(schema, rows, keys)
    return kept, kept.num_rows
