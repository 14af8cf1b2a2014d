"""Columns of PostgreSQL that aren't plain: odd names, dropped columns, values that an UPDATE left in TOAST."""

from __future__ import annotations

import pytest

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.columnar.text import rows_to_table
from migrator.errors import SourceError
from migrator.model.chunk import ChunkRequest
from migrator.model.event import Operation
from tests.fix_postgres_source import all_chunks, chunk_reader, log_reader, prepared, read_to, source_of
from tests.fix_postgres_source import changes as changes_of
from tests.integration.exact import assert_same
from tests.integration.judged import settings_of
from tests.servers import Database, needs_postgres
from verify.readers.postgres.target import PostgresTarget

pytestmark = pytest.mark.integration

ODD = [
    'double "quotes"', "single 'quotes'", "per%cent %s %(x)s", "{brace}", "select", "日本 é😀", "a,b(c)", "$1",
    ":name", "back\\slash", "semi;colon -- x", "/* c */", "Case", "source_row", "e", "k",
]  # fmt: skip
"""The last ones are names that our own statements use."""
LARGE = 20_000


def test_odd_names(old_pg: Database) -> None:
    quoted = ['"' + name.replace('"', '""') + '"' for name in ODD]
    with old_pg.connect() as connection:
        connection.execute("CREATE TYPE \"odd 'type\" AS ENUM ('a%', 'b''\"', 'c,d')")
        columns = ", ".join(f'{name} "odd \'type"' for name in quoted)
        connection.execute(
            f'CREATE TABLE "od%d t""able" ("key %s" int, {columns}, PRIMARY KEY ("key %s", {quoted[0]}))'
        )
        connection.execute('ALTER TABLE "od%d t""able" REPLICA IDENTITY FULL')
        source = source_of(old_pg)
        (schema,) = prepared(source, 'od%d t"able')
        value = ", ".join("'b''\"'" for _ in ODD)
        connection.execute(f'INSERT INTO "od%d t""able" VALUES (1, {value}), (2, {value})')
    assert schema.names() == ("key %s", *ODD)
    with chunk_reader(source) as chunks, log_reader(source, [schema]) as log:
        found = all_chunks(chunks, schema, 1)
        changes = changes_of(read_to(log, found[-1].high))
    assert [chunk.row_count for chunk in found] == [1, 1, 0]
    assert found[0].rows.to_pylist() == [{"key %s": 1} | dict.fromkeys(ODD, "b'\"")]
    for chunk, change in zip(found, changes, strict=False):
        assert change.after is not None
        assert_same(rows_to_table(schema, [change.after]), chunk.rows)


def test_dropped_columns_leave_no_trace(old_pg: Database) -> None:
    old_pg.execute(
        "CREATE TABLE t (gone int, id int PRIMARY KEY, a text, gone_too numeric, b int)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t VALUES (7, 1, 'old', 1.5, 2)",
        "ALTER TABLE t DROP gone, DROP gone_too",
    )
    source = source_of(old_pg)
    (schema,) = prepared(source, "t")
    old_pg.execute("UPDATE t SET b = 3", "INSERT INTO t VALUES (2, 'new', 4)", "DELETE FROM t WHERE id = 1")
    with chunk_reader(source) as chunks, log_reader(source, [schema]) as log:
        chunk = chunks.read(ChunkRequest(1, schema.id, None, 10), schema)
        changes = changes_of(read_to(log, chunk.high))
    assert [(change.before, change.after) for change in changes] == [
        (("1", "old", "2"), ("1", "old", "3")),
        (None, ("2", "new", "4")),
        (("1", "old", "3"), None),
    ]
    assert chunk.rows.to_pylist() == [{"id": 2, "a": "new", "b": 4}]


