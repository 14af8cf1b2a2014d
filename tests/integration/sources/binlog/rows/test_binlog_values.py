"""Every type of MySQL and MariaDB: what the log, the chunk and the server itself say of each value is the same."""

from __future__ import annotations

import struct
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import migrator.adapters.sources.binlog.chunks.chunk_reader as chunk_reader_module
from migrator.adapters.sources.binlog.keyset import base_type
from migrator.adapters.sources.binlog.rows import value_text
from migrator.columnar.text import bytes_to_table, rows_to_table
from migrator.model.event import Operation, Row
from migrator.model.table import Column, TableSchema
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import Read, read_to, source_of
from tests.integration.exact import assert_same
from tests.integration.sources.binlog_types import columns_of, literal
from tests.servers import Database

pytestmark = pytest.mark.integration

RANDOM_ROWS = 40
SEEDS = [1]


def create(database: Database, name: str = "t") -> list[str]:
    """A table with a column of every type. Returns the names of those that can be written."""
    columns = columns_of(database.kind)
    declared = ", ".join(f"`{column}` {kind}" for column, (kind, _) in columns.items())
    generated = "`stored` int as (tiny + 1) stored, `virtual` int as (tiny + 2) virtual"
    database.execute(
        f"CREATE TABLE {name} (id int PRIMARY KEY AUTO_INCREMENT, {declared}, {generated},"
        " `hidden` int invisible default 7)"
    )
    return [*columns, "hidden"]


def fill(database: Database, writable: list[str], seed: int) -> int:
    """A row of NULLs, rows that go round through the extreme values of every column, and rows of random values."""
    random, columns = Random(seed), columns_of(database.kind) | {"hidden": ("int", ["9"])}
    rows = [["NULL"] * len(writable)]
    for row in range(max(len(values) for _, values in columns.values())):
        extremes = [columns[name][1] or ["NULL"] for name in writable]
        rows.append([values[row % len(values)] for values in extremes])
    rows += [
        ["NULL" if random.random() < 0.05 else literal(columns[name][0], random) for name in writable]
        for _ in range(RANDOM_ROWS)
    ]
    names = ", ".join(f"`{name}`" for name in writable)
    with database.connect(sql_mode="ALLOW_INVALID_DATES") as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        for at in range(0, len(rows), 10):
            values = ", ".join(f"({', '.join(row)})" for row in rows[at : at + 10])
            cursor.execute(f"INSERT IGNORE INTO t ({names}) VALUES {values}")
        cursor.execute(
            "INSERT IGNORE INTO t (labels, flags, exact) VALUES (99, 0, -0.0)"
        )  # an invalid enum is ''
    return len(rows) + 1


def shuffle(database: Database, writable: list[str]) -> None:
    """Every row gets the values of the next one, in one statement."""
    copied = ", ".join(f"one.`{name}` = two.`{name}`" for name in writable)
    with database.connect(sql_mode="ALLOW_INVALID_DATES") as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute("CREATE TABLE copy LIKE t")
        names = ", ".join(f"`{name}`" for name in ["id", *writable])
        cursor.execute(f"INSERT IGNORE INTO copy ({names}) SELECT {names} FROM t")
        cursor.execute("SELECT MAX(id) FROM t")
        ((most,),) = cursor.fetchall()
        cursor.execute(f"UPDATE IGNORE t one JOIN copy two ON two.id = one.id % {most} + 1 SET {copied}")


def said_by_server(database: Database, schema: TableSchema) -> list[list[object]]:
    """The columns of the table as a plain session prints them, read by Python's own types."""
    connection = database.connect(conv={}, sql_mode="ALLOW_INVALID_DATES")
    with connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT {', '.join(map(_printed, schema.columns))} FROM t ORDER BY id")
        columns = list(zip(*cursor.fetchall(), strict=True))
    return [
        [None if value is None else _parsed(column, value) for value in values]
        for column, values in zip(schema.columns, columns, strict=True)
    ]


def _printed(column: Column) -> str:
    name = f"`{column.name}`"
    if base_type(column) == "bit":
        width = (int(column.source_type[4:-1]) + 7) // 8
        return f"LPAD(HEX({name}), {2 * width}, '0')"
    if column.type == "binary":
        return f"HEX({name})"
    if column.type in ("float32", "float64"):
        return f"CAST({name} AS DOUBLE)"
    return f"HEX(CONVERT(CAST({name} AS CHAR) USING utf8mb4))" if column.type == "string" else f"{name} + 0"


def _parsed(column: Column, text: str) -> object:
    if column.type in ("float32", "float64"):
        return struct.pack("<f" if column.type == "float32" else "<d", float(text))
    if column.type in ("binary", "string"):
        value = bytes.fromhex(text)
        return value if column.type == "binary" else value.decode()
    return Decimal(text) if column.decimal() else int(text)


