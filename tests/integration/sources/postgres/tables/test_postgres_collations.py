"""Keys that sort otherwise than they did: between two chunks, between two runs, and under indexes that were kept."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace

import psycopg
import pytest

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.change_tables.catalog import ChangeTableCatalog
from migrator.adapters.targets.postgres.target import PostgresTargetWriter
from migrator.errors import SchemaError, VerifyError
from migrator.model.chunk import ChunkRequest
from migrator.model.finding import Finding
from migrator.model.progress import dump_key
from tests.fix_postgres_source import chunk_reader, prepared, source_of
from tests.integration.judged import settings_of as by_the_judge
from tests.integration.target_bench import settings_of
from tests.servers import Database, PostgresServer, needs_postgres
from verify.readers.postgres.source import PostgresSource
from verify.readers.postgres.target import PostgresTarget

pytestmark = pytest.mark.integration

CHECK = "collation_version"
COLLATION = "CREATE COLLATION mine (provider = builtin, locale = 'C.UTF-8')"
"""The only provider that every server of these tests has, and that has a version."""
TABLES = (
    COLLATION,
    "CREATE TABLE t (k text COLLATE mine PRIMARY KEY)",
    "CREATE TABLE parted (k text COLLATE mine PRIMARY KEY) PARTITION BY LIST (k)",
    "CREATE TABLE part PARTITION OF parted DEFAULT",
    'CREATE TABLE bytes (k text COLLATE "C" PRIMARY KEY, v text COLLATE mine)',
    *(f"ALTER TABLE {name} REPLICA IDENTITY FULL" for name in ("t", "parted", "part", "bytes")),
)
ANOTHER_LIBRARY = "UPDATE pg_collation SET collversion = '0.1' WHERE collname = 'mine'"
"""As after an upgrade of the operating system: what is noted isn't what there is."""


def stale(database: Database, *tables: str) -> list[Finding]:
    """Of a source by its log, of one by change tables, and of a target: they are the same."""
    by_log, by_tables, target = (
        [one for one in place.preflight(tables) if one.check == CHECK]
        for place in (
            PostgresCatalog(source_of(database)),
            ChangeTableCatalog(source_of(database)),
            PostgresTargetWriter(settings_of(database)),
        )
    )
    assert by_log == by_tables == target
    return by_log


def judged(database: Database) -> list[AbstractContextManager[object]]:
    """All ways in which the judge reads t in the order of its key."""
    settings = by_the_judge(database)
    source, target = PostgresSource(settings, "orders"), PostgresTarget(settings, "orders")
    return [source.chunks("t"), source.tables(["t"]), target.chunks("t")]


def follow(database: Database, remedy: str) -> None:
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        for statement in remedy.removesuffix(";").split(";"):
            connection.execute(statement.encode())


@pytest.fixture
def built_in(postgres: PostgresServer, old_pg: Database) -> Iterator[Database]:
    """A database whose own collation has a version."""
    needs_postgres(17, "the builtin provider of collations")
    name = f"built_in_{uuid.uuid4().hex[:8]}"
    postgres.admin.execute(
        f"CREATE DATABASE {name} TEMPLATE template0 LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8'"
    )
    yield replace(old_pg, database=name)
    postgres.admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_collation_that_is_another_one_under_its_indexes_is_refused(old_pg: Database) -> None:
    needs_postgres(17, "the builtin provider of collations")
    old_pg.execute(*TABLES)
    assert stale(old_pg, "t", "parted", "bytes") == []
    old_pg.execute(ANOTHER_LIBRARY)
    (found,) = stale(old_pg, "t", "parted", "bytes")
    assert found.fatal
    assert found.subject == "collation public.mine"
    assert "keys of public.t, public.part, public.parted were indexed" in found.problem
    assert stale(old_pg, "bytes") == [], "nothing is looked up by it there"
    for reading in judged(old_pg):
        with pytest.raises(VerifyError, match="can't be read in their order"), reading:
            pass
    follow(old_pg, found.remedy)
    assert stale(old_pg, "t", "parted", "bytes") == []
    for reading in judged(old_pg):
        with reading:
            pass


