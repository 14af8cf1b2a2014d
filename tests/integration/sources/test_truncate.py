"""TRUNCATE on real servers: in its place of the log, in any spelling, and while the table is being dumped."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from migrator.core.capture import Capture, EmitChunk
from migrator.core.dump import DumpPlan
from migrator.model.chunk import Chunk
from migrator.model.event import Operation
from migrator.model.limits import CaptureLimits
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.ports.eventlog import Batch
from migrator.run.capture.steps import _drop_keys
from migrator.run.failure import Stopping
from tests.integration.binlog_reading import Read, read_to
from tests.integration.capturing import Capturing, Killed, capturing
from tests.servers import Database

pytestmark = pytest.mark.integration

LIMITS = CaptureLimits(chunk_rows=20, chunk_rows_min=20, chunk_rows_max=20, dump_workers=2, linger_s=0.01)
TABLES = ("t", "other")


@pytest.fixture(params=["old_pg", "old_maria", "old_mysql"])
def old(request: pytest.FixtureRequest) -> Database:
    database: Database = request.getfixturevalue(request.param)
    for table in TABLES:
        database.execute(f"CREATE TABLE {table} (k int PRIMARY KEY, v varchar(20))")
        if database.kind == "postgresql":
            database.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
    return database


def rows(first: int, last: int) -> str:
    return ", ".join(f"({number}, 'v{number}')" for number in range(first, last + 1))


def story(read: Read) -> list[tuple[str, str, str | None]]:
    """Kind, table, and key of every change."""
    return [
        (change.operation.value[:1], change.table.name, change.after[0] if change.after else None)  # type: ignore[misc]
        for change in read.changes()
    ]


SPELLINGS = {
    "postgresql": (
        "BEGIN; INSERT INTO t VALUES (2, 'b'); TRUNCATE \"t\", other; INSERT INTO t VALUES (3, 'c'); COMMIT",
        "TRUNCATE aside RESTART IDENTITY CASCADE",
    ),
    "mariadb": (
        "INSERT INTO t VALUES (2, 'b')",
        "/* a comment; TRUNCATE x */ TRUNCATE -- more\n TABLE `t` /* nowait */",
        "TRUNCATE other",
        "INSERT INTO t VALUES (3, 'c')",
        "TRUNCATE TABLE aside",
    ),
}
SPELLINGS["mysql"] = SPELLINGS["mariadb"]


def test_it_comes_in_its_place_whatever_it_is_spelt_like(old: Database) -> None:
    old.execute("CREATE TABLE aside (k int PRIMARY KEY)")
    captured = capturing(old, list(TABLES), LIMITS)
    reader = captured.log_reader()
    reader.start(None)
    old.execute("INSERT INTO t VALUES (1, 'a')", *SPELLINGS[old.kind])
    read = read_to(reader, captured.catalog.position())
    reader.close()
    assert story(read) == [
        ("i", "t", "1"),
        ("i", "t", "2"),
        ("t", "t", None),
        ("t", "other", None),
        ("i", "t", "3"),
    ]
    places = [
        (part.position.order, part.first_index + index)
        for part in read.parts()
        for index in range(part.size())
    ]
    assert places == sorted(set(places)), "each has a version of its own"


def test_from_another_database_it_means_the_table_that_it_names(old: Database) -> None:
    if old.kind == "postgresql":
        pytest.skip("a session of PostgreSQL sees one database")
    captured = capturing(old, ["t"], LIMITS)
    reader = captured.log_reader()
    reader.start(None)
    aside = f"{old.database[:50]}_aside"
    old.execute(
        f"CREATE DATABASE {aside}",
        f"CREATE TABLE {aside}.t (k int PRIMARY KEY)",
        f"USE {aside}",
        "TRUNCATE t",
        f"TRUNCATE `{old.database}` . `t`",
        f"DROP DATABASE {aside}",
    )
    assert story(read_to(reader, captured.catalog.position())) == [("t", "t", None)]
    reader.close()


def test_in_a_streamed_transaction_and_taken_back_by_a_savepoint(old_pg: Database) -> None:
    old_pg.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t VALUES (0, 'before')",
    )
    captured = capturing(old_pg, ["t"], LIMITS)
    reader = captured.log_reader()
    reader.start(None)
    with old_pg.connect(autocommit=False) as connection:
        connection.execute("SET LOCAL logical_decoding_work_mem = '64kB'")
        connection.execute("SAVEPOINT a")
        connection.execute("TRUNCATE t")
        connection.execute("ROLLBACK TO SAVEPOINT a")
        connection.execute("INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, 3000) n")
        connection.execute("TRUNCATE t")
        connection.execute("INSERT INTO t SELECT n, repeat('y', 100) FROM generate_series(1, 3000) n")
        connection.commit()
    kinds = [change.operation for change in read_to(reader, captured.catalog.position()).changes()]
    reader.close()
    insert = [Operation.INSERT] * 3000
    assert kinds == [*insert, Operation.TRUNCATE, *insert]


def test_of_partitions_the_log_has_the_one_of_the_whole_table_only(old_pg: Database) -> None:
    """PostgreSQL sends nothing of a partition's own TRUNCATE where changes are published by root."""
    old_pg.execute(
        "CREATE TABLE p (k int PRIMARY KEY, v text) PARTITION BY RANGE (k)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100)",
        "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200)",
        *(f"ALTER TABLE {name} REPLICA IDENTITY FULL" for name in ("p", "p1", "p2")),
    )
    captured = capturing(old_pg, ["p"], LIMITS)
    reader = captured.log_reader()
    reader.start(None)
    old_pg.execute("TRUNCATE p1", "INSERT INTO p VALUES (1, 'a'), (101, 'b')", "TRUNCATE p")
    read = read_to(reader, captured.catalog.position())
    reader.close()
    assert story(read) == [("i", "p", "1"), ("i", "p", "101"), ("t", "p", None)]