def in_python(schema: TableSchema, rows: pa.Table) -> list[list[object]]:
    """The same of Arrow columns."""
    return [
        [
            struct.pack("<f" if column.type == "float32" else "<d", value)
            if isinstance(value, float)
            else value
            for value in rows[column.name].to_pylist()
        ]
        for column in schema.columns
    ]


def assert_true(rows: pa.Table, schema: TableSchema, truth: list[list[object]]) -> None:
    for column, values, true in zip(schema.columns, in_python(schema, rows), truth, strict=True):
        assert (column.name, values) == (column.name, true)


def images(read: Read, operation: Operation, which: str) -> pa.Table:
    """One kind of image of one kind of change, by key, as they come into a segment: decoded many at once."""
    found = []
    for run in (run for part in read.parts() for run in part.runs):
        changes = run.codec.changes(run.items)
        places, signs, rows = run.codec.images(run.items)
        wanted = -1 if which == "before" else 1
        kept = [
            changes[place].operation is operation and sign == wanted
            for place, sign in zip(places, signs, strict=True)
        ]
        as_text = [getattr(change, which) for change in changes if change.operation is operation]
        assert_same(rows.filter(pa.array(kept, pa.bool_())), rows_to_table(run.codec.schema, as_text))
        found.append(rows.filter(pa.array(kept, pa.bool_())))
    return pa.concat_tables(found).sort_by("id")


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[list[Row]]:
    """What chunks are decoded from: rows of text, for each chunk."""
    seen: list[list[Row]] = []

    def spied(schema: TableSchema, batches: Any) -> pa.Table:
        rows = [
            row for batch in batches for row in zip(*(column.to_pylist() for column in batch), strict=True)
        ]
        binary = [column.type == "binary" for column in schema.columns]
        seen.append(
            [
                tuple(v if v is None or b else v.decode() for v, b in zip(row, binary, strict=True))
                for row in rows
            ]
        )
        return bytes_to_table(schema, batches)

    monkeypatch.setattr(chunk_reader_module, "bytes_to_table", spied)
    return seen


@pytest.mark.parametrize("seed", SEEDS)
def test_log_chunk_and_server_agree_on_every_value(
    engine: BinlogEngine, old_binlog: Database, texts: list[list[Row]], seed: int
) -> None:
    writable = create(old_binlog)
    source = source_of(old_binlog)
    reader, (schema,) = engine.started(source, "t")
    count = fill(old_binlog, writable, seed)
    (old,), old_truth = engine.dump(source, schema, 1000), said_by_server(old_binlog, schema)
    shuffle(old_binlog, writable)
    (new,), new_truth = engine.dump(source, schema, 1000), said_by_server(old_binlog, schema)
    old_binlog.execute("DELETE FROM t")
    read = read_to(reader, engine.end(source))
    changes = read.changes()
    reader.close()

    assert old.row_count == new.row_count == count
    assert_true(old.rows, schema, old_truth)
    assert_true(new.rows, schema, new_truth)
    assert_same(images(read, Operation.INSERT, "after"), old.rows, "insert")
    updated = {change.after[0] for change in changes if change.operation is Operation.UPDATE and change.after}
    assert len(updated) > RANDOM_ROWS
    for row in (row for row in texts[1] if row[0] in updated):
        (change,) = (
            c for c in changes if c.operation is Operation.UPDATE and c.after and c.after[0] == row[0]
        )
        assert list(zip(schema.names(), row, strict=True)) == list(
            zip(schema.names(), change.after or (), strict=True)
        )
        assert change.before in texts[0]
    assert_same(images(read, Operation.DELETE, "before"), new.rows, "delete")


def test_the_comparison_catches_a_decoder_that_is_wrong_about_one_type(
    engine: BinlogEngine, old_binlog: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_text, "year_text", lambda value: str(1901 + value))
    old_binlog.execute("CREATE TABLE t (id int PRIMARY KEY, made year)")
    source = source_of(old_binlog)
    reader, (schema,) = engine.started(source, "t")
    old_binlog.execute("INSERT INTO t VALUES (1, 2024)")
    (chunk,) = engine.dump(source, schema, 10)
    logged = images(read_to(reader, engine.end(source)), Operation.INSERT, "after")
    reader.close()
    assert_true(chunk.rows, schema, said_by_server(old_binlog, schema))
    with pytest.raises(AssertionError, match="made, row 0"):
        assert_same(logged, chunk.rows)
    with pytest.raises(AssertionError, match="made"):
        assert_true(logged, schema, said_by_server(old_binlog, schema))
