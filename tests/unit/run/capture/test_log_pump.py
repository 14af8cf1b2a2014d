"""The log thread: which error a run ends with when the source is gone and comes back without its log."""

from __future__ import annotations

import queue
from dataclasses import dataclass, field

import pytest

from migrator.errors import ConnectionFailed, GapError, MigratorError, SchemaError
from migrator.model.event import LogRecord
from migrator.model.position import Position
from migrator.run.capture.source_threads import LogPump
from migrator.run.failure import Stopping
from migrator.run.progress import Progress

BEGIN = Position(1, "1")


@dataclass
class Reader:
    """A log reader of which each call does as it is told."""

    on_start: MigratorError | None = None
    on_read: MigratorError | None = None
    on_finish: MigratorError | None = None
    started: bool = False
    closed: bool = False
    acknowledged: list[Position] = field(default_factory=list)

    def start(self, after: Position | None) -> Position:
        if self.on_start is not None:
            raise self.on_start
        self.started = True
        return BEGIN

    def read(self, timeout_s: float) -> list[LogRecord]:
        if self.on_read is not None:
            raise self.on_read
        return []

    def acknowledge(self, durable: Position) -> None:
        if not self.started:
            raise MigratorError("the log reader isn't started")
        self.acknowledged.append(durable)

    def finish(self) -> None:
        if self.on_finish is not None:
            raise self.on_finish

    def close(self) -> None:
        self.closed = True


def pump(readers: list[Reader]) -> LogPump:
    waiting = iter(readers)
    return LogPump(lambda: next(waiting), None, queue.Queue(), Progress())


def test_what_a_last_look_finds_ends_the_run_and_a_source_that_is_gone_does_not() -> None:
    for found, ends in ((SchemaError("changed"), True), (ConnectionFailed("gone", retryable=True), False)):
        reader, stopping = Reader(on_finish=found), Stopping()
        log = pump([reader])
        log.start()
        stopping.request()
        if ends:
            with pytest.raises(SchemaError):
                log.run(stopping)
        else:
            log.run(stopping)
        assert reader.closed


def test_a_run_that_failed_looks_no_more() -> None:
    reader, stopping = Reader(on_finish=SchemaError("changed")), Stopping()
    log = pump([reader])
    log.start()
    stopping.failed(GapError("something else"))
    log.run(stopping)
    assert reader.closed


def test_a_gap_found_when_connecting_again_is_the_error_that_ends_the_run() -> None:
    cut = ConnectionFailed("the connection was lost", retryable=True)
    readers = [Reader(on_read=cut), Reader(on_start=GapError("the slot doesn't exist"))]
    log = pump(readers)
    log.start()
    log.acknowledge(BEGIN)
    with pytest.raises(GapError, match="the slot doesn't exist"):
        log.run(Stopping())
    assert all(reader.closed for reader in readers)
    assert readers[1].acknowledged == []


def test_a_reader_that_cannot_connect_at_first_is_closed() -> None:
    reader = Reader(on_start=ConnectionFailed("refused", retryable=True))
    with pytest.raises(ConnectionFailed):
        pump([reader]).start()
    assert reader.closed
