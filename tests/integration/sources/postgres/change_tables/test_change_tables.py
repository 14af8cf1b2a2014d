"""Polls of change tables on a real server: late commits, two transactions on one row, and what is no change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from migrator.adapters.sources.postgres.change_tables.catalog import ChangeTableCatalog
from migrator.model.event import LogProgress, Operation, RowChange, TransactionPart
from migrator.model.position import Position
from tests.fix_change_tables import captured, read_all, read_changes, started
from tests.fix_postgres_source import changes, parts, wait_for
from tests.servers import Database

pytestmark = pytest.mark.integration

CHANGES = 'migrator_cdc."public_t_CT"'


@contextmanager
def open_transaction(database: Database, *statements: str) -> Iterator[Any]:
    """A session with an open transaction that ran these statements."""
    connection = database.connect(autocommit=False)
    try:
        for statement in statements:
            connection.execute(statement)
        yield connection
    finally:
        connection.close()


@pytest.fixture
def old(old_pg: Database) -> Database:
    old_pg.execute("CREATE TABLE t (k int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    return old_pg


def images(found: list[RowChange]) -> list[tuple[object, object]]:
    return [(change.before, change.after) for change in found]


class NaivePoll:
    """The usual way, as a negative control: everything above the last sequence number seen."""

    def __init__(self, database: Database):
        self._database = database
        self._last = 0

    def keys(self) -> list[str]:
        rows = self._database.query(
            f'SELECT "__$seqval", k::text FROM {CHANGES} WHERE "__$seqval" > %s ORDER BY 1', [self._last]
        )
        self._last = max([self._last, *(int(row[0]) for row in rows)])
        return [str(row[1]) for row in rows]


def test_a_transaction_that_commits_late_is_lost_by_the_naive_poll_and_not_by_ours(old: Database) -> None:
    source, schemas = captured(old, "t")
    naive = NaivePoll(old)
    with started(source, schemas) as reader:
        with open_transaction(old, "INSERT INTO t VALUES (10, 'took its number first')") as late:
            old.execute("INSERT INTO t VALUES (11, 'committed first')")
            first, naively = read_changes(reader, source), naive.keys()
            late.commit()
        second = read_changes(reader, source)
    assert images(first) == [(None, ("11", "committed first"))]
    assert images(second) == [(None, ("10", "took its number first"))]
    assert naively == ["11"]
    assert naive.keys() == [], "the naive poll must lose key 10: else this test shows nothing"


def test_an_older_transaction_may_change_a_row_after_a_younger_one(old: Database) -> None:
    """So the order of transaction ids within a poll would be time travel."""
    source, schemas = captured(old, "t")
    with started(source, schemas) as reader:
        with open_transaction(old, "UPDATE t SET v = 'older' WHERE k = 2") as older:
            old.execute("UPDATE t SET v = 'first' WHERE k = 1")
            older.execute("UPDATE t SET v = 'second' WHERE k = 1")
            older.commit()
        records = read_all(reader, source)
    (part,) = parts(records)
    assert part.last
    assert [change.after for change in part.changes] == [("2", "older"), ("1", "first"), ("1", "second")]
    by_id = old.query(
        f'SELECT v FROM {CHANGES} WHERE k = 1 AND "__$operation" = 4 ORDER BY "__$start_lsn", 1'
    )
    assert [row[0] for row in by_id] == ["second", "first"], "by transaction id it would go back in time"


def test_what_was_rolled_back_is_no_change(old: Database) -> None:
    source, schemas = captured(old, "t")
    with started(source, schemas) as reader:
        with open_transaction(
            old,
            "INSERT INTO t VALUES (3, 'kept')",
            "SAVEPOINT s",
            "UPDATE t SET v = 'undone' WHERE k = 1",
            "ROLLBACK TO s",
            "SAVEPOINT s2",
            "DELETE FROM t WHERE k = 2",
        ) as whole:
            whole.commit()
        with open_transaction(old, "DELETE FROM t") as undone:
            undone.rollback()
        assert images(read_changes(reader, source)) == [(None, ("3", "kept")), (("2", "b"), None)]


def test_key_moves_statements_of_many_rows_upserts_and_cascades(old: Database) -> None:
    old.execute(
        "CREATE TABLE child (id int PRIMARY KEY, t int REFERENCES t ON DELETE CASCADE ON UPDATE CASCADE)",
        "INSERT INTO child VALUES (7, 1), (8, 2)",
    )
    source, schemas = captured(old, "t", "child")
    with started(source, schemas) as reader:
        old.execute(
            "UPDATE t SET k = 5, v = 'moved' WHERE k = 1",
            "INSERT INTO t VALUES (2, 'x'), (9, 'y') ON CONFLICT (k) DO UPDATE SET v = excluded.v",
            "INSERT INTO t VALUES (2, 'ignored') ON CONFLICT DO NOTHING",
            "DELETE FROM t WHERE k = 2",
        )
        found = read_changes(reader, source)
    assert [(change.table.name, change.operation, change.before, change.after) for change in found] == [
        ("t", Operation.UPDATE, ("1", "a"), ("5", "moved")),
        ("child", Operation.UPDATE, ("7", "1"), ("7", "5")),
        ("t", Operation.UPDATE, ("2", "b"), ("2", "x")),
        ("t", Operation.INSERT, None, ("9", "y")),
        ("t", Operation.DELETE, ("2", "x"), None),
        ("child", Operation.DELETE, ("8", "2"), None),
    ]


def test_cascades_within_one_table_come_in_their_order(old: Database) -> None:
    """They run as statements within the statement whose rows they change once more."""
    old.execute(
        "CREATE TABLE tree (k int PRIMARY KEY, parent int REFERENCES tree ON UPDATE CASCADE ON DELETE SET NULL)",
        "INSERT INTO tree VALUES (1, NULL), (2, 1), (3, 2), (4, 2)",
    )
    source, schemas = captured(old, "tree")
    state = {str(key): parent for key, parent in old.query("SELECT k, parent::text FROM tree")}
    with started(source, schemas) as reader:
        for statement in (
            "UPDATE tree SET k = k + 10",
            "UPDATE tree SET k = -k",
            "DELETE FROM tree WHERE k < -11",
        ):
            old.execute(statement)
            for change in read_changes(reader, source):
                if change.before is not None:
                    assert state.pop(str(change.before[0])) == change.before[1]
                if change.after is not None:
                    state[str(change.after[0])] = change.after[1]
            assert state == {
                str(key): parent for key, parent in old.query("SELECT k, parent::text FROM tree")
            }


def test_a_large_poll_comes_in_parts_and_again_as_the_same_poll(old: Database) -> None:
    source, schemas = captured(old, "t", part_rows=100)
    with started(source, schemas) as reader:
        old.execute("UPDATE t SET v = 'z'", "INSERT INTO t SELECT g, 'x' FROM generate_series(101, 350) g")
        position, seen = _first_part(reader)
        assert position is not None
    old.execute("INSERT INTO t VALUES (999, 'after the poll began')")
    with started(source, schemas, position) as reader:  # what a segment keeps that ends within the poll
        again = parts(read_all(reader, source))
    *large, small = again
    assert (large[0].position, large[0].changes) == (seen.position, seen.changes), "the same poll"
    assert [part.first_index for part in large] == [0, 100, 200]
    assert [len(part.changes) for part in large] == [100, 100, 52]
    assert [part.last for part in large] == [False, False, True]
    assert {part.position for part in large} == {seen.position}
    assert images(list(small.changes)) == [(None, ("999", "after the poll began"))]
    assert small.position > seen.position > position


def _first_part(reader: Any) -> tuple[Position | None, TransactionPart]:
    """Reads until the first part; the position to resume from by then."""
    position = None
    while True:
        for record in reader.read(0.1):
            if isinstance(record, TransactionPart):
                return position, record
            assert isinstance(record, LogProgress)
            position = record.position


def test_parts_are_bounded_in_bytes_too(old: Database) -> None:
    source, schemas = captured(old, "t", part_bytes=1_000_000)
    with started(source, schemas) as reader:
        old.execute("INSERT INTO t SELECT g, repeat('x', 300000) FROM generate_series(101, 110) g")
        sizes = [len(part.changes) for part in parts(read_all(reader, source))]
    assert sizes == [4, 4, 2]


def test_an_open_transaction_whose_log_is_not_on_disk_holds_up_nobody(old: Database) -> None:
    """Nobody else writes or commits, so the end of the log would stay off the disk for long."""
    source, schemas = captured(old, "t")
    with started(source, schemas) as reader:
        old.execute("INSERT INTO t VALUES (3, 'committed')")
        with open_transaction(old, "INSERT INTO t VALUES (4, 'open')"):
            assert images(read_changes(reader, source)) == [(None, ("3", "committed"))]


def test_what_is_not_on_disk_is_not_delivered(old: Database) -> None:
    """A commit that a crash would undo: visible, but its record isn't on disk yet."""
    source, schemas = captured(old, "t")
    flushed = "SELECT pg_current_wal_flush_lsn() >= '{}'"
    with started(source, schemas) as reader, old.connect() as hasty:
        hasty.execute("SET synchronous_commit = off")
        hasty.execute("INSERT INTO t VALUES (3, 'hasty')")
        ((end,),) = hasty.execute("SELECT pg_current_wal_insert_lsn()::text").fetchall()
        while not (found := changes(reader.read(0.0))):
            pass
        assert old.query(flushed.format(end))[0][0], "delivered before it was on disk"
    assert images(found) == [(None, ("3", "hasty"))]


