"""Keys of types that an extension compares: chunks take its order and equality, and leave no row out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from migrator.adapters.sources.postgres.chunks import chunk_reader as reading
from migrator.model.limits import CaptureLimits
from migrator.model.requests.request import RequestBook, Scope
from migrator.model.table import TableId
from tests.integration.capturing import Capturing, capturing
from tests.servers import Database

pytestmark = pytest.mark.integration

SMALL = CaptureLimits(chunk_rows=3, chunk_rows_min=1, chunk_rows_max=3, linger_s=0.01)
TABLES = ("words", "paths", "pairs")


@pytest.fixture
def captured(old_pg: Database) -> Capturing:
    """Fifty rows a table, in an order that is not their texts'; the extensions lie in a schema of an odd name."""
    if old_pg.query("SELECT count(*) FROM pg_available_extensions WHERE name IN ('citext', 'ltree')") != [
        (2,)
    ]:
        pytest.skip("this server's packages have no citext and ltree (Debian's have)")
    word = "chr((CASE WHEN g % 26 < 13 THEN 97 ELSE 65 END) + g % 26) || g"
    old_pg.execute(
        'CREATE SCHEMA "Odd ""one"',
        *(f'CREATE EXTENSION {name} SCHEMA "Odd ""one"' for name in ("citext", "ltree")),
        f'ALTER DATABASE "{old_pg.database}" SET search_path = public, "Odd ""one"',
    )
    old_pg.execute(
        'CREATE DOMAIN word AS citext COLLATE "C"',
        "CREATE TABLE words (k word PRIMARY KEY, v int)",
        "CREATE TABLE paths (k ltree PRIMARY KEY, v int)",
        'CREATE TABLE pairs (a int, b citext COLLATE "C", v int, PRIMARY KEY (a, b))',
        *(f"ALTER TABLE {name} REPLICA IDENTITY FULL" for name in TABLES),
        f"INSERT INTO words SELECT {word}, g FROM generate_series(1, 50) g",
        f"INSERT INTO paths SELECT ({word} || '.' || {word})::ltree, g FROM generate_series(1, 50) g",
        f"INSERT INTO pairs SELECT g % 3, {word}, g FROM generate_series(1, 50) g",
    )
    return capturing(old_pg, list(TABLES), SMALL)


def test_no_row_is_left_out(old_pg: Database, captured: Capturing) -> None:
    captured.run(captured.dumped)
    old_pg.execute(
        "UPDATE words SET k = upper(k::text), v = 0 WHERE v % 5 = 0", "DELETE FROM paths WHERE v > 45"
    )
    captured.run(captured.caught_up())
    for table in captured.schemas:
        assert captured.held()[table] == captured.source(table)


def test_requests_compare_as_the_server_does(captured: Capturing) -> None:
    """Ranges and lists of keys in other letters than the rows have: B1 is b1, for instance."""
    captured.run(captured.dumped)
    words, pairs = (
        next(table for table in captured.schemas if table.name == name) for name in ("words", "pairs")
    )
    scopes = {
        "range": (words, Scope(low=("B0",), high=("c29",))),
        "list": (words, Scope(keys=(("B1",), ("c2",), ("none",)))),
        "pairs": (pairs, Scope(low=("1", "B"), high=("1", "E"))),
    }

    def asking(table: TableId, scope: Scope) -> Callable[[RequestBook], RequestBook]:
        return lambda book: book.start((table,), scope)

    for table, scope in scopes.values():
        captured.catalog.check_scope(captured.schemas[table], scope)
        captured.requests.update(asking(table, scope))

    def done() -> bool:
        requests = captured.progress.snapshot().requests
        return len(requests) == len(scopes) and all(dump.done for dump in requests)

    captured.run(done)
    rows = [dump.rows for dump in captured.progress.snapshot().requests]
    assert rows == [4, 2, 2]


def test_pg_catalogs_operators_alone_would_leave_rows_out(
    old_pg: Database, captured: Capturing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "operator_path", lambda query, keys: "")
    captured = capturing(old_pg, ["words"], SMALL)
    captured.run(captured.dumped)
    (table,) = captured.schemas
    assert len(captured.held()[table]) < len(captured.source(table))
