"""Every type of PostgreSQL: what the log, the chunk and the server itself say of each value is the same."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from contextlib import ExitStack, closing
from decimal import Decimal
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.change_tables.catalog import ChangeTableCatalog
from migrator.adapters.sources.postgres.change_tables.chunk_views import (
    chunk_reader as change_table_chunks,
)
from migrator.adapters.sources.postgres.change_tables.log_reader import ChangeTableLogReader
from migrator.adapters.sources.postgres.log.log_reader import PostgresLogReader
from migrator.adapters.sources.postgres.settings import CHANGE_TABLES, SERVER_LOG, PostgresSource
from migrator.columnar.text import rows_to_table
from migrator.errors import SchemaError, SourceError
from migrator.model.chunk import ChunkRequest
from migrator.model.event import Operation, Row, RowChange
from migrator.model.position import Position
from migrator.model.table import Column, TableSchema
from migrator.ports.log_notes import LogNotes
from migrator.ports.source import LogReader
from tests import fix_change_tables
from tests.fix_postgres_source import changes as changes_of
from tests.fix_postgres_source import chunk_reader, log_reader, prepared, read_to, read_until, source_of
from tests.integration.exact import assert_same, exactly
from tests.integration.sources.postgres.postgres_types import CASES, DRAW, MADE, NEVER_STORED, REFUSED, TYPES
from tests.servers import POSTGRES_VERSION, Database, server_of
from verify.readers.postgres.source import PostgresSource as JudgedSource
from verify.settings import ServerSettings

pytestmark = pytest.mark.integration

RANDOM_ROWS = 30
SEEDS = [1]
STATISTICS = (
    "CREATE TABLE made (a int, b int DEFAULT 1 + 2)",
    "INSERT INTO made SELECT n % 3, n % 3 FROM generate_series(1, 99) n",
    "CREATE STATISTICS made_statistics ON a, b FROM made",
    "ANALYZE made",
)
"""What the server makes values of types without input from."""
NAMES = {kind: '"' + f"c{n} {kind}".replace('"', '""') + '"' for n, kind in enumerate([*CASES, *MADE])}
"""Type -> a quoted column name with the type in it, with blanks and quotes where the type has them."""


def create(database: Database) -> None:
    """A table with one column per type."""
    database.execute(*TYPES, *STATISTICS)
    columns = ", ".join(f"{name} {kind}" for kind, name in NAMES.items())
    database.execute(f"CREATE TABLE v (id int PRIMARY KEY, {columns})", "ALTER TABLE v REPLICA IDENTITY FULL")


def fill(database: Database, seed: int) -> int:
    """A row of NULLs, rows with the extreme values of every column, and rows of random ones; returns how many."""
    random = Random(seed)
    rows: list[list[str | None]] = [[None] * len(CASES)]
    for row in range(max(len(values) for values in CASES.values())):
        rows.append([values[row] if row < len(values) else None for values in CASES.values()])
    for _ in range(RANDOM_ROWS):
        rows.append(
            [DRAW[kind](random) if kind in DRAW and random.random() > 0.05 else None for kind in CASES]
        )
    names = ", ".join(NAMES[kind] for kind in [*CASES, *MADE])
    made = ", ".join(f"({select} LIMIT 1)" for select in MADE.values())
    values = ", ".join(f"%s::text::{kind}" for kind in CASES)
    with database.connect() as connection, connection.transaction():
        for number, texts in enumerate(rows, 1):
            connection.execute(f"INSERT INTO v (id, {names}) VALUES ({number}, {values}, {made})", texts)
    return len(rows)


def shuffle(database: Database) -> None:
    """Every row gets the values of the next one, in one statement."""
    names = ", ".join(NAMES.values())
    database.execute(
        "CREATE TABLE copy AS TABLE v",
        f"UPDATE v SET ({names}) = (SELECT {names} FROM copy WHERE copy.id = v.id % (SELECT max(id) FROM copy) + 1)",
    )


def said_by_server(database: Database, schema: TableSchema) -> list[list[object]]:
    """The columns of the table as the output functions print them in a plain session, read by Python's own
    types."""
    with database.connect() as connection:
        connection.execute("SET timezone = 'UTC'; SET lc_monetary = 'C'")
        selected = ", ".join(map(_printed, schema.columns))
        result: Any = connection.execute(f"SELECT {selected} FROM v ORDER BY id").pgresult
        return [
            [
                None if (value := result.get_value(row, place)) is None else _parsed(column, value.decode())
                for row in range(result.ntuples)
            ]
            for place, column in enumerate(schema.columns)
        ]


def _printed(column: Column) -> str:
    name = '"' + column.name.replace('"', '""') + '"'
    if column.type == "date":
        finite = f"{name} - date '1970-01-01'"
        return f"CASE WHEN isfinite({name}) THEN {finite} ELSE sign(extract(epoch FROM {name}))::int * 2147483648 END"
    if column.type in ("timestamp", "timestamptz"):
        extreme = f"sign(extract(epoch FROM {name})) * 9223372036854775808"
        return f"CASE WHEN isfinite({name}) THEN extract(epoch FROM {name}) * 1000000 ELSE {extreme} END"
    return name


def _parsed(column: Column, text: str) -> object:
    if column.type in ("date", "timestamp", "timestamptz"):
        bits = 31 if column.type == "date" else 63
        return min(int(Decimal(text)), 2**bits - 1).to_bytes((bits + 1) // 8, "little", signed=True)
    if column.type in ("float32", "float64"):
        return struct.pack("<f" if column.type == "float32" else "<d", float(text))
    if column.type.startswith("int"):
        return int(text).to_bytes(int(column.type[3:]) // 8, "little", signed=True)
    if column.type == "bool":
        return text == "t"
    if column.type == "binary":
        return bytes.fromhex(text[2:])
    return Decimal(text) if column.decimal() else text


def assert_true(rows: pa.Table, schema: TableSchema, truth: list[list[object]]) -> None:
    for column, true in zip(schema.columns, truth, strict=True):
        values = rows[column.name].to_pylist() if column.decimal() else exactly(rows[column.name])
        assert (column.name, values) == (column.name, true)


def images(schema: TableSchema, changes: list[RowChange], operation: Operation, which: str) -> pa.Table:
    """One kind of image of one kind of change, by key, in Arrow's types."""
    rows: list[Row] = [getattr(change, which) for change in changes if change.operation is operation]
    return rows_to_table(schema, sorted(rows, key=lambda row: int(str(row[0]))))


