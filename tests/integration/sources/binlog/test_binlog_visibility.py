"""Where a log begins, and what the witness says of chunks read under load. Placed races:
``test_binlog_races.py``."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from migrator.model.chunk import ChunkRequest
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import read_until, source_of
from tests.integration.sources.binlog.binlog_hot_writes import PLAIN, XA, expect_between, hot_writes, versions
from tests.integration.sources.binlog.semi_sync import SemiSync
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
    """An exact witness says more than ``expect_between``: the row is the newest version that it contains."""
    for chunk, least in expect_between(hot_writes(engine, one_row, PLAIN)):
        assert versions(chunk) == least or not engine.exact_witness


@pytest.mark.slow
def test_xa_commits_lie_between_witness_and_high_under_hot_writes(
    engine: BinlogEngine, one_row: Database
) -> None:
    """On MariaDB they become visible after a consistent snapshot may stand past them."""
    assert expect_between(hot_writes(engine, one_row, XA))
