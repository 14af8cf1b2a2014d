"""A busy source: its dump slows down, its log doesn't; and what becomes of a source that can't be asked."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from migrator.adapters.memory.eventlog import MemoryEventLog, MemoryRoom, MemorySegmentWriter
from migrator.adapters.memory.requests import MemoryRequests
from migrator.errors import ConnectionFailed
from migrator.model.limits import CaptureLimits
from migrator.model.load import Load
from migrator.run.capture.attempt import Attempt
from migrator.run.capture.inputs import Inputs, Sampled
from migrator.run.capture.load_pump import LoadPump
from migrator.run.capture.loop import CaptureLoop, SourcePorts
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from scenarios.simulation.clients import initial_rows
from scenarios.simulation.source import Link, SimulatedChunkReader, SimulatedLogReader, Source, Write
from scenarios.simulation.tables import REGISTER, SCHEMAS, Stored

DEADLINE_S = 30.0


class Meter:
    """Says what it is told to say."""

    def __init__(self, load: Load):
        self.load = load
        self.closed = 0
        self.broken = False

    def sample(self) -> Load:
        if self.broken:
            raise ConnectionFailed("the source's load can't be read", retryable=True)
        return self.load

    def close(self) -> None:
        self.closed += 1


def test_a_source_that_cannot_be_asked_is_told_of_and_asked_again() -> None:
    inputs: Inputs = queue.Queue()
    meter, progress, wanted = Meter(Load(7, None)), Progress(), [True]
    pump = LoadPump(lambda: meter, inputs, progress, lambda: wanted[0], lambda: 0.4)
    meter.broken = True
    assert pump.look(Stopping()) == 1.0
    assert "can't be read" in progress.snapshot().note
    assert (inputs.empty(), meter.closed) == (True, 1)
    meter.broken = False
    assert pump.look(Stopping()) == 0.4, "as soon as is asked for"
    assert inputs.get_nowait() == Sampled(Load(7, None))
    wanted[0] = False
    assert pump.look(Stopping()) < 0.1, "the next dump is gentle until it was looked"
    pump.look(Stopping())
    assert (inputs.get_nowait(), meter.closed) == (Sampled(None), 2)
    assert inputs.empty()


def test_a_busy_source_is_dumped_slowly_and_its_log_is_read_as_ever() -> None:
    link = Link(Source(False, initial_rows()), 10, True, records=10)
    event_log, progress, meter = MemoryEventLog(), Progress(), Meter(Load(50, None))
    limits = CaptureLimits(
        chunk_rows=1, chunk_rows_max=1, linger_s=0.005, max_active_sessions=10, dump_share=1.0
    )
    held = threading.Event()  # no chunk is read before the first sample was heeded

    class Held(SimulatedChunkReader):
        def bounded(self, request, schema):  # type: ignore[no-untyped-def]
            assert held.wait(DEADLINE_S)
            return super().bounded(request, schema)

    ports = SourcePorts(lambda: SimulatedLogReader(link), lambda: Held(link), None, lambda: meter)
    loop = CaptureLoop(
        ports,
        Attempt(SCHEMAS, None, limits, "1-a"),
        MemorySegmentWriter(event_log, 1),
        MemoryRequests(),
        MemoryRoom(MemoryEventLog()),
        progress,
    )
    stopping = Stopping()
    thread = stopping.thread("capture", lambda: loop.run(stopping))

    def wait_for(holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            stopping.raise_failure()
            assert time.monotonic() < deadline
            threading.Event().wait(0.005)

    def chunks() -> int:
        return sum(dump.chunks for dump in progress.snapshot().dumps)

    try:
        wait_for(lambda: "active sessions: 50, above 10" in progress.snapshot().note)
        held.set()
        before = chunks()
        for number in range(1, 51):
            row = link.source.logged[REGISTER.id].get(1)
            link.source.commit(
                1, [Write(REGISTER.id, None if row is None else (1, row), (1, Stored(1, number, 0)))]
            )
            while link.source.hidden:
                link.source.reveal(0)
        wait_for(lambda: progress.snapshot().captured_changes == 50)
        assert progress.snapshot().dumping(), "the log was read to its end before the dump was"
        meter.load = Load(3, None)
        wait_for(lambda: bool(progress.snapshot().dumps) and not progress.snapshot().dumping())
        assert chunks() > before
        wait_for(lambda: progress.snapshot().note == "")
    finally:
        held.set()
        stopping.request()
        thread.join(DEADLINE_S)
    stopping.raise_failure()
