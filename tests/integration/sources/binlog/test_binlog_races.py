"""Races between log and chunk on MySQL and MariaDB, placed: what the plain window makes of them, and what we do.

The plain window takes the end of the log before the SELECT for its low mark (``plain_watermark.py``). Where a test
has another broken variant, it is a reader of this module that breaks the one rule which the test is about.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from migrator.adapters.sources.binlog.chunks.bulk_rows import BulkResult
from migrator.adapters.sources.binlog.chunks.chunk_reader import BinlogChunkReader
from migrator.adapters.sources.binlog.preflight_checks import log_status
from migrator.adapters.sources.binlog.transactions.log_reader import BinlogReader
from migrator.adapters.sources.binlog.transactions.watermark import WatermarkRowWriter
from migrator.connections.mysql.sql import query
from migrator.errors import SourceError
from migrator.model.chunk import Chunk, ChunkRequest, Witness
from migrator.model.event import MarkKind, WatermarkSeen
from migrator.model.position import Position
from migrator.model.table import TableSchema
from scenarios.mutants.broken_capture import HIGH_IGNORED
from scenarios.simulation.setup import patched
from tests.integration.binlog_engine import MYSQL, BinlogEngine
from tests.integration.binlog_reading import make_watermark_table, read_to, read_until, source_of
from tests.integration.sources.binlog.semi_sync import AFTER_COMMIT, hanging_update
from tests.integration.sources.placed_race import TOKEN, delivered
from tests.integration.sources.plain_watermark import (
    WRITTEN_MARKS_ONLY,
    LowMark,
    NotingLog,
    plain_positions,
)
from tests.servers import Database

pytestmark = pytest.mark.integration

UPDATE = "UPDATE t SET v = 'NEW' WHERE id = 5"
only_mysql = pytest.mark.parametrize("engine", [MYSQL], indirect=True, ids=["mysql"])


@contextmanager
def started(
    engine: BinlogEngine, database: Database, **options: Any
) -> Iterator[tuple[BinlogReader, TableSchema]]:
    """A log reader at the end of the log, and the schema of ``t``."""
    log, (schema,) = engine.started(source_of(database, **options), "t")
    with closing(log):
        yield log, schema


def read(reader: type[BinlogChunkReader], database: Database, schema: TableSchema) -> Chunk:
    """One chunk, by a reader of its own."""
    with closing(reader(source_of(database))) as chunks:
        return chunks.read(ChunkRequest(1, schema.id, None, 10), schema)


def expect_only_the_plain_window_to_lose(engine: BinlogEngine, database: Database) -> None:
    """T1 hangs between log and visibility while chunks are read."""
    with started(engine, database) as (log, schema):
        with hanging_update(engine, database, log) as t1:
            orders = {t1.part.id: t1.part.position.order}
            plain = read(plain_positions(engine.chunk_reader, orders), database, schema)
            ours = read(engine.chunk_reader, database, schema)
            assert t1.waits()
        later = read(engine.chunk_reader, database, schema)
        assert [chunk.rows["v"].to_pylist() for chunk in (plain, ours, later)] == [["old"], ["old"], ["NEW"]]
        assert ours.high >= t1.part.position  # by positions alone the stale row would be emitted
        assert [chunk.witness and chunk.witness.contains(t1.part.id) for chunk in (ours, later)] == [
            False,
            True,
        ]
        assert [change.after for change in t1.part.changes] == [("5", "NEW")]
        assert delivered(schema, [t1.part, plain]) == ["NEW", "old"]
        assert delivered(schema, [t1.part, ours]) == ["NEW"]


def test_a_commit_waits_after_sync(engine: BinlogEngine, one_row: Database) -> None:
    expect_only_the_plain_window_to_lose(engine, one_row)


@only_mysql
def test_a_commit_waits_after_sync_and_commits_need_no_order(engine: BinlogEngine, one_row: Database) -> None:
    one_row.execute("SET GLOBAL binlog_order_commits = OFF")
    try:
        expect_only_the_plain_window_to_lose(engine, one_row)
    finally:
        one_row.execute("SET GLOBAL binlog_order_commits = ON")


def test_what_waits_after_commit_is_visible_and_waits_for_its_event(
    engine: BinlogEngine, one_row: Database
) -> None:
    """No gap of that kind at this wait point. But the chunk shows T1, so it must not go out before T1's event."""
    with started(engine, one_row) as (log, schema):
        with hanging_update(engine, one_row, log, AFTER_COMMIT) as t1:
            chunk = read(engine.chunk_reader, one_row, schema)
            assert t1.waits()
        assert chunk.rows["v"].to_pylist() == ["NEW"]
        assert chunk.high >= t1.part.position
        assert delivered(schema, [chunk, t1.part])[0] == "NEW"
        assert set(delivered(schema, [t1.part, chunk])) == {"NEW"}


