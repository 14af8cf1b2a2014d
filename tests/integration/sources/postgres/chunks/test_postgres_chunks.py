"""Chunks by any key: complete, in the database's own order, by the index, and never through a changed table."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.chunks.chunk_query import AFTER, ChunkQuery
from migrator.adapters.sources.postgres.connection import connect
from migrator.adapters.sources.postgres.reflection import psycopg_query, reflect
from migrator.errors import SchemaError, SourceError
from migrator.model.chunk import ChunkRequest
from migrator.model.event import Key, Value
from tests.fix_postgres_source import all_chunks, chunk_reader, prepared, source_of, wait_for
from tests.servers import Database, needs_postgres

pytestmark = pytest.mark.integration

WORDS = (
    "('a'),('B'),('b'),('ä'),('Z'),('z''q'),('ß'),(''),(' x'),('e' || chr(769)),('é'),('\\\\'),('10'),('9')"
)
KEYS = {
    "negative ints": ("k int", "SELECT g FROM generate_series(-12, 12) g", "k"),
    "bigint": ("k bigint", "SELECT 9223372036854775807 - g FROM generate_series(0, 20) g", "k"),
    "composite": ("a int, b text", "SELECT g % 3 - 1, 'x' || g FROM generate_series(1, 24) g", "a, b"),
    "composite mixed": ("a text, b date, c uuid", "SELECT chr(65 + g % 4), date '2020-01-01' + g % 5, "
                        "gen_random_uuid() FROM generate_series(1, 24) g", "a, b, c"),
    "text": ("k text", f"VALUES {WORDS}", "k"),
    "text, C collation": ('k text COLLATE "C"', f"VALUES {WORDS}", "k"),
    "text, Unicode collation": ('k text COLLATE "pg_c_utf8"', f"VALUES {WORDS}", "k"),
    "varchar": ("k varchar(40)", f"VALUES {WORDS}", "k"),
    "char(n)": ("k char(8)", "SELECT 'k' || g FROM generate_series(1, 24) g", "k"),
    "uuid": ("k uuid", "SELECT gen_random_uuid() FROM generate_series(1, 24) g", "k"),
    "bytea": ("k bytea", "SELECT sha256(g::text::bytea) FROM generate_series(1, 24) g", "k"),
    "numeric": ("k numeric(12,3)", "SELECT g / 7.0 FROM generate_series(-12, 12) g", "k"),
    "unbounded numeric": ("k numeric", "SELECT g / 7.0 FROM generate_series(-12, 12) g", "k"),
    "float": ("k float8", "SELECT g / 7.0::float8 FROM generate_series(-12, 12) g "
              "UNION ALL VALUES ('NaN'::float8), ('-Infinity')", "k"),
    "timestamptz": ("k timestamptz", "SELECT timestamptz '0001-01-01 BC' + g * interval '37 years 1 us' "
                    "FROM generate_series(1, 24) g UNION ALL VALUES ('infinity'::timestamptz), ('-infinity')", "k"),
    "date": ("k date", "SELECT date '0005-01-01' - g * 300 FROM generate_series(1, 24) g", "k"),
    "bool": ("k bool", "VALUES (true), (false)", "k"),
    "enum": ("k mood", "VALUES ('zz'::mood), ('mm'), ('aa')", "k"),
    "domain": ("k positive", "SELECT g FROM generate_series(1, 24) g", "k"),
    "inet": ("k inet", "SELECT '10.0.0.0'::inet + g FROM generate_series(1, 24) g", "k"),
}  # fmt: skip


@pytest.mark.parametrize("name", KEYS)
def test_chunks_cover_every_key_once_in_the_databases_order(old_pg: Database, name: str) -> None:
    columns, rows, key = KEYS[name]
    if "pg_c_utf8" in columns:
        needs_postgres(17, "collation pg_c_utf8")
    old_pg.execute(
        "CREATE TYPE mood AS ENUM ('zz', 'mm', 'aa')",
        "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
        f'CREATE TABLE "T q""x" ({columns}, "other col" text, PRIMARY KEY ({key}))',
        'ALTER TABLE "T q""x" REPLICA IDENTITY FULL',
        f'INSERT INTO "T q""x" {rows}',
        'ANALYZE "T q""x"',
    )
    source = source_of(old_pg)
    (schema,) = PostgresCatalog(source).tables(['T q"x'])
    # The judge: the database's own order, and format('%s'), which prints as the log does.
    texts = ", ".join(f"format('%s', {column})" for column in key.split(", "))
    connection = connect(source, "test")
    expected = connection.execute(f'SELECT {texts} FROM public."T q""x" ORDER BY {key}').fetchall()
    connection.close()
    with chunk_reader(source) as reader:
        one_by_one = all_chunks(reader, schema, 1)
        sevens = all_chunks(reader, schema, 7)
    keys = [tuple(map(printed, chunk.last_key)) for chunk in one_by_one if chunk.last_key is not None]
    assert keys == expected
    assert [chunk.row_count for chunk in one_by_one] == [1] * len(expected) + [0]
    assert [chunk.last_key for chunk in sevens] == [
        one_by_one[min(n + 7, len(expected)) - 1].last_key for n in range(0, len(expected), 7)
    ] + ([None] if len(expected) % 7 == 0 else [])
    assert sum(chunk.row_count for chunk in sevens) == len(expected) > 1


def printed(value: Value) -> str:
    return "\\x" + value.hex() if isinstance(value, bytes) else str(value)


@pytest.mark.parametrize(
    ("columns", "key", "after"),
    [
        pytest.param("a int, b int", "a, b", ("-500", "-7"), id="composite, negative"),
        pytest.param("a text, b int", "a, b", ("500", "7"), id="text first"),
        pytest.param('a text COLLATE "C", b uuid', "a, b", ("5", "0" * 32), id="C collation and uuid"),
        pytest.param("a numeric(10,2), b char(9)", "a, b", ("5.00", "7        "), id="numeric and char"),
    ],
)
def test_a_resumed_chunk_is_an_index_range_without_a_sort(
    old_pg: Database, columns: str, key: str, after: Key
) -> None:
    old_pg.execute(
        f"CREATE TABLE t ({columns}, v text, PRIMARY KEY ({key}))",
        "ALTER TABLE t REPLICA IDENTITY FULL",
    )
    first, second = (column.split()[1] for column in columns.split(", "))
    number = {"int": "g", "text": "g::text", "uuid": "md5(g::text)::uuid"}
    values = [number.get(kind, f"g::{kind}") for kind in (first, second)]
    old_pg.execute(
        f"INSERT INTO t SELECT {', '.join(values)}, 'x' FROM generate_series(-5000, 5000) g", "ANALYZE t"
    )
    source = source_of(old_pg)
    (schema,) = PostgresCatalog(source).tables(["t"])
    connection = connect(source, "test")
    table = reflect(psycopg_query(connection), schema.id)
    assert table is not None
    query = ChunkQuery(schema, table)
    with connection.transaction():
        connection.execute(query.binding(AFTER), query.bound(after))
        select = query.select(100, [query.compared(">", AFTER)])
        plan = connection.execute(f"EXPLAIN (FORMAT JSON) {select}").fetchone()
        assert plan is not None
        scan = next(node for node in nodes(plan[0]) if "Index Cond" in node)
    connection.close()
    assert "Index" in scan["Node Type"]
    assert scan["Index Cond"].startswith("(ROW(")
    assert not [node for node in nodes(plan[0]) if node["Node Type"] in ("Sort", "Seq Scan")]


def nodes(plan: Any) -> list[dict[str, Any]]:
    tree = json.loads(plan) if isinstance(plan, str) else plan
    found, todo = [], [tree[0]["Plan"]]
    while todo:
        node = todo.pop()
        found.append(node)
        todo += node.get("Plans", [])
    return found


def simple(database: Database, *more: str) -> None:
    database.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 10) g",
        *more,
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("ALTER TABLE t DROP COLUMN v", "'v' is gone"),
        ("ALTER TABLE t RENAME COLUMN v TO w", "'v' is gone"),
        ("ALTER TABLE t ALTER k TYPE bigint", "'k' changed its type"),
        ("ALTER TABLE t DROP CONSTRAINT t_pkey", "its key is now ()"),
        ("DROP TABLE t", ""),
    ],
)
def test_a_changed_table_is_never_read_with_the_old_schema(old_pg: Database, change: str, says: str) -> None:
    simple(old_pg)
    source = source_of(old_pg)
    (schema,) = prepared(source, "t")
    with chunk_reader(source) as reader:
        assert reader.read(ChunkRequest(1, schema.id, None, 5), schema).row_count == 5
        old_pg.execute(change)
        with pytest.raises(SchemaError) as caught:
            reader.read(ChunkRequest(2, schema.id, ("5",), 5), schema)
        assert says in caught.value.cause
        assert caught.value.where.startswith("public.t at ")
        assert reader.witness() is not None


def test_an_added_column_does_not_disturb_a_dump_of_the_old_schema(old_pg: Database) -> None:
    simple(old_pg)
    source = source_of(old_pg)
    (schema,) = prepared(source, "t")
    old_pg.execute("ALTER TABLE t ADD n int DEFAULT 7")
    with chunk_reader(source) as reader:
        chunk = reader.read(ChunkRequest(1, schema.id, ("8",), 5), schema)
    assert chunk.rows.to_pylist() == [{"k": 9, "v": "v9"}, {"k": 10, "v": "v10"}]
    assert chunk.schema_version == schema.version()


def test_a_rewriting_ddl_in_the_way_never_makes_the_table_look_empty(old_pg: Database) -> None:
    """With the snapshot taken before the lock, a rewritten table would look empty to the chunk."""
    simple(old_pg)
    source = source_of(old_pg)
    (schema,) = prepared(source, "t")
    ddl = old_pg.connect(autocommit=False)
    ddl.execute("ALTER TABLE t ALTER v TYPE text USING v || ''")
    counts: list[int] = []

    def read() -> None:
        with chunk_reader(source) as reader:
            counts.append(reader.read(ChunkRequest(1, schema.id, None, 100), schema).row_count)

    thread = threading.Thread(target=read)
    thread.start()
    wait_for(old_pg, "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND relation = 't'::regclass")
    ddl.commit()
    ddl.close()
    thread.join(20)
    assert counts == [10]


def test_no_transaction_stays_open_after_a_chunk(old_pg: Database) -> None:
    simple(old_pg)
    source = source_of(old_pg)
    (schema,) = prepared(source, "t")
    with chunk_reader(source) as reader:
        reader.read(ChunkRequest(1, schema.id, None, 5), schema)
        states = old_pg.query(
            "SELECT state, backend_xmin FROM pg_stat_activity WHERE application_name = %s",
            [f"{source.slot}_chunks"],
        )
    assert states == [("idle", None)]


def test_a_key_of_another_table_is_refused(old_pg: Database) -> None:
    simple(old_pg)
    source = source_of(old_pg)
    (schema,) = prepared(source, "t")
    with chunk_reader(source) as reader, pytest.raises(SourceError, match="isn't a key of"):
        reader.read(ChunkRequest(1, schema.id, ("1", "2"), 5), schema)


def test_partitioned_tables_are_read_through_their_root(old_pg: Database) -> None:
    old_pg.execute(
        "CREATE TABLE p (k int PRIMARY KEY, v text) PARTITION BY HASH (k)",
        *(f"CREATE TABLE p{n} PARTITION OF p FOR VALUES WITH (MODULUS 3, REMAINDER {n})" for n in range(3)),
        *(f"ALTER TABLE {name} REPLICA IDENTITY FULL" for name in ("p", "p0", "p1", "p2")),
        "INSERT INTO p SELECT g, 'x' FROM generate_series(1, 100) g",
        "ANALYZE p",
    )
    source = source_of(old_pg)
    (schema,) = prepared(source, "p")
    with chunk_reader(source) as reader:
        chunks = all_chunks(reader, schema, 30)
    assert [row for chunk in chunks for row in chunk.rows.column("k").to_pylist()] == list(range(1, 101))
    assert PostgresCatalog(source).estimated_rows(schema) == 100
