"""The remedies for a publication that lacks something, run to the letter by whoever owns it."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
import pytest

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.publication import (
    check_covers,
    create_statement,
    join_publication,
)
from migrator.adapters.sources.postgres.reflection import psycopg_query
from migrator.errors import SourceError
from migrator.model.table import TableId
from tests.fix_postgres_source import changes, log_reader, read_until, source_of
from tests.servers import Database

pytestmark = pytest.mark.integration


def remedies(database: Database, tables: Sequence[str], login: str) -> list[str]:
    """The remedies of what refuses."""
    found = PostgresCatalog(source_of(database, user=login)).preflight(tables)
    return [finding.remedy for finding in found if finding.fatal]


@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        ("FOR TABLE t", {"ADD"}),
        ("FOR TABLE t, other", {"ADD", "DROP"}),
        ("FOR TABLE other", {"ADD", "DROP"}),
        ('FOR TABLE t, "U ""1""", other', {"DROP"}),
        ("", {"ADD"}),
        ("FOR TABLE t (k)", {"CREATE"}),
        ('FOR TABLE t WHERE (k > 5), "U ""1"""', {"CREATE"}),
        ("FOR TABLES IN SCHEMA public", {"CREATE"}),
        ("FOR ALL TABLES", {"CREATE"}),
        ('FOR TABLE t, "U ""1""" WITH (publish = \'insert\')', {"CREATE"}),
        (None, {"CREATE"}),
    ],
)
def test_a_publication_that_lacks_something_is_mended_by_the_remedy_to_the_letter(
    old_pg: Database, reader_role: str, there: str | None, wanted: set[str]
) -> None:
    """By ALTER, as long as only tables are wrong: CREATE alone would fail where there is one."""
    tables = ["t", 'U "1"']
    old_pg.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v text)",
        'CREATE TABLE "U ""1""" (k int PRIMARY KEY, v text)',
        "CREATE TABLE other (k int PRIMARY KEY)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        'ALTER TABLE "U ""1""" REPLICA IDENTITY FULL',
        f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {reader_role}",
        f"ALTER ROLE {reader_role} REPLICATION",
    )
    source = source_of(old_pg, user=reader_role)
    if there is not None:
        whole = "" if "publish" in there else " WITH (publish_via_partition_root = true)"
        old_pg.execute(f'CREATE PUBLICATION "{source.slot}" {there}{whole}')
        with pytest.raises(psycopg.errors.DuplicateObject):
            old_pg.execute(create_statement(source.slot, [TableId("public", "t")]))
    (remedy,) = remedies(old_pg, tables, reader_role)
    statements = remedy.removeprefix("as the owner of the tables: ").strip().split("; ")
    assert {word for word in ("ADD", "DROP", "CREATE") if any(f"{word} " in one for one in statements)} - (
        {"DROP"} if "CREATE" in wanted and there is not None else set()
    ) == wanted
    if "CREATE" not in wanted:
        assert all(one.startswith("ALTER PUBLICATION ") for one in statements)
    old_pg.execute(*statements)
    assert remedies(old_pg, tables, reader_role) == []
    schemas = PostgresCatalog(source).tables(tables)
    PostgresCatalog(source).prepare(schemas)
    with log_reader(source, schemas) as log:
        old_pg.execute("INSERT INTO t VALUES (1, 'x')", 'INSERT INTO "U ""1""" VALUES (2, \'y\')')
        found = changes(read_until(log, lambda records: len(changes(records)) == 2))
    assert [change.after for change in found] == [("1", "x"), ("2", "y")]
    old_pg.execute(f'DROP PUBLICATION "{source.slot}"')


def test_a_table_that_may_not_join_a_publication_joins_by_the_remedy(
    old_pg: Database, reader_role: str
) -> None:
    old_pg.execute(
        "CREATE TABLE t (k int PRIMARY KEY)",
        'CREATE TABLE "U ""1""" (k int PRIMARY KEY)',
        "ALTER TABLE t REPLICA IDENTITY FULL",
        'ALTER TABLE "U ""1""" REPLICA IDENTITY FULL',
    )
    source = source_of(old_pg, user=reader_role)
    both = [TableId("public", "t"), TableId("public", 'U "1"')]
    old_pg.execute(create_statement(source.slot, both[:1]))
    with psycopg.connect(
        host=old_pg.host,
        port=old_pg.port,
        dbname=old_pg.database,
        user=reader_role,
        autocommit=True,
        cursor_factory=psycopg.RawCursor,
    ) as poor:
        with pytest.raises(SourceError, match="can't join the publication") as caught:
            join_publication(source, poor, both)
        (statement, then) = caught.value.remedy.removeprefix(
            "as the owner of publication and tables: "
        ).split("; ")
        assert then == "then start again"
        old_pg.execute(statement)
        join_publication(source, poor, both)
        check_covers(source, psycopg_query(poor), both)
    old_pg.execute(f'DROP PUBLICATION "{source.slot}"')
