"""What a dump request's chunks read on each engine: the rows that the database itself says are in the scope."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from migrator.adapters.sources.mariadb.catalog import MariaCatalog
from migrator.adapters.sources.mariadb.chunk_reader import MariaChunkReader
from migrator.adapters.sources.mysql.catalog import MysqlCatalog
from migrator.adapters.sources.mysql.chunk_reader import MysqlChunkReader
from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.chunks.chunk_query import LISTED, ChunkQuery
from migrator.adapters.sources.postgres.chunks.chunk_reader import PostgresChunkReader
from migrator.adapters.sources.postgres.connection import connect
from migrator.adapters.sources.postgres.reflection import psycopg_query, reflect
from migrator.connections.mysql.settings import BinlogSource
from migrator.errors import RequestError, SourceError
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.requests.request import Scope
from migrator.model.server import Server
from migrator.model.table import TableSchema
from migrator.ports.source import ChunkReader, SourceCatalog
from tests.fix_postgres_source import source_of
from tests.servers import Database

pytestmark = pytest.mark.integration

WORDS = ["a", "B", "c ", "ö", "Z", "it's", 'say "x"', "a,b", "back\\slash", "10", "9", "ß"]
ROWS = [(number, word, f"note {number}") for number in range(-3, 5) for word in WORDS]
# Scope, and the same in SQL that all three engines understand: the judge.
SCOPES: dict[str, tuple[Scope, str]] = {
    "all": (Scope(), "1 = 1"),
    "both ends": (Scope(low=("-1", "c "), high=("2", "a,b")), "{at_least} AND {at_most}"),
    "from": (Scope(low=("-1", "c ")), "{at_least}"),
    "to": (Scope(high=("2", "a,b")), "{at_most}"),
    "nothing": (Scope(low=("3", "a"), high=("-3", "a")), "1 = 0"),
    "listed": (
        Scope(keys=(("2", "it's"), ("-3", "back\\slash"), ("99", "no"), ("02", 'say "x"'), ("0", "ö"))),
        "(number, word) IN ((2, 'it''s'), (-3, {backslash}), (2, 'say \"x\"'), (0, 'ö'))",
    ),
    "predicate": (Scope(predicate="note LIKE '%3' OR word = 'Z'"), "note LIKE '%3' OR word = 'Z'"),
    "predicate that holds for nothing": (Scope(predicate="number > 100"), "1 = 0"),
    "predicate that is unknown": (Scope(predicate="NULLIF(number, 1) > 0"), "number > 1"),
}  # fmt: skip
AT_LEAST = "(number > -1 OR (number = -1 AND word >= 'c '))"
AT_MOST = "(number < 2 OR (number = 2 AND word <= 'a,b'))"


@pytest.fixture(params=["old_pg", "old_maria", "old_mysql"])
def old(request: pytest.FixtureRequest) -> Database:
    """A database with a table of a composite key in the engine's usual collation."""
    database: Database = request.getfixturevalue(request.param)
    database.execute(
        "CREATE TABLE t (number int, word varchar(20), note varchar(20), PRIMARY KEY (number, word))"
    )
    if database.kind == "postgresql":
        database.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    with database.connect() as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (%s, %s, %s)", ROWS)
        connection.commit()
    return database


@contextmanager
def reading(database: Database) -> Iterator[tuple[SourceCatalog, ChunkReader]]:
    catalog: SourceCatalog
    reader: ChunkReader
    if database.kind == "postgresql":
        source = source_of(database)
        catalog, reader = PostgresCatalog(source), PostgresChunkReader(source)
    else:
        log = BinlogSource(
            Server(
                kind=database.kind,
                host=database.host,
                port=database.port,
                database=database.database,
                user=database.user,
                password=database.password or None,
                tls="prefer" if database.kind == "mysql" else "disable",
            ),
            migration="test",
            server_id=4_000_000_001,
        )
        if database.kind == "mysql":
            catalog, reader = MysqlCatalog(log), MysqlChunkReader(log)
        else:
            catalog, reader = MariaCatalog(log), MariaChunkReader(log)
    try:
        yield catalog, reader
    finally:
        reader.close()


