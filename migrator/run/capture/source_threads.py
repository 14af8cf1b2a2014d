"""The threads that read the source: one for the log, one or several for chunks, one for witnesses.

They only fetch and hand over; every decision is the core's. Each owns its connections, and a connection that was
lost is made again at the place reached, for as long as the failure is retryable.

Each pump is a few steps that never wait for a clock, and a loop around them that does. The threads run the loops;
the simulation calls the steps one by one, in any order that threads could bring about.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping

from migrator.errors import MigratorError, SchemaError, SourceError
from migrator.model.chunk import ChunkRequest
from migrator.model.event import LogProgress, MarkKind, TransactionPart
from migrator.model.position import Position
from migrator.model.table import TableId, TableSchema
from migrator.ports.source import ChunkReader, LogReader, WatermarkWriter
from migrator.run.capture.inputs import (
    Asked,
    ChunkBounded,
    ChunkRead,
    ChunkRefused,
    Halted,
    Input,
    Inputs,
    Reconnected,
    Records,
    Witnessed,
)
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from migrator.run.steps import Step, no_step

_ASKED_EVERY_S = 0.05
"""Time between two looks of a pump without work at whether it shall stop; a stop waits for it."""
RETRY_WAITS_S = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Waits before the next attempts to reach a server; the last one repeats."""


def wait(failures: int, stopping: Stopping) -> None:
    """Waits before the next attempt, longer after more failures; not longer than until a stop is requested."""
    stopping.wait(RETRY_WAITS_S[min(failures, len(RETRY_WAITS_S) - 1)])


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
        reader = self._make()
        try:
            started = reader.start(self._after)
        except BaseException:  # it isn't ours yet: what follows must not speak to a reader that never started
            reader.close()
            raise
        self._reader, self._after = reader, started
        self._step("log.connected")
        return started

    def acknowledge(self, durable: Position) -> None:
        """Called by the capture loop: everything up to here is in the event log."""
        self._durable = durable  # one reference assignment: the log thread sees the old or the new one

    def run(self, stopping: Stopping) -> None:
        """Reads until a stop is requested, or a table changed in a way that can't be carried on."""
        failures = 0
        try:
            while not stopping.requested():
                try:
                    connected = self._reader is not None
                    self.read_once(stopping)
                    failures = 0 if connected else failures  # to connect alone is no success yet
                except SchemaError as error:
                    hand_over(self._inputs, Halted(error), stopping)
                    return
                except MigratorError as error:
                    self.disconnected(error)
                    wait(failures, stopping)
                    failures += 1
            if self._reader is not None and not stopping.has_failed():
                self._finish(self._reader)
        finally:
            if self._reader is not None:
                self._acknowledge()
                self._reader.close()

    def _finish(self, reader: LogReader) -> None:
        try:
            reader.finish()
        except MigratorError as error:
            if not error.retryable:  # a source that is gone keeps nobody from ending
                raise

    def read_once(self, stopping: Stopping) -> None:
        """One step: connects if needed, or reads what is there and hands it over. Raises what the reader raises."""
        if self._reader is None:
            self.start()
            self._progress.add(reconnects=1)
            self._progress.set(note="")
            hand_over(self._inputs, Reconnected(), stopping)
            return
        records = self._reader.read(timeout_s=0.1)
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

    def disconnected(self, error: MigratorError) -> None:
        """A read failed: the next one connects again. Raises the error if trying again can't help."""
        if not error.retryable:
            raise error
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._progress.met(error)
        self._progress.set(note=f"source log: {error.what}; trying again")