def test_every_position_goes_on_exactly_there(old: Database) -> None:
    source, schemas = captured(old, "t")
    seen, after, orders = [], None, []
    with started(source, schemas) as reader:
        after = reader.read(0.1)[0].position  # type: ignore[union-attr]
    for n in range(10, 14):
        with open_transaction(old, f"INSERT INTO t VALUES ({n + 100}, 'late')") as late:
            old.execute(f"INSERT INTO t VALUES ({n}, 'x')")
            for end in (None, late.commit):
                if end:
                    end()
                with started(source, schemas, after) as reader:
                    for part in parts(read_all(reader, source)):
                        seen += [change.after[0] for change in part.changes if change.after]
                        after = part.position
                        orders.append(after.order)
    assert seen == [str(key) for n in range(10, 14) for key in (n, n + 100)]
    assert orders == sorted(set(orders)), "orders rise strictly"


def test_positions_of_one_moment_say_the_same_however_they_are_taken(old: Database) -> None:
    source, schemas = captured(old, "t")
    catalog = ChangeTableCatalog(source)
    with started(source, schemas) as reader:
        before = catalog.position()
        assert catalog.position() == before, "looking changes nothing"
        with open_transaction(
            old, "INSERT INTO t VALUES (5, 'x')", "SAVEPOINT s", "DELETE FROM t WHERE k = 1"
        ):
            wait_for(old, "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_xid IS NOT NULL")
            old.execute("INSERT INTO t VALUES (6, 'y')")
            assert catalog.position() > before
            assert read_changes(reader, source)


