"""Lines that fall silent without being cut: noticed, named, retryable; long work and slow lines are not
mistaken."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pyarrow as pa
import pytest

from migrator.adapters.sources.mariadb.chunk_reader import MariaChunkReader
from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.chunks.watermark import PostgresWatermarkWriter
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.errors import ConnectionFailed
from migrator.model.chunk import ChunkRequest
from migrator.model.event import MarkKind
from scenarios.proxy.proxy import TcpProxy
from tests.fix_postgres_source import (
    WATERMARK_TABLE,
    chunk_reader,
    log_reader,
    prepared,
    read_until,
    source_of,
)
from tests.integration import binlog_reading
from tests.integration.binlog_engine import MARIADB
from tests.integration.target_bench import Bench, bench, ints, texts
from tests.servers import Database

pytestmark = pytest.mark.integration
SILENCE_S = 0.5
DEADLINE_S = 30.0
TABLE = "CREATE TABLE t (id int PRIMARY KEY, v text)"
SLOW = (
    TABLE,
    "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(3); RETURN NULL; END'",
    "CREATE TRIGGER wait AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION wait()",
)


@pytest.fixture
def proxy(new_pg: Database) -> Iterator[TcpProxy]:
    with TcpProxy(new_pg.host, new_pg.port, kind="postgresql") as running:
        yield running


def rows(*numbers: int, text: str = "x") -> pa.Table:
    return pa.table({**ints("id", *numbers), **texts("v", *[text for _ in numbers])})


def bench_behind(proxy: TcpProxy, database: Database, *statements: str) -> AbstractContextManager[Bench]:
    return bench(database, *statements, port=proxy.port, tls="disable", silence_s=SILENCE_S)


def test_a_half_open_line_to_the_target_is_noticed_and_the_batch_tried_again(
    new_pg: Database, proxy: TcpProxy
) -> None:
    with bench_behind(proxy, new_pg, TABLE) as it:
        it.apply(it.part("t", after=rows(1)))
        part = it.part("t", after=rows(2))
        proxy.half_open()
        began = time.monotonic()
        with pytest.raises(ConnectionFailed) as lost:
            it.apply(part)
        assert lost.value.retryable
        assert time.monotonic() - began < DEADLINE_S
        proxy.heal()
        it.target.open(1)
        it.apply(part)
    assert new_pg.query("SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def test_a_commit_that_went_into_silence_is_looked_up_and_tried_again(
    new_pg: Database, proxy: TcpProxy
) -> None:
    """The line dies for good right before COMMIT; new connections work."""
    with bench_behind(proxy, new_pg, TABLE) as it:
        it.apply(it.part("t", after=rows(1)))
        part = it.part("t", after=rows(2))

        def die() -> None:
            proxy.half_open()
            proxy.heal()

        it.target._step = once("target.moved", die)
        with pytest.raises(ConnectionFailed) as lost:
            it.apply(part)
        assert lost.value.retryable
        assert it.ledger_segment() == 1
        it.apply(part)
        assert it.ledger_segment() == 2
    assert new_pg.query("SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def test_a_commit_that_was_done_in_silence_is_not_done_again(new_pg: Database, proxy: TcpProxy) -> None:
    """COMMIT arrives, its answer doesn't."""
    with bench_behind(proxy, new_pg, TABLE) as it:
        it.apply(it.part("t", after=rows(1)))
        part = it.part("t", after=rows(2))
        silence = proxy.reset_around_commit("after", silent=True)
        it.apply(part)  # no error: the ledger says that it happened
        assert silence.fired
        assert it.ledger_segment() == 2
        it.apply(it.part("t", after=rows(3)))
    assert new_pg.query("SELECT id FROM t ORDER BY id") == [(1,), (2,), (3,)]


def once(point: str, do: Callable[[], object]) -> Callable[[str], None]:
    """A step hook that does something when a point is reached for the first time."""
    left = [do]

    def step(name: str) -> None:
        if name == point and left:
            left.pop()()

    return step


@pytest.mark.slow
def test_a_statement_that_takes_long_is_waited_for(new_pg: Database, proxy: TcpProxy) -> None:
    with bench_behind(proxy, new_pg, *SLOW) as it:
        began = time.monotonic()
        it.apply(it.part("t", after=rows(1)))
        assert time.monotonic() - began >= 3
    assert new_pg.query("SELECT id FROM t") == [(1,)]


@pytest.mark.slow
def test_a_slow_line_is_not_taken_for_a_dead_one(new_pg: Database, proxy: TcpProxy) -> None:
    """The server sees none of a COPY's message before all of it is there; that bytes go out is sign enough."""
    silence_s = 2 * SILENCE_S
    with bench(new_pg, TABLE, port=proxy.port, tls="disable", silence_s=silence_s) as it:
        it.apply(it.part("t", after=rows(0)))
        proxy.throttle(500_000)
        began = time.monotonic()
        it.apply(it.part("t", after=rows(*range(1, 2001), text="x" * 1500)))
        assert time.monotonic() - began > 4 * silence_s
    assert new_pg.query("SELECT count(*) FROM t") == [(2001,)]


