"""Who reads a chunk when executors can't, and for how long; without Spark and without a server."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from migrator.adapters.memory.eventlog import MemoryEventLog, MemoryRoom, MemorySegmentWriter
from migrator.adapters.memory.requests import MemoryRequests
from migrator.adapters.sources.executors.chunk_reader import REST_S, ExecutorChunkReader, Executors
from migrator.adapters.sources.executors.chunk_task import ChunkTask, unpacked
from migrator.adapters.sources.postgres.chunks.chunk_reader import PostgresChunkReader
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.connections.same_server import SameServer
from migrator.errors import ClusterError, ConnectionFailed, MigratorError, SchemaError
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.limits import CaptureLimits
from migrator.model.position import Position
from migrator.model.server import Server
from migrator.model.table import Column, TableId, TableSchema
from migrator.ports.source import ChunkReader
from migrator.run.capture.attempt import Attempt
from migrator.run.capture.loop import CaptureLoop, SourcePorts
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from scenarios.simulation.clients import initial_rows
from scenarios.simulation.source import Link, SimulatedChunkReader, SimulatedLogReader, Source
from scenarios.simulation.tables import SCHEMAS

SCHEMA = TableSchema(TableId("old", "t"), (Column("k", "int64", False, "bigint"),), ("k",))
REQUEST = ChunkRequest(1, SCHEMA.id, None, 10)
LOST = ClusterError("a task on an executor failed", cause="ExecutorLostFailure", retryable=True)
LATE = ClusterError("an executor's task didn't end within 60 s")
UNREACHED = ConnectionFailed("the source can't be reached", retryable=True)
REFUSED = ConnectionFailed("the source admits no such login")
CHANGED = SchemaError("table t no longer has the structure it is dumped with")


@dataclass
class Reader:
    """Reads one row, which names the reader; or raises."""

    name: int
    error: MigratorError | None = None
    closed: list[str] = field(default_factory=list)

    def read(self, request: ChunkRequest, schema: TableSchema) -> Chunk:
        if self.error is not None:
            raise self.error
        rows = pa.table({"k": [self.name]})
        return Chunk(request, rows, 1, (str(self.name),), True, None, Position(7, "seven"), "v", 0.25)

    def bounded(self, request: ChunkRequest, schema: TableSchema) -> ChunkRequest:
        return replace(request, end=(str(self.name),))

    def witness(self) -> None:
        return None

    def close(self) -> None:
        self.closed.append("closed")


HERE, THERE = 1, 2


class Story:
    """A reader over executors that do what they are told, one thing for each time they are asked."""

    def __init__(self, outcomes: Iterable[MigratorError | None]):
        self.outcomes = list(outcomes)
        self.now_s = 1000.0
        self.said: list[str] = []
        self.same = SameServer()
        self.same.reads_log("the primary")
        self.executors = Executors(self.run, self.said.append, lambda: self.now_s)
        self.error: MigratorError | None = None
        self.reader = ExecutorChunkReader(
            lambda: Reader(THERE, self.error), Reader(HERE), self.same, self.executors
        )

    def run(self, work: Callable[[], bytes]) -> bytes:
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, ClusterError):
            raise outcome
        self.error = outcome
        return work()

    def read_by(self) -> int:
        (name,) = self.reader.read(REQUEST, SCHEMA).rows["k"].to_pylist()
        return int(name)


def test_a_chunk_comes_as_it_was_read_there_and_its_end_is_looked_up_here() -> None:
    story = Story([None])
    chunk = story.reader.read(REQUEST, SCHEMA)
    expected = Reader(THERE).read(REQUEST, SCHEMA)
    assert chunk.rows.equals(expected.rows)
    assert replace(chunk, rows=None) == replace(expected, rows=None)
    assert chunk.request is REQUEST
    assert story.reader.bounded(REQUEST, SCHEMA).end == (str(HERE),)
    assert story.said == []


@pytest.mark.parametrize("failure", [LOST, UNREACHED])
def test_what_may_pass_is_asked_for_again(failure: MigratorError) -> None:
    story = Story([failure, None, None])
    assert [story.read_by(), story.read_by()] == [THERE, THERE]
    assert story.said == []


@pytest.mark.parametrize("failures", [[LOST, LOST], [LOST, UNREACHED], [LATE], [REFUSED]])
def test_the_driver_reads_for_a_while_and_says_so(failures: list[MigratorError]) -> None:
    story = Story([*failures, None])
    assert [story.read_by(), story.read_by()] == [HERE, HERE]
    (said,) = story.said
    assert said.startswith("executors can't read chunks, the driver does for 60 s: ")
    assert failures[-1].what in said
    story.now_s += REST_S
    assert story.read_by() == THERE
    assert story.said[1:] == [""]


def test_while_one_worker_tries_again_the_others_read_here() -> None:
    story = Story([LATE])
    story.read_by()
    story.now_s += REST_S
    assert [story.executors.may_read(), story.executors.may_read()] == [True, False]


def test_what_is_wrong_with_the_table_is_not_tried_on_the_driver() -> None:
    story = Story([CHANGED])
    with pytest.raises(SchemaError, match="no longer has the structure"):
        story.read_by()
    assert story.said == []


def test_a_chunk_of_the_server_that_the_log_has_left_is_not_placed() -> None:
    """The task waited for a slot while the log moved; the old primary still answered it."""
    story = Story([None])
    answer = story.run

    def late(work: Callable[[], bytes]) -> bytes:
        answered = answer(work)
        story.same.reads_log("the promoted replica")
        return answered

    story.executors.run = late
    with pytest.raises(ConnectionFailed, match="the log moved to another server") as refused:
        story.read_by()
    assert refused.value.retryable


def test_the_task_s_connection_is_closed_and_errors_travel_whole() -> None:
    reader = Reader(THERE, ConnectionFailed("what", where="w", cause="c", remedy="r", retryable=True))
    with pytest.raises(ConnectionFailed) as caught:
        unpacked(ChunkTask(lambda: reader, REQUEST, SCHEMA)(), REQUEST)
    error = caught.value
    assert (error.what, error.where, error.cause, error.remedy, error.retryable) == (
        "what",
        "w",
        "c",
        "r",
        True,
    )
    assert reader.closed == ["closed"]


def test_no_password_is_shown_with_a_task_which_travels_with_it_and_with_the_logs_server() -> None:
    source, same = (
        PostgresSource(
            Server(
                kind="postgresql",
                host="host",
                port=1,
                database="old",
                schema="public",
                user="me",
                password="s3cret-word",
            ),
            migration="m",
        ),
        SameServer(),
    )
    task = ChunkTask(partial(PostgresChunkReader, source, same=same), REQUEST, SCHEMA)
    same.reads_log("the primary")  # after the task was made, before its job is
    there: Any = pickle.loads(pickle.dumps(task)).make()
    assert there._same.log() == "the primary"
    assert there._source == source
    assert "s3cret-word" not in repr(task) + repr(source)


def test_a_warning_of_the_last_chunks_goes_with_the_dump() -> None:
    link = Link(Source(False, initial_rows()), 10, True, records=10)
    progress, seen = Progress(), []

    def unable(say: Callable[[str], None]) -> Callable[[], ChunkReader]:
        def run(work: Callable[[], bytes]) -> bytes:
            raise LATE

        def tell(text: str) -> None:
            say(text)
            seen.append(progress.snapshot().warnings)

        executors = Executors(run, tell)
        make: Any = lambda: SimulatedChunkReader(link)  # noqa: E731
        return lambda: ExecutorChunkReader(make, make(), SameServer(), executors)

    ports = SourcePorts(
        lambda: SimulatedLogReader(link), lambda: SimulatedChunkReader(link), None, elsewhere=unable
    )
    event_log, stopping = MemoryEventLog(), Stopping()
    writer, room = MemorySegmentWriter(event_log, 1), MemoryRoom(MemoryEventLog())
    loop = CaptureLoop(
        ports, Attempt(SCHEMAS, None, CaptureLimits(), "1-a"), writer, MemoryRequests(), room, progress
    )
    thread = stopping.thread("capture", lambda: loop.run(stopping))
    deadline = time.monotonic() + 30
    try:
        while not progress.snapshot().dumps or progress.snapshot().dumping():
            stopping.raise_failure()
            assert time.monotonic() < deadline
            threading.Event().wait(0.005)
    finally:
        stopping.request()
        thread.join(30)
    stopping.raise_failure()
    assert LATE.what in seen[0][0]
    assert progress.snapshot().warnings == ()
