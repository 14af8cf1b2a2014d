"""Where a log begins, and what the witness says of chunks read under load. Placed races: ``test_binlog_races.py``."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from migrator.model.chunk import Chunk, ChunkRequest
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import DEADLINE_S, read_to, read_until, source_of
from tests.integration.semi_sync import SemiSync
from tests.servers import Database

pytestmark = pytest.mark.integration


def test_a_first_start_takes_along_what_is_logged_but_not_visible(
    engine: BinlogEngine, one_row: Database
) -> None:
    """Else neither the log's reader nor the first chunks would ever bring it."""
    source = source_of(one_row)
    catalog = engine.catalog(source)
    schemas = catalog.tables(["t"])
    before, reader = catalog.position(), engine.chunk_reader(source)
    with ThreadPoolExecutor(1) as pool:
        with SemiSync(engine, one_row):
            writer = pool.submit(one_row.execute, "UPDATE t SET v = 'NEW' WHERE id = 5")
            deadline = time.monotonic() + 30
            while catalog.position() <= before:
                assert time.monotonic() < deadline
            log = engine.log_reader(source, schemas)
            begin = log.start(None)
            assert not writer.done()
            chunk = reader.read(ChunkRequest(1, schemas[0].id, None, 10), schemas[0])
            assert chunk.rows["v"].to_pylist() == ["old"]
            assert begin <= before
            (part,) = read_until(log, lambda read: bool(read.parts())).parts()
            assert [change.after for change in part.changes] == [("5", "NEW")]
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