def chunks_of(reader: ChunkReader, schema: TableSchema, scope: Scope, limit_rows: int) -> list[Chunk]:
    chunks: list[Chunk] = []
    after = end = None
    while not chunks or not chunks[-1].final:
        assert len(chunks) < 200, "it never ends"
        ahead = bool(scope.predicate)
        request = ChunkRequest(
            len(chunks) + 1, schema.id, after, limit_rows, "", "r1.1", scope, end, ahead=ahead
        )
        if request.unbounded():
            request = reader.bounded(request, schema)
        chunks.append(reader.read(request, schema))
        after, end = chunks[-1].last_key, request.end
    return chunks


@pytest.mark.each_value
@pytest.mark.parametrize("name", SCOPES)
def test_chunks_of_any_size_hold_what_the_database_says(old: Database, name: str) -> None:
    scope, sql = SCOPES[name]
    backslash = "'back\\slash'" if old.kind == "postgresql" else "'back\\\\slash'"
    condition = sql.format(at_least=AT_LEAST, at_most=AT_MOST, backslash=backslash)
    expected = old.query(f"SELECT number, word FROM t WHERE {condition} ORDER BY number, word")
    assert bool(expected) == ("nothing" not in name)
    with reading(old) as (catalog, reader):
        (schema,) = catalog.tables(["t"])
        catalog.check_scope(schema, scope)
        for limit_rows in (1, 7, 1000):
            chunks = chunks_of(reader, schema, scope, limit_rows)
            found = [
                (row["number"], row["word"])
                for chunk in chunks
                for row in chunk.rows.select(["number", "word"]).to_pylist()
            ]
            assert sorted(found) == sorted(expected)
            assert len(set(found)) == len(found)
            assert scope.keys or found == list(expected), "in the database's order"
            assert all(chunk.row_count <= limit_rows for chunk in chunks)
            if scope.predicate and limit_rows == 7:
                assert len(chunks) == len(ROWS) / 6, "a chunk looks at 6 rows, whatever holds for them"


def test_tables_of_one_structure_have_bounds_of_their_own(old: Database) -> None:
    old.execute(
        "CREATE TABLE u (number int, word varchar(20), note varchar(20), PRIMARY KEY (number, word))",
        "INSERT INTO u SELECT number * 10, word, note FROM t",
    )
    if old.kind == "postgresql":
        old.execute("ALTER TABLE u REPLICA IDENTITY FULL")
    with reading(old) as (catalog, reader):
        for schema in (*catalog.tables(["t"]), *catalog.tables(["u"]), *catalog.tables(["t"])):
            chunks = chunks_of(reader, schema, Scope(predicate="1 = 1"), 7)
            assert sum(chunk.row_count for chunk in chunks) == len(ROWS)


