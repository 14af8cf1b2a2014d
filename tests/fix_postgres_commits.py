"""Commits placed where a test needs them, and capture's core over real readers, one step at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.chunks.chunk_reader import PostgresChunkReader
from migrator.adapters.sources.postgres.chunks.watermark import mark_writer
from migrator.adapters.sources.postgres.log.log_reader import PostgresLogReader
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.columnar.keys import without_keys
from migrator.core.capture import Capture, EmitChunk, EmitPart
from migrator.core.dump import DumpPlan
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.event import Key, LogRecord, MarkKind, Row, RowChange, TransactionId
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.table import TableSchema
from tests.fix_postgres_source import parts, read_to, wait_for
from tests.servers import Database


@contextmanager
def no_standby_answers(server: Database, database: Database) -> Iterator[None]:
    """Commits of sessions with ``synchronous_commit = on`` hang, in the log and not visible; by default none do."""
    database.execute(f'ALTER DATABASE "{database.database}" SET synchronous_commit = local')
    server.execute("ALTER SYSTEM SET synchronous_standby_names = 'ghost'", "SELECT pg_reload_conf()")
    wait_for(database, "SELECT current_setting('synchronous_standby_names') = 'ghost'")
    try:
        yield
    finally:
        let_go(server)


def let_go(server: Database) -> None:
    """Ends what ``no_standby_answers`` began: hanging commits return."""
    server.execute("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")


class HangingCommit:
    """T1: a transaction that hangs after its commit record is in the log, and is not visible yet.

    Args:
        database: where.
        statements: of the transaction; they don't hang.
        last: what hangs. Without statements it runs by itself.
        standby: from when on commits hang; None where they do already (see ``no_standby_answers``).
    """

    def __init__(
        self,
        database: Database,
        *statements: str,
        last: str = "COMMIT",
        standby: AbstractContextManager[object] | None = None,
    ):
        self._connection = database.connect()
        self._standby = standby or nullcontext()
        self._connection.execute("SET synchronous_commit = on")
        self.xid = 0
        if statements:
            self._connection.execute("BEGIN")
            row = self._connection.execute("SELECT pg_current_xact_id()::text").fetchone()
            self.xid = int(row[0]) % 2**32
        for statement in statements:
            self._connection.execute(statement)
        self._standby.__enter__()
        self._thread = threading.Thread(target=self._connection.execute, args=[last], daemon=True)
        self._thread.start()
        pid = self._connection.info.backend_pid
        wait_for(database, f"SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = {pid}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish()

    def finish(self) -> None:
        """Lets the commit return, and waits for it."""
        self._standby.__exit__(None, None, None)
        self._thread.join(20)
        assert not self._thread.is_alive()
        self._connection.close()


class Capturing:
    """Log reader, chunk reader, marks and core of one table; ``rows`` is what a target would hold.

    Args:
        source: where, with its placement.
        schema: the table.
        witness: False shows what would happen without one.
    """

    def __init__(self, source: PostgresSource, schema: TableSchema, witness: bool = True):
        self._schema = schema
        self._witness = witness
        self._catalog = PostgresCatalog(source)
        self._log = PostgresLogReader(source, [schema])
        self._chunks = PostgresChunkReader(source)
        make_marks = mark_writer(source)
        self._marks = make_marks() if make_marks is not None else None
        plan = DumpPlan([TableDump(schema.id)], 1000, token_prefix="try-" if self._marks else "")
        checkpoint = Checkpoint(self._log.start(None), dumps=plan.dumps())
        schemas = {schema.id: schema}
        self._core = Capture(checkpoint, schemas, plan, _drop_keys, has_witness=witness)
        self.rows: dict[Key, Row] = {}
        self.chunks_placed = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in (self._log, self._chunks, self._marks):
            if each is not None:
                each.close()

    def deliver(self, to: Position | None = None) -> list[LogRecord]:
        """Reads the log to its present end, or to ``to``, into the core."""
        place = to if to is not None else self._catalog.position()
        # The reader tells each place once: on an idle server nothing more comes for one that it has told.
        records = read_to(self._log, place) if self._core.checkpoint().position < place else []
        for record in records:
            self._take(self._core.on_record(record))
        return records

    def read_chunk(self) -> Chunk:
        """Low mark, SELECT, high mark, as placed; the chunk is in the core's hands then."""
        request = self._core.next_request()
        assert request is not None
        self._mark(request, MarkKind.LOW)
        chunk = self._chunks.read(request, self._schema)
        self._mark(request, MarkKind.HIGH)
        self._take(self._core.on_chunk(chunk if self._witness else replace(chunk, witness=None)))
        return chunk

    def _mark(self, request: ChunkRequest, kind: MarkKind) -> None:
        assert bool(request.token) == (self._marks is not None)
        if self._marks is not None:
            self._marks.write(request.token, kind)

    def _take(self, outputs: list[Any]) -> None:
        places = self._schema.key_indexes()
        for output in outputs:
            if isinstance(output, EmitChunk):
                self.chunks_placed += 1
                for values in output.rows.to_pylist():
                    row = tuple(None if value is None else str(value) for value in values.values())
                    self.rows[tuple(row[place] for place in places)] = row
            elif isinstance(output, EmitPart):
                for change in output.part.changes:
                    self._apply(change, places)

    def _apply(self, change: RowChange, places: tuple[int, ...]) -> None:
        if change.before is not None:
            self.rows.pop(tuple(change.before[place] for place in places), None)
        if change.after is not None:
            self.rows[tuple(change.after[place] for place in places)] = change.after