@pytest.mark.parametrize("storage", ["EXTERNAL", "EXTENDED", "MAIN"])
def test_values_left_in_toast_are_whole(old_pg: Database, storage: str) -> None:
    """An UPDATE that doesn't touch a large value logs none; the full before image has it, also when the key
    moves."""
    old_pg.execute(
        "CREATE TABLE t (id int PRIMARY KEY, a text, b bytea, c jsonb, n int)",
        f"ALTER TABLE t ALTER a SET STORAGE {storage}, ALTER b SET STORAGE {storage}, ALTER c SET STORAGE {storage}",
        "ALTER TABLE t REPLICA IDENTITY FULL",
    )
    source = source_of(old_pg)
    (schema,) = prepared(source, "t")
    text = f"(SELECT string_agg(md5(n::text), 'é') FROM generate_series(1, {LARGE // 32}) n)"
    old_pg.execute(
        f"INSERT INTO t VALUES (1, {text}, {text}::bytea, to_jsonb({text}), 1), (2, 'small', '', '1', 1)",
        "UPDATE t SET n = n + 1",
        "UPDATE t SET id = id + 10",
        "UPDATE t SET id = id + 10, a = a || '!' WHERE id = 11",
        "UPDATE t SET b = NULL, c = NULL WHERE id = 21",
    )
    with chunk_reader(source) as chunks, log_reader(source, [schema]) as log:
        chunk = chunks.read(ChunkRequest(1, schema.id, None, 10), schema)
        changes = changes_of(read_to(log, chunk.high))
        old_pg.execute("DELETE FROM t")
        deleted = changes_of(read_to(log, chunks.read(ChunkRequest(2, schema.id, None, 10), schema).high))
    first = changes[0].after
    assert first is not None
    large = str(first[1])
    assert len(large) > LARGE
    ours = [change for change in changes if change.operation is Operation.UPDATE and change.before]
    images = [(c.before, c.after) for c in ours if c.before and c.after and c.before[1] != "small"]
    assert [(before[0], after[0]) for before, after in images] == [
        ("1", "1"),
        ("1", "11"),
        ("11", "21"),
        ("21", "21"),
    ]
    for before, after in images[:2]:
        assert before[1:4] == after[1:4] == first[1:4]
    assert (images[2][0][1], images[2][1][1:]) == (large, (f"{large}!", *first[2:4], "2"))
    assert (images[3][0][2:4], images[3][1][1:]) == (first[2:4], (f"{large}!", None, None, "2"))
    final = [c.before for c in sorted(deleted, key=lambda c: str((c.before or ("",))[0])) if c.before]
    assert_same(rows_to_table(schema, final), chunk.rows)


def test_vectors_of_pgvector(old_pg: Database) -> None:
    if not old_pg.query("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"):
        pytest.skip("this server has no pgvector")
    old_pg.execute(
        "CREATE EXTENSION vector",
        "CREATE TABLE v (id int PRIMARY KEY, a vector(3), h halfvec(3), s sparsevec(5), free vector)",
        "ALTER TABLE v REPLICA IDENTITY FULL",
    )
    source = source_of(old_pg)
    catalog = PostgresCatalog(source)
    assert catalog.preflight(["v"]) == []
    schemas = prepared(source, "v")
    with log_reader(source, schemas) as reader, chunk_reader(source) as chunks:
        old_pg.execute(
            "INSERT INTO v VALUES (1, '[1,-2.5,3.4028235e38]', '[65504,-6e-8,0.1]', '{1:1e-45,3:2}/5', '[0.1]'),"
            " (2, NULL, NULL, '{}/5', '[-0,1e-7]')",
            "UPDATE v SET a = '[0.30000001,1,2]' WHERE id = 2",
        )
        changed = changes_of(read_to(reader, catalog.position()))
        chunk = chunks.read(ChunkRequest(1, schemas[0].id, None, 10), schemas[0])
    logged = {change.after[0]: change.after for change in changed if change.after}
    assert changed[-1].before == ("2", None, None, "{}/5", logged["2"][4])
    assert_same(rows_to_table(schemas[0], list(logged.values())), chunk.rows)
    texts = old_pg.query("SELECT id::text, a::text, h::text, s::text, free::text FROM v ORDER BY id")
    assert list(logged.values()) == texts


def test_columns_that_may_have_null_for_all_that_is_proven_are_no_key(old_pg: Database) -> None:
    """A NOT NULL that is NOT VALID: old rows had NULL, and a chunk that begins behind a key finds none of them."""
    needs_postgres(18, "NOT NULL ... NOT VALID")
    old_pg.execute(
        "CREATE TABLE t (code text, n int NOT NULL)",
        "CREATE UNIQUE INDEX ON t (code)",
        "INSERT INTO t VALUES ('a', 1), (NULL, 2)",
        "ALTER TABLE t ADD CONSTRAINT filled NOT NULL code NOT VALID",
        "ALTER TABLE t REPLICA IDENTITY FULL",
    )
    source, settings = source_of(old_pg), settings_of(old_pg)
    assert [one.check for one in PostgresCatalog(source).preflight(["t"])] == ["key"]
    with pytest.raises(SourceError, match="no usable key"):
        PostgresCatalog(source).tables(["t"])
    with PostgresTarget(settings, "t").chunks("t") as view:
        assert not view.has_key(["code"])
    old_pg.execute("UPDATE t SET code = 'b' WHERE code IS NULL", "ALTER TABLE t VALIDATE CONSTRAINT filled")
    [schema] = PostgresCatalog(source).tables(["t"])
    assert schema.key == ("code",)
    assert [column.nullable for column in schema.columns] == [False, False]
    with PostgresTarget(settings, "t").chunks("t") as view:
        assert view.has_key(["code"])