def test_a_written_watermark_waits_behind_the_hanging_commit(engine: BinlogEngine, one_row: Database) -> None:
    """Where commits become visible in log order, DBLog's row is right by itself; preflight checks that they do."""
    make_watermark_table(one_row)
    source = source_of(one_row, placement="watermark")

    def between_marks() -> Chunk:
        with closing(WatermarkRowWriter(source)) as marks:
            marks.write(TOKEN, MarkKind.LOW)
            chunk = read(engine.chunk_reader, one_row, schema)
            marks.write(TOKEN, MarkKind.HIGH)
            return chunk

    waiting = (
        "SELECT 1 FROM information_schema.processlist WHERE info LIKE 'INSERT INTO `migrator`.`watermark`%'"
    )
    with started(engine, one_row, placement="watermark") as (log, schema):
        with hanging_update(engine, one_row, log) as t1:
            reading = t1.pool.submit(between_marks)
            while not one_row.query(waiting):
                assert not reading.done(), "the watermark did not wait"
            assert t1.waits()
        chunk = reading.result(30)
        marks = read_until(
            log, lambda seen: sum(isinstance(record, WatermarkSeen) for record in seen.records) == 2
        ).records
        assert chunk.rows["v"].to_pylist() == ["NEW"]
        with patched(WRITTEN_MARKS_ONLY):
            assert delivered(schema, [t1.part, chunk, *marks], marks=True) == ["NEW", "NEW"]


@pytest.mark.parametrize(("late", "outcome"), [(True, ["NEW", "old"]), (False, ["NEW"])])
def test_the_witness_must_not_be_taken_after_the_select(
    engine: BinlogEngine, one_row: Database, late: bool, outcome: list[str]
) -> None:
    """T1 becomes visible between the SELECT and what is read after it, which then claims too much."""

    class Reader(engine.chunk_reader):  # type: ignore[misc, name-defined]
        def _snapshot(
            self, request: ChunkRequest, schema: TableSchema
        ) -> tuple[BulkResult, Witness, TableSchema]:
            selected, witness, read = super()._snapshot(request, schema)
            t1.finish()
            return selected, self._begin_view(self._connection) if late else witness, read

    with started(engine, one_row) as (log, schema):
        with hanging_update(engine, one_row, log) as t1:
            chunk = read(Reader, one_row, schema)
            assert not t1.waits()
        assert chunk.rows["v"].to_pylist() == ["old"]
        assert delivered(schema, [t1.part, chunk]) == outcome


def test_a_chunk_waits_for_events_that_it_is_newer_than(engine: BinlogEngine, one_row: Database) -> None:
    """The log is read late: emitted at once, the chunk's row would be followed by the past."""
    with started(engine, one_row) as (log, schema):
        one_row.execute("UPDATE t SET v = 'mid' WHERE id = 5", UPDATE)
        chunk = read(engine.chunk_reader, one_row, schema)
        records = read_to(log, chunk.high).records
    with patched(HIGH_IGNORED):
        assert delivered(schema, [chunk, *records]) == ["NEW", "mid", "NEW"]
    assert delivered(schema, [chunk, *records]) == ["mid", "NEW", "NEW"]