COUNTERS = (
    "CREATE TABLE t (k int PRIMARY KEY, v bigint)",
    "ALTER TABLE t REPLICA IDENTITY FULL",
    "INSERT INTO t SELECT g, 0 FROM generate_series(1, 20) g",
)


_MOST_TURNS = 50


@dataclass
class Overtaken:
    """Chunk rows that were as new as the log then, and rows that were not, all of them revealed by the witness."""

    ahead: int = 0
    behind: int = 0


def chunks_under_writers(
    writing: Database, source: PostgresSource, schema: TableSchema, count: int
) -> Overtaken:
    """Reads chunks of ``COUNTERS`` while ``writing`` raises counters; asserts the rules of witness and ``high``.

    On a busy machine all counters may be raised behind each of ``count`` chunks: then it reads more of them.
    """
    stop = threading.Event()

    def write(setting: str) -> None:
        connection = writing.connect()
        connection.execute(f"SET synchronous_commit = {setting}")
        while not stop.is_set():
            connection.execute("UPDATE t SET v = v + 1 WHERE k = 1 + (random() * 19)::int")
        connection.close()

    writers = [threading.Thread(target=write, args=[setting]) for setting in ("on", "off", "off")]
    seen = Overtaken()
    delivered: dict[int, int] = dict.fromkeys(range(1, 21), 0)
    recent: list[
        tuple[int, TransactionId]
    ] = []  # also from before the chunk: it may not have seen those either
    log, chunks = PostgresLogReader(source, [schema]), PostgresChunkReader(source)
    log.start(None)
    for writer in writers:
        writer.start()
    try:
        for number in range(_MOST_TURNS * count):
            if number >= count and seen.ahead:
                break
            chunk = chunks.read(ChunkRequest(number + 1, schema.id, None, 100), schema)
            assert chunk.witness is not None
            for part in parts(read_to(log, chunk.high)):
                for change in part.changes:
                    assert change.after is not None
                    key, version = int(str(change.after[0])), int(str(change.after[1]))
                    assert version == delivered[key] + 1
                    delivered[key] = version
                    recent.append((key, part.id))
            recent = [(key, id) for key, id in recent if not chunk.witness.contains(id)]
            unseen = {key for key, _ in recent}
            for row in chunk.rows.to_pylist():
                assert row["v"] <= delivered[row["k"]], "the chunk shows a change that was not delivered"
                if row["v"] < delivered[row["k"]]:
                    seen.behind += 1
                    assert row["k"] in unseen, "a stale row that the witness did not reveal"
                else:
                    seen.ahead += 1
    finally:
        stop.set()
        for writer in writers:
            writer.join()
        log.close()
        chunks.close()
    assert seen.ahead > 0
    return seen


def _drop_keys(schema: TableSchema, rows: Any, keys: frozenset[Key]) -> tuple[Any, int]:
    kept = without_keys(schema, rows, keys)
    return kept, kept.num_rows
