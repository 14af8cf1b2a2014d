"""How capture begins and halts: a source that can't be read yet is tried again, any other problem ends it."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from migrator.adapters.memory.eventlog import MemoryEventLog, MemoryRoom, MemorySegmentWriter
from migrator.adapters.memory.requests import MemoryRequests
from migrator.errors import ConnectionFailed, MigratorError, SchemaError, SourceError
from migrator.model.event import LogProgress, LogRecord
from migrator.model.limits import CaptureLimits
from migrator.model.position import Position
from migrator.model.progress import Checkpoint
from migrator.run.capture import source_threads
from migrator.run.capture.attempt import Attempt
from migrator.run.capture.loop import CaptureLoop, SourcePorts
from migrator.run.failure import Stopping
from migrator.run.progress import Progress

BUSY = ConnectionFailed("the replication slot is in use by another session", retryable=True)


class RefusingLog:
    """A log reader whose starts fail, one after the other; the last way of failing repeats."""

    def __init__(self, *failures: MigratorError):
        self.failures = list(failures)
        self.starts = 0

    def start(self, after: Any) -> Any:
        self.starts += 1
        raise self.failures[min(self.starts, len(self.failures)) - 1]

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_threads, "RETRY_WAITS_S", (0.01,))


class NoChunks:
    """A chunk reader of a source without tables."""

    def witness(self) -> None:
        return None

    def close(self) -> None:
        pass


def capture(log: RefusingLog, progress: Progress) -> CaptureLoop:
    ports = SourcePorts(cast(Any, lambda: log), cast(Any, None), None)
    return CaptureLoop(
        ports,
        Attempt({}, None, CaptureLimits(), "1-a"),
        cast(Any, None),
        MemoryRequests(),
        MemoryRoom(MemoryEventLog()),
        progress,
    )


def test_a_slot_that_a_dead_leader_still_holds_is_waited_for() -> None:
    log, progress = RefusingLog(BUSY, BUSY, SourceError("a problem that stays")), Progress()
    with pytest.raises(SourceError, match="stays"):
        capture(log, progress).run(Stopping())
    assert log.starts == 3
    assert "in use by another session" in progress.snapshot().note


def test_a_stop_ends_the_waiting() -> None:
    log, stopping = RefusingLog(BUSY), Stopping()
    thread = threading.Thread(target=lambda: capture(log, Progress()).run(stopping))
    thread.start()
    while log.starts < 2:
        assert thread.is_alive()
    stopping.request()
    thread.join(10)
    assert not thread.is_alive()


class HaltingLog:
    """A log reader that delivers one place, then a change that can't be carried on."""

    def __init__(self) -> None:
        self.records: list[list[LogRecord]] = [[LogProgress(Position(7, "7"))]]

    def start(self, after: Position | None) -> Position:
        return after or Position(5, "5")

    def read(self, timeout_s: float) -> list[LogRecord]:
        if self.records:
            return self.records.pop()
        raise SchemaError("table t changed", where="t at place 8")

    def acknowledge(self, position: Position) -> None:
        pass

    def close(self) -> None:
        pass


def test_a_halt_comes_once_all_that_was_captured_before_it_is_applied() -> None:
    """The mapping that was made for those rows is the only one that can map them."""
    log, stopping, progress = MemoryEventLog(), Stopping(), Progress()
    ports = SourcePorts(cast(Any, HaltingLog), cast(Any, NoChunks), None)
    attempt = Attempt({}, Checkpoint(Position(5, "5")), CaptureLimits(), "1-a", applied=True)
    writer = MemorySegmentWriter(log, 1)
    loop = CaptureLoop(ports, attempt, writer, MemoryRequests(), MemoryRoom(log), progress)
    thread = stopping.thread("capture", lambda: loop.run(stopping))
    while not progress.snapshot().warnings:
        assert thread.is_alive()
    assert "what was captured before it is applied" in progress.snapshot().warnings[0]
    last = writer.last()
    assert last is not None
    assert last.checkpoint.position == Position(7, "7")
    progress.set(applied=Position(6, "6"))
    thread.join(0.3)
    assert thread.is_alive(), "something is still to be applied"
    progress.set(applied=Position(7, "7"))
    thread.join(10)
    assert not thread.is_alive()
    with pytest.raises(SchemaError, match="table t changed"):
        stopping.raise_failure()


def test_a_stop_ends_the_waiting_for_what_is_still_to_be_applied() -> None:
    log, stopping, progress = MemoryEventLog(), Stopping(), Progress()
    ports = SourcePorts(cast(Any, HaltingLog), cast(Any, NoChunks), None)
    attempt = Attempt({}, Checkpoint(Position(5, "5")), CaptureLimits(), "1-a", applied=True)
    loop = CaptureLoop(
        ports, attempt, MemorySegmentWriter(log, 1), MemoryRequests(), MemoryRoom(log), progress
    )
    thread = stopping.thread("capture", lambda: loop.run(stopping))
    while not progress.snapshot().warnings:
        assert thread.is_alive()
    stopping.request()
    thread.join(10)
    assert not thread.is_alive()


def test_where_nobody_applies_a_halt_waits_for_nobody() -> None:
    log, stopping = MemoryEventLog(), Stopping()
    ports = SourcePorts(cast(Any, HaltingLog), cast(Any, NoChunks), None)
    attempt = Attempt({}, Checkpoint(Position(5, "5")), CaptureLimits(), "1-a")
    loop = CaptureLoop(
        ports, attempt, MemorySegmentWriter(log, 1), MemoryRequests(), MemoryRoom(log), Progress()
    )
    with pytest.raises(SchemaError, match="table t changed"):
        loop.run(stopping)