def test_so_is_that_of_the_database(built_in: Database) -> None:
    built_in.execute("CREATE TABLE t (k text PRIMARY KEY)", "ALTER TABLE t REPLICA IDENTITY FULL")
    assert stale(built_in, "t") == []
    built_in.execute("UPDATE pg_database SET datcollversion = '0.1' WHERE datname = current_database()")
    (found,) = stale(built_in, "t")
    assert found.subject == f"database {built_in.database}"
    follow(built_in, found.remedy)
    assert stale(built_in, "t") == []


WITHIN = {
    "by_range": "mine_range",
    "by_range_of_range": "mine_range[]",
    "by_domain": "of_mine",
    "by_composite": "pair",
    "by_array": "text[] COLLATE mine",
    "by_multirange": "mine_multirange",
}
"""Keys whose texts stand within: but for the array's the index has no collation of its own."""


def test_so_is_one_within_ranges_composites_and_arrays(old_pg: Database) -> None:
    needs_postgres(17, "the builtin provider of collations")
    tables = {**WITHIN, "bytes_within": "plain_range"}
    old_pg.execute(
        COLLATION,
        "CREATE TYPE mine_range AS RANGE (subtype = text, collation = mine)",
        'CREATE TYPE plain_range AS RANGE (subtype = text, collation = "C")',
        "CREATE DOMAIN of_mine AS mine_range",
        "CREATE TYPE pair AS (n int, name text COLLATE mine)",
        *(f"CREATE TABLE {name} (k {declared} PRIMARY KEY)" for name, declared in tables.items()),
        *(f"ALTER TABLE {name} REPLICA IDENTITY FULL" for name in tables),
    )
    assert stale(old_pg, *tables) == []
    old_pg.execute(ANOTHER_LIBRARY)
    assert {name for name in tables if stale(old_pg, name)} == set(WITHIN)
    (found,) = stale(old_pg, *tables)
    follow(old_pg, found.remedy)
    assert stale(old_pg, *tables) == []


ANOTHER_COLLATION = (
    "ALTER COLLATION mine RENAME TO was",
    "CREATE COLLATION mine (provider = libc, locale = 'POSIX')",
    "ALTER TABLE t ALTER k TYPE text COLLATE mine",
)
ENUM = (
    "CREATE TYPE mine AS ENUM ('a', 'B')",
    "CREATE TABLE t (k mine PRIMARY KEY)",
    "ALTER TABLE t REPLICA IDENTITY FULL",
)
ANOTHER_ENUM = (
    "ALTER TYPE mine RENAME TO was",
    "CREATE TYPE mine AS ENUM ('B', 'a')",
    "ALTER TABLE t ALTER k TYPE mine USING k::text::mine",
)

ENUMS = (ENUM[0], "CREATE TABLE t (k mine[] PRIMARY KEY)", ENUM[2])
OTHER_ENUMS = (*ANOTHER_ENUM[:2], "ALTER TABLE t ALTER k TYPE mine[] USING k::text::mine[]")


@pytest.mark.parametrize(
    ("tables", "another", "by", "keys"),
    [
        (TABLES, ANOTHER_COLLATION, "POSIX", ("a", "B")),
        (ENUM, ANOTHER_ENUM, "by type", ("a", "B")),
        (ENUMS, OTHER_ENUMS, "by type", ("{a}", "{B}")),
    ],
)
def test_a_key_that_begins_to_sort_otherwise_ends_the_dump_by_name(
    old_pg: Database, tables: tuple[str, ...], another: tuple[str, ...], by: str, keys: tuple[str, str]
) -> None:
    """Its type's name stays; by the other order the rest of the rows may lie before the last key that was read."""
    if COLLATION in tables:
        needs_postgres(17, "the builtin provider of collations")
    old_pg.execute(*tables, f"INSERT INTO t VALUES ('{keys[0]}'), ('{keys[1]}')")
    source = source_of(old_pg)
    (before,) = prepared(source, "t")
    with chunk_reader(source) as reader:
        assert reader.read(ChunkRequest(1, before.id, None, 1), before).row_count == 1
        old_pg.execute(*another)
        with pytest.raises(SchemaError, match="sorts otherwise than when its dump began") as caught:
            reader.read(ChunkRequest(2, before.id, (keys[1],), 1), before)
    assert by in caught.value.cause
    (after,) = prepared(source, "t")
    assert after == before
    assert dump_key(after) != dump_key(before), "the next run begins it anew"
