"""Thousands of chunks of a table whose few keys never rest: no chunk row may come after a newer event of its key.

The gap between log and visibility is held open: on PostgreSQL by a synchronous standby that answers late, on
MySQL by the delay of its group commit, on MariaDB by semi-synchronous replication without a replica around
every dump. So the plain window (``tests/integration/sources/plain_watermark.py``) delivers many stale rows in far
fewer chunks.

``MIGRATOR_STRESS_CHUNKS`` says how many chunks; ``make stress`` asks for 10,000 of each engine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from typing import Any

import pytest

from migrator.adapters.sources.postgres.chunks.chunk_reader import PostgresChunkReader
from migrator.adapters.sources.postgres.chunks.watermark import PostgresWatermarkWriter
from migrator.adapters.sources.postgres.log.log_reader import PostgresLogReader
from migrator.adapters.sources.postgres.settings import WATERMARK, WITNESS
from scenarios.database import Database as Place
from scenarios.simulation.setup import patched
from scenarios.torture.standby import DistantStandby
from tests import fix_postgres_source as postgres_source
from tests.integration.binlog_engine import MYSQL, BinlogEngine
from tests.integration.binlog_reading import source_of
from tests.integration.sources.hot_dump import KEYS, Deliveries, HotDump, dump_until, hot_writers
from tests.integration.sources.plain_watermark import WRITTEN_MARKS_ONLY, NotingLog, plain_positions
from tests.servers import Database, PostgresServer

pytestmark = pytest.mark.integration

CHUNKS = int(os.environ.get("MIGRATOR_STRESS_CHUNKS", "400"))
MANY = max(20, CHUNKS // 50)
"""Stale rows that the plain window must deliver, in no more chunks than the product has to read."""
_STANDBY_DELAY_S = 0.003
_GROUP_DELAY_US = 3000
"""Longer than a chunk read takes."""


def enough(delivered: Deliveries) -> bool:
    return delivered.chunks >= CHUNKS


def some(delivered: Deliveries) -> bool:
    """For what is not a source's default."""
    return delivered.chunks >= CHUNKS / 5


def enough_stale(delivered: Deliveries) -> bool:
    return delivered.stale >= MANY or delivered.chunks >= CHUNKS


def expect_no_stale(what: str, delivered: Deliveries) -> None:
    """Every chunk row was the last delivered state of its key, and the race was there to be lost."""
    print(f"\n{what}: {delivered}")
    assert (delivered.stale, delivered.early) == (0, 0), delivered
    assert delivered.dropped > delivered.chunks / 10, "hardly a row was ever overtaken: nothing was shown"


def expect_stale(what: str, delivered: Deliveries) -> None:
    """The plain window fails under the same load."""
    print(f"\n{what}, plain window: {delivered}")
    assert delivered.stale >= MANY, delivered


# -- PostgreSQL


@pytest.fixture
def hot_pg(postgres: PostgresServer, old_pg: Database) -> Iterator[Database]:
    """Writers' commits wait for a standby that answers late; those of everybody else don't."""
    old_pg.execute(
        "CREATE TABLE hot (k int PRIMARY KEY, v bigint NOT NULL)",
        "ALTER TABLE hot REPLICA IDENTITY FULL",
        f"INSERT INTO hot SELECT g, 0 FROM generate_series(1, {KEYS}) g",
        *postgres_source.WATERMARK_TABLE,
        "CREATE PROCEDURE churn(n int) LANGUAGE plpgsql AS $$ DECLARE key int; BEGIN FOR i IN 1..n LOOP"
        f" key := 1 + floor(random() * {KEYS}); UPDATE hot SET v = v + 1 WHERE k = key; COMMIT;"
        " END LOOP; END $$",
        f'ALTER DATABASE "{old_pg.database}" SET synchronous_commit = local',
    )
    admin = postgres.admin
    place = Place("postgresql", admin.host, admin.port, admin.database, admin.user, admin.password)
    with DistantStandby(place, _STANDBY_DELAY_S):
        yield old_pg


def postgres_deliveries(
    database: Database, placement: str, until: Callable[[Deliveries], bool]
) -> Deliveries:
    source = postgres_source.source_of(database, placement=placement)
    (schema,) = postgres_source.prepared(source, "hot")
    with ExitStack() as stack:
        log = stack.enter_context(closing(PostgresLogReader(source, [schema])))
        chunks = stack.enter_context(closing(PostgresChunkReader(source)))
        marks = (
            stack.enter_context(closing(PostgresWatermarkWriter(source))) if placement == WATERMARK else None
        )
        dump = HotDump(log, chunks, schema, log.start(None), marks)
        with hot_writers(database, "SET synchronous_commit = on"):
            return dump_until(dump, until, nullcontext)


