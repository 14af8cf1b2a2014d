"""Races and faults on a server of their own: the commit that is logged but not visible, purged logs, restarts."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from migrator.adapters.mysql.catalog import MysqlCatalog
from migrator.adapters.mysql.chunk_reader import MysqlChunkReader
from migrator.adapters.mysql.log_reader import MysqlLogReader
from migrator.columnar.keys import without_keys
from migrator.core.capture import Capture, EmitChunk, EmitPart
from migrator.core.dump import DumpPlan
from migrator.errors import ConnectionFailed, GapError
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.event import Key, TransactionId, TransactionPart
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.table import TableSchema
from tests.integration.mariadb_reading import Read, read_to, read_until, source_of
from tests.integration.mysql_reading import started
from tests.servers import (
    Database,
    DockerServers,
    EmbeddedServers,
    MariaDBServer,
    fresh_database,
    mysql_server,
)

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def own_server(servers: EmbeddedServers | DockerServers) -> MariaDBServer:
    """These tests change global settings, purge logs and stop the server."""
    return mysql_server(servers, "mysql_faults")


@pytest.fixture
def database(own_server: MariaDBServer) -> Iterator[Database]:
    with fresh_database(own_server, "old") as fresh:
        fresh.execute("CREATE TABLE t (id int PRIMARY KEY, v varchar(20))", "INSERT INTO t VALUES (5, 'old')")
        yield fresh


@pytest.fixture
def semi_sync(database: Database) -> Iterator[Database]:
    """Commits wait between log and visibility for a replica that doesn't exist."""
    if not database.query("SELECT * FROM mysql.plugin WHERE name = 'rpl_semi_sync_source'"):
        database.execute("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
    database.execute(
        "SET GLOBAL rpl_semi_sync_source_timeout = 600000",
        "SET GLOBAL rpl_semi_sync_source_wait_point = 'AFTER_SYNC'",
        "SET GLOBAL rpl_semi_sync_source_enabled = 1",
    )
    yield database
    database.execute("SET GLOBAL rpl_semi_sync_source_enabled = 0")


class _Everything:
    """The plain algorithm, in this test only: whatever lies at or before ``high`` counts as seen by the SELECT."""

    def contains(self, transaction: TransactionId) -> bool:
        return True


def _delivered(schema: TableSchema, begin: Position, part: TransactionPart, chunk: Chunk) -> list[str]:
    """What the core delivers of key 5, in order, when the log's event comes first and the chunk second."""
    plan = DumpPlan([TableDump(schema.id)], 10)
    core = Capture(Checkpoint(begin, dumps=plan.dumps()), {schema.id: schema}, plan, _without)
    request = core.next_request()
    assert request is not None
    outputs = [*core.on_record(part), *core.on_chunk(replace(chunk, request=request))]
    values = []
    for output in outputs:
        if isinstance(output, EmitPart):
            values += [str(change.after[1]) for change in output.part.changes if change.after]
        elif isinstance(output, EmitChunk):
            values += [str(value) for value in output.rows["v"].to_pylist()]
    return values


def _without(schema: TableSchema, rows: Any, keys: frozenset[Key]) -> tuple[Any, int]:
    kept = without_keys(schema, rows, keys)
    return kept, kept.num_rows


def test_a_commit_that_is_logged_but_not_visible_is_outside_the_witness(semi_sync: Database) -> None:
    source = source_of(semi_sync)
    log, (schema,) = started(source, "t")
    begin = MysqlCatalog(source).position()
    reader = MysqlChunkReader(source)
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
            semi_sync.execute("SET GLOBAL rpl_semi_sync_source_enabled = 0")
        writer.result(30)
    assert _delivered(schema, begin, part, chunk) == ["NEW"]
    assert _delivered(schema, begin, part, replace(chunk, witness=_Everything())) == ["NEW", "old"]
    later = reader.read(request, schema)
    assert later.rows["v"].to_pylist() == ["NEW"]
    assert later.witness is not None
    assert later.witness.contains(part.id)
    reader.close()
    log.close()


def test_a_first_start_takes_along_what_is_logged_but_not_visible(semi_sync: Database) -> None:
    """Else neither the log's reader nor the first chunks would ever bring it."""
    source = source_of(semi_sync)
    catalog = MysqlCatalog(source)
    schemas = catalog.tables(["t"])
    before, reader = catalog.position(), MysqlChunkReader(source)
    with ThreadPoolExecutor(1) as pool:
        try:
            writer = pool.submit(semi_sync.execute, "UPDATE t SET v = 'NEW' WHERE id = 5")
            deadline = time.monotonic() + 30
            while catalog.position() <= before:
                assert time.monotonic() < deadline
            log = MysqlLogReader(source, schemas)
            begin = log.start(None)
            assert not writer.done()
            assert reader.read(ChunkRequest(1, schemas[0].id, None, 10), schemas[0]).rows[
                "v"
            ].to_pylist() == ["old"]
            assert begin <= before
            (part,) = read_until(log, lambda read: bool(read.parts())).parts()
            assert [change.after for change in part.changes] == [("5", "NEW")]
        finally:
            semi_sync.execute("SET GLOBAL rpl_semi_sync_source_enabled = 0")
        writer.result(30)
    reader.close()
    log.close()


def test_chunks_lie_between_witness_and_high_under_hot_writes(database: Database) -> None:
    """A row is never older than what the witness contains, never newer than what the log has up to ``high``."""
    database.execute("UPDATE t SET v = '0'", *(f"INSERT INTO t VALUES ({key}, '0')" for key in range(6, 13)))
    source = source_of(database)
    log, (schema,) = started(source, "t")
    reader = MysqlChunkReader(source)
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
    parts = read_to(log, MysqlCatalog(source).position()).parts()
    reader.close()
    log.close()
    for chunk in chunks:
        assert chunk.witness is not None
        least, most = ({str(key): 0 for key in range(5, 13)} for _ in range(2))
        for part in parts:
            after = {str(c.after[0]): int(str(c.after[1])) for c in part.changes if c.after}
            if chunk.witness.contains(part.id):
                least.update(after)
            if part.position <= chunk.high:
                most.update(after)
        found = {str(row["id"]): int(row["v"]) for row in chunk.rows.to_pylist()}
        assert all(least[key] <= found[key] <= most[key] for key in found), (least, found, most)


def test_cut_after_any_event_it_goes_on_exactly(database: Database) -> None:
    """Whatever the reader had taken in when the connection was cut: nothing comes twice, nothing is missing."""
    source = source_of(database, part_rows=2)
    catalog = MysqlCatalog(source)
    begin = catalog.position()
    with database.connect() as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO t VALUES (10, 'a'), (11, 'b'), (12, 'c'), (13, 'd'), (14, 'e')")
        cursor.execute("UPDATE t SET id = id + 100 WHERE id > 9")
        cursor.execute("SET SESSION binlog_transaction_compression = ON")
        cursor.execute("INSERT INTO t VALUES (20, 'a'), (21, 'b'), (22, 'c')")
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("CREATE TABLE aside (id int)")
        cursor.execute("DELETE FROM t WHERE id IN (20, 110)")
    end = catalog.position()
    reader = MysqlLogReader(source, catalog.tables(["t"]))
    reader.start(begin)
    whole = read_to(reader, end).changes()
    assert len(whole) == 15
    taken = 0
    while True:  # one event more each time
        reader.start(begin)
        assert reader._assembler is not None
        raw = list(reader._raw)
        while len(raw) < 40 and (more := reader._stream.events(0.5)):  # type: ignore[union-attr]
            raw += more
        if taken > len(raw):
            break
        for event in raw[:taken]:
            reader._assembler.feed(event)
        before = Read(list(reader._assembler.take()))
        finished = [part for part in before.parts() if part.last]
        kept = [
            change
            for part in before.parts()
            if part.position in {p.position for p in finished}
            for change in part.changes
        ]
        place = finished[-1].position if finished else begin
        reader.start(place)
        assert kept + (read_to(reader, end).changes() if place < end else []) == whole
        taken += 1
    reader.close()
    assert taken > 20


def test_a_purged_log_is_a_gap(database: Database) -> None:
    source = source_of(database)
    catalog = MysqlCatalog(source)
    old, tables = catalog.position(), catalog.tables(["t"])
    database.execute(
        "INSERT INTO t VALUES (6, 'purged')", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (7, 'kept')"
    )
    newest = database.query("SHOW BINARY LOGS")[-1][0]
    database.execute(f"PURGE BINARY LOGS TO '{newest}'")
    reader = MysqlLogReader(source, tables)
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
    position, tables = MysqlCatalog(source).position(), MysqlCatalog(source).tables(["t"])
    database.execute("RESET BINARY LOGS AND GTIDS")
    reader = MysqlLogReader(source, tables)
    with pytest.raises(GapError, match="ends before"):
        reader.start(position)


def test_reading_goes_on_after_the_server_was_killed(database: Database, own_server: MariaDBServer) -> None:
    if own_server.embedded is None:
        pytest.skip("the server runs in a container, which this test can't kill")
    source, read = source_of(database), Read()
    reader, _ = started(source, "t")
    database.execute("INSERT INTO t VALUES (6, 'before')")
    read_to(reader, MysqlCatalog(source).position(), read)
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
    read_to(reader, MysqlCatalog(source).position(), read)
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
    begin = MysqlCatalog(source).position()
    database.execute("INSERT INTO t VALUES (6, 'a')", f"SET GLOBAL binlog_checksum = '{checksum}'")
    try:
        database.execute(
            "INSERT INTO t VALUES (7, 'b')", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (8, 'c')"
        )
        reader = MysqlLogReader(source, MysqlCatalog(source).tables(["t"]))
        reader.start(begin)
        read = read_to(reader, MysqlCatalog(source).position())
        reader.close()
    finally:
        database.execute("SET GLOBAL binlog_checksum = 'CRC32'")
    assert [change.after for change in read.changes()] == [("6", "a"), ("7", "b"), ("8", "c")]
