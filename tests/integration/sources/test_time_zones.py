"""Instants and naive times where writers and servers live in other time zones than ours."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.columnar.text import rows_to_table
from migrator.errors import SourceError
from migrator.model.chunk import ChunkRequest
from tests.fix_postgres_source import changes as changes_of
from tests.fix_postgres_source import chunk_reader, log_reader, prepared
from tests.fix_postgres_source import read_to as read_postgres
from tests.fix_postgres_source import source_of as postgres_source
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import read_to, source_of
from tests.integration.exact import assert_same
from tests.servers import Database

pytestmark = pytest.mark.integration

EUROPE = (
    "INSERT INTO mysql.time_zone (Time_zone_id, Use_leap_seconds) VALUES (9901, 'N')",
    "INSERT INTO mysql.time_zone_name (Name, Time_zone_id) VALUES ('Test/Berlin', 9901)",
    "INSERT INTO mysql.time_zone_transition_type VALUES (9901, 0, 3600, 0, 'CET'), (9901, 1, 7200, 1, 'CEST')",
    # 2024-03-31 01:00 UTC and 2024-10-27 01:00 UTC
    "INSERT INTO mysql.time_zone_transition VALUES (9901, 0, 0), (9901, 1711846800, 1), (9901, 1729990800, 0)",
)
"""A zone with one summer. The server's own tables of zones are empty until an administrator fills them."""
FORGOTTEN = tuple(
    f"DELETE FROM mysql.{table} WHERE Time_zone_id = 9901"
    for table in ("time_zone", "time_zone_name", "time_zone_transition_type", "time_zone_transition")
)
WRITTEN = {
    1: ("Test/Berlin", "2024-03-31 01:59:59.5", "2024-03-31 00:59:59.50"),
    2: ("Test/Berlin", "2024-03-31 03:00:00", "2024-03-31 01:00:00.00"),
    3: ("Test/Berlin", "2024-10-27 03:00:00", "2024-10-27 02:00:00.00"),
    4: ("+05:45", "2024-03-31 02:30:00", "2024-03-30 20:45:00.00"),
    5: ("-12:00", "2024-12-31 23:59:59.99", "2025-01-01 11:59:59.99"),
    6: ("+13:00", "2038-01-19 16:14:07", "2038-01-19 03:14:07.00"),
}
"""Key -> the writer's time zone, what it writes, and the instant in UTC."""


@pytest.fixture
def zoned(spare_database: Database) -> Database:
    """A server that lives in a zone far from UTC, and knows one with summer time."""
    spare_database.execute(*FORGOTTEN, *EUROPE, "SET GLOBAL time_zone = '-08:30'")
    return spare_database


def test_timestamps_are_instants_and_datetimes_are_not(engine: BinlogEngine, zoned: Database) -> None:
    try:
        zoned.execute(
            "CREATE TABLE t (id int PRIMARY KEY, at timestamp(2) NULL, naive datetime(2),"
            " made timestamp(6) NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6))"
        )
        source = source_of(zoned)
        reader, (schema,) = engine.started(source, "t")
        with zoned.connect() as connection, connection.cursor() as cursor:
            for key, (zone, written, _) in WRITTEN.items():
                cursor.execute("SET time_zone = %s", (zone,))
                cursor.execute("INSERT INTO t (id, at, naive) VALUES (%s, %s, %s)", (key, written, written))
            cursor.execute("UPDATE t SET naive = ADDTIME(naive, '0:0:1')")
        changes = read_to(reader, engine.end(source)).changes()
        reader.close()
        (chunk,) = engine.dump(source, schema, 10)
    finally:
        zoned.execute(*FORGOTTEN, "SET GLOBAL time_zone = '+00:00'")
    inserted = [change.after for change in changes if change.before is None and change.after]
    assert [(row[1], str(row[2])[:19]) for row in inserted] == [
        (instant, written[:19]) for _, written, instant in WRITTEN.values()
    ]
    updated = [change.after for change in changes if change.before is not None and change.after]
    assert_same(rows_to_table(schema, updated), chunk.rows)
    assert chunk.rows["at"].to_pylist() == [instant for _, _, instant in WRITTEN.values()]


