"""Values of 16 MB and more on each engine: by the chunk, by the log in bounded parts, and through the event log."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from migrator.adapters.event_log.files.segment_reader import FileSegmentReader
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.adapters.sources.binlog.transactions import assembler as transactions
from migrator.adapters.sources.mariadb.catalog import UntoldPlaceError, visible_end
from migrator.adapters.sources.mariadb.log_walk import gtids_at
from migrator.adapters.sources.mariadb.position import parse_gtids
from migrator.core.capture import EmitChunk, EmitPart
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.event import TransactionPart
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.segment import FileKind
from migrator.model.table import TableSchema
from migrator.run.capture.segment_builder import SegmentBuilder
from tests.fix_postgres_source import chunk_reader, log_reader, prepared
from tests.fix_postgres_source import parts as parts_of
from tests.fix_postgres_source import read_to as read_postgres
from tests.fix_postgres_source import source_of as postgres_source
from tests.integration.binlog_engine import MARIADB, BinlogEngine
from tests.integration.binlog_reading import max_allowed_packet, read_to, source_of
from tests.servers import Database, MariaDBServer, fresh_database

pytestmark = pytest.mark.integration

PART_BYTES = 8 << 20
PACKET = 0xFFFFFF
SIZES = {
    1: PACKET - 6,  # the SELECT's row fills one packet to the last byte, so that an empty one follows
    2: PACKET - 45,  # so does MySQL's event
    3: PACKET - 43,  # and MariaDB's
    4: PACKET + 1,
    5: 3,
}
"""Key -> bytes of its value. All are over what one packet of the MySQL protocol holds but the last."""


def digests(rows: pa.Table) -> dict[int, str]:
    """Key -> length and hash of the value."""
    return {
        key: f"{len(value)} {hashlib.sha256(value).hexdigest()[:16]}"
        for key, value in zip(rows["id"].to_pylist(), rows["b"].to_pylist(), strict=True)
    }


def wanted(sizes: dict[int, int]) -> dict[int, str]:
    """The same of what is written."""
    pattern = bytes.fromhex("00ff5c27")
    return {
        key: f"{size} {hashlib.sha256((pattern * (size // 4 + 1))[:size]).hexdigest()[:16]}"
        for key, size in sizes.items()
    }


def through_the_event_log(
    directory: Path, schema: TableSchema, parts: list[TransactionPart], chunk: Chunk
) -> tuple[pa.Table, pa.Table]:
    """The rows of log and chunk as a segment's reader gets them."""
    builder = SegmentBuilder({schema.id: schema})
    for part in parts:
        builder.add(EmitPart(part))
    builder.add(EmitChunk(chunk, chunk.rows, chunk.row_count, TableDump(schema.id, chunk.last_key, False)))
    writer = FileSegmentWriter(directory, 1)
    writer.append(builder.content(Checkpoint(parts[-1].position), True))
    reader = FileSegmentReader(directory, "test")
    try:
        segment = reader.read_segment(0, 0)
        assert segment is not None
        found = {data.kind: data.rows for data in segment.data}
    finally:
        reader.close()
    return found[FileKind.LOG], found[FileKind.CHUNK]


def assert_whole(
    directory: Path, schema: TableSchema, sizes: dict[int, int], parts: list[TransactionPart], chunk: Chunk
) -> None:
    assert len(parts) >= sum(size > PART_BYTES for size in sizes.values()), (
        "each large row is a part of its own"
    )
    assert digests(chunk.rows) == wanted(sizes)
    logged, dumped = through_the_event_log(directory, schema, parts, chunk)
    assert digests(logged) == digests(dumped) == wanted(sizes)


@pytest.mark.slow
def test_on_mysql_and_mariadb(
    engine: BinlogEngine, spare_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "PART_BYTES", PART_BYTES)
    spare_database.execute("CREATE TABLE wide (id int PRIMARY KEY, b longblob)")
    with max_allowed_packet(spare_database, 64 << 20):
        source = source_of(spare_database)
        reader, (schema,) = engine.started(source, "wide")
        values = ", ".join(
            f"({key}, LEFT(REPEAT(x'00ff5c27', {n // 4 + 1}), {n}))" for key, n in SIZES.items()
        )
        spare_database.execute(f"INSERT INTO wide VALUES {values}")
        parts = read_to(reader, engine.end(source)).parts()
        reader.close()
    (chunk,) = engine.dump(source, schema, 10)
    assert_whole(tmp_path, schema, SIZES, parts, chunk)