def test_what_cannot_be_read_is_refused_by_name_and_changes_nothing(old: Database) -> None:
    wrong = {
        "keys": (Scope(keys=(("1", "a"), ("one", "a"))), "column number"),
        "low": (Scope(low=("1x", "a")), "column number"),
        "high": (Scope(high=("", "a")), "column number"),
        "more than there is": (Scope(keys=(("2147483648", "a"),)), "column number"),
        "no whole one": (Scope(low=("1.5", "a")), "column number"),
        "unknown column": (Scope(predicate="nope = 1"), "nope = 1"),
        "unbalanced": (Scope(predicate="number = 1) OR (number = 2"), "--where"),
        "open string": (Scope(predicate="word = 'a"), "--where"),
        "open comment": (Scope(predicate="number = 1 /* x"), "--where"),
        "two statements": (Scope(predicate="number = 1; DELETE FROM t"), "--where"),
        "escape": (Scope(predicate="1 = 1 THEN 1 END = 1; DELETE FROM t; --"), "--where"),
        "behind a comment": (
            Scope(predicate="number = 1 -- x\r OR (SELECT count(*) FROM t) > 0"),
            "--where",
        ),
        "aggregate": (Scope(predicate="count(*) > 1"), "--where"),
        "order": (Scope(predicate="1 = 1 ORDER BY 1"), "--where"),
    }
    with reading(old) as (catalog, _):
        (schema,) = catalog.tables(["t"])
        for name, (scope, where) in wrong.items():
            with pytest.raises(RequestError) as caught:
                catalog.check_scope(schema, scope)
            assert where in caught.value.where, name
            assert caught.value.cause, name
            assert caught.value.remedy, name
    assert old.query("SELECT count(*) FROM t") == [(len(ROWS),)]


def test_a_predicate_that_fails_on_a_row_is_a_source_error(old: Database) -> None:
    beyond = "number * 9223372036854775807 > 0"
    fails = {"postgresql": "1 / number > 0", "mariadb": beyond, "mysql": beyond}[old.kind]
    with reading(old) as (catalog, reader):
        (schema,) = catalog.tables(["t"])
        catalog.check_scope(schema, Scope(predicate=fails))
        with pytest.raises(SourceError) as caught:
            chunks_of(reader, schema, Scope(predicate=fails), 1000)
        assert not caught.value.retryable
        assert len(chunks_of(reader, schema, Scope(), 1000)) == 1, "the reader can be used again"


def test_moments_are_checked_by_the_server(old: Database) -> None:
    old.execute("CREATE TABLE m (day date PRIMARY KEY)", "INSERT INTO m VALUES ('2024-02-29')")
    with reading(old) as (catalog, reader):
        (schema,) = catalog.tables(["m"])
        scope = Scope(keys=(("2024-02-29",),))
        catalog.check_scope(schema, scope)
        assert [chunk.row_count for chunk in chunks_of(reader, schema, scope, 10)] == [1]
        with pytest.raises(RequestError, match="can't be a key") as caught:
            catalog.check_scope(schema, Scope(low=("2024-13-01",)))
        assert "column day (date)" in caught.value.where


def test_a_domain_that_refuses_a_value_refuses_the_request(old_pg: Database) -> None:
    old_pg.execute(
        "CREATE DOMAIN positive AS int CHECK (VALUE > 0)", "CREATE TABLE d (k positive PRIMARY KEY, b bytea)"
    )
    with reading(old_pg) as (catalog, _):
        (schema,) = catalog.tables(["d"])
        with pytest.raises(RequestError, match="can't be a key"):
            catalog.check_scope(schema, Scope(keys=(("0",),)))


def test_listed_keys_and_ranges_are_found_by_the_index(old_pg: Database) -> None:
    old_pg.execute(
        "CREATE TABLE big (k bigint PRIMARY KEY, v text)",
        "INSERT INTO big SELECT g, 'x' FROM generate_series(1, 200000) g",
        "ANALYZE big",
    )
    source = source_of(old_pg)
    (schema,) = PostgresCatalog(source).tables(["big"])
    connection: psycopg.Connection[Any] = connect(source, "test")
    with connection, connection.transaction():
        connection.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        table = reflect(psycopg_query(connection), schema.id)
        assert table is not None
        query = ChunkQuery(schema, table)
        statement, document = query.listing([("7",), ("150000",)])
        connection.execute(statement, [document])
        sql = query.select(500, [query.listed()])
        lines = [row[0] for row in connection.execute(f"EXPLAIN ANALYZE {sql}").fetchall()]
    assert LISTED in sql
    read = [line for line in lines if "Index Scan" in line or "Index Only Scan" in line]
    assert read, lines
    assert all("rows=200000" not in line for line in read), lines