def test_what_was_acknowledged_is_deleted_if_that_is_configured_and_nothing_else(old: Database) -> None:
    source, schemas = captured(old, "t", forget_changes=True)
    keys = f'SELECT k FROM {CHANGES} WHERE "__$operation" = 2 ORDER BY 1'
    with (
        started(source, schemas) as reader,
        open_transaction(old, "INSERT INTO t VALUES (9, 'open all the time')") as late,
    ):
        old.execute("INSERT INTO t VALUES (3, 'x')", "INSERT INTO t VALUES (4, 'y')")
        *_, last = parts(read_all(reader, source))
        reader.acknowledge(last.position)
        late.commit()
        assert old.query(keys) == [(3,), (4,), (9,)], (
            "one of them may be younger than one that was still open"
        )
        *_, last = parts(read_all(reader, source))
        reader._forgot_at = 0.0  # it does so once a second
        reader.acknowledge(last.position)
        assert old.query(keys) == [(3,), (4,), (9,)], "the last one proves the place: older than the others"
        old.execute("INSERT INTO t VALUES (5, 'z')")
        *_, last = parts(read_all(reader, source))
        reader._forgot_at = 0.0
        reader.acknowledge(last.position)
        assert old.query(keys) == [(5,)]
        xids = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
        before = old.query(xids)
        for _ in range(3):
            reader._forgot_at = 0.0
            reader.acknowledge(last.position)
        assert old.query(xids) != before, "the last of them finds nothing to delete"
        before = old.query(xids)
        reader._forgot_at = 0.0
        reader.acknowledge(last.position)
        assert old.query(xids) == before, "an idle source stays idle"


def test_nothing_is_deleted_otherwise(old: Database) -> None:
    source, schemas = captured(old, "t")
    with started(source, schemas) as reader:
        old.execute("INSERT INTO t VALUES (3, 'x')")
        *_, last = parts(read_all(reader, source))
        reader.acknowledge(last.position)
    assert old.query(f"SELECT k FROM {CHANGES}") == [(3,)]


def test_a_poll_costs_what_is_new_and_not_what_is_kept(old: Database) -> None:
    source, schemas = captured(old, "t")
    old.execute("INSERT INTO t SELECT g, 'x' FROM generate_series(1000, 21000) g")  # kept, and never analysed
    with started(source, schemas) as reader:
        for n in range(5):
            old.execute(f"UPDATE t SET v = 'y' WHERE k = {1000 + n}")
            assert len(read_changes(reader, source)) == 1
    used = "FROM pg_stat_user_tables WHERE relname = 'public_t_CT'"
    wait_for(old, f"SELECT idx_scan >= 10 {used}")  # what the reader's session has counted, once it has ended
    ((scans, rows),) = old.query(f"SELECT seq_scan, idx_tup_fetch {used}")
    assert scans == 2, "the two that made the indexes of the empty table"
    assert rows < 200
