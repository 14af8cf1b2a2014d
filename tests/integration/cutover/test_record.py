"""The record of a cut-over as somebody sees it who looked before it was there."""

from __future__ import annotations

import pytest
from sqlalchemy import URL

from migrator.model.cutover.fence import FenceKind, FencePlan
from migrator.model.cutover.record import CutoverPlan, Record
from migrator.model.table import TableId
from migrator.schema.cutovers import Copy
from tests.servers import Database

pytestmark = [pytest.mark.integration]


@pytest.mark.parametrize("engine", ["new_pg", "new_maria"])
def test_a_leader_that_looked_before_sees_a_plan_that_is_accepted(
    engine: str, request: pytest.FixtureRequest
) -> None:
    """A session that stays in one transaction wouldn't: the server remembers there that the table is missing."""
    database: Database = request.getfixturevalue(engine)
    driver = "postgresql+psycopg" if database.kind == "postgresql" else "mariadb+pymysql"
    url = URL.create(
        driver, database.user, database.password or None, database.host, database.port, database.database
    )
    leader, operator = Copy(url, "shop", "old"), Copy(url, "shop", "old")
    fence = FencePlan(FenceKind.TRIGGERS, (TableId("public", "orders"),), "migrator", "handed over")
    try:
        assert leader.read() is None
        operator.make(Record(CutoverPlan(fence, fence)))
        assert leader.read() == operator.read()
        assert leader.read() is not None
    finally:
        leader.close()
        operator.close()
