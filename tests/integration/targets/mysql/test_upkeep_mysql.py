"""A MySQL or MariaDB target that is made to look at tables."""

from __future__ import annotations

import pytest

from migrator.adapters.targets.mysql.mirror.names import mirror_database
from migrator.adapters.targets.mysql.upkeep import MysqlUpkeep
from migrator.model.table import TableId
from tests.integration.target_bench_mysql import MIGRATION, settings_of
from tests.servers import Database

pytestmark = pytest.mark.integration
_KNOWN = "SELECT n_rows FROM mysql.innodb_table_stats WHERE database_name = %s AND table_name = 'thing'"


@pytest.fixture(params=["new_mysql", "new_maria"])
def target(request: pytest.FixtureRequest) -> Database:
    """An empty database of each engine."""
    found: Database = request.getfixturevalue(request.param)
    return found


def test_what_was_filled_is_known(target: Database) -> None:
    target.execute(
        "CREATE TABLE thing (id int PRIMARY KEY) ENGINE=InnoDB STATS_PERSISTENT=1 STATS_AUTO_RECALC=0",
        "INSERT INTO thing VALUES (1), (2), (3), (4), (5)",
    )
    assert target.query(_KNOWN, (target.database,)) in ([], [(0,)])
    upkeep = MysqlUpkeep(settings_of(target))
    assert upkeep.refresh(TableId(target.database, "thing"), lambda: False) == ""
    assert target.query(_KNOWN, (target.database,)) == [(5,)]


def test_a_table_that_can_t_be_looked_at_is_named(target: Database) -> None:
    why = MysqlUpkeep(settings_of(target)).refresh(TableId(target.database, "nothing"), lambda: False)
    assert "nothing" in why
    assert "run ANALYZE TABLE" in why


def test_the_mirror_s_tables_are_found_and_no_others(target: Database) -> None:
    mirror = mirror_database(target.database)
    target.execute(
        f"CREATE DATABASE {mirror}",
        f"CREATE TABLE {mirror}.`{MIGRATION}.thing` (id int)",
        f"CREATE TABLE {mirror}.`other.thing` (id int)",
        f"CREATE TABLE {mirror}.filled (id int)",
    )
    try:
        assert MysqlUpkeep(settings_of(target)).mirror() == [TableId(mirror, f"{MIGRATION}.thing")]
    finally:
        target.execute(f"DROP DATABASE {mirror}")
