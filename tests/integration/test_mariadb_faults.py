"""Races and faults on a server of their own: the commit that is logged but not visible, purged logs, restarts."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from migrator.adapters.mariadb.catalog import MariaCatalog, visible_end
from migrator.adapters.mariadb.chunk_reader import MariaChunkReader
from migrator.adapters.mariadb.log_reader import MariaLogReader
from migrator.errors import ConnectionFailed, GapError, SourceError
from migrator.model.chunk import ChunkRequest
from migrator.model.position import Position
from tests.integration.mariadb_reading import Read, read_to, read_until, source_of, started
from tests.servers import Database, DockerServers, EmbeddedServers, MariaDBServer, fresh_database

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def own_server(servers: EmbeddedServers | DockerServers) -> MariaDBServer:
    """These tests change global settings, purge logs and stop the server."""
    return servers.mariadb("mariadb_faults")


@pytest.fixture
def database(own_server: MariaDBServer) -> Iterator[Database]:
    with fresh_database(own_server, "old") as fresh:
        fresh.execute("CREATE TABLE t (id int PRIMARY KEY, v varchar(20))", "INSERT INTO t VALUES (5, 'old')")
        yield fresh


@pytest.fixture
def semi_sync(database: Database) -> Iterator[Database]:
    """Commits wait between log and visibility for a replica that doesn't exist."""
    database.execute(
        "SET GLOBAL rpl_semi_sync_master_timeout = 600000",
        "SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC'",
        "SET GLOBAL rpl_semi_sync_master_enabled = 1",
    )
    yield database
    database.execute("SET GLOBAL rpl_semi_sync_master_enabled = 0")


def test_a_commit_that_is_logged_but_not_visible_is_outside_the_witness(semi_sync: Database) -> None:
    source = source_of(semi_sync)
    log, (schema,) = started(source, "t")
    reader = MariaChunkReader(source)
    request = ChunkRequest(1, schema.id, None, 10)
    with ThreadPoolExecutor(1) as pool:
        try:
            writer = pool.submit(semi_sync.execute, "UPDATE t SET v = 'NEW' WHERE id = 5")
            (part,) = read_until(log, lambda read: bool(read.parts())).parts()  # its event is delivered ...
            chunk = reader.read(request, schema)  # ... and only then is the chunk read
            assert not writer.done()
            assert chunk.rows["v"].to_pylist() == ["old"]
            assert chunk.high >= part.position  # by positions alone the stale row would be emitted
            assert chunk.witness is not None
            assert not chunk.witness.contains(part.id)  # so the core drops the row of key 5
            assert [change.after for change in part.changes] == [("5", "NEW")]
        finally:
            semi_sync.execute("SET GLOBAL rpl_semi_sync_master_enabled = 0")
        writer.result(30)
    later = reader.read(request, schema)
    assert later.rows["v"].to_pylist() == ["NEW"]
    assert later.witness is not None
    assert later.witness.contains(part.id)
    reader.close()
    log.close()


def test_a_first_start_takes_along_what_is_logged_but_not_visible(semi_sync: Database) -> None:
    """Else neither the log's reader nor the first chunks would ever bring it."""
    source = source_of(semi_sync)
    catalog = MariaCatalog(source)
    schemas = catalog.tables(["t"])
    before, reader = catalog.position(), MariaChunkReader(source)
    with ThreadPoolExecutor(1) as pool:
        try:
            writer = pool.submit(semi_sync.execute, "UPDATE t SET v = 'NEW' WHERE id = 5")
            deadline = time.monotonic() + 30
            while catalog.position() <= before:
                assert time.monotonic() < deadline
            log = MariaLogReader(source, schemas)
            begin = log.start(None)
            assert not writer.done()
            assert reader.read(ChunkRequest(1, schemas[0].id, None, 10), schemas[0]).rows[
                "v"
            ].to_pylist() == ["old"]
            assert begin <= before
            (part,) = read_until(log, lambda read: bool(read.parts())).parts()
            assert [change.after for change in part.changes] == [("5", "NEW")]
        finally:
            semi_sync.execute("SET GLOBAL rpl_semi_sync_master_enabled = 0")
        writer.result(30)
    reader.close()
    log.close()