def test_the_hour_that_comes_twice_keeps_both_instants(engine: BinlogEngine, zoned: Database) -> None:
    """02:30 on that day is two instants; a writer in UTC tells them apart, and so do both paths."""
    try:
        zoned.execute("CREATE TABLE t (id int PRIMARY KEY, at timestamp NULL)")
        source = source_of(zoned)
        reader, (schema,) = engine.started(source, "t")
        with zoned.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute("INSERT INTO t VALUES (1, '2024-10-27 00:30:00'), (2, '2024-10-27 01:30:00')")
            cursor.execute("SET time_zone = 'Test/Berlin'")
            cursor.execute("SELECT COUNT(DISTINCT CAST(at AS CHAR)) FROM t")
            assert cursor.fetchall() == ((1,),), "a reader in that zone would take them for one"
        changes = read_to(reader, engine.end(source)).changes()
        reader.close()
        (chunk,) = engine.dump(source, schema, 10)
    finally:
        zoned.execute(*FORGOTTEN, "SET GLOBAL time_zone = '+00:00'")
    assert chunk.rows["at"].to_pylist() == ["2024-10-27 00:30:00", "2024-10-27 01:30:00"]
    assert_same(rows_to_table(schema, [change.after for change in changes if change.after]), chunk.rows)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kathmandu"])
def test_postgresql_writers_in_any_zone(old_pg: Database, zone: str) -> None:
    old_pg.execute(
        "CREATE TABLE t (id int PRIMARY KEY, at timestamptz, naive timestamp)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
    )
    source = postgres_source(old_pg)
    (schema,) = prepared(source, "t")
    moments = [
        *("2024-03-31 02:30:00", "2024-10-27 02:30:00", "2024-03-10 02:30:00", "1883-11-18 12:03:58"),
        *("infinity", "-infinity", "4713-12-31 23:00:00 BC", "294246-12-31 23:59:59.999999"),
    ]
    with old_pg.connect() as connection:
        connection.execute(f"SET timezone = '{zone}'")
        for key, moment in enumerate(moments):
            connection.execute("INSERT INTO t VALUES (%s, %s, %s)", [key, moment, moment])
        connection.execute("SET timezone = 'UTC'")
        truth = connection.execute(
            "SELECT CASE WHEN isfinite(at) THEN (extract(epoch FROM at) * 1000000)::int8 END,"
            " CASE WHEN isfinite(naive) THEN (extract(epoch FROM naive) * 1000000)::int8 END FROM t ORDER BY id"
        ).fetchall()
    with chunk_reader(source) as chunks, log_reader(source, [schema]) as log:
        chunk = chunks.read(ChunkRequest(1, schema.id, None, 100), schema)
        changes = changes_of(read_postgres(log, chunk.high))
    assert_same(rows_to_table(schema, [change.after for change in changes if change.after]), chunk.rows)
    limit = 2**63 - 1
    for name, place in (("at", 0), ("naive", 1)):
        found = pc.cast(chunk.rows[name], pa.int64()).to_pylist()
        assert found == [
            limit if moments[n] == "infinity" else -limit - 1 if moments[n] == "-infinity" else row[place]
            for n, row in enumerate(truth)
        ]


@pytest.mark.parametrize("kind", ["timestamp", "timestamptz"])
def test_the_last_year_of_postgresql_stops_by_name(old_pg: Database, kind: str) -> None:
    """294276 is beyond what 64 bits of microseconds since 1970 hold; no such value may wrap around."""
    old_pg.execute(f"CREATE TABLE t (id int PRIMARY KEY, v {kind})", "ALTER TABLE t REPLICA IDENTITY FULL")
    source = postgres_source(old_pg)
    (schema,) = prepared(source, "t")
    old_pg.execute("SET timezone = 'UTC'", "INSERT INTO t VALUES (1, '294276-12-31 23:59:59.999999')")
    with chunk_reader(source) as chunks, log_reader(source, [schema]) as log:
        with pytest.raises(SourceError, match=r"t\.v can't be represented"):
            chunks.read(ChunkRequest(1, schema.id, None, 100), schema)
        (change,) = changes_of(read_postgres(log, PostgresCatalog(source).position()))
    with pytest.raises(SourceError, match=r"t\.v can't be represented"):
        rows_to_table(schema, [change.after] if change.after else [])
