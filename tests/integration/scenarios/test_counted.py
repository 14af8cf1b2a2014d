"""Weights of a workload from the counters of real servers."""

from __future__ import annotations

import pytest

from migrator.embedded.mysql import EmbeddedMySQL
from migrator.embedded.process import scratch_directory
from migrator.errors import ConfigError
from scenarios.chaos.writes.counted import weights
from scenarios.chaos.writes.weights import Weights
from tests.integration.waiting import await_true
from tests.servers import Database

pytestmark = pytest.mark.integration


def _written(old: Database) -> str:
    """A database in which three rows were inserted, two updated, one deleted; another table has no change."""
    with old.connect() as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE counted_rows (id int PRIMARY KEY, v int)")
        cursor.execute("CREATE TABLE quiet (id int PRIMARY KEY)")
        cursor.execute("INSERT INTO counted_rows VALUES (1, 1), (2, 2), (3, 3)")
        cursor.execute("UPDATE counted_rows SET v = 9 WHERE id < 3")
        cursor.execute("DELETE FROM counted_rows WHERE id = 3")
        connection.commit()
    scheme = "postgresql" if old.kind == "postgresql" else "mysql"
    return f"{scheme}://{old.user}:{old.password}@{old.host}:{old.port}/{old.database}"


def _shares(found: Weights) -> tuple[float, float]:
    """The weights of kinds that insert, and of those that delete."""
    kinds = found.kinds
    return kinds["insert"] + kinds["family"], kinds["delete"] + kinds["again"]


def test_postgresql_says_which_tables_are_written(old_pg: Database) -> None:
    address = _written(old_pg)

    def counted() -> bool:  # counters come with the end of the session that wrote
        try:
            return weights(address, "postgresql").tables.get("counted_rows") == 1
        except ConfigError:
            return False

    await_true(counted, "the server has counted")
    found = weights(address, "postgresql")
    assert found.tables == {"counted_rows": 1, "quiet": 0}
    inserted, deleted = _shares(found)
    assert inserted == pytest.approx(3 * deleted)


@pytest.mark.slow
def test_mysql_says_which_tables_are_written() -> None:
    with (
        scratch_directory("migrator-counted-") as folder,
        EmbeddedMySQL(folder, settings={"performance-schema": "ON"}) as server,
    ):
        server.create_database("old")
        old = Database(server.host, server.port, "old", server.superuser, "", "mysql")
        found = weights(_written(old), "mysql")
    assert found.tables["counted_rows"] == 1
    inserted, deleted = _shares(found)
    assert inserted == pytest.approx(3 * deleted)


def test_a_server_that_does_not_count_is_named(old_maria: Database) -> None:
    with pytest.raises(ConfigError, match="the server has counted no row change") as raised:
        weights(_written(old_maria), "mariadb")
    assert "performance_schema is off" in raised.value.cause
