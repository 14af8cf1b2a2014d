"""Types that only MariaDB has, in what the cases for both engines can't reach: settings, old formats, keys."""

from __future__ import annotations

from random import Random

import pytest

from migrator.columnar.text import rows_to_table
from migrator.model.event import Operation
from tests.integration.binlog_engine import MARIADB, BinlogEngine
from tests.integration.binlog_reading import fold, read_to, source_of
from tests.integration.exact import assert_same
from tests.integration.sources.binlog.rows.test_binlog_values import assert_true, images, said_by_server
from tests.integration.sources.binlog_types import literal
from tests.servers import Database

pytestmark = pytest.mark.integration

ROWS = 30


@pytest.fixture(scope="module")
def engine() -> BinlogEngine:
    """These tests are this engine's."""
    return MARIADB


def test_times_in_the_old_format(engine: BinlogEngine, spare_database: Database) -> None:
    kinds = ["time", "datetime", "timestamp"]
    columns = [f"{kind}({digits})" if digits else kind for kind in kinds for digits in range(7)]
    names = [f"c{number}" for number in range(len(columns))]
    declared = ", ".join(f"{name} {kind} NULL" for name, kind in zip(names, columns, strict=True))
    spare_database.execute("SET GLOBAL mysql56_temporal_format = OFF")
    try:
        spare_database.execute(f"CREATE TABLE t (id int PRIMARY KEY AUTO_INCREMENT, {declared})")
    finally:
        spare_database.execute("SET GLOBAL mysql56_temporal_format = ON")
    source, random = source_of(spare_database), Random(3)
    reader, (schema,) = engine.started(source, "t")
    assert all("mariadb-5.3" in column.source_type for column in schema.columns[1:])
    extremes = {"time": "'-838:59:59.999999'", "datetime": "'9999-12-31 23:59:59.999999'"}
    rows = [
        ["NULL"] * len(columns),
        ["0"] * len(columns),
        [extremes.get(kind.split("(")[0], "'2038-01-19 03:14:07'") for kind in columns],
        ["'00:00:00.5'" if kind.startswith("time(") else "'1970-01-01 00:00:01'" for kind in columns],
        *([literal(kind, random) for kind in columns] for _ in range(ROWS)),
    ]
    with spare_database.connect(sql_mode="ALLOW_INVALID_DATES") as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        values = ", ".join(f"({', '.join(row)})" for row in rows)
        cursor.execute(f"INSERT IGNORE INTO t ({', '.join(names)}) VALUES {values}")
    read = read_to(reader, engine.end(source))
    reader.close()
    (chunk,) = engine.dump(source, schema, 100)
    assert chunk.row_count == len(rows)
    assert_true(chunk.rows, schema, said_by_server(spare_database, schema))
    assert_same(images(read, Operation.INSERT, "after"), chunk.rows)


def test_compressed_columns_by_any_setting_of_the_writer(
    engine: BinlogEngine, spare_database: Database
) -> None:
    spare_database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v varchar(16000) COMPRESSED, b longblob COMPRESSED,"
        " x mediumtext COMPRESSED CHARACTER SET sjis)"
    )
    source = source_of(spare_database)
    reader, (schema,) = engine.started(source, "t")
    settings = [
        "column_compression_zlib_wrap = ON",
        "column_compression_zlib_level = 9, column_compression_zlib_strategy = 'HUFFMAN_ONLY'",
        "column_compression_threshold = 0",
        "column_compression_threshold = 4294967295",
    ]
    with spare_database.connect() as connection, connection.cursor() as cursor:
        for number, setting in enumerate(settings):
            cursor.execute(f"SET SESSION {setting}")
            cursor.execute(
                "INSERT INTO t VALUES (%s, REPEAT('aé', 5000), REPEAT(X'00ff', 100000), REPEAT('漢a', 30000))",
                (number,),
            )
    read = read_to(reader, engine.end(source))
    reader.close()
    (chunk,) = engine.dump(source, schema, 10)
    assert_same(images(read, Operation.INSERT, "after"), chunk.rows)
    assert chunk.rows.to_pylist()[1:] == [
        {"id": number, "v": "aé" * 5000, "b": b"\x00\xff" * 100_000, "x": "漢a" * 30_000}
        for number in (1, 2, 3)
    ]


