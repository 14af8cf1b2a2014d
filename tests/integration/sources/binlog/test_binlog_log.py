"""The log readers against real servers: order, parts, restarts, rotation, DDL, and what they refuse by name."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from migrator.adapters.sources.binlog.transactions.log_reader import BinlogReader
from migrator.adapters.sources.binlog.transactions.watermark import WatermarkRowWriter
from migrator.errors import ConnectionFailed, ReplacedError, SchemaError, SourceError
from migrator.model.event import MarkKind, Operation, TransactionPart, WatermarkSeen
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import (
    Read,
    expect_stop,
    fold,
    make_watermark_table,
    read_to,
    read_until,
    source_of,
)
from tests.servers import Database

pytestmark = pytest.mark.integration


def test_transactions_come_whole_in_commit_order(
    engine: BinlogEngine, accounts: Database, reader: BinlogReader
) -> None:
    with accounts.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO account VALUES (1, 'Ada', 10.5), (2, NULL, 0)")
        cursor.execute("UPDATE account SET id = 3, name = 'Grace' WHERE id = 2")
        connection.commit()
        cursor.execute("DELETE FROM account WHERE id = 1")
        connection.commit()
    read = read_to(reader, engine.end(source_of(accounts)))
    first, second = read.parts()
    assert [(change.operation, change.before, change.after) for change in first.changes] == [
        (Operation.INSERT, None, ("1", "Ada", "10.50")),
        (Operation.INSERT, None, ("2", None, "0.00")),
        (Operation.UPDATE, ("2", None, "0.00"), ("3", "Grace", "0.00")),
    ]
    assert [change.before for change in second.changes] == [("1", "Ada", "10.50")]
    assert (first.last, second.last) == (True, True)
    assert first.position < second.position
    assert first.id != second.id
    assert first.id < second.id or not engine.files_in_ids
    assert abs(first.committed_at_us / 1e6 - time.time()) < 3600


def test_rolled_back_savepoints_leave_nothing(
    engine: BinlogEngine, accounts: Database, reader: BinlogReader
) -> None:
    with accounts.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for middle in ("INSERT INTO other VALUES (7)", "INSERT INTO other VALUES (8)"):
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


def test_large_transactions_come_in_parts(engine: BinlogEngine, accounts: Database) -> None:
    source = source_of(accounts, part_rows=1000)
    reader, _ = engine.started(source, "account")
    with accounts.connect(autocommit=False) as connection, connection.cursor() as cursor:
        rows = ", ".join(f"({number}, 'n{number}', {number})" for number in range(1, 2501))
        cursor.execute(f"INSERT INTO account VALUES {rows}")
        cursor.execute("INSERT INTO account VALUES (9999, 'end', 1)")
        connection.commit()
    read = read_to(reader, engine.end(source))
    reader.close()
    parts = read.parts()
    assert [(part.first_index, len(part.changes), part.last) for part in parts] == [
        (0, 1000, False),
        (1000, 1000, False),
        (2000, 501, True),
    ]
    assert len({(part.id, part.position.order) for part in parts}) == 1
    assert [change.after[0] for change in read.changes() if change.after][::500] == [
        "1",
        "501",
        "1001",
        "1501",
        "2001",
        "9999",
    ]


def test_reading_resumes_after_any_transaction(
    engine: BinlogEngine, accounts: Database, reader: BinlogReader
) -> None:
    for number in range(1, 13):
        accounts.execute(f"INSERT INTO account VALUES ({number}, 'a', {number})")
        if number % 3 == 0:
            accounts.execute(f"INSERT INTO other VALUES ({number})")
        if number % 5 == 0:
            accounts.execute("FLUSH BINARY LOGS")
    source = source_of(accounts)
    end = engine.end(source)
    parts = read_to(reader, end).parts()
    assert len(parts) == 12
    assert len({part.id[0] for part in parts}) == 3 or not engine.files_in_ids
    for number, part in enumerate(parts):
        began = reader.start(part.position)
        assert began == part.position
        again = read_to(reader, end).parts() if number < 11 else []
        assert [(p.id, p.position, p.changes) for p in again] == [
            (p.id, p.position, p.changes) for p in parts[number + 1 :]
        ]
        assert [p.position.token for p in again] == [p.position.token for p in parts[number + 1 :]]


def test_a_cut_connection_is_retryable_and_nothing_is_lost_or_repeated(
    engine: BinlogEngine, accounts: Database, reader: BinlogReader
) -> None:
    source, read, numbers = source_of(accounts), Read(), iter(range(1, 1000))
    for _ in range(4):
        accounts.execute(f"INSERT INTO account VALUES ({next(numbers)}, 'before', 0)")
        read_to(reader, engine.end(source), read)
        last = read.parts()[-1].position
        for (session,) in accounts.query(
            "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%%' AND db = %s",
            [accounts.database],
        ):
            accounts.execute(f"KILL {session}")
        accounts.execute(f"INSERT INTO account VALUES ({next(numbers)}, 'while cut', 0)")
        with pytest.raises(ConnectionFailed) as cut:
            read_until(reader, lambda _: False)
        assert cut.value.retryable
        reader.start(last)
    read_to(reader, engine.end(source), read)
    assert [change.after[0] for change in read.changes() if change.after] == [str(n) for n in range(1, 9)]


def test_foreign_transactions_move_the_position_without_changes(
    engine: BinlogEngine, accounts: Database, reader: BinlogReader
) -> None:
    accounts.execute("INSERT INTO other VALUES (1)", "CREATE TABLE unrelated (id int)")
    read = read_to(reader, engine.end(source_of(accounts)))
    assert read.changes() == []


def test_waiting_is_bounded_by_the_timeout(
    engine: BinlogEngine, accounts: Database, reader: BinlogReader
) -> None:
    read_to(reader, engine.end(source_of(accounts)))
    began = time.monotonic()
    reader.read(0.3)
    assert time.monotonic() - began < 1.5


def test_added_columns_are_a_schema_change_in_their_place(
    engine: BinlogEngine, accounts: Database, reader: BinlogReader
) -> None:
    accounts.execute(
        "INSERT INTO account VALUES (1, 'a', 1)",
        "ALTER TABLE account ADD COLUMN email varchar(50) CHARACTER SET latin1 AFTER id, ADD INDEX (name)",
        "INSERT INTO account VALUES (2, 'é@x', 'b', 2)",
        "ALTER TABLE account /* harmless */ COMMENT 'x, y', ADD twice int AS (id * 2) VIRTUAL",
        "UPDATE account SET email = 'c' WHERE id = 1",
    )
    read = read_to(reader, engine.end(source_of(accounts)))
    assert [schema.names() for schema in read.schemas()] == [
        ("id", "name", "balance"),
        ("id", "email", "name", "balance"),
    ]
    assert [change.after for change in read.changes()] == [
        ("1", "a", "1.00"),
        ("2", "é@x", "b", "2.00"),
        ("1", "c", "a", "1.00"),
    ]
    assert (
        read.schemas()[-1].version() == engine.catalog(source_of(accounts)).tables(["account"])[0].version()
    )


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("RENAME TABLE other TO aside, account TO gone", ReplacedError),
        (
            "CREATE TABLE _account_gho LIKE account; RENAME TABLE account TO _account_del, _account_gho TO account",
            ReplacedError,
        ),
        ("/*!50003 DROP */ /*!50003 TABLE */ `account`", ReplacedError),
        ("ALTER TABLE account RENAME COLUMN name TO title", SchemaError),
        ("ALTER TABLE account CHANGE name title varchar(40)", SchemaError),
        ("ALTER TABLE account COMMENT 'x' ENGINE=MyISAM", SchemaError),
        ("DROP TABLE other, account", ReplacedError),
        ("ALTER TABLE account DROP COLUMN name", SchemaError),
        ("ALTER TABLE account ADD x int, MODIFY balance decimal(10,1)", SchemaError),
        ("ALTER TABLE account ADD __sign int; INSERT INTO account VALUES (1, 'a', 1, 1)", SchemaError),
        ("ALTER TABLE account RENAME TO gone", ReplacedError),
        ("ALTER TABLE account DROP PRIMARY KEY, ADD PRIMARY KEY (id, name)", SchemaError),
        ("SET SESSION binlog_format = 'STATEMENT'; INSERT INTO account VALUES (1, 'a', 1)", SourceError),
        ("SET SESSION binlog_row_image = 'MINIMAL'; UPDATE account SET name = 'b'", SourceError),
        ("SET SESSION binlog_row_image = 'MINIMAL'; DELETE FROM account", SourceError),
        (
            "SET SESSION binlog_format = 'MIXED'; INSERT INTO account SELECT id + 50, name, 1 FROM account",
            SourceError,
        ),
    ],
)
def test_what_cant_be_carried_on_stops_with_table_and_place(
    engine: BinlogEngine, accounts: Database, reader: BinlogReader, statement: str, error: type[SourceError]
) -> None:
    expect_stop(engine, accounts, reader, statement, error)


def test_ddl_of_other_tables_and_harmless_ddl_do_not_matter(
    engine: BinlogEngine, accounts: Database, reader: BinlogReader
) -> None:
    accounts.execute(
        "INSERT INTO account VALUES (1, 'before', 1)",
        "CREATE TABLE aside LIKE account",
        "CREATE TABLE filled AS SELECT * FROM account",
        "TRUNCATE TABLE aside",
        "ALTER TABLE aside DROP COLUMN name, RENAME TO `account 2`",
        "RENAME TABLE filled TO aside",
        "DROP TABLE aside, `account 2`",
        "CREATE TABLE text_only (s varchar(90) DEFAULT 'TRUNCATE account; DROP TABLE account')",
        "CREATE VIEW seen AS SELECT * FROM account",
        "CREATE PROCEDURE p() DELETE FROM account",
        "DROP VIEW seen",
        "CREATE INDEX by_name ON account (name)",
        "ALTER TABLE account RENAME INDEX by_name TO named, ALTER COLUMN name SET DEFAULT 'x' -- DROP COLUMN name",
        "DROP INDEX named ON account",
        "OPTIMIZE TABLE account",
        "ANALYZE TABLE account",
        "ALTER TABLE account ENGINE=InnoDB, COMMENT 'DROP COLUMN name'",
        "INSERT INTO account VALUES (2, 'after', 1)",
    )
    read = read_to(reader, engine.end(source_of(accounts)))
    assert [change.after[1] for change in read.changes() if change.after] == ["before", "after"]


def test_loaded_files_are_rows_and_a_file_logged_as_a_statement_stops(
    engine: BinlogEngine, one_row: Database, tmp_path: Path
) -> None:
    file = tmp_path / "rows.txt"
    file.write_text("6\tsix\n7\tseven\n")
    log, _ = engine.started(source_of(one_row), "t")
    one_row.execute("SET GLOBAL local_infile = 1")
    with one_row.connect(local_infile=True) as connection, connection.cursor() as cursor:
        cursor.execute("LOAD DATA LOCAL INFILE %s INTO TABLE t", [str(file)])
        read = read_to(log, engine.end(source_of(one_row)))
        assert [change.after for change in read.changes()] == [("6", "six"), ("7", "seven")]
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        cursor.execute("DELETE FROM t")
        cursor.execute("LOAD DATA LOCAL INFILE %s INTO TABLE t", [str(file)])
    with pytest.raises(SourceError, match="DELETE logged as a statement"):
        read_until(log, lambda _: False)
    log.close()
    log, _ = engine.started(source_of(one_row), "t")
    with one_row.connect(local_infile=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        cursor.execute("LOAD DATA LOCAL INFILE %s REPLACE INTO TABLE t", [str(file)])
    with pytest.raises(SourceError, match="LOAD logged as a statement"):
        read_until(log, lambda _: False)
    log.close()


def test_a_table_without_primary_key_stops_when_its_key_is_dropped(
    engine: BinlogEngine, accounts: Database
) -> None:
    accounts.execute(
        "CREATE TABLE keyed (a int NOT NULL, b int NOT NULL, UNIQUE KEY ours (a), UNIQUE KEY longer (a, b))"
    )
    log, _ = engine.started(source_of(accounts), "keyed")
    accounts.execute("INSERT INTO keyed VALUES (1, 1)", "DROP INDEX longer ON keyed")
    assert len(read_to(log, engine.end(source_of(accounts))).changes()) == 1
    accounts.execute("ALTER TABLE keyed COMMENT 'x', DROP KEY `ours`")
    with pytest.raises(SchemaError, match="the index is gone that the table's key comes from"):
        read_until(log, lambda _: False)
    log.close()


def test_triggers_and_key_swaps_are_in_the_log(
    engine: BinlogEngine, accounts: Database, reader: BinlogReader
) -> None:
    accounts.execute(
        "CREATE TRIGGER follow AFTER INSERT ON other FOR EACH ROW"
        " INSERT INTO account VALUES (NEW.id, 'by trigger', 0)",
        "INSERT INTO other VALUES (1)",
        "INSERT INTO other VALUES (2)",
        "UPDATE account SET id = CASE id WHEN 1 THEN -2 ELSE -1 END",
    )
    read = read_to(reader, engine.end(source_of(accounts)))
    assert sorted(fold(read.changes(), (0,))) == [("-1",), ("-2",)]


def test_watermark_rows_are_seen_in_their_place(engine: BinlogEngine, accounts: Database) -> None:
    make_watermark_table(accounts)
    source = source_of(accounts, placement="watermark", migration="mine")
    engine.catalog(source).prepare([])
    reader, _ = engine.started(source, "account")
    writers = [WatermarkRowWriter(source), WatermarkRowWriter(source_of(accounts, migration="foreign"))]
    for writer in writers:
        writer.write("t1", MarkKind.LOW)
    accounts.execute("INSERT INTO account VALUES (1, 'between', 1)")
    for writer in writers:
        writer.write("t1", MarkKind.HIGH)
        writer.close()
    read = read_to(reader, engine.end(source))
    reader.close()
    shown = [
        (record.token, record.kind) if isinstance(record, WatermarkSeen) else "row"
        for record in read.records
        if isinstance(record, WatermarkSeen) or (isinstance(record, TransactionPart) and record.changes)
    ]
    assert shown == [("t1", MarkKind.LOW), "row", ("t1", MarkKind.HIGH)]
    accounts.execute("DROP DATABASE migrator")
