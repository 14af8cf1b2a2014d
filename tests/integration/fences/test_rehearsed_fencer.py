"""The rights that a rehearsal gives whoever raises a fence on MySQL and MariaDB: enough, and not too few."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace

import pytest

from migrator.errors import CutoverError
from migrator.model.cutover.fence import FenceKind, Standing
from scenarios.rehearsal.sides import to_fence
from tests.contract.fences.fence_under_test import LONG_S, down, plan_of
from tests.integration.fences.mysql_place import MysqlPlace
from tests.integration.run_project import scenario_database
from tests.servers import Database, fresh_database

pytestmark = pytest.mark.integration


@pytest.fixture(params=["mysql", "mariadb"])
def place_and_administrator(request: pytest.FixtureRequest) -> Iterator[tuple[MysqlPlace, Database]]:
    """A place whose fence is raised by a login without any right, and the administrator's login."""
    with fresh_database(request.getfixturevalue(request.param), "old") as database:
        made = MysqlPlace(database)
        fencer = f"fencer{database.database[-10:]}"
        [[trusted]] = database.query("SELECT @@GLOBAL.log_bin_trust_function_creators")
        database.execute(
            f"CREATE USER {made.account(fencer)}", "SET GLOBAL log_bin_trust_function_creators = 1"
        )
        poor = copy(made)
        poor.database = replace(database, user=fencer, password="")
        try:
            yield poor, database
        finally:
            database.execute(
                f"SET GLOBAL log_bin_trust_function_creators = {trusted}", f"DROP USER {made.account(fencer)}"
            )
            made.drop()


def test_the_login_of_a_rehearsal_raises_and_opens_a_fence(
    place_and_administrator: tuple[MysqlPlace, Database],
) -> None:
    place, administrator = place_and_administrator
    fencer = place.account(place.database.user)
    administrator.execute(f"GRANT TRIGGER ON `{place.database.database}`.* TO {fencer}")
    with pytest.raises(CutoverError, match="denied"):
        place.fence().survey(place.tables, place.ours)
    administrator.execute(*to_fence(scenario_database(administrator), "old", FenceKind.TRIGGERS, fencer))
    assert place.fence().survey(place.tables, place.ours).choice(FenceKind.TRIGGERS).obstacles == ()
    plan = plan_of(place, FenceKind.TRIGGERS)
    place.fence().raise_fence(plan, LONG_S)
    assert place.fence().state(plan).standing is Standing.UP
    assert list(place.fence().open_transactions(plan)) == []
    down(place, plan)
    assert place.fence().state(plan).standing is Standing.DOWN
