"""The log reader on a real server: cuts, parts, progress, transactions of every kind, watermarks, and refusals."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.chunks.watermark import mark_writer
from migrator.adapters.sources.postgres.log.log_reader import PostgresLogReader
from migrator.adapters.sources.postgres.lsn import format_lsn
from migrator.adapters.sources.postgres.settings import MESSAGE, WATERMARK
from migrator.errors import ConnectionFailed, SourceError
from migrator.model.event import LogProgress, LogRecord, MarkKind, Operation, TransactionPart, WatermarkSeen
from migrator.model.position import Position
from tests.fix_postgres_source import (
    DEADLINE_S,
    WATERMARK_TABLE,
    changes,
    log_reader,
    parts,
    prepared,
    read_to,
    read_until,
    source_of,
    stream_at_once,
    wait_for,
)
from tests.servers import Database

pytestmark = pytest.mark.integration

T = ("CREATE TABLE t (k int PRIMARY KEY, v text)", "ALTER TABLE t REPLICA IDENTITY FULL")


def table(database: Database, *more: str) -> None:
    database.execute(*T, *more)


def test_a_cut_at_any_record_loses_nothing_and_repeats_nothing(old_pg: Database) -> None:
    table(old_pg)
    source = source_of(old_pg, part_rows=4)
    schemas = prepared(source, "t")
    for n in range(12):
        old_pg.execute(f"INSERT INTO t SELECT {n} * 100 + g, 'x' FROM generate_series(1, {n % 6 + 1}) g")
    end = PostgresCatalog(source).position()
    with log_reader(source, schemas) as reader:
        whole = read_to(reader, end)
    expected = [(part.position.order, part.first_index, part.changes) for part in parts(whole)]
    assert len({order for order, _, _ in expected}) == 12
    assert len(expected) > 12  # some came in parts
    resume_at = [None] + [
        record.position
        for record in whole
        if isinstance(record, LogProgress) or (isinstance(record, TransactionPart) and record.last)
    ]
    for after in resume_at:
        with log_reader(source, schemas, after) as reader:
            again = read_to(reader, end)
        order = -1 if after is None else after.order
        assert [(part.position.order, part.first_index, part.changes) for part in parts(again)] == [
            part for part in expected if part[0] > order
        ]


def test_acknowledged_work_is_not_sent_again_even_mid_stream(old_pg: Database) -> None:
    table(old_pg)
    source = source_of(old_pg, part_rows=10)
    schemas = prepared(source, "t")
    seen: list[str | bytes | None] = []
    for n in range(40):
        old_pg.execute(f"INSERT INTO t VALUES ({n}, 'x')")
    after: Position | None = None
    reconnects = 0
    while len(seen) < 40:  # close after the first bite each time, with unread messages under way
        with log_reader(source, schemas, after) as reader:
            records = read_until(reader, lambda records: bool(changes(records)))
            for part in parts(records):
                seen += [change.after[0] for change in part.changes if change.after]
                after = part.position
            assert after is not None
            reader.acknowledge(after)
        reconnects += 1
    assert seen == [str(n) for n in range(40)]
    assert reconnects > 1
    assert after is not None
    lsn = format_lsn(after.order)  # the last one is kept: it proves which log this is
    slot = f"FROM pg_replication_slots WHERE slot_name = '{source.slot}'"
    wait_for(old_pg, f"SELECT confirmed_flush_lsn >= '{lsn}' {slot}")


def test_a_large_transaction_comes_in_parts_of_bounded_size(old_pg: Database) -> None:
    table(old_pg)
    source = source_of(old_pg, part_rows=1000)
    schemas = prepared(source, "t")
    old_pg.execute(
        "INSERT INTO t SELECT g, 'x' FROM generate_series(1, 5500) g", "INSERT INTO t VALUES (0, 'y')"
    )
    with log_reader(source, schemas) as reader:
        *large, small = parts(read_to(reader, PostgresCatalog(source).position()))
    assert [part.first_index for part in large] == [0, 1000, 2000, 3000, 4000, 5000]
    assert [len(part.changes) for part in large] == [1000] * 5 + [500]
    assert [part.last for part in large] == [False] * 5 + [True]
    assert len({part.position for part in large}) == 1
    assert len({part.id for part in large}) == 1
    assert (small.first_index, len(small.changes), small.last) == (0, 1, True)
    assert small.position > large[0].position
    with log_reader(source, schemas, large[0].position) as reader:  # its order says: seen, whole
        again = parts(read_until(reader, lambda records: bool(parts(records))))
    assert again == [small]


def test_a_part_is_bounded_in_bytes_too(old_pg: Database) -> None:
    table(old_pg)
    source = source_of(old_pg, part_bytes=1_000_000)
    schemas = prepared(source, "t")
    old_pg.execute("INSERT INTO t SELECT g, repeat('x', 300000) FROM generate_series(1, 10) g")
    with log_reader(source, schemas) as reader:
        sizes = [len(part.changes) for part in parts(read_to(reader, PostgresCatalog(source).position()))]
    assert sizes == [4, 4, 2]


def test_progress_on_an_idle_server_and_after_foreign_writes(old_pg: Database) -> None:
    table(old_pg, "CREATE TABLE other (k int)")
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    catalog = PostgresCatalog(source)
    with log_reader(source, schemas) as reader:
        started = time.monotonic()
        assert changes(read_to(reader, catalog.position())) == []
        old_pg.execute("INSERT INTO other SELECT generate_series(1, 1000)")
        records = read_to(reader, catalog.position())
        assert changes(records) == []
        assert all(isinstance(record, LogProgress) for record in records)
        assert time.monotonic() - started < DEADLINE_S / 2
        last = [record.position for record in records if isinstance(record, LogProgress)][-1]
        reader.acknowledge(last)  # the slot moves on although nothing of ours was written
        lsn = last.token.split("@")[0]
        until = time.monotonic() + DEADLINE_S
        slot = f"SELECT confirmed_flush_lsn >= '{lsn}' FROM pg_replication_slots WHERE slot_name = '{source.slot}'"
        while not old_pg.query(slot)[0][0]:
            assert time.monotonic() < until
            reader.read(0.2)


def test_positions_rise_strictly_and_a_keepalive_never_hides_a_commit(old_pg: Database) -> None:
    table(old_pg)
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    catalog = PostgresCatalog(source)
    records: list[LogRecord] = []
    connection = old_pg.connect(autocommit=False)
    exactly_there = 0
    with log_reader(source, schemas) as reader:
        for n in range(60):
            connection.execute("INSERT INTO t VALUES (%s, 'x')", [n])
            old_pg.execute("SELECT pg_logical_emit_message(true, 'flush', '')")
            # Read to the end of the log while the row is written and its commit isn't: the commit record then
            # starts exactly where the keepalive ended.
            records += read_to(reader, catalog.position())
            progress = records[-1]
            assert isinstance(progress, LogProgress)
            connection.commit()
            records += read_until(reader, lambda records: bool(parts(records)))
            exactly_there += parts(records)[-1].position.order == progress.position.order + 1
        records += reader.read(0)
    connection.close()
    assert exactly_there > 0, "no commit record ever started where a keepalive ended"
    orders = [
        record.position.order for record in records if isinstance(record, LogProgress | TransactionPart)
    ]
    assert orders == sorted(set(orders))
    assert [change.after[0] for change in changes(records) if change.after] == [str(n) for n in range(60)]


def test_savepoints_key_updates_and_rollbacks(old_pg: Database) -> None:
    table(old_pg, "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    connection = old_pg.connect(autocommit=False)
    xid = int(connection.execute("SELECT pg_current_xact_id()::text").fetchone()[0])
    connection.execute("UPDATE t SET k = 10 WHERE k = 1")
    connection.execute("SAVEPOINT s")
    connection.execute("DELETE FROM t WHERE k = 2")
    connection.execute("ROLLBACK TO s")
    connection.execute("SAVEPOINT u")
    connection.execute("INSERT INTO t VALUES (3, NULL)")
    connection.execute("RELEASE u")
    connection.execute("UPDATE t SET v = 'B' WHERE k = 2")
    connection.execute("DELETE FROM t WHERE k = 10")
    connection.commit()
    connection.execute("INSERT INTO t VALUES (99, 'never')")
    connection.rollback()
    connection.close()
    with log_reader(source, schemas) as reader:
        (part,) = parts(read_to(reader, PostgresCatalog(source).position()))
    assert part.id == (xid % 2**32,)
    assert abs(part.committed_at_us / 1e6 - time.time()) < 60
    assert [(change.operation, change.before, change.after) for change in part.changes] == [
        (Operation.UPDATE, ("1", "a"), ("10", "a")),
        (Operation.INSERT, None, ("3", None)),
        (Operation.UPDATE, ("2", "b"), ("2", "B")),
        (Operation.DELETE, ("10", "a"), None),
    ]


def test_unchanged_large_columns_come_from_the_before_image(old_pg: Database) -> None:
    large = "md5-" * 5000
    table(
        old_pg,
        "ALTER TABLE t ADD n int, ADD raw bytea, ALTER v SET STORAGE EXTERNAL, ALTER raw SET STORAGE EXTERNAL",
    )
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    old_pg.execute(
        f"INSERT INTO t VALUES (1, '{large}', 1, decode(repeat('00ff', 5000), 'hex'))",
        "UPDATE t SET n = 2",
        "UPDATE t SET k = 5",
    )
    with log_reader(source, schemas) as reader:
        _, update, move = changes(read_to(reader, PostgresCatalog(source).position()))
    raw = b"\x00\xff" * 5000
    assert update.before == ("1", large, "1", raw)
    assert update.after == ("1", large, "2", raw)
    assert move.before == ("1", large, "2", raw)
    assert move.after == ("5", large, "2", raw)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("placement", [WATERMARK, MESSAGE])
def test_watermarks_come_in_log_order_and_carry_no_rows(
    old_pg: Database, placement: str, streamed: bool
) -> None:
    table(old_pg)
    old_pg.execute(*WATERMARK_TABLE)
    if streamed:  # every transaction comes before it ends
        stream_at_once(old_pg)
    source = source_of(old_pg, placement=placement)
    schemas = prepared(source, "t")
    ours, theirs = mark_writer(source), mark_writer(replace(source, migration="another"))
    assert ours is not None
    assert theirs is not None
    our_marks, their_marks = ours(), theirs()
    old_pg.execute("INSERT INTO t VALUES (1, 'before')")
    our_marks.write("token-1", MarkKind.LOW)
    their_marks.write("token-x", MarkKind.LOW)
    old_pg.execute(
        "INSERT INTO t VALUES (2, 'inside')",
        f"SELECT pg_logical_emit_message(true, '{source.slot}', 'said by somebody else')",
        "SELECT pg_logical_emit_message(false, 'other', 'high token-1')",
    )
    our_marks.write("token-1", MarkKind.HIGH)
    old_pg.execute("INSERT INTO t VALUES (3, 'after')")
    our_marks.close()
    their_marks.close()
    with log_reader(source, schemas) as reader:
        records = read_to(reader, PostgresCatalog(source).position())
    story = [
        record.changes[0].after if isinstance(record, TransactionPart) else (record.token, record.kind)
        for record in records
        if isinstance(record, WatermarkSeen | TransactionPart)
    ]
    low, high = ("token-1", MarkKind.LOW), ("token-1", MarkKind.HIGH)
    assert story == [("1", "before"), low, ("2", "inside"), high, ("3", "after")]


def test_an_update_without_its_before_image_names_the_replica_identity(old_pg: Database) -> None:
    table(old_pg, "INSERT INTO t VALUES (1, 'x')")
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    old_pg.execute("ALTER TABLE t REPLICA IDENTITY DEFAULT", "UPDATE t SET v = 'y'")
    with log_reader(source, schemas) as reader, pytest.raises(SourceError) as caught:
        read_until(reader, lambda _: False)
    assert 'ALTER TABLE "public"."t" REPLICA IDENTITY FULL' in caught.value.remedy


def test_a_partitioned_table_is_published_as_its_root(old_pg: Database) -> None:
    old_pg.execute(
        "CREATE TABLE p (k int PRIMARY KEY, v text) PARTITION BY RANGE (k)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100)",
        "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200)",
        *(f"ALTER TABLE {name} REPLICA IDENTITY FULL" for name in ("p", "p1", "p2")),
    )
    source = source_of(old_pg)
    schemas = prepared(source, "p")
    old_pg.execute("INSERT INTO p VALUES (1, 'x'), (150, 'y')", "UPDATE p SET k = 199 WHERE k = 1")
    with log_reader(source, schemas) as reader:
        seen = changes(read_to(reader, PostgresCatalog(source).position()))
    assert {str(change.table) for change in seen} == {"public.p"}
    assert [(change.before, change.after) for change in seen] == [
        (None, ("1", "x")),
        (None, ("150", "y")),
        (("1", "x"), None),  # a move between partitions is a delete and an insert
        (None, ("199", "x")),
    ]


def test_a_second_reader_of_the_slot_is_told_who_holds_it(old_pg: Database) -> None:
    table(old_pg)
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    second = PostgresLogReader(source, schemas)
    with log_reader(source, schemas), pytest.raises(ConnectionFailed, match="in use") as caught:
        second.start(None)
    assert caught.value.retryable
    second.close()


def test_the_end_of_the_stream_is_named_when_it_comes_together_with_rows(old_pg: Database) -> None:
    """libpq tells of the end once, and calls a second question a mistake of the caller."""
    table(old_pg)
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    walsender = f"pid = (SELECT active_pid FROM pg_replication_slots WHERE slot_name = '{source.slot}')"
    with log_reader(source, schemas) as reader:
        old_pg.execute("INSERT INTO t VALUES (1, 'x')")
        ((written,),) = old_pg.query("SELECT pg_current_wal_lsn()")
        wait_for(old_pg, f"SELECT sent_lsn >= '{written}' FROM pg_stat_replication WHERE {walsender}")
        old_pg.execute(f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE {walsender}")
        with pytest.raises(ConnectionFailed) as caught:
            read_until(reader, lambda _: False)
        assert "terminating connection" in caught.value.cause
        wait_for(old_pg, f"SELECT NOT active FROM pg_replication_slots WHERE slot_name = '{source.slot}'")
        reader.start(None)
        (change,) = changes(read_until(reader, lambda records: bool(changes(records))))
    assert change.after == ("1", "x")


def test_a_cut_connection_is_a_retryable_error_and_reading_resumes(old_pg: Database) -> None:
    table(old_pg)
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    old_pg.execute("INSERT INTO t VALUES (1, 'x')")
    reader = PostgresLogReader(source, schemas)
    reader.start(None)
    (part,) = parts(read_until(reader, lambda records: bool(parts(records))))
    old_pg.execute(
        f"SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '{source.slot}'"
    )
    with pytest.raises(ConnectionFailed) as caught:
        read_until(reader, lambda _: False)
    assert caught.value.retryable
    old_pg.execute("INSERT INTO t VALUES (2, 'y')")
    wait_for(old_pg, f"SELECT NOT active FROM pg_replication_slots WHERE slot_name = '{source.slot}'")
    reader.start(part.position)
    (change,) = changes(read_until(reader, lambda records: bool(changes(records))))
    assert change.after == ("2", "y")
    reader.close()
    reader.close()
