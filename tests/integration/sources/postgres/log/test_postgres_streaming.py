"""Transactions that the server streams before they end: held until their outcome, and the same as unstreamed ones.

``debug_logical_replication_streaming = immediate`` makes the server stream every change at once (16 and later), so
that a handful of rows does what millions do otherwise.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.log.log_reader import PostgresLogReader
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.model.event import LogRecord, Row, SchemaChange, TransactionPart
from migrator.model.position import Position
from migrator.model.table import TableSchema
from tests.fix_postgres_history import history
from tests.fix_postgres_source import (
    changes,
    log_reader,
    parts,
    prepared,
    reached,
    read_to,
    read_until,
    source_of,
    stream_at_once,
)
from tests.servers import Database

pytestmark = pytest.mark.integration


@pytest.fixture
def at_once(old_pg: Database) -> Database:
    """A table ``t`` in a database of which every change is streamed at once."""
    old_pg.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "ALTER TABLE t ALTER v SET STORAGE EXTERNAL",
    )
    stream_at_once(old_pg)
    return old_pg


def statistics(database: Database, source: PostgresSource) -> tuple[int, int]:
    """Transactions that were (streamed, spilled to the server's disk), as far as the server has counted."""
    ((streamed, spilled),) = database.query(
        "SELECT stream_txns, spill_txns FROM pg_stat_replication_slots WHERE slot_name = %s", [source.slot]
    )
    return int(streamed), int(spilled)


def streamed_so_far(database: Database, source: PostgresSource) -> int:
    """Of a slot whose reader has just ended."""
    database.execute("SELECT pg_stat_force_next_flush()")
    return statistics(database, source)[0]


def flushed(database: Database, source: PostgresSource) -> Position:
    """The log's end, made readable: what an open transaction wrote last is not flushed by itself."""
    database.execute("SELECT pg_logical_emit_message(true, 'flush', '')")
    return PostgresCatalog(source).position()


def story(source: PostgresSource, schemas: list[TableSchema]) -> list[tuple[object, ...]]:
    """What the log holds from the slot's place on, in parts as they come."""
    with log_reader(source, schemas) as reader:
        records = read_to(reader, PostgresCatalog(source).position())
    told: list[tuple[object, ...]] = []
    for record in records:
        if isinstance(record, TransactionPart):
            told.append(
                (
                    record.id,
                    record.position,
                    record.committed_at_us,
                    record.first_index,
                    record.changes,
                    record.last,
                )
            )
        elif isinstance(record, SchemaChange):
            told.append((record.schema,))
    return told


@pytest.mark.parametrize("seed", range(3))
def test_streamed_and_unstreamed_reading_give_the_same_log(at_once: Database, seed: int) -> None:
    source = source_of(at_once, part_rows=7)
    schemas = prepared(source, "t")
    history(at_once, seed)
    unstreamed = story(replace(source, streaming=False), schemas)
    assert streamed_so_far(at_once, source) == 0
    streamed = story(source, schemas)
    assert streamed == unstreamed
    assert len({told[1] for told in streamed}) > 5
    assert streamed_so_far(at_once, source) > 5


def test_nothing_comes_before_the_commit_and_nothing_after_a_rollback(at_once: Database) -> None:
    source = source_of(at_once)
    schemas = prepared(source, "t")
    kept, undone = at_once.connect(autocommit=False), at_once.connect(autocommit=False)
    with log_reader(source, schemas) as reader:
        kept.execute("INSERT INTO t SELECT g, 'kept' FROM generate_series(1, 5) g")
        undone.execute("INSERT INTO t SELECT g, 'undone' FROM generate_series(11, 15) g")
        kept.execute("SAVEPOINT s")
        kept.execute("INSERT INTO t VALUES (6, 'rolled back')")
        kept.execute("ROLLBACK TO s")
        kept.execute("INSERT INTO t VALUES (7, 'kept')")
        at_once.execute("INSERT INTO t VALUES (20, 'small')")
        before = read_to(reader, PostgresCatalog(source).position())
        assert [change.after for change in changes(before)] == [("20", "small")]
        undone.rollback()
        kept.commit()
        (part,) = parts(read_to(reader, PostgresCatalog(source).position()))
    assert [change.after[0] for change in part.changes if change.after] == ["1", "2", "3", "4", "5", "7"]
    assert streamed_so_far(at_once, source) >= 2
    kept.close()
    undone.close()


def test_a_schema_change_inside_a_streamed_transaction_stays_in_its_place(at_once: Database) -> None:
    source = source_of(at_once)
    schemas = prepared(source, "t")
    connection = at_once.connect(autocommit=False)
    with log_reader(source, schemas) as reader:
        connection.execute("INSERT INTO t VALUES (1, 'x')")
        connection.execute("SAVEPOINT s")
        connection.execute("ALTER TABLE t ADD gone int")
        connection.execute("INSERT INTO t VALUES (2, 'y', 2)")
        connection.execute("ROLLBACK TO s")
        connection.execute("INSERT INTO t VALUES (2, 'y')")
        connection.execute("ALTER TABLE t ADD n int")
        connection.execute("INSERT INTO t VALUES (3, 'z', 3)")
        assert changes(read_to(reader, flushed(at_once, source))) == []
        connection.commit()
        at_once.execute("INSERT INTO t VALUES (4, 'a', 4)")
        records = read_to(reader, PostgresCatalog(source).position())
    told: list[Row] = []
    for record in records:
        if isinstance(record, SchemaChange):
            told.append(record.schema.names())
        elif isinstance(record, TransactionPart):
            told += [change.after or () for change in record.changes]
    assert told == [("1", "x"), ("2", "y"), ("k", "v", "n"), ("3", "z", "3"), ("4", "a", "4")]
    connection.close()


def test_a_reader_that_ends_amid_a_streamed_transaction_gets_it_again_whole(at_once: Database) -> None:
    source = source_of(at_once, part_rows=2)
    schemas = prepared(source, "t")
    connection = at_once.connect(autocommit=False)
    connection.execute("INSERT INTO t SELECT g, 'x' FROM generate_series(1, 5) g")
    with log_reader(source, schemas) as reader:
        at_once.execute("INSERT INTO t VALUES (20, 'small')")
        (small,) = parts(read_until(reader, lambda records: bool(parts(records))))
        reader.acknowledge(small.position)
    connection.execute("INSERT INTO t VALUES (6, 'x')")
    connection.commit()
    with log_reader(source, schemas, small.position) as reader:
        first = parts(read_until(reader, lambda records: bool(parts(records))))[0]
        assert not first.last
    with log_reader(source, schemas, small.position) as reader:  # ended again, while it was being handed on
        again = parts(read_to(reader, PostgresCatalog(source).position()))
    assert again[0] == first
    assert [change.after[0] for part in again for change in part.changes if change.after] == list("123456")
    connection.close()


def test_reading_returns_in_time_while_much_streams_in_and_progress_goes_on(at_once: Database) -> None:
    source = source_of(at_once)
    schemas = prepared(source, "t")
    connection = at_once.connect(autocommit=False)
    reader = PostgresLogReader(source, schemas)
    reader.start(None)
    try:
        connection.execute("INSERT INTO t SELECT g, repeat('x', 500) FROM generate_series(1, 20000) g")
        end = flushed(at_once, source)
        records: list[LogRecord] = []
        reads = 0
        while not reached(records, end):
            records += reader.read(0.0)
            reads += 1
        assert reads > 20  # one bite of the stream each
        assert changes(records) == []
    finally:
        connection.rollback()
        connection.close()
        reader.close()


@pytest.mark.parametrize("streaming", [True, False])
def test_a_transaction_larger_than_the_servers_memory_is_streamed_instead_of_spilled(
    old_pg: Database, streaming: bool
) -> None:
    old_pg.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        f"ALTER DATABASE \"{old_pg.database}\" SET logical_decoding_work_mem = '64kB'",
    )
    source = source_of(old_pg, streaming=streaming)
    schemas = prepared(source, "t")
    old_pg.execute("INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, 5000) g")
    with log_reader(source, schemas) as reader:
        assert len(changes(read_to(reader, PostgresCatalog(source).position()))) == 5000
    streamed, spilled = statistics(old_pg, source)
    assert (streamed > 0, spilled > 0) == (streaming, not streaming)