def kept_view(reader: type[BinlogChunkReader], log: NotingLog) -> type[BinlogChunkReader]:
    """PyMySQL's defaults (no autocommit, REPEATABLE READ): the first chunk's read view serves all later ones."""

    class Kept(reader):  # type: ignore[misc, valid-type]
        def _prepare_session(self, connection: Any) -> None:
            query(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            query(connection, "SET autocommit = 0")

        def _begin_view(self, connection: Any) -> Witness:
            return LowMark(self._log_end(connection).order, log.orders)

        def _end_view(self, connection: Any) -> None:
            pass

    return Kept


def test_every_chunk_has_a_read_view_of_its_own(engine: BinlogEngine, one_row: Database) -> None:
    """T1 is visible to everybody long before the second chunk's low mark."""
    source = source_of(one_row)
    with started(engine, one_row) as (inner, schema):
        log = NotingLog(inner)
        request = ChunkRequest(1, schema.id, None, 10)
        with (
            closing(kept_view(engine.chunk_reader, log)(source)) as kept,
            closing(engine.chunk_reader(source)) as ours,
        ):
            assert [reader.read(request, schema).row_count for reader in (kept, ours)] == [1, 1]
            one_row.execute(UPDATE)
            (part,) = read_to(log, engine.end(source)).parts()
            second = [reader.read(request, schema) for reader in (kept, ours)]
        assert delivered(schema, [part, second[0]]) == ["NEW", "old"]
        assert delivered(schema, [part, second[1]]) == ["NEW", "NEW"]


def test_a_server_that_turns_autocommit_off_does_not_keep_a_view_open(
    engine: BinlogEngine, one_row: Database
) -> None:
    """``init_connect`` runs in the session of everybody without administrative rights."""
    user = f"u{one_row.database[-8:]}"
    one_row.execute(
        f"CREATE USER '{user}'@'%' IDENTIFIED BY 'pw'",
        f"GRANT SELECT ON `{one_row.database}`.* TO '{user}'@'%'",
        f"GRANT REPLICATION SLAVE ON *.* TO '{user}'@'%'",
        "SET GLOBAL init_connect = 'SET autocommit = 0'",
    )
    source = source_of(one_row, user=user, password="pw", tls=engine.password_tls)
    try:
        with started(engine, one_row) as (log, schema), closing(engine.chunk_reader(source)) as chunks:
            request = ChunkRequest(1, schema.id, None, 10)
            assert chunks.read(request, schema).rows["v"].to_pylist() == ["old"]
            one_row.execute(UPDATE)
            (part,) = read_to(log, engine.end(source)).parts()
            second = chunks.read(request, schema)
        assert delivered(schema, [part, second]) == ["NEW", "NEW"]
    finally:
        one_row.execute("SET GLOBAL init_connect = ''", f"DROP USER '{user}'@'%'")


def test_a_bare_file_position_is_no_place_to_read_from(engine: BinlogEngine, one_row: Database) -> None:
    """It means nothing on another server, and would compare with nothing."""
    ((file, offset, *_),) = one_row.query(log_status(one_row.query("SELECT VERSION()")[0][0]))
    bare = Position(1, json.dumps({"file": file, "offset": offset}))
    with started(engine, one_row) as (log, _), pytest.raises(SourceError, match=r"is no M\w+ position"):
        log.start(bare)


@only_mysql
def test_transactions_without_a_gtid_stop_the_reader_by_name(engine: BinlogEngine, one_row: Database) -> None:
    """Only file positions would tell them apart, and no executed set would ever contain them."""
    with started(engine, one_row) as (log, _):
        try:
            one_row.execute(
                "SET GLOBAL gtid_mode = ON_PERMISSIVE",
                "SET GLOBAL gtid_mode = OFF_PERMISSIVE",
                UPDATE,
            )
            with pytest.raises(SourceError, match="transaction without a GTID") as stopped:
                read_until(log, lambda read: bool(read.parts()))
        finally:
            one_row.execute("SET GLOBAL gtid_mode = ON_PERMISSIVE", "SET GLOBAL gtid_mode = ON")
        assert not stopped.value.retryable