@pytest.mark.parametrize("seed", SEEDS)
def test_log_chunk_and_server_agree_on_every_value(old_pg: Database, seed: int) -> None:
    create(old_pg)
    source = source_of(old_pg)
    (schema,) = prepared(source, "v")
    rows = fill(old_pg, seed)
    request = ChunkRequest(1, schema.id, None, rows + 1)
    with chunk_reader(source) as chunks, log_reader(source, [schema]) as log:
        old, old_truth = chunks.read(request, schema), said_by_server(old_pg, schema)
        shuffle(old_pg)
        new, new_truth = chunks.read(request, schema), said_by_server(old_pg, schema)
        old_pg.execute("DELETE FROM v")
        seen = changes_of(read_to(log, chunks.read(request, schema).high))
    assert old.row_count == new.row_count == rows
    assert_true(old.rows, schema, old_truth)
    assert_true(new.rows, schema, new_truth)
    assert_same(images(schema, seen, Operation.INSERT, "after"), old.rows, "insert")
    assert_same(images(schema, seen, Operation.UPDATE, "before"), old.rows, "update, before")
    assert_same(images(schema, seen, Operation.UPDATE, "after"), new.rows, "update, after")
    assert_same(images(schema, seen, Operation.DELETE, "before"), new.rows, "delete")


def test_the_comparison_catches_a_value_that_is_a_bit_off(old_pg: Database) -> None:
    old_pg.execute("CREATE TABLE v (id int PRIMARY KEY, f float8)", "ALTER TABLE v REPLICA IDENTITY FULL")
    source = source_of(old_pg)
    (schema,) = prepared(source, "v")
    old_pg.execute("INSERT INTO v VALUES (1, '-0')")
    with chunk_reader(source) as chunks:
        chunk = chunks.read(ChunkRequest(1, schema.id, None, 10), schema)
    wrong = rows_to_table(schema, [("1", "0")])
    assert_true(chunk.rows, schema, said_by_server(old_pg, schema))
    with pytest.raises(AssertionError, match="f, row 0"):
        assert_same(chunk.rows, wrong)
    with pytest.raises(AssertionError):
        assert_true(wrong, schema, said_by_server(old_pg, schema))


