"""Faults of both engines' servers: purged and restarted logs, killed and frozen servers, checksums."""

from __future__ import annotations

import os
import signal
import time

import pytest

from migrator.errors import ConnectionFailed, GapError
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import Read, read_to, read_until, source_of
from tests.servers import Database, MariaDBServer, has_mysql

pytestmark = pytest.mark.integration


RESET = {
    "mysql": "RESET BINARY LOGS AND GTIDS" if has_mysql(8, 2) else "RESET MASTER",
    "mariadb": "RESET MASTER",
}


def test_a_purged_log_is_a_gap(engine: BinlogEngine, one_row: Database) -> None:
    source = source_of(one_row)
    catalog = engine.catalog(source)
    old, tables = catalog.position(), catalog.tables(["t"])
    one_row.execute(
        "INSERT INTO t VALUES (6, 'purged')", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (7, 'kept')"
    )
    for _ in range(2):  # MariaDB's first checkpoint may still hold the older file
        one_row.execute("FLUSH BINARY LOGS")
    newest = one_row.query("SHOW BINARY LOGS")[-1][0]
    if one_row.query("SHOW GLOBAL VARIABLES LIKE 'slave_connections_needed_for_purge'"):
        one_row.execute("SET GLOBAL slave_connections_needed_for_purge = 0")
    one_row.execute(f"PURGE BINARY LOGS TO '{newest}'")
    reader = engine.log_reader(source, tables)
    with pytest.raises(GapError) as gap:
        reader.start(old)
    assert "start the migration anew" in gap.value.remedy
    reader.start(catalog.position())
    one_row.execute("INSERT INTO t VALUES (8, 'new')")
    assert [c.after for c in read_to(reader, catalog.position()).changes()] == [("8", "new")]
    reader.close()


def test_a_log_that_began_anew_is_a_gap(engine: BinlogEngine, one_row: Database) -> None:
    source = source_of(one_row)
    one_row.execute("INSERT INTO t VALUES (6, 'x')")
    position, tables = engine.end(source), engine.catalog(source).tables(["t"])
    one_row.execute(RESET[engine.kind])
    reader = engine.log_reader(source, tables)
    with pytest.raises(GapError, match="ends before"):
        reader.start(position)


def test_reading_goes_on_after_the_server_was_killed(
    engine: BinlogEngine, one_row: Database, spare_server: MariaDBServer
) -> None:
    if spare_server.embedded is None:
        pytest.skip("the server runs in a container, which this test can't kill")
    source, read = source_of(one_row), Read()
    reader, _ = engine.started(source, "t")
    one_row.execute("INSERT INTO t VALUES (6, 'before')")
    read_to(reader, engine.end(source), read)
    spare_server.embedded.kill()
    with pytest.raises(ConnectionFailed) as cut:
        read_until(reader, lambda _: False)
    assert cut.value.retryable
    with pytest.raises(ConnectionFailed) as refused:
        reader.start(read.parts()[-1].position)
    assert refused.value.retryable
    spare_server.embedded.start()
    reader.start(read.parts()[-1].position)
    one_row.execute("INSERT INTO t VALUES (7, 'after')")
    read_to(reader, engine.end(source), read)
    reader.close()
    assert [change.after for change in read.changes()] == [("6", "before"), ("7", "after")]


@pytest.mark.slow
def test_a_silent_server_is_noticed_by_its_missing_heartbeats(
    engine: BinlogEngine, one_row: Database, spare_server: MariaDBServer
) -> None:
    if spare_server.embedded is None:
        pytest.skip("the server runs in a container, which this test can't freeze")
    reader, _ = engine.started(source_of(one_row, silence_s=2.0), "t")
    began = time.monotonic()
    while time.monotonic() - began < 3.0:  # heartbeats keep an idle stream alive
        reader.read(0.5)
    os.kill(spare_server.embedded.pid, signal.SIGSTOP)
    try:
        with pytest.raises(ConnectionFailed, match="no heartbeat") as silent:
            read_until(reader, lambda _: False)
    finally:
        os.kill(spare_server.embedded.pid, signal.SIGCONT)
    assert silent.value.retryable


@pytest.mark.parametrize("checksum", ["NONE", "CRC32"])
def test_logs_with_and_without_checksums_are_read(
    engine: BinlogEngine, one_row: Database, checksum: str
) -> None:
    source = source_of(one_row)
    begin = engine.end(source)
    one_row.execute("INSERT INTO t VALUES (6, 'a')", f"SET GLOBAL binlog_checksum = '{checksum}'")
    try:
        one_row.execute("INSERT INTO t VALUES (7, 'b')", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (8, 'c')")
        reader = engine.log_reader(source, engine.catalog(source).tables(["t"]))
        reader.start(begin)
        read = read_to(reader, engine.end(source))
        reader.close()
    finally:
        one_row.execute("SET GLOBAL binlog_checksum = 'CRC32'")
    assert [change.after for change in read.changes()] == [("6", "a"), ("7", "b"), ("8", "c")]
    assert len({part.id[0] for part in read.parts()}) > 1 or not engine.files_in_ids
