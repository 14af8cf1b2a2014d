"""A look for rows of a target costs the same however many were deleted, and is never wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest

from migrator.adapters.targets.postgres.looks import Looks
from tests.servers import Database

pytestmark = pytest.mark.integration

MANY, LEFT = 200_000, 500
KEYS = {"item": ("id",)}


class Asked:
    """Queries in a session, and how many pages each has read, in memory or not."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection, self.pages = connection, list[int]()

    def __call__(self, statement: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        with psycopg.RawCursor(self._connection) as cursor:
            cursor.execute(b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + statement.encode(), parameters)
            explained: Any = cursor.fetchall()[0][0]
            plan = (json.loads(explained) if isinstance(explained, str) else explained)[0]["Plan"]
            self.pages.append(int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"]))
            cursor.execute(statement.encode(), parameters)
            return cursor.fetchall()


@pytest.fixture
def asked(new_pg: Database) -> Iterator[Asked]:
    """A table most of whose rows somebody has deleted, while an old snapshot has them kept."""
    new_pg.execute("CREATE TABLE item (id bigint PRIMARY KEY) WITH (autovacuum_enabled = off)")
    new_pg.execute(f"INSERT INTO item SELECT generate_series(1, {MANY + LEFT})")
    with new_pg.connect(autocommit=False) as old, new_pg.connect(autocommit=True) as connection:
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT count(*) FROM item")
        new_pg.execute(f"DELETE FROM item WHERE id > {LEFT}")
        yield Asked(connection)


def test_it_costs_a_page_where_a_search_reads_all_that_was_deleted(asked: Asked) -> None:
    """The first is a search, and the control."""
    there = Looks("public").rows_there(asked, KEYS)
    assert there(["item"]) == {"item"}
    assert sum(asked.pages) > MANY / 300, "a row of each page was read"
    for _ in range(3):
        asked.pages.clear()
        assert there(["item"]) == {"item"}
        assert asked.pages == [1]


def test_a_page_that_has_lost_its_rows_is_no_answer(new_pg: Database, asked: Asked) -> None:
    looks = Looks("public")
    assert looks.rows_there(asked, KEYS)(["item"]) == {"item"}
    new_pg.execute("DELETE FROM item WHERE id > 1")
    assert looks.rows_there(asked, KEYS)(["item"]) == {"item"}
    new_pg.execute("UPDATE item SET id = 2")
    assert looks.rows_there(asked, KEYS)(["item"]) == {"item"}
    new_pg.execute("DELETE FROM item")
    assert looks.rows_there(asked, KEYS)(["item"]) == set()
    new_pg.execute("INSERT INTO item VALUES (7)")
    assert looks.rows_there(asked, KEYS)(["item"]) == {"item"}


@pytest.mark.parametrize("key", [("id",), ()])
def test_several_tables_are_asked_about_at_once(new_pg: Database, key: tuple[str, ...]) -> None:
    """One that isn't known yet, one with partitions, one without rows, one that was written anew."""
    new_pg.execute(
        "CREATE TABLE item (id bigint PRIMARY KEY)",
        "INSERT INTO item SELECT generate_series(1, 9000)",
        'CREATE TABLE "Some""one" (id bigint PRIMARY KEY) PARTITION BY RANGE (id)',
        'CREATE TABLE first PARTITION OF "Some""one" FOR VALUES FROM (0) TO (50)',
        'CREATE TABLE others PARTITION OF "Some""one" FOR VALUES FROM (50) TO (9000)',
        'INSERT INTO "Some""one" SELECT generate_series(1, 8000)',
        "CREATE TABLE nothing (id bigint PRIMARY KEY)",
        "CREATE TABLE later (id bigint PRIMARY KEY)",
    )
    names = ["item", 'Some"one', "nothing", "later"]
    with new_pg.connect(autocommit=True) as connection:
        asked = Asked(connection)
        there = Looks("public").rows_there(asked, dict.fromkeys(names, key))
        assert there(names[:3]) == {"item", 'Some"one'}
        new_pg.execute("INSERT INTO later VALUES (1)")
        assert there(names) == {"item", 'Some"one', "later"}
        new_pg.execute("DELETE FROM item WHERE id > 10", "VACUUM FULL item", 'TRUNCATE "others"')
        assert there(names) == {"item", 'Some"one', "later"}
        new_pg.execute("TRUNCATE item", 'TRUNCATE "first"', "DELETE FROM later")
        assert there(names) == set()
        asked.pages.clear()
        assert there([]) == set()
        assert asked.pages == []