def test_every_type_of_the_catalog_is_compared_or_refused(old_pg: Database) -> None:
    """No type is in between. Arrays of a type are its affair; pseudo-types have no columns."""
    rows = old_pg.query(
        "SELECT t.oid::regtype::text FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace"
        " WHERE n.nspname = 'pg_catalog' AND t.typtype NOT IN ('p', 'c')"
        " AND NOT EXISTS (SELECT 1 FROM pg_type e WHERE e.typarray = t.oid)"
    )
    known = {name for (name,) in rows}
    compared = {
        str(name)
        for kind in [*CASES, *MADE]
        for (name,) in old_pg.query(f"SELECT coalesce(to_regtype('{kind}')::text, '')")
    }
    assert len(known) > 70
    assert known - compared == {*NEVER_STORED, *REFUSED}


def test_types_whose_text_follows_the_catalog_are_refused_by_name(old_pg: Database) -> None:
    """Also where they are hidden in arrays, domains, composites and ranges."""
    columns = ", ".join(f"c_{kind} {kind}" for kind in sorted(REFUSED))
    old_pg.execute(
        "CREATE DOMAIN place AS regclass[]",
        "CREATE TYPE holder AS (a int, b place)",
        "CREATE DOMAIN holders AS holder[]",
        f"CREATE TABLE v (id int PRIMARY KEY, fine oid, {columns}, list aclitem[], hidden holders)",
        "ALTER TABLE v REPLICA IDENTITY FULL",
    )
    found = PostgresCatalog(source_of(old_pg)).preflight(["v"])
    assert {finding.subject for finding in found if finding.check == "column_type" and finding.fatal} == {
        f"public.v.{name}" for name in (*(f"c_{kind}" for kind in REFUSED), "list", "hidden")
    }
    assert all(finding.problem and finding.remedy for finding in found)


def test_an_empty_table_has_the_right_types(old_pg: Database) -> None:
    create(old_pg)
    source = source_of(old_pg)
    (schema,) = prepared(source, "v")
    with chunk_reader(source) as chunks:
        chunk = chunks.read(ChunkRequest(1, schema.id, None, 10), schema)
    assert (chunk.row_count, chunk.last_key, chunk.final) == (0, None, True)
    assert chunk.rows.schema == rows_to_table(schema, []).schema


@pytest.mark.parametrize(
    ("kind", "value"), [("numeric(12,2)", "NaN"), ("timestamp", "294276-12-31 23:59:59.999999")]
)
def test_what_arrow_cannot_hold_is_a_named_error_on_both_paths(
    old_pg: Database, kind: str, value: str
) -> None:
    old_pg.execute(
        f"CREATE TABLE v (id int PRIMARY KEY, amount {kind})", "ALTER TABLE v REPLICA IDENTITY FULL"
    )
    source = source_of(old_pg)
    (schema,) = prepared(source, "v")
    old_pg.execute(f"INSERT INTO v VALUES (1, NULL), (77, '{value}')")
    with chunk_reader(source) as chunks, log_reader(source, [schema]) as log:
        with pytest.raises(SourceError) as caught:
            chunks.read(ChunkRequest(1, schema.id, None, 10), schema)
        assert "public.v.amount" in caught.value.what
        assert "row id=77" in caught.value.where
        assert chunks.witness() is not None  # the reader goes on after the error
        rows = [
            change.after
            for change in changes_of(read_until(log, lambda records: len(changes_of(records)) == 2))
        ]
    with pytest.raises(SourceError, match=r"public\.v\.amount"):
        rows_to_table(schema, [row for row in rows if row is not None])