def test_a_commit_while_a_first_start_asks_for_its_place_is_no_gap(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is visible is asked for before the log's end: the other way round the start could lie behind the end."""

    def after_a_commit(connection: Any) -> Position:
        database.execute("UPDATE t SET v = 'NEW' WHERE id = 5")
        return visible_end(connection)

    monkeypatch.setattr("migrator.adapters.mariadb.log_reader.visible_end", after_a_commit)
    source = source_of(database)
    catalog = MariaCatalog(source)
    log = MariaLogReader(source, catalog.tables(["t"]))
    assert log.start(None) == catalog.position()
    log.close()


def test_the_witness_is_exact_under_hot_writes(database: Database) -> None:
    """A row of a chunk equals the newest version that the witness contains: never older, never newer."""
    database.execute("UPDATE t SET v = '0'", *(f"INSERT INTO t VALUES ({key}, '0')" for key in range(6, 13)))
    source = source_of(database)
    log, (schema,) = started(source, "t")
    reader = MariaChunkReader(source)
    stop = threading.Event()

    def write(key: int) -> int:
        version = 0
        with database.connect() as connection, connection.cursor() as cursor:
            while not stop.is_set():
                version += 1
                cursor.execute("UPDATE t SET v = %s WHERE id = %s", (version, key))
        return version

    chunks = []
    with ThreadPoolExecutor(8) as pool:
        try:
            written = [pool.submit(write, key) for key in range(5, 13)]
            for number in range(100):
                chunks.append(reader.read(ChunkRequest(number, schema.id, None, 100), schema))
        finally:
            stop.set()
        assert sum(future.result(30) for future in written) > 100
    parts = read_to(log, MariaCatalog(source).position()).parts()
    reader.close()
    log.close()
    for chunk in chunks:
        assert chunk.witness is not None
        expected = {str(key): "0" for key in range(5, 13)}
        for part in parts:
            if chunk.witness.contains(part.id):
                expected.update((str(c.after[0]), str(c.after[1])) for c in part.changes if c.after)
        assert {str(row["id"]): row["v"] for row in chunk.rows.to_pylist()} == expected


def test_a_purged_log_is_a_gap(database: Database) -> None:
    source = source_of(database)
    catalog = MariaCatalog(source)
    old, tables = catalog.position(), catalog.tables(["t"])
    database.execute(
        "INSERT INTO t VALUES (6, 'purged')", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (7, 'kept')"
    )
    for _ in range(2):  # the first checkpoint may still hold the older file
        database.execute("FLUSH BINARY LOGS")
    newest = database.query("SHOW BINARY LOGS")[-1][0]
    if database.query("SHOW GLOBAL VARIABLES LIKE 'slave_connections_needed_for_purge'"):
        database.execute("SET GLOBAL slave_connections_needed_for_purge = 0")
    database.execute(f"PURGE BINARY LOGS TO '{newest}'")
    reader = MariaLogReader(source, tables)
    with pytest.raises(GapError) as gap:
        reader.start(old)
    assert "start a new dump" in gap.value.remedy
    reader.start(catalog.position())
    database.execute("INSERT INTO t VALUES (8, 'new')")
    assert [c.after for c in read_to(reader, catalog.position()).changes()] == [("8", "new")]
    reader.close()


def test_a_log_that_began_anew_is_a_gap(database: Database) -> None:
    source = source_of(database)
    database.execute("INSERT INTO t VALUES (6, 'x')")
    position, tables = MariaCatalog(source).position(), MariaCatalog(source).tables(["t"])
    database.execute("RESET MASTER")
    reader = MariaLogReader(source, tables)
    with pytest.raises(GapError, match="ends before"):
        reader.start(position)


def test_reading_goes_on_after_the_server_was_killed(database: Database, own_server: MariaDBServer) -> None:
    if own_server.embedded is None:
        pytest.skip("the server runs in a container, which this test can't kill")
    source, read = source_of(database), Read()
    reader, _ = started(source, "t")
    database.execute("INSERT INTO t VALUES (6, 'before')")
    read_to(reader, MariaCatalog(source).position(), read)
    own_server.embedded.kill()
    with pytest.raises(ConnectionFailed) as cut:
        read_until(reader, lambda _: False)
    assert cut.value.retryable
    with pytest.raises(ConnectionFailed) as refused:
        reader.start(read.parts()[-1].position)
    assert refused.value.retryable
    own_server.embedded.start()
    reader.start(read.parts()[-1].position)
    database.execute("INSERT INTO t VALUES (7, 'after')")
    read_to(reader, MariaCatalog(source).position(), read)
    reader.close()
    assert [change.after for change in read.changes()] == [("6", "before"), ("7", "after")]


def test_a_silent_server_is_noticed_by_its_missing_heartbeats(
    database: Database, own_server: MariaDBServer
) -> None:
    if own_server.embedded is None:
        pytest.skip("the server runs in a container, which this test can't freeze")
    reader, _ = started(source_of(database, silence_s=2.0), "t")
    began = time.monotonic()
    while time.monotonic() - began < 3.0:  # heartbeats keep an idle stream alive
        reader.read(0.5)
    os.kill(own_server.embedded.pid, signal.SIGSTOP)
    try:
        with pytest.raises(ConnectionFailed, match="no heartbeat") as silent:
            read_until(reader, lambda _: False)
    finally:
        os.kill(own_server.embedded.pid, signal.SIGCONT)
    assert silent.value.retryable


@pytest.mark.parametrize("checksum", ["NONE", "CRC32"])
def test_logs_with_and_without_checksums_are_read(database: Database, checksum: str) -> None:
    source = source_of(database)
    begin = MariaCatalog(source).position()
    database.execute("INSERT INTO t VALUES (6, 'a')", f"SET GLOBAL binlog_checksum = '{checksum}'")
    try:
        database.execute(
            "INSERT INTO t VALUES (7, 'b')", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (8, 'c')"
        )
        reader = MariaLogReader(source, MariaCatalog(source).tables(["t"]))
        reader.start(begin)
        read = read_to(reader, MariaCatalog(source).position())
        reader.close()
    finally:
        database.execute("SET GLOBAL binlog_checksum = 'CRC32'")
    assert [change.after for change in read.changes()] == [("6", "a"), ("7", "b"), ("8", "c")]
    assert len({part.id[0] for part in read.parts()}) > 1


def test_compressed_events_are_refused_by_name(database: Database) -> None:
    database.execute("SET GLOBAL log_bin_compress_min_len = 10", "SET GLOBAL log_bin_compress = 1")
    try:
        reader, _ = started(source_of(database), "t")
        database.execute(f"INSERT INTO t VALUES (6, '{'a' * 20}'), (7, '{'a' * 20}')")
        with pytest.raises(SourceError, match="log_bin_compress"):
            read_until(reader, lambda _: False)
        reader.close()
    finally:
        database.execute("SET GLOBAL log_bin_compress = 0")


def test_two_domains_in_one_log_keep_one_order(database: Database) -> None:
    source = source_of(database)
    reader, _ = started(source, "t")
    with database.connect() as connection, connection.cursor() as cursor:
        for number in range(10, 30):
            cursor.execute(f"SET SESSION gtid_domain_id = {number % 3}")
            cursor.execute(f"INSERT INTO t VALUES ({number}, 'x')")
    end = MariaCatalog(source).position()
    parts = read_to(reader, end).parts()
    orders = [part.position.order for part in parts]
    assert orders == sorted(set(orders))
    assert orders[-1] == end.order
    reader.start(parts[9].position)
    assert [part.id for part in read_to(reader, end).parts()] == [part.id for part in parts[10:]]
    reader.close()
