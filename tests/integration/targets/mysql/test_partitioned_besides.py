"""Tables beside partitioned targets on MySQL and MariaDB: they are partitioned, too, and each row of both counts."""

from __future__ import annotations

import pytest

from migrator.adapters.targets.mysql.reflect import catalog, reflect
from migrator.adapters.targets.mysql.rows.all_of import merge_of, otherwise, statements
from migrator.adapters.targets.mysql.rows.staging import StagingTables
from migrator.adapters.targets.mysql.session import Session
from migrator.model.table import TableId
from tests.integration.target_bench_mysql import settings_of
from tests.servers import Database

pytestmark = [pytest.mark.integration]

PARTITIONS = (
    "",
    "PARTITION BY HASH (id) PARTITIONS 3",
    "PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (30), PARTITION b VALUES LESS THAN MAXVALUE)",
)


@pytest.mark.parametrize("partitions", PARTITIONS)
@pytest.mark.parametrize("engine", ["new_mysql", "new_maria"])
def test_rows_go_come_and_stay_as_the_table_beside_has_them(
    engine: str, partitions: str, request: pytest.FixtureRequest
) -> None:
    """A column that isn't written keeps its values, which a row that is deleted and inserted would lose."""
    new: Database = request.getfixturevalue(engine)
    new.execute(
        f"CREATE TABLE late (id bigint PRIMARY KEY, customer bigint, kept int DEFAULT 7) {partitions}",
        "CREATE TABLE beside LIKE late",
        *(f"INSERT INTO late VALUES ({n}, {n}, {n})" for n in range(1, 61) if n % 3),
        *(f"INSERT INTO beside VALUES ({n}, {n * 10}, 0)" for n in range(1, 61) if n % 5),
    )
    settings, table = settings_of(new), TableId(new.database, "late")
    with catalog(settings) as connection:
        structure = reflect(connection, new.database, ["late"])[table]
    session = Session(settings)
    try:
        staging = StagingTables(session)
        merge = merge_of(structure, ("id", "customer"), TableId(new.database, "beside"), staging)
        found = [session.rows(query) for query in otherwise(merge)]
        assert all(len(rows) == 1 for rows in found), "both tables have rows that the other lacks"
        session.run("START TRANSACTION")
        assert [session.run(statement) for statement in statements(merge)] == [8, 32, 16]
        assert [session.rows(query) for query in otherwise(merge)] == [[], []]
        session.run("COMMIT")
    finally:
        session.close()
    wanted = [(n, n * 10, n if n % 3 else 7) for n in range(1, 61) if n % 5]
    assert new.query("SELECT id, customer, kept FROM late ORDER BY id") == wanted