@pytest.mark.parametrize("kind", ["uuid", "inet4", "inet6"])
def test_addresses_as_keys(engine: BinlogEngine, spare_database: Database, kind: str) -> None:
    """The server orders uuids in its own way; the dump follows it, and both paths name a key alike."""
    spare_database.execute(f"CREATE TABLE t (k {kind} PRIMARY KEY, n int)")
    source, random = source_of(spare_database), Random(4)
    reader, (schema,) = engine.started(source, "t")
    values = ", ".join(f"({literal(kind, random)}, {number})" for number in range(ROWS))
    spare_database.execute(
        f"INSERT IGNORE INTO t VALUES {values}", "UPDATE t SET n = n + 1", "DELETE FROM t WHERE n < 5"
    )
    logged = fold(read_to(reader, engine.end(source)).changes(), schema.key_indexes())
    reader.close()
    chunks = engine.dump(source, schema, 7)
    assert len(chunks) > 3
    found = {row["k"]: row["n"] for chunk in chunks for row in chunk.rows.to_pylist()}
    assert found == {str(key): int(str(row[1])) for (key,), row in logged.items()}
    assert all(chunk.last_key in logged for chunk in chunks if chunk.row_count)
    assert rows_to_table(schema, list(logged.values())).schema == chunks[0].rows.schema


@pytest.mark.parametrize("compressed", [False, True])
def test_unique_texts_of_any_length_are_hashed_in_a_column_that_the_log_has(
    engine: BinlogEngine, spare_database: Database, compressed: bool
) -> None:
    """The catalog has no such column. From 11.8 on an update is logged without it, and without virtual columns."""
    spare_database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, name longtext UNIQUE, v int AS (id + 1) VIRTUAL, n int)",
        "CREATE TABLE k (name text NOT NULL UNIQUE, note text UNIQUE, n int)",
        "CREATE TABLE plain (v int AS (id + 1) VIRTUAL, id int PRIMARY KEY, w int AS (n) VIRTUAL, n int)",
    )
    source = source_of(spare_database)
    reader, schemas = engine.started(source, "t", "k", "plain")
    spare_database.execute(
        "SET GLOBAL log_bin_compress_min_len = 10", f"SET GLOBAL log_bin_compress = {int(compressed)}"
    )
    try:
        spare_database.execute(
            "INSERT INTO t (id, name, n) VALUES (1, repeat('x', 70000), 1), (2, NULL, 2), (3, 'a', NULL)",
            "UPDATE t SET n = 5",
            "UPDATE t SET name = 'ü' WHERE id = 1",
            "DELETE FROM t WHERE id = 3",
            "INSERT INTO k VALUES ('a', NULL, 1), ('b', 'x', 2)",
            "UPDATE k SET name = 'c', note = NULL WHERE n = 2",
            "DELETE FROM k WHERE n = 1",
            "INSERT INTO plain (id, n) VALUES (1, 1), (2, NULL)",
            "UPDATE plain SET n = 7, id = 3 WHERE id = 1",
        )
    finally:
        spare_database.execute("SET GLOBAL log_bin_compress = 0")
    changes = read_to(reader, engine.end(source)).changes()
    reader.close()
    for schema in schemas:
        logged = fold([one for one in changes if one.table == schema.id], schema.key_indexes())
        (chunk,) = engine.dump(source, schema, 10)
        assert chunk.rows.num_rows == len(logged)
        assert_same(rows_to_table(schema, [logged[key] for key in sorted(logged)]), chunk.rows)
