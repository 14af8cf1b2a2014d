"""The threads that read the source: one for the log, one for chunks, one for witnesses.

They only fetch and hand over; every decision is the core's. Each owns its connections, and a connection that was
lost is made again at the place reached, for as long as the failure is retryable.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from migrator.errors import MigratorError
from migrator.model.chunk import Chunk, ChunkRequest, Witness
from migrator.model.event import LogProgress, LogRecord, MarkKind, TransactionPart
from migrator.model.position import Position
from migrator.model.table import TableId, TableSchema
from migrator.ports.source import ChunkReader, LogReader, WatermarkWriter
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from migrator.run.steps import Step, no_step


@dataclass(frozen=True, slots=True)
class Records:
    """Log records in order."""

    records: list[LogRecord]


@dataclass(frozen=True, slots=True)
class ChunkRead:
    """A finished chunk read."""

    chunk: Chunk


@dataclass(frozen=True, slots=True)
class Witnessed:
    """A witness of a moment ago."""

    witness: Witness | None


Input = Records | ChunkRead | Witnessed
Inputs = queue.Queue[Input]

RETRY_WAITS_S = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Waits before the next attempts to reach a server; the last one repeats."""


def hand_over(inputs: Inputs, item: Input, stopping: Stopping) -> None:
    """Puts an input, waiting while the capture loop is behind (that is the backpressure)."""
    while not stopping.requested():
        try:
            inputs.put(item, timeout=0.2)
            return
        except queue.Full:
            continue


class LogPump:
    """Reads the log from ``after`` on, acknowledging what became durable."""

    def __init__(
        self,
        make: Callable[[], LogReader],
        after: Position | None,
        inputs: Inputs,
        progress: Progress,
        step: Step = no_step,
    ):
        self._make = make
        self._after = after
        self._inputs = inputs
        self._progress = progress
        self._step = step
        self._durable: Position | None = None
        self._reader: LogReader | None = None

    def start(self) -> Position:
        """Connects; returns the position that reading starts from."""
        self._reader = self._make()
        started = self._reader.start(self._after)
        self._after = started
        self._step("log.connected")
        return started

    def acknowledge(self, durable: Position) -> None:
        """Called by the capture loop: everything up to here is in the event log."""
        self._durable = durable  # one reference assignment: the log thread sees the old or the new one

    def run(self, stopping: Stopping) -> None:
        """Reads until a stop is requested."""
        failures = 0
        try:
            while not stopping.requested():
                try:
                    self._read_once(stopping)
                    failures = 0
                except MigratorError as error:
                    failures = self._reconnect(error, failures, stopping)
        finally:
            if self._reader is not None:
                self._acknowledge()
                self._reader.close()

    def _read_once(self, stopping: Stopping) -> None:
        if self._reader is None:
            self.start()
            self._progress.add(reconnects=1)
            self._progress.set(note="")
        reader = self._reader
        if reader is None:
            raise AssertionError("start() sets the reader")
        records = reader.read(timeout_s=0.1)
        self._acknowledge()
        if not records:
            return
        self._step("log.records")
        for record in reversed(records):
            # A part of an unfinished transaction doesn't move the place to resume from.
            if isinstance(record, LogProgress) or (isinstance(record, TransactionPart) and record.last):
                self._after = record.position
                break
        hand_over(self._inputs, Records(records), stopping)

    def _acknowledge(self) -> None:
        if self._reader is not None and self._durable is not None:
            self._reader.acknowledge(self._durable)

    def _reconnect(self, error: MigratorError, failures: int, stopping: Stopping) -> int:
        if not error.retryable:
            raise error
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._progress.set(note=f"source log: {error.what}; trying again")
        stopping.wait(RETRY_WAITS_S[min(failures, len(RETRY_WAITS_S) - 1)])
        return failures + 1


class ChunkPump:
    """Reads the chunks it is asked for, with watermarks around the SELECT where that placement is configured."""

    def __init__(
        self,
        make: Callable[[], ChunkReader],
        make_marks: Callable[[], WatermarkWriter] | None,
        inputs: Inputs,
        progress: Progress,
        step: Step = no_step,
    ):
        self._make = make
        self._make_marks = make_marks
        self._inputs = inputs
        self._progress = progress
        self._step = step
        self._requests: queue.Queue[tuple[ChunkRequest, TableSchema]] = queue.Queue()
        self._reader: ChunkReader | None = None
        self._marks: WatermarkWriter | None = None

    def ask(self, request: ChunkRequest, schema: TableSchema) -> None:
        """Called by the capture loop: read this chunk."""
        self._requests.put((request, schema))

    def run(self, stopping: Stopping) -> None:
        """Reads until a stop is requested."""
        try:
            while not stopping.requested():
                try:
                    request, schema = self._requests.get(timeout=0.2)
                except queue.Empty:
                    continue
                chunk = self._retried(request, schema, stopping)
                if chunk is not None:
                    hand_over(self._inputs, ChunkRead(chunk), stopping)
        finally:
            self._close()

    def _retried(self, request: ChunkRequest, schema: TableSchema, stopping: Stopping) -> Chunk | None:
        failures = 0
        while not stopping.requested():
            try:
                return self._read(request, schema)
            except MigratorError as error:
                if not error.retryable:
                    raise
                self._close()
                self._progress.set(note=f"chunk read: {error.what}; trying again")
                stopping.wait(RETRY_WAITS_S[min(failures, len(RETRY_WAITS_S) - 1)])
                failures += 1
        return None

    def _read(self, request: ChunkRequest, schema: TableSchema) -> Chunk:
        if self._reader is None:
            self._reader = self._make()
        self._step("chunk.begin")
        if self._make_marks is None or not request.token:
            chunk = self._reader.read(request, schema)
            self._step("chunk.selected")
            return chunk
        if self._marks is None:
            self._marks = self._make_marks()
        # A repeated attempt writes its low mark again, which starts the window anew.
        self._marks.write(request.token, MarkKind.LOW)
        self._step("chunk.low")
        chunk = self._reader.read(request, schema)
        self._step("chunk.selected")
        self._marks.write(request.token, MarkKind.HIGH)
        self._step("chunk.high")
        return chunk

    def _close(self) -> None:
        for connection in (self._reader, self._marks):
            if connection is not None:
                connection.close()
        self._reader = self._marks = None


class WitnessPump:
    """Takes a witness now and then, so that few keys have to be remembered."""

    def __init__(self, make: Callable[[], ChunkReader], inputs: Inputs, dumping: Callable[[], bool]):
        self._make = make
        self._inputs = inputs
        self._dumping = dumping

    def run(self, stopping: Stopping) -> None:
        """Polls until a stop is requested: often while dumping, else once a second."""
        reader: ChunkReader | None = None
        try:
            while not stopping.requested():
                try:
                    reader = reader or self._make()
                    witness = reader.witness()
                except MigratorError as error:
                    if not error.retryable:
                        raise
                    if reader is not None:
                        reader.close()
                    reader = None
                    stopping.wait(1.0)
                    continue
                hand_over(self._inputs, Witnessed(witness), stopping)
                stopping.wait(0.1 if self._dumping() else 1.0)
        finally:
            if reader is not None:
                reader.close()


def started_threads(
    stopping: Stopping, pumps: Mapping[str, Callable[[Stopping], None]]
) -> list[threading.Thread]:
    """Starts one thread a pump."""
    return [stopping.thread(name, lambda run=run: run(stopping)) for name, run in pumps.items()]  # type: ignore[misc]


__all__ = ["ChunkPump", "ChunkRead", "Inputs", "LogPump", "Records", "TableId", "WitnessPump", "Witnessed"]