@pytest.mark.parametrize("log", [SERVER_LOG, CHANGE_TABLES])
def test_columns_that_travel_as_text_have_every_value_on_all_paths(
    old_pg: Database, tmp_path: Path, log: str
) -> None:
    """NaN, moments beyond Arrow's, as a key too: from the log, in chunks, as the judge reads them."""
    columns = {"k": "numeric(6,2)", "amount": "numeric(12,2)", "at": "timestamp", "zoned": "timestamptz"}
    declared = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    old_pg.execute(
        f"CREATE TABLE v ({declared}, id int, PRIMARY KEY (k))", "ALTER TABLE v REPLICA IDENTITY FULL"
    )
    last = "294276-12-31 23:59:59.999999"
    chosen: dict[str, Any] = {"text_columns": {"v": frozenset(columns)}}
    expected = [
        ("-1.50", "1.10", "0044-03-15 12:00:00 BC", "infinity", "1"),
        ("2.00", "NaN", last, f"{last}+00", "2"),
        ("NaN", None, None, None, "3"),
    ]
    insert = f"INSERT INTO v VALUES ({', '.join(['%s'] * 5)})"
    with ExitStack() as stack:
        reader: LogReader
        if log == SERVER_LOG:
            source = source_of(old_pg, **chosen)
            (schema,) = prepared(source, "v")
            reader = stack.enter_context(log_reader(source, [schema]))
            chunks = stack.enter_context(chunk_reader(source))
        else:
            source, (schema,) = fix_change_tables.captured(old_pg, "v", **chosen)
            reader = stack.enter_context(fix_change_tables.started(source, [schema]))
            chunks = stack.enter_context(closing(change_table_chunks(source)))
        with old_pg.connect() as connection:
            connection.cursor().executemany(insert, expected)
        first = chunks.read(ChunkRequest(1, schema.id, None, 1), schema)
        second = chunks.read(ChunkRequest(2, schema.id, first.last_key, 10), schema)
        rows = pa.concat_tables([first.rows, second.rows])
        changes = changes_of(read_until(reader, lambda records: len(changes_of(records)) == 3))
    assert [change.after for change in changes] == expected
    assert_same(rows, rows_to_table(schema, expected))
    judge = ServerSettings(
        server_of(old_pg),
        **chosen,
    )
    found = JudgedSource(judge, "none").snapshot(["v"], tmp_path).tables["v"]
    assert [column.type for column in found.schema.columns] == [column.type for column in schema.columns]
    assert_same(pq.read_table(found.path).sort_by("id"), rows)


@pytest.mark.parametrize("log", [SERVER_LOG, CHANGE_TABLES])
def test_another_choice_of_text_columns_stops_a_migration_that_has_begun(old_pg: Database, log: str) -> None:
    """One column would have values of two types in the event log; as it was chosen first, it goes on."""
    old_pg.execute(
        "CREATE TABLE v (id int PRIMARY KEY, amount numeric(12,2))", "ALTER TABLE v REPLICA IDENTITY FULL"
    )
    chosen, notes = {"text_columns": {"v": frozenset({"amount"})}}, LogNotes()
    catalog: type[PostgresCatalog]
    made: Callable[[PostgresSource, list[TableSchema]], LogReader]
    if log == SERVER_LOG:
        prepared(source_of(old_pg), "v")
        catalog, made = PostgresCatalog, partial(PostgresLogReader, notes=notes)
    else:
        fix_change_tables.captured(old_pg, "v")
        catalog, made = ChangeTableCatalog, ChangeTableLogReader

    def read_on(after: Position | None, **choice: Any) -> Position:
        source = source_of(old_pg, log=log, **choice)
        with closing(made(source, catalog(source).tables(["v"]))) as reader:
            place = reader.start(after)
            reader.read(0.0)
        return place

    place = read_on(None, **chosen)
    with pytest.raises(SchemaError, match="travel as text that didn't until now, or no longer do"):
        read_on(place)
    read_on(place, **chosen)


def test_generated_columns_are_in_both_paths_or_in_none(old_pg: Database) -> None:
    old_pg.execute(
        "CREATE TABLE g (id int PRIMARY KEY, a int, twice int GENERATED ALWAYS AS (a * 2) STORED, b text)",
        "ALTER TABLE g REPLICA IDENTITY FULL",
    )
    source = source_of(old_pg)
    (schema,) = prepared(source, "g")
    published = POSTGRES_VERSION >= 18
    assert schema.names() == (("id", "a", "twice", "b") if published else ("id", "a", "b"))
    key = str(uuid.uuid4())
    old_pg.execute(f"INSERT INTO g (id, a, b) VALUES (1, 2, '{key}')")
    with chunk_reader(source) as chunks, log_reader(source, [schema]) as log:
        chunk = chunks.read(ChunkRequest(1, schema.id, None, 10), schema)
        (change,) = changes_of(read_to(log, chunk.high))
    assert change.after == (("1", "2", "4", key) if published else ("1", "2", key))
    assert chunk.rows.to_pylist() == [{"id": 1, "a": 2, **({"twice": 4} if published else {}), "b": key}]
