"""What only the log of MariaDB has: domains, settings within a statement, events compressed one by one."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from migrator.adapters.sources.binlog.events.events import WRITE_ROWS_V1, Event
from migrator.adapters.sources.binlog.tables import compressed
from migrator.adapters.sources.binlog.tables.compressed import plain
from migrator.adapters.sources.binlog.transactions.log_reader import BinlogReader
from migrator.adapters.sources.mariadb.catalog import visible_end
from migrator.errors import ReplacedError, SchemaError, SourceError
from migrator.model.event import Operation
from migrator.model.position import Position
from tests.integration.binlog_engine import MARIADB, BinlogEngine
from tests.integration.binlog_reading import Read, expect_stop, fold, read_to, read_until, source_of
from tests.servers import Database

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def engine() -> BinlogEngine:
    """These tests are this engine's."""
    return MARIADB


def test_rolled_back_savepoints_leave_nothing_beside_rows_that_cant_be_rolled_back(
    engine: BinlogEngine, accounts: Database, reader: BinlogReader
) -> None:
    accounts.execute("CREATE TABLE plain (id int) ENGINE = MyISAM")
    with accounts.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for middle in ("INSERT INTO other VALUES (7)", "INSERT INTO plain VALUES (7)"):
            cursor.execute("DELETE FROM account")
            cursor.execute("INSERT INTO account VALUES (1, 'kept', 1)")
            cursor.execute("SAVEPOINT `s 1`")
            cursor.execute("INSERT INTO account VALUES (2, 'rolled back', 2)")
            cursor.execute(middle)
            cursor.execute("ROLLBACK TO SAVEPOINT `s 1`")
            cursor.execute("INSERT INTO account VALUES (3, 'kept', 3)")
            connection.commit()
    read = read_to(reader, engine.end(source_of(accounts)))
    assert [[c.after[1] for c in part.changes if c.after] for part in read.parts()] == [["kept", "kept"]] * 2


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("CREATE OR REPLACE TABLE account (id int PRIMARY KEY)", ReplacedError),
        ("ALTER TABLE account ADD FOREIGN KEY (id) REFERENCES other (id) ON DELETE CASCADE", SchemaError),
        ("ALTER IGNORE TABLE account ADD UNIQUE (name)", SchemaError),
        ("SET STATEMENT binlog_format = 'STATEMENT' FOR INSERT INTO account VALUES (1, 'a', 1)", SourceError),
        ("SET STATEMENT binlog_row_image = 'MINIMAL' FOR UPDATE account SET name = 'b'", SourceError),
    ],
)
def test_what_cant_be_carried_on_stops_with_table_and_place(
    engine: BinlogEngine, accounts: Database, reader: BinlogReader, statement: str, error: type[SourceError]
) -> None:
    expect_stop(engine, accounts, reader, statement, error)


@pytest.mark.parametrize(
    "statement", ["CREATE OR REPLACE DATABASE {}", "CREATE OR REPLACE SCHEMA {} COMMENT 'x'"]
)
def test_a_database_that_is_replaced_stops_and_another_one_does_not(
    engine: BinlogEngine, accounts: Database, reader: BinlogReader, statement: str
) -> None:
    """All its tables are dropped, and no statement names them."""
    accounts.execute(
        statement.format("another"), "DROP DATABASE another", "INSERT INTO account VALUES (1, 'a', 1)"
    )
    assert len(read_to(reader, engine.end(source_of(accounts))).changes()) == 1
    accounts.execute(statement.format(accounts.database))
    with pytest.raises(SourceError, match="it may drop or replace tables"):
        read_to(reader, engine.end(source_of(accounts)))


