"""Whoever keeps a fence from being raised, asked of the servers: named with a beginning, and ended by that name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from migrator.errors import CutoverError
from migrator.model.cutover.fence import FenceKind, Standing
from tests.contract.fences.fence_under_test import (
    LONG_S,
    FencePlace,
    down,
    named_and_ended,
    plan_of,
    rows_of,
    run,
)
from tests.integration.fences.mysql_place import MysqlPlace
from tests.integration.fences.postgres_place import PostgresPlace

pytestmark = pytest.mark.integration


@pytest.fixture(params=["old_pg", "old_mysql", "old_maria"])
def place(request: pytest.FixtureRequest) -> Iterator[FencePlace]:
    database = request.getfixturevalue(request.param)
    found = PostgresPlace(database) if request.param == "old_pg" else MysqlPlace(database)
    yield found
    found.drop()


def test_a_transaction_that_waits_for_its_user_is_named_and_ended(
    place: FencePlace, request: pytest.FixtureRequest
) -> None:
    plan, fence, before = plan_of(place, FenceKind.TRIGGERS), place.fence(), rows_of(place, 1)
    app, ours = place.connect(place.app), place.connect(place.ours)
    for connection, key in ((app, 1), (ours, 2)):
        run(connection, "BEGIN")
        run(connection, f"UPDATE {place.table(1)} SET amount = 9 WHERE id = {key}")
    with pytest.raises(CutoverError, match="waited for in vain"):
        fence.raise_fence(plan, 0.5)
    if "old_pg" not in request.node.callspec.id:
        assert fence.in_the_way(plan) == (), (
            "without performance_schema the server doesn't tell whose tables they are"
        )
        app.close()
    else:
        named_and_ended(place, fence, plan)
    run(ours, "ROLLBACK")
    assert fence.raise_fence(plan, LONG_S).standing is Standing.UP
    assert fence.in_the_way(plan) == ()
    assert rows_of(place, 1) == before, "what it wrote is rolled back"
    down(place, plan)


def test_a_kind_that_waits_for_nobody_ends_nobody(place: FencePlace) -> None:
    kind = next(kind for kind in place.kinds if kind is not FenceKind.TRIGGERS)
    app = place.connect(place.app)
    run(app, "BEGIN")
    run(app, f"UPDATE {place.table(1)} SET amount = 9 WHERE id = 1")
    assert place.fence().in_the_way(plan_of(place, kind)) == ()
    run(app, "ROLLBACK")
    app.close()