class ChunkPump:
    """Reads chunks, with watermarks around the SELECT where that placement is configured. One of several workers.

    Args:
        make, make_marks: connections of its own, made when first needed.
        inputs: where it hands over.
        progress: takes notes.
        step: hook at named points.
        asked: chunks to read, shared with the other workers.
        wanted: whether it is to work; while not, it holds no connection.
    """

    def __init__(
        self,
        make: Callable[[], ChunkReader],
        make_marks: Callable[[], WatermarkWriter] | None,
        inputs: Inputs,
        progress: Progress,
        step: Step = no_step,
        asked: Asked | None = None,
        wanted: Callable[[], bool] = lambda: True,
    ):
        self._make = make
        self._make_marks = make_marks
        self._inputs = inputs
        self._progress = progress
        self._step = step
        self._requests: Asked = queue.Queue() if asked is None else asked
        self._wanted = wanted
        self._bounded: ChunkRequest | None = None
        self._reader: ChunkReader | None = None
        self._marks: WatermarkWriter | None = None

    def ask(self, request: ChunkRequest, schema: TableSchema) -> None:
        """Called by the capture loop: read this chunk."""
        self._requests.put((request, schema))

    def asked(self) -> bool:
        """Tells whether a request waits."""
        return not self._requests.empty()

    def run(self, stopping: Stopping) -> None:
        """Reads until a stop is requested."""
        try:
            while not stopping.requested():
                if not self._wanted():
                    self._close()
                    stopping.wait(0.2)
                    continue
                try:
                    request, schema = self._requests.get(timeout=_ASKED_EVERY_S)
                except queue.Empty:
                    continue
                self._retried(request, schema, stopping)
        finally:
            self._close()

    def _retried(self, request: ChunkRequest, schema: TableSchema, stopping: Stopping) -> None:
        failures = 0
        while not stopping.requested():
            try:
                for _ in self.reading(request, schema, stopping):
                    pass
                return
            except MigratorError as error:
                if self.refused(request, error):
                    hand_over(self._inputs, ChunkRefused(request, error), stopping)
                    return
                self.disconnected(error)
                wait(failures, stopping)
                failures += 1

    def refused(self, request: ChunkRequest, error: MigratorError) -> bool:
        """Tells whether the error ends a dump request only: what an operator asked for must not end the run."""
        return bool(request.dump) and isinstance(error, SourceError) and not error.retryable

    def take(self) -> tuple[ChunkRequest, TableSchema]:
        """The request that waits longest. Raises ``queue.Empty`` when none does."""
        return self._requests.get_nowait()

    def reading(self, request: ChunkRequest, schema: TableSchema, stopping: Stopping) -> Iterator[None]:
        """One attempt to read a chunk and hand it over; pauses wherever another thread might come in between.

        Raises what the chunk reader raises.
        """
        if self._reader is None:
            self._reader = self._make()
        if self._bounded is not None and self._bounded.id == request.id:
            request = self._bounded  # a repeated attempt reads the range that was announced
        if request.unbounded():
            request = self._bounded = self._reader.bounded(request, schema)
            hand_over(self._inputs, ChunkBounded(request), stopping)
            yield
        marks = self._marks_for(request)
        self._step("chunk.begin")
        if marks is not None:
            # A repeated attempt writes its low mark again, which starts the window anew.
            marks.write(request.token, MarkKind.LOW)
            self._step("chunk.low")
            yield
        chunk = self._reader.read(request, schema)
        self._step("chunk.selected")
        yield
        if marks is not None:
            marks.write(request.token, MarkKind.HIGH)
            self._step("chunk.high")
            yield
        hand_over(self._inputs, ChunkRead(chunk), stopping)

    def _marks_for(self, request: ChunkRequest) -> WatermarkWriter | None:
        if self._make_marks is not None and request.token and self._marks is None:
            self._marks = self._make_marks()
        return self._marks if request.token else None

    def disconnected(self, error: MigratorError) -> None:
        """An attempt failed: the next one connects again. Raises the error if trying again can't help."""
        if not error.retryable:
            raise error
        self._close()
        self._progress.met(error)
        self._progress.set(note=f"chunk read: {error.what}; trying again")

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
        self._reader: ChunkReader | None = None

    def run(self, stopping: Stopping) -> None:
        """Polls until a stop is requested: often while dumping, else once a second."""
        try:
            while not stopping.requested():
                try:
                    for _ in self.polling(stopping):
                        pass
                except MigratorError as error:
                    self.disconnected(error)
                    stopping.wait(1.0)
                    continue
                stopping.wait(0.1 if self._dumping() else 1.0)
        finally:
            self._close()

    def polling(self, stopping: Stopping) -> Iterator[None]:
        """Takes one witness and hands it over, pausing in between. Raises what the chunk reader raises."""
        if self._reader is None:
            self._reader = self._make()
        witness = self._reader.witness()
        yield
        hand_over(self._inputs, Witnessed(witness), stopping)

    def disconnected(self, error: MigratorError) -> None:
        """A poll failed: the next one connects again. Raises the error if trying again can't help."""
        if not error.retryable:
            raise error
        self._close()

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None


def started_threads(
    stopping: Stopping, pumps: Mapping[str, Callable[[Stopping], None]]
) -> list[threading.Thread]:
    """Starts one thread a pump."""
    return [stopping.thread(name, lambda run=run: run(stopping)) for name, run in pumps.items()]  # type: ignore[misc]


__all__ = [
    "Asked",
    "ChunkBounded",
    "ChunkPump",
    "ChunkRead",
    "Inputs",
    "LogPump",
    "Records",
    "TableId",
    "WitnessPump",
    "Witnessed",
]
