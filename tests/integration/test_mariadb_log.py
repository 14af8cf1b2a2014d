"""What only the log of MariaDB has: domains, settings within a statement, events compressed one by one."""

from __future__ import annotations

from typing import Any

import pytest

from migrator.adapters.mariadb.catalog import visible_end
from migrator.binlog.log_reader import BinlogReader
from migrator.errors import SchemaError, SourceError
from migrator.model.position import Position
from tests.integration.binlog_engine import MARIADB, BinlogEngine
from tests.integration.binlog_reading import expect_stop, read_to, read_until, source_of
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
        ("CREATE OR REPLACE TABLE account (id int PRIMARY KEY)", SourceError),
        ("ALTER TABLE account ADD FOREIGN KEY (id) REFERENCES other (id) ON DELETE CASCADE", SchemaError),
        ("SET STATEMENT binlog_format = 'STATEMENT' FOR INSERT INTO account VALUES (1, 'a', 1)", SourceError),
        ("SET STATEMENT binlog_row_image = 'MINIMAL' FOR UPDATE account SET name = 'b'", SourceError),
    ],
)
def test_what_cant_be_carried_on_stops_with_table_and_place(
    engine: BinlogEngine, accounts: Database, reader: BinlogReader, statement: str, error: type[SourceError]
) -> None:
    expect_stop(engine, accounts, reader, statement, error)


def test_a_commit_while_a_first_start_asks_for_its_place_is_no_gap(
    engine: BinlogEngine, one_row: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is visible is asked for before the log's end: the other way round the start could lie behind the end."""

    def after_a_commit(connection: Any) -> Position:
        one_row.execute("UPDATE t SET v = 'NEW' WHERE id = 5")
        return visible_end(connection)

    monkeypatch.setattr("migrator.adapters.mariadb.log_reader.visible_end", after_a_commit)
    source = source_of(one_row)
    catalog = engine.catalog(source)
    log = engine.log_reader(source, catalog.tables(["t"]))
    assert log.start(None) == catalog.position()
    log.close()


def test_compressed_events_are_refused_by_name(engine: BinlogEngine, one_row: Database) -> None:
    one_row.execute("SET GLOBAL log_bin_compress_min_len = 10", "SET GLOBAL log_bin_compress = 1")
    try:
        reader, _ = engine.started(source_of(one_row), "t")
        one_row.execute(f"INSERT INTO t VALUES (6, '{'a' * 20}'), (7, '{'a' * 20}')")
        with pytest.raises(SourceError, match="log_bin_compress"):
            read_until(reader, lambda _: False)
        reader.close()
    finally:
        one_row.execute("SET GLOBAL log_bin_compress = 0")


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