# -- a PostgreSQL source
# --------------------------------------------------------------------------------------------

SOURCE_TABLE = (
    "CREATE TABLE s (id int PRIMARY KEY, v text)",
    "ALTER TABLE s REPLICA IDENTITY FULL",
    "INSERT INTO s SELECT n, repeat('x', 1500) FROM generate_series(1, 2000) n",
)


@pytest.fixture
def source_proxy(old_pg: Database) -> Iterator[TcpProxy]:
    old_pg.execute(*SOURCE_TABLE, *WATERMARK_TABLE)
    with TcpProxy(old_pg.host, old_pg.port, kind="postgresql") as running:
        yield running


def silent_source(database: Database, proxy: TcpProxy, silence_s: float = SILENCE_S) -> PostgresSource:
    return source_of(database, port=proxy.port, tls="disable", silence_s=silence_s)


def expect_silence(ask: Callable[[], object]) -> None:
    began = time.monotonic()
    with pytest.raises(ConnectionFailed) as lost:
        ask()
    assert lost.value.retryable
    assert time.monotonic() - began < DEADLINE_S


def test_chunks_and_witnesses_end_when_the_line_falls_silent(
    old_pg: Database, source_proxy: TcpProxy
) -> None:
    source = silent_source(old_pg, source_proxy)
    (schema,) = PostgresCatalog(source).tables(["s"])
    request = ChunkRequest(1, schema.id, None, 10)
    with chunk_reader(source) as reader:
        assert reader.read(request, schema).row_count == 10
        for ask in (lambda: reader.read(request, schema), reader.witness):
            source_proxy.half_open()
            expect_silence(ask)
            source_proxy.heal()
            assert reader.read(request, schema).row_count == 10


def test_a_chunk_over_a_slow_line_is_waited_for(old_pg: Database, source_proxy: TcpProxy) -> None:
    source = silent_source(old_pg, source_proxy)
    (schema,) = PostgresCatalog(source).tables(["s"])
    with chunk_reader(source) as reader:
        source_proxy.throttle(800_000)
        chunk = reader.read(ChunkRequest(1, schema.id, None, 5000), schema)
    assert chunk.row_count == 2000
    assert chunk.elapsed_s > 4 * SILENCE_S


def test_a_chunk_that_waits_for_a_lock_is_waited_for(old_pg: Database, source_proxy: TcpProxy) -> None:
    source = silent_source(old_pg, source_proxy)
    (schema,) = PostgresCatalog(source).tables(["s"])
    with chunk_reader(source) as reader, old_pg.connect(autocommit=False) as other:
        reader.witness()
        other.execute("LOCK TABLE s IN ACCESS EXCLUSIVE MODE")
        release = threading.Timer(6 * SILENCE_S, other.rollback)
        release.start()
        chunk = reader.read(ChunkRequest(1, schema.id, None, 10), schema)
        release.join()
    assert chunk.elapsed_s > 4 * SILENCE_S


def test_watermarks_and_the_log_end_when_the_line_falls_silent(
    old_pg: Database, source_proxy: TcpProxy
) -> None:
    source = silent_source(old_pg, source_proxy)
    schemas = prepared(source, "s")
    marks = PostgresWatermarkWriter(source)
    marks.write("1", MarkKind.LOW)
    with log_reader(source, schemas) as log:
        source_proxy.half_open()
        expect_silence(lambda: marks.write("2", MarkKind.LOW))
        expect_silence(lambda: read_until(log, lambda _: False))
        expect_silence(lambda: log.start(None))
        source_proxy.heal()
        marks.write("3", MarkKind.LOW)
    marks.close()
    assert old_pg.query("SELECT token FROM migrator.watermark") == [("3",)]


# -- a MariaDB source
# -----------------------------------------------------------------------------------------------


def test_a_mariadb_source_that_falls_silent_is_noticed(old_maria: Database) -> None:
    old_maria.execute("CREATE TABLE s (id int PRIMARY KEY, v text)", "INSERT INTO s VALUES (1, 'x')")
    with TcpProxy(old_maria.host, old_maria.port, kind="mariadb") as proxy:
        source = binlog_reading.source_of(old_maria, port=proxy.port, silence_s=SILENCE_S)
        log, (schema,) = MARIADB.started(source, "s")
        reader = MariaChunkReader(source)
        request = ChunkRequest(1, schema.id, None, 10)
        assert reader.read(request, schema).row_count == 1
        proxy.half_open()
        expect_silence(lambda: binlog_reading.read_until(log, lambda _: False))
        expect_silence(lambda: reader.read(request, schema))
        proxy.heal()
        assert reader.read(request, schema).row_count == 1
        reader.close()
        log.close()