@pytest.mark.parametrize(("placement", "until"), [(WITNESS, enough), (WATERMARK, some)])
def test_no_stale_row_from_postgres(
    hot_pg: Database, placement: str, until: Callable[[Deliveries], bool]
) -> None:
    expect_no_stale(f"PostgreSQL, {placement}", postgres_deliveries(hot_pg, placement, until))


def test_the_plain_window_delivers_many_from_postgres(hot_pg: Database) -> None:
    with patched(WRITTEN_MARKS_ONLY):
        expect_stale("PostgreSQL", postgres_deliveries(hot_pg, WATERMARK, enough_stale))


# -- MySQL and MariaDB


@contextmanager
def settings(database: Database, **values: object) -> Iterator[None]:
    """Global variables that are as before afterwards."""
    before = {name: database.query(f"SELECT @@GLOBAL.{name}")[0][0] for name in values}
    try:
        database.execute(*(f"SET GLOBAL {name} = {value}" for name, value in values.items()))
        yield
    finally:
        database.execute(*(f"SET GLOBAL {name} = {value!r}" for name, value in before.items()))


@pytest.fixture
def hot_binlog(engine: BinlogEngine, spare_database: Database) -> Iterator[Database]:
    """Commits of MySQL rest between log and visibility; those of MariaDB do so under ``held_commits``."""
    spare_database.execute(
        "CREATE TABLE hot (k int PRIMARY KEY, v bigint NOT NULL)",
        f"INSERT INTO hot VALUES {', '.join(f'({key}, 0)' for key in range(1, KEYS + 1))}",
        "CREATE PROCEDURE churn(n int) BEGIN DECLARE i, hit int DEFAULT 0; WHILE i < n DO"
        f" SET hit = 1 + FLOOR(RAND() * {KEYS}), i = i + 1; UPDATE hot SET v = v + 1 WHERE k = hit;"
        " END WHILE; END",
    )
    if engine is MYSQL:
        with settings(spare_database, sync_binlog=0, binlog_group_commit_sync_delay=_GROUP_DELAY_US):
            yield spare_database
    else:
        with settings(
            spare_database,
            rpl_semi_sync_master_timeout=600_000,
            rpl_semi_sync_master_wait_point="'AFTER_SYNC'",
            rpl_semi_sync_master_enabled=0,
        ):
            yield spare_database


@contextmanager
def held_commits(control: Any) -> Iterator[None]:
    """Commits that are logged don't become visible (MariaDB)."""
    with control.cursor() as cursor:
        cursor.execute("SET GLOBAL rpl_semi_sync_master_enabled = 1")
        try:
            yield
        finally:
            cursor.execute("SET GLOBAL rpl_semi_sync_master_enabled = 0")


def binlog_deliveries(
    engine: BinlogEngine, database: Database, until: Callable[[Deliveries], bool], plain: bool = False
) -> Deliveries:
    source = source_of(database)
    tables = engine.catalog(source).tables(["hot"])
    noting = NotingLog(engine.log_reader(source, tables))
    reader = plain_positions(engine.chunk_reader, noting.orders) if plain else engine.chunk_reader
    with (
        closing(noting) as log,
        closing(reader(source)) as chunks,
        closing(database.connect()) as control,
    ):
        dump = HotDump(log, chunks, tables[0], log.start(None))
        with hot_writers(database):
            return dump_until(dump, until, nullcontext if engine is MYSQL else lambda: held_commits(control))


def test_no_stale_row_from_a_binlog(engine: BinlogEngine, hot_binlog: Database) -> None:
    expect_no_stale(engine.kind, binlog_deliveries(engine, hot_binlog, enough))


@pytest.mark.parametrize("engine", [MYSQL], indirect=True, ids=["mysql"])
def test_no_stale_row_with_commits_out_of_order(engine: BinlogEngine, hot_binlog: Database) -> None:
    with settings(hot_binlog, binlog_order_commits=0):
        expect_no_stale("mysql, binlog_order_commits=OFF", binlog_deliveries(engine, hot_binlog, some))


def test_the_plain_window_delivers_many_from_a_binlog(engine: BinlogEngine, hot_binlog: Database) -> None:
    expect_stale(engine.kind, binlog_deliveries(engine, hot_binlog, enough_stale, plain=True))
