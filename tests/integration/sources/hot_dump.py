"""A small table, dumped again and again while clients change it: the capture core between real readers, and a
count.

Nothing else of a run is here, no event log and no Spark: the log reader and the chunk reader feed ``Capture``
in one thread, every transaction that the log shows goes in before the next SELECT, and what comes out is
compared with what went before it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from migrator.columnar.keys import without_keys
from migrator.core.capture import Capture, EmitChunk, EmitPart, Output
from migrator.core.dump import DumpPlan
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.event import Key, MarkKind
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.requests.request import DumpRequest
from migrator.model.table import TableSchema
from migrator.ports.source import ChunkReader, LogReader, WatermarkWriter
from tests.servers import Database

DEADLINE_S = 30.0
KEYS = 25
CHUNK_ROWS = 10
WRITERS = 4


@dataclass
class Deliveries:
    """What was delivered of a table ``(k, v)`` whose ``v`` counts the updates of its row, in order.

    Attributes:
        chunks, rows: dumped.
        events: of the log.
        dropped: chunk rows that the core held back.
        stale: chunk rows older than the newest event of their key delivered before.
        early: chunk rows newer than that.
    """

    chunks: int = 0
    rows: int = 0
    events: int = 0
    dropped: int = 0
    stale: int = 0
    early: int = 0
    versions: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(1, KEYS + 1), 0), repr=False)

    def take(self, output: Output) -> None:
        """The next delivery."""
        if isinstance(output, EmitPart):
            for change in output.part.changes:
                assert change.after is not None
                key, version = int(str(change.after[0])), int(str(change.after[1]))
                assert version == self.versions[key] + 1, "the log itself lost or repeated an update"
                self.versions[key] = version
                self.events += 1
        elif isinstance(output, EmitChunk):
            self.chunks += 1
            self.rows += output.kept_rows
            self.dropped += output.chunk.row_count - output.kept_rows
            for row in output.rows.to_pylist():
                self.stale += row["v"] < self.versions[row["k"]]
                self.early += row["v"] > self.versions[row["k"]]


class HotDump:
    """Dumps a table from end to end, time after time, as dump requests do.

    Args:
        log: started at ``begin``.
        chunks: of the same server.
        schema: of the table.
        begin: where the log reader stands; the table's first dump counts as done.
        marks: writes watermarks around each SELECT, if that placement is tried.
    """

    def __init__(
        self,
        log: LogReader,
        chunks: ChunkReader,
        schema: TableSchema,
        begin: Position,
        marks: WatermarkWriter | None = None,
    ):
        self._log, self._chunks, self._schema, self._marks = log, chunks, schema, marks
        first = TableDump(schema.id, done=True)
        plan = DumpPlan([first], CHUNK_ROWS, token_prefix="t-" if marks else "")
        checkpoint = Checkpoint(begin, dumps=plan.dumps(), passes=())
        self._core = Capture(checkpoint, {schema.id: schema}, plan, drop_keys)
        self._dumps = 0
        self.delivered = Deliveries()

    def dump(self) -> None:
        """One more dump of the table, from its first key to its last."""
        self._dumps += 1
        request = DumpRequest(f"r{self._dumps}", (self._schema.id,))
        self._core.on_requests([request], {})
        until = time.monotonic() + DEADLINE_S
        while not all(dump.done for dump in self._core.checkpoint().requests):
            assert time.monotonic() < until, f"dump {self._dumps} doesn't end: {self.delivered}"
            self.read_log(0.0)
            wanted = self._core.next_request()
            if wanted is None:
                self.read_log(0.2)
            else:
                self._deliver(self._core.on_chunk(self._read(wanted)))
        self._core.on_witness(self._chunks.witness())

    def await_event(self) -> None:
        """Reads the log until it has shown one more change."""
        before, until = self.delivered.events, time.monotonic() + DEADLINE_S
        while self.delivered.events == before:
            assert time.monotonic() < until, "nobody changes the table"
            self.read_log(0.2)

    def read_log(self, timeout_s: float) -> None:
        """Hands over what the log shows by now."""
        for record in self._log.read(timeout_s):
            self._deliver(self._core.on_record(record))

    def _read(self, request: ChunkRequest) -> Chunk:
        if self._marks is not None:
            self._marks.write(request.token, MarkKind.LOW)
        chunk = self._chunks.read(request, self._schema)
        if self._marks is not None:
            self._marks.write(request.token, MarkKind.HIGH)
        return chunk

    def _deliver(self, outputs: list[Output]) -> None:
        for output in outputs:
            self.delivered.take(output)
        if self._core.wants_segment():  # two dumps of a table never share a batch: as if one ended here
            self._deliver(self._core.on_segment())


def drop_keys(schema: TableSchema, rows: Any, keys: frozenset[Key]) -> tuple[Any, int]:
    kept = without_keys(schema, rows, keys)
    return kept, kept.num_rows


@contextmanager
def hot_writers(database: Database, prepare: str = "SELECT 1") -> Iterator[None]:
    """Clients that update rows of ``hot`` as fast as the server lets them, one row a transaction, inside the
    server.

    ``prepare`` is run in each of their sessions.
    """
    stop = threading.Event()

    def write() -> None:
        with closing(database.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(prepare)
            while not stop.is_set():
                cursor.execute("CALL churn(20)")

    with ThreadPoolExecutor(WRITERS) as pool:
        writers = [pool.submit(write) for _ in range(WRITERS)]
        try:
            yield
        finally:
            stop.set()
        for writer in writers:
            writer.result(DEADLINE_S)


def dump_until(dump: HotDump, enough: Callable[[Deliveries], bool], gap: Callable[[], Any]) -> Deliveries:
    """Dumps the table again and again; ``gap`` is a context in which commits stay invisible for a while."""
    while not enough(dump.delivered):
        with gap():
            dump.await_event()
            dump.dump()
    return dump.delivered