def placed(captured: Capturing, chunk: Chunk, begin: Position, read: Read) -> list[EmitChunk]:
    """What the core makes of a chunk that was read before these records came."""
    (table,) = captured.schemas
    plan = DumpPlan([TableDump(table)], 1000)
    core = Capture(Checkpoint(begin, dumps=plan.dumps()), captured.schemas, plan, _drop_keys)
    request = core.next_request()
    assert request is not None
    for record in read.records:
        core.on_record(record)
    outputs = core.on_chunk(chunk)
    return [each for each in outputs if isinstance(each, EmitChunk)]


def test_a_chunk_read_before_it_is_read_again_and_one_read_after_it_is_taken(old: Database) -> None:
    captured = capturing(old, ["t"], LIMITS)
    log, chunks = captured.log_reader(), captured.chunk_reader()
    begin = log.start(None)
    (schema,) = captured.schemas.values()
    old.execute("INSERT INTO t VALUES (0, 'x')", f"INSERT INTO t VALUES {rows(1, 9)}")
    plan = DumpPlan([TableDump(schema.id)], 1000)
    request = plan.next_request()
    assert request is not None
    early = chunks.read(request, schema)
    old.execute("TRUNCATE t", "INSERT INTO t VALUES (5, 'new')")
    late = chunks.read(request, schema)
    read = read_to(log, captured.catalog.position())
    log.close()
    chunks.close()
    assert (early.row_count, late.row_count) == (10, 1)
    assert placed(captured, early, begin, read) == []
    assert [each.kept_rows for each in placed(captured, late, begin, read)] == [1]


@contextmanager
def writing(old: Database, limit: int = 100_000) -> Iterator[list[int]]:
    """A writer in all of the table, and one that empties it again and again; yields how often."""
    stopping, emptied = Stopping(), [0]

    def write() -> None:
        number = 0
        with old.connect() as connection, connection.cursor() as cursor:
            while not stopping.requested():
                number += 1
                key = number * 37 % 500
                cursor.execute(f"DELETE FROM t WHERE k = {key}")
                cursor.execute(f"INSERT INTO t VALUES ({key}, 'w{number}')")
                cursor.execute(f"UPDATE t SET v = 'u{number}' WHERE k < {number % 50}")

    def empty() -> None:
        with old.connect() as connection, connection.cursor() as cursor:
            while not stopping.wait(0.15) and emptied[0] < limit:
                cursor.execute("TRUNCATE t")
                cursor.execute(f"INSERT INTO t VALUES {rows(500 + emptied[0], 620 + emptied[0])}")
                emptied[0] += 1

    threads = [stopping.thread(each.__name__, each) for each in (write, empty)]
    try:
        yield emptied
    finally:
        stopping.request()
        for thread in threads:
            thread.join(20)
        stopping.raise_failure()


@pytest.mark.each_value
@pytest.mark.parametrize("placement", ["witness", "watermark"])
def test_while_it_is_dumped_written_and_killed_the_log_amounts_to_the_source(
    old: Database, placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old.execute(f"INSERT INTO t VALUES {rows(0, 400)}", f"INSERT INTO other VALUES {rows(1, 50)}")
    captured = capturing(old, list(TABLES), LIMITS, placement)
    with writing(old) as emptied:
        for point in ("capture.emitted", "capture.appended"):
            left = [3]

            def kill(reached: str, point: str = point, left: list[int] = left) -> None:
                left[0] -= reached == point
                if left[0] < 0:
                    raise Killed(point)

            with pytest.raises(Killed):
                captured.run(lambda: False, kill)
        captured.run(captured.dumped)
        seen = emptied[0]
        wait = threading.Event()
        captured.run(lambda: emptied[0] >= seen + 3 or wait.wait(0.01))
    captured.run(captured.caught_up())
    truth = {table: captured.source(table) for table in captured.schemas}
    assert emptied[0] > 3
    assert captured.held() == truth
    monkeypatch.setattr(Batch, "emptied", lambda batch: set())
    assert captured.held() != truth, "if nobody looked at it, rows would stay"
