"""The thread between the requests' store and the capture loop; and the log, which never waits for a dump."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from migrator.adapters.memory.eventlog import MemoryEventLog, MemoryRoom, MemorySegmentWriter
from migrator.adapters.memory.requests import MemoryRequests
from migrator.errors import RequestError, SchemaError
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.limits import CaptureLimits
from migrator.model.progress import TableDump
from migrator.model.requests.request import WHOLE, Pace, RequestBook, RequestState, Scope
from migrator.model.table import TableSchema
from migrator.run.capture.attempt import Attempt
from migrator.run.capture.inputs import BookRead, Inputs
from migrator.run.capture.loop import CaptureLoop, SourcePorts
from migrator.run.capture.request_pump import RequestPump
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from scenarios.simulation.clients import initial_rows
from scenarios.simulation.source import Link, SimulatedChunkReader, SimulatedLogReader, Source, Write
from scenarios.simulation.tables import REGISTER, SCHEMAS, Stored

DEADLINE_S = 30.0


def pump(store: MemoryRequests, progress: Progress) -> tuple[RequestPump, Inputs]:
    inputs: Inputs = queue.Queue()
    return RequestPump(store, store.read(), inputs, progress), inputs


def test_what_is_new_is_handed_over_once() -> None:
    store = MemoryRequests()
    looking, inputs = pump(store, Progress())
    looking.look(Stopping())
    assert inputs.empty()
    book = store.update(lambda old: old.start((REGISTER.id,), WHOLE))
    looking.look(Stopping())
    looking.look(Stopping())
    assert inputs.get_nowait() == BookRead(book)
    assert inputs.empty()


def test_a_request_is_done_when_the_target_holds_all_of_it() -> None:
    store, progress = MemoryRequests(), Progress()
    store.update(lambda old: old.start(tuple(SCHEMAS), WHOLE))
    looking, _ = pump(store, progress)
    dumps = [TableDump(table, done=True, request="r1.1") for table in SCHEMAS]
    for requests, applied, state in (
        (dumps, [], RequestState.RUNNING),
        (dumps, dumps[:-1], RequestState.RUNNING),
        (dumps, [*dumps[:-1], TableDump(dumps[-1].table, request="r1.1")], RequestState.RUNNING),
        (dumps, [TableDump(each.table, done=True, request="r1.2") for each in dumps], RequestState.RUNNING),
        (dumps, dumps, RequestState.DONE),
    ):
        progress.set(requests=tuple(requests), applied_requests=tuple(applied))
        looking.look(Stopping())
        assert store.read().requests[0].state is state
    assert progress.snapshot().requests_left == 0
    assert store.read().requests[0].reason.startswith("0 rows in 0 chunks")


def test_a_request_that_was_given_up_says_why() -> None:
    store = MemoryRequests()
    store.update(lambda old: old.start((REGISTER.id,), WHOLE))
    looking, _ = pump(store, Progress())
    looking.failed("r1.1", "division by zero")
    looking.look(Stopping())
    request = store.read().requests[0]
    assert (request.state, request.reason) == (RequestState.FAILED, "division by zero")


class Refusing(MemoryRequests):
    """A store that can't be used while ``broken``."""

    broken = False

    def read(self) -> RequestBook:
        if self.broken:
            raise RequestError("the dump requests can't be read", where="here")
        return super().read()


def test_a_store_that_cannot_be_read_is_told_of_and_ends_nothing() -> None:
    store, progress = Refusing(), Progress()
    looking, inputs = pump(store, progress)
    store.update(lambda old: old.start((REGISTER.id,), WHOLE))
    looking.failed("r1.1", "kept until it can be written down")
    store.broken = True
    looking.look(Stopping())
    assert "can't be read" in progress.snapshot().note
    store.broken = False
    looking.look(Stopping())
    assert progress.snapshot().note == ""
    assert store.read().requests[0].reason == "kept until it can be written down"
    assert isinstance(inputs.get_nowait(), BookRead)


# -- the capture loop
# -----------------------------------------------------------------------------------------------


@dataclass
class HeldReader:
    """A chunk reader that is held while it reads, refuses, or says that its reads took long."""

    reader: SimulatedChunkReader
    reading: threading.Event
    held: threading.Event
    refuses: Callable[[ChunkRequest], bool] = field(default=lambda request: False)
    took_s: float | None = None

    def read(self, request: ChunkRequest, schema: TableSchema) -> Chunk:
        if request.dump:
            self.reading.set()
            assert self.held.wait(DEADLINE_S)
        if self.refuses(request):
            raise SchemaError("the predicate fails on a row")
        chunk = self.reader.read(request, schema)
        return chunk if self.took_s is None else replace(chunk, elapsed_s=self.took_s)

    def bounded(self, request: ChunkRequest, schema: TableSchema) -> ChunkRequest:
        return self.reader.bounded(request, schema)

    def witness(self) -> object:
        return self.reader.witness()

    def close(self) -> None:
        pass


