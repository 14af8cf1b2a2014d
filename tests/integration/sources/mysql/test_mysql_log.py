"""What only the log of MySQL has: compression, tags, cascades, hidden keys, partial JSON."""

from __future__ import annotations

import pytest

from migrator.adapters.sources.binlog.transactions.log_reader import BinlogReader
from migrator.adapters.sources.mysql.log_request import open_stream
from migrator.adapters.sources.mysql.position import parse_position
from migrator.errors import SourceError
from tests.integration.binlog_engine import MYSQL, BinlogEngine
from tests.integration.binlog_reading import Read, fold, now_us, read_to, read_until, source_of
from tests.integration.sources.binlog.binlog_hot_writes import PLAIN, expect_between, hot_writes
from tests.servers import Database

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def engine() -> BinlogEngine:
    """These tests are this engine's."""
    return MYSQL


def test_compressed_transactions_are_read(
    engine: BinlogEngine, accounts: Database, reader: BinlogReader
) -> None:
    with accounts.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_transaction_compression = ON")
        cursor.executemany("INSERT INTO account VALUES (%s, 'c', 1)", [(number,) for number in range(500)])
        cursor.execute("UPDATE account SET name = 'd' WHERE id = 7")
        connection.commit()
    accounts.execute("INSERT INTO account VALUES (500, 'plain', 1)")
    end = engine.end(source_of(accounts))
    read = read_to(reader, end)
    assert [len(part.changes) for part in read.parts()] == [501, 1]
    assert fold(read.changes(), (0,))[("7",)] == ("7", "d", "1.00")
    reader.start(read.parts()[0].position)
    assert [c.after for c in read_to(reader, end).changes()] == [("500", "plain", "1.00")]


def test_tagged_transactions_have_places_of_their_own(
    engine: BinlogEngine, accounts: Database, reader: BinlogReader
) -> None:
    if accounts.query("SELECT VERSION()")[0][0] < "8.3":
        pytest.skip("this server has no tagged GTIDs")
    try:
        _read_tagged(engine, accounts, reader)
    finally:  # the server is shared, and mysql-replication, with which other tests read its log, knows no tags
        reader.close()
        accounts.execute("RESET BINARY LOGS AND GTIDS")


def _read_tagged(engine: BinlogEngine, accounts: Database, reader: BinlogReader) -> None:
    with accounts.connect() as connection, connection.cursor() as cursor:
        times_us = []
        for number, tag in enumerate(("", ":zebra", ":apple", "", ":zebra")):
            cursor.execute(f"SET gtid_next = 'AUTOMATIC{tag}'")
            times_us.append(now_us(cursor))
            cursor.execute(f"INSERT INTO account VALUES ({number}, 't', 1)")
        times_us.append(now_us(cursor))
    end = engine.end(source_of(accounts))
    parts = read_to(reader, end).parts()
    orders = [part.position.order for part in parts]
    assert orders == list(range(orders[0], orders[0] + 5))
    assert orders[-1] == end.order
    for number, part in enumerate(parts):
        assert times_us[number] <= part.committed_at_us <= times_us[number + 1]
    for number, part in enumerate(parts[:-1]):
        reader.start(part.position)
        assert [p.id for p in read_to(reader, end).parts()] == [p.id for p in parts[number + 1 :]]


def test_cascaded_rows_are_in_the_log(engine: BinlogEngine, accounts: Database) -> None:
    if accounts.query("SHOW VARIABLES LIKE 'innodb_native_foreign_keys'") != [
        ("innodb_native_foreign_keys", "OFF")
    ]:
        pytest.skip("this server's cascades happen inside InnoDB, and preflight refuses them")
    accounts.execute(
        "CREATE TABLE child (id int PRIMARY KEY, p int, FOREIGN KEY (p) REFERENCES other (id)"
        " ON DELETE CASCADE ON UPDATE CASCADE)",
        "INSERT INTO other VALUES (1), (2)",
        "INSERT INTO child VALUES (10, 1), (20, 2)",
    )
    source = source_of(accounts)
    log, _ = engine.started(source, "child")
    accounts.execute("UPDATE other SET id = 3 WHERE id = 2", "DELETE FROM other WHERE id = 1")
    changes = read_to(log, engine.end(source)).changes()
    log.close()
    assert [(change.before, change.after) for change in changes] == [
        (("20", "2"), ("20", "3")),
        (("10", "1"), None),
    ]


def test_a_generated_invisible_primary_key_is_a_column_like_others(
    engine: BinlogEngine, accounts: Database
) -> None:
    with accounts.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_generate_invisible_primary_key = ON")
        cursor.execute("CREATE TABLE keyless (v int)")
    source = source_of(accounts)
    log, (schema,) = engine.started(source, "keyless")
    assert schema.key == ("my_row_id",)
    accounts.execute("INSERT INTO keyless VALUES (5)")
    read = read_to(log, engine.end(source))
    log.close()
    assert [change.after for change in read.changes()] == [("1", "5")]
    assert engine.dump(source, schema, 10)[0].rows.to_pylist() == [{"my_row_id": 1, "v": 5}]


@pytest.mark.slow
def test_commits_that_become_visible_out_of_order_do_not_matter(
    engine: BinlogEngine, one_row: Database
) -> None:
    one_row.execute("SET GLOBAL binlog_order_commits = OFF")
    try:
        assert expect_between(hot_writes(engine, one_row, PLAIN))
    finally:
        one_row.execute("SET GLOBAL binlog_order_commits = ON")


def test_partial_updates_of_json_are_refused_by_name(engine: BinlogEngine, accounts: Database) -> None:
    accounts.execute(
        "CREATE TABLE doc (id int PRIMARY KEY, j json)",
        f"""INSERT INTO doc VALUES (1, '{{"a": 1, "b": "{"x" * 500}"}}')""",
    )
    log, _ = engine.started(source_of(accounts), "doc")
    with accounts.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_row_value_options = PARTIAL_JSON")
        cursor.execute("UPDATE doc SET j = JSON_SET(j, '$.a', 2)")
    with pytest.raises(SourceError, match="PARTIAL_JSON"):
        read_until(log, lambda _: False)
    log.close()


def test_a_transaction_without_a_gtid_while_we_are_stopped_stops_by_name(
    engine: BinlogEngine, one_row: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in no set of GTIDs, so a server that is asked by one alone begins behind it."""
    source = source_of(one_row)
    reader, _ = engine.started(source, "t")
    one_row.execute("UPDATE t SET v = 'read'")
    place = read_until(reader, lambda read: bool(read.parts())).parts()[-1].position
    reader.close()
    try:
        one_row.execute(*(f"SET GLOBAL gtid_mode = {mode}" for mode in ("ON_PERMISSIVE", "OFF_PERMISSIVE")))
        one_row.execute("DELETE FROM t")
    finally:
        one_row.execute(*(f"SET GLOBAL gtid_mode = {mode}" for mode in ("ON_PERMISSIVE", "ON")))
    one_row.execute("INSERT INTO t VALUES (6, 'later')")

    def gone_on() -> Read:
        reader.start(place)
        return read_until(reader, lambda read: bool(read.parts()))

    with pytest.raises(SourceError, match="without a GTID"):
        gone_on()
    reader.close()
    monkeypatch.setattr(
        engine.log_reader,
        "_open_stream",
        lambda self, begin: open_stream(source, parse_position(begin).read_from()),
    )
    (change,) = gone_on().changes()
    assert change.after == ("6", "later"), "the control: nothing tells of the DELETE"
    reader.close()
