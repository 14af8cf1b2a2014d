"""A publication that was changed and put back while nobody read: what it left out is lost, and nothing else
tells."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from migrator.errors import GapError
from migrator.model.limits import CaptureLimits
from migrator.model.requests.request import WHOLE
from tests.fix_postgres_source import source_of
from tests.integration.capturing import Capturing, capturing
from tests.servers import Database

pytestmark = pytest.mark.integration

ALL = "ALTER PUBLICATION {name} SET (publish = 'insert, update, delete, truncate')"
HARMLESS = (
    "ALTER PUBLICATION {name} ADD TABLE other",
    "ALTER PUBLICATION {name} DROP TABLE other",
    "VACUUM FREEZE pg_catalog.pg_publication",
    "VACUUM FULL pg_catalog.pg_publication_rel",
)


def begun(database: Database) -> Capturing:
    """Two tables, dumped and read for a while; the run is stopped."""
    for name in ("t", "u", "other"):
        database.execute(
            f"CREATE TABLE {name} (k int PRIMARY KEY, v text)",
            f"ALTER TABLE {name} REPLICA IDENTITY FULL",
            f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')",
        )
    capture = capturing(database, ["t", "u"], CaptureLimits(linger_s=0.01, heartbeat_s=0.05))
    capture.run(capture.dumped)
    return capture


def put_through(database: Database, statements: Sequence[str], meanwhile: str) -> None:
    """The first statement, a change of the application's, the others."""
    first, *others = (each.format(name=source_of(database).slot) for each in statements)
    database.execute(first, meanwhile, *others)


@pytest.mark.parametrize(
    ("change", "meanwhile"),
    [
        (("ALTER PUBLICATION {name} DROP TABLE t", "ALTER PUBLICATION {name} ADD TABLE t"), "DELETE FROM t"),
        (
            ("ALTER PUBLICATION {name} SET TABLE u", "ALTER PUBLICATION {name} SET TABLE t, u"),
            "DELETE FROM t",
        ),
        (
            (
                "ALTER PUBLICATION {name} SET TABLE t WHERE (k > 1), u",
                "ALTER PUBLICATION {name} SET TABLE t, u",
            ),
            "DELETE FROM t",
        ),
        (("ALTER PUBLICATION {name} SET (publish = 'update, delete')", ALL), "INSERT INTO t VALUES (3, 'c')"),
        (("ALTER PUBLICATION {name} SET (publish = 'insert, delete')", ALL), "UPDATE t SET v = 'z'"),
        (("ALTER PUBLICATION {name} SET (publish = 'insert, update')", ALL), "DELETE FROM t"),
        (
            (
                "DROP PUBLICATION {name}",
                "CREATE PUBLICATION {name} FOR TABLE t, u WITH (publish_via_partition_root = true)",
            ),
            "SELECT 1",
        ),
    ],
)
def test_what_the_publication_left_out_while_nobody_read_stops_by_name(
    old_pg: Database, change: tuple[str, ...], meanwhile: str
) -> None:
    capture = begun(old_pg)
    put_through(old_pg, change, meanwhile)
    for _ in range(2):  # whoever starts it again may not have read why it stopped
        with pytest.raises(GapError, match="doesn't cover the captured tables") as caught:
            capture.run(lambda: False)
        assert "changed and put back" in caught.value.cause
    assert "start the migration anew" in caught.value.remedy
    capture.requests.update(lambda book: book.start(tuple(capture.schemas), WHOLE))
    with pytest.raises(GapError):  # deleted rows would stay
        capture.run(lambda: False)


def test_other_tables_of_the_publication_and_its_upkeep_are_of_no_interest(old_pg: Database) -> None:
    capture = begun(old_pg)
    for statement in HARMLESS:
        put_through(old_pg, [statement], "INSERT INTO t SELECT max(k) + 1, 'c' FROM t")
        capture.run(capture.caught_up())
    (table,) = (each for each in capture.schemas if each.name == "t")
    assert capture.held()[table] == capture.source(table)
    assert len(capture.source(table)) == 2 + len(HARMLESS)