def test_a_row_larger_than_max_allowed_packet(engine: BinlogEngine, spare_database: Database) -> None:
    """The server sends it all the same, on both paths: its columns were written one by one."""
    columns = ", ".join(f"b{n} longblob" for n in range(3))
    spare_database.execute(f"CREATE TABLE wide (id int PRIMARY KEY, {columns})", "FLUSH BINARY LOGS")
    with max_allowed_packet(spare_database, 8 << 20):
        source = source_of(spare_database)
        reader, (schema,) = engine.started(source, "wide")
        spare_database.execute("INSERT INTO wide (id) VALUES (1)")
        for n in range(3):
            spare_database.execute(f"UPDATE wide SET b{n} = REPEAT('{n}', 7000000)")
        (chunk,) = engine.dump(source, schema, 10)
        changes = read_to(reader, engine.end(source)).changes()
        reader.close()
    row = ("1", *(b"%d" % n * 7_000_000 for n in range(3)))
    assert changes[-1].after == row
    assert chunk.rows.to_pylist() == [{"id": 1, "b0": row[1], "b1": row[2], "b2": row[3]}]


def test_a_first_start_on_mariadb_behind_an_event_larger_than_its_packets(
    spare_mariadb: MariaDBServer,
) -> None:
    """BINLOG_GTID_POS knows nothing there, so the file is read. With larger packets it says the same."""
    with fresh_database(spare_mariadb, "old") as database, max_allowed_packet(database, 1 << 20):
        database.execute(
            "CREATE TABLE t (id int PRIMARY KEY, b longblob)",
            "FLUSH BINARY LOGS",
            "INSERT INTO t VALUES (1, REPEAT('x', 900000))",
            "UPDATE t SET b = REPEAT('y', 900000)",
            "SET SESSION gtid_domain_id = 7",
            "INSERT INTO t VALUES (2, 'z')",
        )
        source = source_of(database)
        with database.connect() as connection, pytest.raises(UntoldPlaceError) as untold:
            visible_end(connection)
        place = untold.value.snapshot
        reader, _ = MARIADB.started(source, "t")
        database.execute("INSERT INTO t VALUES (3, 'after')")
        changes = read_to(reader, MARIADB.end(source)).changes()
        reader.close()
        database.execute(f"SET GLOBAL max_allowed_packet = {64 << 20}")
        ((told,),) = database.query("SELECT BINLOG_GTID_POS(%s, %s)", (place.file, place.position))
        ((before,),) = database.query("SELECT BINLOG_GTID_POS(%s, %s)", (place.file, 4))
        assert gtids_at(source, place) == parse_gtids(told) != parse_gtids(before)
    assert [change.after for change in changes] == [("3", b"after")]


def test_on_postgresql(old_pg: Database, tmp_path: Path) -> None:
    old_pg.execute(
        "CREATE TABLE wide (id int PRIMARY KEY, b bytea)", "ALTER TABLE wide REPLICA IDENTITY FULL"
    )
    sizes = {4: SIZES[4], 5: SIZES[5]}
    source: Any = postgres_source(old_pg, part_bytes=PART_BYTES)
    (schema,) = prepared(source, "wide")
    values = ", ".join(
        f"({key}, substr(decode(repeat('00ff5c27', {size // 4 + 1}), 'hex'), 1, {size}))"
        for key, size in sizes.items()
    )
    old_pg.execute(f"INSERT INTO wide VALUES {values}")
    with chunk_reader(source) as chunks, log_reader(source, [schema]) as log:
        chunk = chunks.read(ChunkRequest(1, schema.id, None, 10), schema)
        parts = parts_of(read_postgres(log, chunk.high))
    assert_whole(tmp_path, schema, sizes, [part for part in parts if part.changes], chunk)