def test_a_commit_while_a_first_start_asks_for_its_place_is_no_gap(
    engine: BinlogEngine, one_row: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is visible is asked for before the log's end: the other way round the start could lie behind the end."""

    def after_a_commit(connection: Any) -> Position:
        one_row.execute("UPDATE t SET v = 'NEW' WHERE id = 5")
        return visible_end(connection)

    monkeypatch.setattr("migrator.adapters.sources.mariadb.log_reader.visible_end", after_a_commit)
    source = source_of(one_row)
    catalog = engine.catalog(source)
    log = engine.log_reader(source, catalog.tables(["t"]))
    assert log.start(None) == catalog.position()
    log.close()


def test_events_compressed_one_by_one_are_read(
    engine: BinlogEngine, one_row: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large ones are compressed, small ones among them are not; statements, row events and XA alike."""
    kinds: list[int] = []

    def counting(event: Event) -> Event:
        kinds.append(event.type)
        return plain(event)

    monkeypatch.setattr(compressed, "plain", counting)
    reader, _ = engine.started(source_of(one_row), "t")
    one_row.execute("SET GLOBAL log_bin_compress_min_len = 15", "SET GLOBAL log_bin_compress = 1")
    try:
        with one_row.connect() as connection, connection.cursor() as cursor:
            values = ", ".join(f"({number}, '{'v' * (19 - number % 4)}')" for number in range(6, 3000))
            cursor.execute(f"INSERT INTO t VALUES {values}, (3000, NULL)")
            cursor.execute("INSERT INTO t VALUES (3001, 's')")
            cursor.execute("DELETE FROM t WHERE id BETWEEN 500 AND 900")
            cursor.execute("UPDATE t SET v = 'changed' WHERE id BETWEEN 6 AND 1000")
            cursor.execute(f"ALTER TABLE t COMMENT '{'long ' * 40}'")
            cursor.execute("XA START 'z'")
            cursor.execute("UPDATE t SET id = id + 10000 WHERE id > 2500")
            for step in ("END", "PREPARE", "COMMIT"):
                cursor.execute(f"XA {step} 'z'")
            cursor.execute(f"TRUNCATE /* {'long ' * 40} */ t")
            cursor.execute(f"RENAME TABLE /* {'long ' * 40} */ t TO gone")
        read = Read()
        with pytest.raises(SourceError, match="RENAME TABLE"):
            read_until(reader, lambda _: False, read)
    finally:
        one_row.execute("SET GLOBAL log_bin_compress = 0")
        reader.close()
    assert {165, 166, 167, 168} <= set(kinds)
    *before, truncate = read.changes()
    assert truncate.operation is Operation.TRUNCATE
    rows = fold(before, (0,))
    assert len(rows) == 2996 - 401
    assert rows[("13000",)] == ("13000", None)
    assert rows[("13001",)] == ("13001", "s")
    assert rows[("499",)] == ("499", "changed")
    assert rows[("1001",)] == ("1001", "v" * 18)


def test_damaged_compression_is_named(engine: BinlogEngine) -> None:
    body = bytes(6) + b"\0\0" + b"\x01\xff"
    for data in (
        b"\x81\x05" + zlib.compress(b"1234"),
        b"\x91\x04" + zlib.compress(b"1234"),
        b"\x81\x04rubbish",
    ):
        with pytest.raises(ValueError, match=r"bytes instead of|is not known|incorrect"):
            plain(Event(166, 0, 1, 100, 0, body + data))
    good = plain(Event(166, 0, 1, 100, 0, body + b"\x81\x04" + zlib.compress(b"1234")))
    assert (good.type, good.body) == (WRITE_ROWS_V1, body + b"1234")


def test_two_domains_in_one_log_keep_one_order(engine: BinlogEngine, one_row: Database) -> None:
    source = source_of(one_row)
    reader, _ = engine.started(source, "t")
    with one_row.connect() as connection, connection.cursor() as cursor:
        for number in range(10, 30):
            cursor.execute(f"SET SESSION gtid_domain_id = {number % 3}")
            cursor.execute(f"INSERT INTO t VALUES ({number}, 'x')")
    end = engine.end(source)
    parts = read_to(reader, end).parts()
    orders = [part.position.order for part in parts]
    assert orders == sorted(set(orders))
    assert orders[-1] == end.order
    reader.start(parts[9].position)
    assert [part.id for part in read_to(reader, end).parts()] == [part.id for part in parts[10:]]
    reader.close()


def test_a_transaction_with_a_lower_number_stops_by_name(engine: BinlogEngine, one_row: Database) -> None:
    """Also one that is lower than those before we began, which was taken for one that was read. In a domain of its
    own, lest other tests of the server meet it.
    """
    with one_row.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION gtid_domain_id = 77")
        for _ in range(3):
            cursor.execute("UPDATE t SET v = CONCAT(v, 'x')")
        reader, _ = engine.started(source_of(one_row), "t")
        cursor.execute("UPDATE t SET v = 'seen'")
        cursor.execute("SET SESSION gtid_seq_no = 1")
        cursor.execute("DELETE FROM t")
        cursor.execute("INSERT INTO t VALUES (7, 'later')")
    read = Read()
    with pytest.raises(SourceError, match="out of order"):
        read_until(reader, lambda _: False, read)
    reader.close()
    assert [change.after[1] for change in read.changes() if change.after] == ["seen"]
