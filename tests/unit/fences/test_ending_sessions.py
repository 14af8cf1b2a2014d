"""Sessions that the server lists as about to go: a refused login for a moment, an ended one until it is gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from migrator.adapters.fences.mysql.accounts import Accounts
from migrator.adapters.fences.mysql.session import MysqlFenceSession
from migrator.adapters.fences.shared.notes import Noted, Notes
from migrator.model.cutover.fence import FenceKind, FencePlan, Standing
from migrator.model.table import TableId

PLAN = FencePlan(
    FenceKind.ACCOUNT_LOCK, (TableId("shop", "item"),), "ours", "gone to the new side", ("app@localhost",)
)
ENDING, AT_WORK = ("7", "app", "", "Killed"), ("7", "app", "", "UPDATE item SET id = 1")
LOOKS = 26
"""As often as it is looked at before it counts."""
Looks = Sequence[list[tuple[str, ...]]]


class Scripted:
    """A server whose list of sessions is another one at each look; its account is locked."""

    def __init__(self, looks: Looks):
        self.looks = list(looks)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        if "PROCESSLIST" in sql:
            return list(self.looks.pop(0))
        if sql == "SHOW GRANTS":
            return [("GRANT ALL PRIVILEGES ON *.* TO `ours`@`%`",)]
        return [("CREATE USER `app`@`localhost` ACCOUNT LOCK",)]


@pytest.mark.parametrize(
    ("looks", "standing"),
    [
        ([[]], Standing.UP),
        ([[ENDING], []], Standing.UP),
        ([[ENDING]] * LOOKS, Standing.PARTLY),
        ([[AT_WORK]], Standing.PARTLY),
        ([[AT_WORK, ("8", "app", "", "Killed")], []], Standing.PARTLY),
    ],
    ids=["none", "a refused login", "still ending", "at work", "at work beside one that is gone"],
)
def test_only_a_session_that_stays_keeps_the_fence_from_being_up(looks: Looks, standing: Standing) -> None:
    server = Scripted(looks)
    accounts = Accounts(cast(Notes, None))
    noted = Noted(PLAN, {"locked": [], "refused": {}})
    state = accounts.state(cast(MysqlFenceSession, server), noted)
    assert state.standing is standing
    assert not server.looks, "no look too few or too many"