@dataclass
class Running:
    """A capture loop over the simulation's source, with its threads."""

    source: Source
    store: MemoryRequests
    event_log: MemoryEventLog
    progress: Progress
    reading: threading.Event
    held: threading.Event

    def wait_for(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            assert time.monotonic() < deadline
            threading.Event().wait(0.005)

    def captured(self) -> int:
        return self.progress.snapshot().captured_changes

    def write(self, number: int) -> None:
        """One committed row change, visible at once."""
        row = self.source.logged[REGISTER.id].get(1)
        before = None if row is None else (1, row)
        self.source.commit(1, [Write(REGISTER.id, before, (1, Stored(1, number, number)))])
        while self.source.hidden:
            self.source.reveal(0)


@contextmanager
def running(
    refuses: Callable[[ChunkRequest], bool] = lambda request: False, took_s: float | None = None
) -> Iterator[Running]:
    link = Link(Source(False, initial_rows()), 10, True, records=10)
    store, event_log, progress = MemoryRequests(), MemoryEventLog(), Progress()
    made = Running(link.source, store, event_log, progress, threading.Event(), threading.Event())
    ports = SourcePorts(
        lambda: SimulatedLogReader(link),
        lambda: HeldReader(SimulatedChunkReader(link), made.reading, made.held, refuses, took_s),  # type: ignore[arg-type,return-value]
        None,
    )
    writer = MemorySegmentWriter(event_log, 1)
    limits = CaptureLimits(linger_s=0.005, heartbeat_s=0.05)
    loop = CaptureLoop(
        ports, Attempt(SCHEMAS, None, limits, "1-a"), writer, store, MemoryRoom(MemoryEventLog()), progress
    )
    stopping = Stopping()
    thread = stopping.thread("capture", lambda: loop.run(stopping))
    try:
        made.wait_for(lambda: bool(progress.snapshot().dumps))
        made.wait_for(lambda: all(dump.done for dump in progress.snapshot().dumps))
        yield made
    finally:
        made.held.set()
        stopping.request()
        thread.join(DEADLINE_S)
        stopping.raise_failure()


def test_log_events_do_not_wait_for_a_chunk_that_is_being_read() -> None:
    with running() as run:
        before = run.captured()
        run.store.update(lambda old: old.start((REGISTER.id,), WHOLE))
        assert run.reading.wait(DEADLINE_S)
        for number in range(1, 51):
            run.write(number)
        run.wait_for(lambda: run.captured() == before + 50)
        durable = sum(manifest.row_changes for manifest in run.event_log.manifests.values())
        assert durable == before + 50, "the chunk read is still held, and all events are in the event log"
        assert not any(dump.chunks for dump in run.progress.snapshot().requests)
        run.held.set()
        run.wait_for(lambda: any(dump.done for dump in run.progress.snapshot().requests))


def test_a_chunk_that_cannot_be_read_ends_its_request_and_not_the_run() -> None:
    with running(refuses=lambda request: bool(request.scope.predicate)) as run:
        run.held.set()
        run.store.update(lambda old: old.start((REGISTER.id,), Scope(predicate="1 / 0 = 1")))
        run.store.update(lambda old: old.start((REGISTER.id,), WHOLE))
        run.wait_for(lambda: run.store.read().requests[0].state is RequestState.FAILED)
        assert "fails on a row" in run.store.read().requests[0].reason
        run.wait_for(lambda: any(dump.done for dump in run.progress.snapshot().requests))


def test_a_request_for_a_table_that_is_not_captured_is_refused_by_name() -> None:
    missing = type(REGISTER.id)("s", "gone")
    with running() as run:
        run.store.update(lambda old: old.start((REGISTER.id, missing), WHOLE))
        run.wait_for(lambda: run.store.read().requests[0].state is RequestState.FAILED)
        assert "s.gone" in run.store.read().requests[0].reason


def test_a_rest_between_chunks_is_kept() -> None:
    with running() as run:
        run.held.set()
        begun = time.monotonic()
        run.store.update(lambda old: replace(old, pace=Pace(chunk_rows=1, delay_s=0.1)))
        run.store.update(lambda old: old.start((REGISTER.id,), WHOLE))
        run.wait_for(lambda: any(dump.done for dump in run.progress.snapshot().requests))
        (dump,) = run.progress.snapshot().requests
        assert dump.chunks >= 4
        assert time.monotonic() - begun > 0.1 * (dump.chunks - 1)


def test_reads_above_the_bound_rest_ever_longer_and_the_log_goes_on() -> None:
    """Each read took 0.05 s by its own word, which is too long: the rests are 0.05 s, 0.1 s, 0.2 s and so on."""
    with running(took_s=0.05) as run:
        run.held.set()
        run.store.update(lambda old: replace(old, pace=Pace(chunk_rows=1, p95_s=0.01)))
        begun = time.monotonic()
        run.store.update(lambda old: old.start((REGISTER.id,), WHOLE))
        run.wait_for(lambda: any(dump.chunks for dump in run.progress.snapshot().requests))
        run.write(1)
        run.wait_for(lambda: run.captured() == 1)
        run.wait_for(lambda: run.progress.snapshot().requests[0].done)
        (dump,) = run.progress.snapshot().requests
        assert dump.chunks >= 4
        assert time.monotonic() - begun > 0.05 * (2 ** (dump.chunks - 1) - 1)
