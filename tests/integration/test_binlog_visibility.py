"""Commits that stand in the log before they are visible, placed and under load: what the witness says of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from migrator.columnar.keys import without_keys
from migrator.core.capture import Capture, EmitChunk, EmitPart
from migrator.core.dump import DumpPlan
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.event import Key, TransactionId, TransactionPart
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.table import TableSchema
from tests.integration.binlog_engine import MYSQL, BinlogEngine
from tests.integration.binlog_reading import DEADLINE_S, read_to, read_until, source_of
from tests.servers import Database

pytestmark = pytest.mark.integration


SEMI_SYNC = {"mysql": "rpl_semi_sync_source", "mariadb": "rpl_semi_sync_master"}


@pytest.fixture
def semi_sync(engine: BinlogEngine, one_row: Database) -> Iterator[Database]:
    """Commits wait between log and visibility for a replica that doesn't exist."""
    if engine is MYSQL and not one_row.query(
        "SELECT * FROM mysql.plugin WHERE name = 'rpl_semi_sync_source'"
    ):
        one_row.execute("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
    name = SEMI_SYNC[engine.kind]
    one_row.execute(
        f"SET GLOBAL {name}_timeout = 600000",
        f"SET GLOBAL {name}_wait_point = 'AFTER_SYNC'",
        f"SET GLOBAL {name}_enabled = 1",
    )
    yield one_row
    _release(engine, one_row)


def _release(engine: BinlogEngine, database: Database) -> None:
    """Commits wait no longer; those that do become visible."""
    database.execute(f"SET GLOBAL {SEMI_SYNC[engine.kind]}_enabled = 0")


class _Everything:
    """The plain algorithm, in this test only: whatever lies at or before ``high`` counts as seen by the SELECT."""

    def contains(self, transaction: TransactionId) -> bool:
        return True


def _delivered(schema: TableSchema, begin: Position, part: TransactionPart, chunk: Chunk) -> list[str]:
    """What the core delivers of key 5, in order, when the log's event comes first and the chunk second."""
    plan = DumpPlan([TableDump(schema.id)], 10)
    core = Capture(Checkpoint(begin, dumps=plan.dumps()), {schema.id: schema}, plan, _without)
    request = core.next_request()
    assert request is not None
    outputs = [*core.on_record(part), *core.on_chunk(replace(chunk, request=request))]
    values = []
    for output in outputs:
        if isinstance(output, EmitPart):
            values += [str(change.after[1]) for change in output.part.changes if change.after]
        elif isinstance(output, EmitChunk):
            values += [str(value) for value in output.rows["v"].to_pylist()]
    return values


def _without(schema: TableSchema, rows: Any, keys: frozenset[Key]) -> tuple[Any, int]:
    kept = without_keys(schema, rows, keys)
    return kept, kept.num_rows


def test_a_commit_that_is_logged_but_not_visible_is_outside_the_witness(
    engine: BinlogEngine, semi_sync: Database
) -> None:
    source = source_of(semi_sync)
    log, (schema,) = engine.started(source, "t")
    begin = engine.end(source)
    reader = engine.chunk_reader(source)
    request = ChunkRequest(1, schema.id, None, 10)
    with ThreadPoolExecutor(1) as pool:
        try:
            writer = pool.submit(semi_sync.execute, "UPDATE t SET v = 'NEW' WHERE id = 5")
            (part,) = read_until(log, lambda read: bool(read.parts())).parts()  # its event is delivered ...
            chunk = reader.read(request, schema)  # ... and only then is the chunk read
            assert not writer.done()
            assert chunk.rows["v"].to_pylist() == ["old"]
            assert chunk.high >= part.position  # by positions alone the stale row would be emitted
            assert chunk.witness is not None
            assert not chunk.witness.contains(part.id)  # so the core drops the row of key 5
            assert [change.after for change in part.changes] == [("5", "NEW")]
        finally:
            _release(engine, semi_sync)
        writer.result(30)
    assert _delivered(schema, begin, part, chunk) == ["NEW"]
    assert _delivered(schema, begin, part, replace(chunk, witness=_Everything())) == ["NEW", "old"]
    later = reader.read(request, schema)
    assert later.rows["v"].to_pylist() == ["NEW"]
    assert later.witness is not None
    assert later.witness.contains(part.id)
    reader.close()
    log.close()


def test_a_first_start_takes_along_what_is_logged_but_not_visible(
    engine: BinlogEngine, semi_sync: Database
) -> None:
    """Else neither the log's reader nor the first chunks would ever bring it."""
    source = source_of(semi_sync)
    catalog = engine.catalog(source)
    schemas = catalog.tables(["t"])
    before, reader = catalog.position(), engine.chunk_reader(source)
    with ThreadPoolExecutor(1) as pool:
        try:
            writer = pool.submit(semi_sync.execute, "UPDATE t SET v = 'NEW' WHERE id = 5")
            deadline = time.monotonic() + 30
            while catalog.position() <= before:
                assert time.monotonic() < deadline
            log = engine.log_reader(source, schemas)
            begin = log.start(None)
            assert not writer.done()
            assert reader.read(ChunkRequest(1, schemas[0].id, None, 10), schemas[0]).rows[
                "v"
            ].to_pylist() == ["old"]
            assert begin <= before
            (part,) = read_until(log, lambda read: bool(read.parts())).parts()
            assert [change.after for change in part.changes] == [("5", "NEW")]
        finally:
            _release(engine, semi_sync)
        writer.result(30)
    reader.close()
    log.close()


def test_chunks_lie_between_witness_and_high_under_hot_writes(
    engine: BinlogEngine, one_row: Database
) -> None:
    """A row is never older than what the witness contains, never newer than what the log has up to ``high``.

    An exact witness says more: the row is the newest version that it contains.
    """
    one_row.execute("UPDATE t SET v = '0'", *(f"INSERT INTO t VALUES ({key}, '0')" for key in range(6, 13)))
    source = source_of(one_row)
    log, (schema,) = engine.started(source, "t")
    reader = engine.chunk_reader(source)
    stop = threading.Event()
    versions = dict.fromkeys(range(5, 13), 0)

    def write(key: int) -> None:
        with one_row.connect() as connection, connection.cursor() as cursor:
            while not stop.is_set():
                versions[key] += 1
                cursor.execute("UPDATE t SET v = %s WHERE id = %s", (versions[key], key))

    chunks: list[Chunk] = []
    deadline = time.monotonic() + DEADLINE_S
    with ThreadPoolExecutor(8) as pool:
        try:
            writers = [pool.submit(write, key) for key in versions]
            # on a slow disk a hundred reads meet few commits
            while len(chunks) < 100 or sum(versions.values()) <= 100:
                assert time.monotonic() < deadline, versions
                chunks.append(reader.read(ChunkRequest(len(chunks), schema.id, None, 100), schema))
        finally:
            stop.set()
        for writer in writers:
            writer.result(30)
    parts = read_to(log, engine.end(source)).parts()
    reader.close()
    log.close()
    for chunk in chunks:
        assert chunk.witness is not None
        least, most = ({str(key): 0 for key in versions} for _ in range(2))
        for part in parts:
            after = {str(c.after[0]): int(str(c.after[1])) for c in part.changes if c.after}
            if chunk.witness.contains(part.id):
                least.update(after)
            if part.position <= chunk.high:
                most.update(after)
        found = {str(row["id"]): int(row["v"]) for row in chunk.rows.to_pylist()}
        assert found.keys() == least.keys()
        assert all(least[key] <= found[key] <= most[key] for key in found), (least, found, most)
        assert found == least or not engine.exact_witness
