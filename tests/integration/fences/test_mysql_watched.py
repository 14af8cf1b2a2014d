"""A MySQL server that watches itself: late writers by name, and who holds a table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from migrator.embedded.process import scratch_directory
from migrator.errors import CutoverError
from migrator.model.cutover.fence import FenceKind, Standing
from tests.contract.fences.fence_under_test import LONG_S, down, named_and_ended, plan_of, rows_of, run
from tests.integration.fences.mysql_place import MysqlPlace
from tests.servers import Database, MariaDBServer, embedded_mysql, fresh_database, unpacked_mysql

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture
def place() -> Iterator[MysqlPlace]:
    unpacked_mysql()
    settings = {"performance-schema": "ON"}
    with scratch_directory("fence-") as folder, embedded_mysql(folder / "my", settings=settings) as server:
        admin = Database(server.host, server.port, "mysql", server.superuser, server.password, "mysql")
        with fresh_database(MariaDBServer(admin, server), "old") as database:
            yield MysqlPlace(database)


def test_late_writers_are_named_and_so_is_who_holds_a_table(place: MysqlPlace) -> None:
    plan, fence = plan_of(place, FenceKind.TRIGGERS), place.fence()
    holder, beside = place.connect(place.app), place.connect(place.ours)
    for connection, number in ((holder, 1), (beside, 2)):
        run(connection, "BEGIN")
        run(connection, f"SELECT * FROM {place.table(number)}")
    run(beside, "COMMIT")
    with pytest.raises(CutoverError) as error:
        fence.raise_fence(plan, 0.5)
    assert place.app in error.value.cause
    assert place.ours not in error.value.cause
    run(holder, "COMMIT")
    fence.raise_fence(plan, LONG_S)
    assert fence.late(plan).count == 0
    for _ in range(2):
        with pytest.raises(place.refused()):
            run(holder, f"DELETE FROM {place.table(1)}")
    late = fence.late(plan)
    assert (late.count, late.by_login) == (2, ((place.app, 2),))
    down(place, plan)


def test_whoever_keeps_the_fence_from_coming_up_is_named_with_a_beginning_and_ended(
    place: MysqlPlace,
) -> None:
    plan, fence, before = plan_of(place, FenceKind.TRIGGERS), place.fence(), rows_of(place, 1)
    sleeper, elsewhere, ours = place.connect(place.app), place.connect(place.app), place.connect(place.ours)
    run(sleeper, "BEGIN")
    run(sleeper, f"UPDATE {place.table(1)} SET amount = 9 WHERE id = 1")
    run(ours, "BEGIN")
    run(ours, f"UPDATE {place.table(1)} SET amount = 9 WHERE id = 2")
    run(elsewhere, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
    with pytest.raises(CutoverError, match="waited for in vain"):
        fence.raise_fence(plan, 0.5)
    named_and_ended(place, fence, plan)
    run(ours, "ROLLBACK")
    assert fence.raise_fence(plan, LONG_S).standing is Standing.UP
    assert fence.in_the_way(plan) == ()
    assert rows_of(place, 1) == before, "what it wrote is rolled back"
    run(elsewhere, "COMMIT")
    down(place, plan)
