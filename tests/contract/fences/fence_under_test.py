"""A database on which a fence is raised: its tables, its logins, and what its server lists.

Tables: ``customer(id, name)``, ``orders(id, customer_id -> customer ON DELETE CASCADE, amount)`` and one with a
hostile name. Logins: ours, which goes on writing, and an application.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol

from migrator.model.cutover.fence import FenceKind, FencePlan, Standing
from migrator.model.table import TableId
from migrator.ports.fence import Fence

LONG_S = 30.0
MESSAGE = "moved: write to the new shop's database"


class Killed(BaseException):
    """Ends the tool between two statements: nothing of it runs any more but the closing of its session."""


class FencePlace(Protocol):
    """One database with the tables and logins above."""

    @property
    def kinds(self) -> tuple[FenceKind, ...]:
        """The kinds of the engine."""

    @property
    def ours(self) -> str:
        """The login that goes on writing."""

    @property
    def app(self) -> str:
        """An application's login."""

    @property
    def role(self) -> str:
        """The same as plans name it."""

    @property
    def tables(self) -> tuple[TableId, ...]:
        """The tables above, in order."""

    @property
    def says_where(self) -> frozenset[FenceKind]:
        """Kinds that hand the plan's message to late writers."""

    @property
    def named_late(self) -> frozenset[FenceKind]:
        """Kinds that count late writers by name."""

    @property
    def harsh(self) -> tuple[tuple[str, ...], ...]:
        """Statements by which an administrator changes rows in unusual ways: a session's, the last one often."""

    def fence(self, step: Callable[[str], None] = lambda name: None) -> Fence:
        """A fence of this database, by its administrator."""

    def connect(self, login: str) -> Any:
        """An autocommit connection of a login; "" for the administrator."""

    def listing(self) -> list[str]:
        """What the server lists of grants, triggers, settings, locks and things of ours, but for the notes' table."""

    def noted(self) -> bool:
        """Whether notes of a fence are there."""

    def by_hand(self, statements: Sequence[str]) -> None:
        """Runs statements as the server's own client does."""

    def statements(
        self, before: Callable[[], None], after: Callable[[], None]
    ) -> AbstractContextManager[None]:
        """Calls these around every statement of a fence that changes something."""

    def refused(self) -> tuple[type[Exception], ...]:
        """The driver's errors of refused statements and ended sessions."""

    def table(self, number: int) -> str:
        """The quoted name of one of ``tables``."""


def plan_of(place: FencePlace, kind: FenceKind, **changes: Any) -> FencePlan:
    """A plan of a kind, with every way round accepted that the survey names."""
    named = kind in (FenceKind.REVOKE, FenceKind.ACCOUNT_LOCK)
    choice = place.fence().survey(place.tables, place.ours).choice(kind)
    login = place.ours if choice.lets_us_write else ""
    plan = FencePlan(kind, place.tables, login, MESSAGE, (place.role,) if named else ())
    plan = replace(plan, **changes)
    ways = place.fence().survey(plan.tables, place.ours).choice(kind).open_ways(plan.roles)
    return replace(plan, accepted=frozenset(way.label for way in ways))


def rows_of(place: FencePlace, number: int = 0) -> list[tuple[Any, ...]]:
    """The rows of one of the tables."""
    connection = place.connect("")
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {place.table(number)} ORDER BY 1")
            return list(cursor.fetchall())
    finally:
        connection.close()


def run(connection: Any, statement: str) -> None:
    """Runs a statement."""
    with connection.cursor() as cursor:
        cursor.execute(statement)


class At:
    """Raises ``Killed`` at the n-th moment before or after a changing statement."""

    def __init__(self, number: int):
        self.number, self.met = number, 0

    def __call__(self) -> None:
        self.met += 1
        if self.met == self.number:
            raise Killed


def killed_at(place: FencePlace, number: int, act: Callable[[], Any]) -> bool:
    """Runs an act that is killed at the n-th moment; False where it ended before that."""
    at = At(number)
    with place.statements(at, at):
        try:
            act()
        except Killed:
            return True
    return False


def named_and_ended(place: FencePlace, fence: Fence, plan: FencePlan) -> None:
    """The application alone is in the way, is named with a beginning, and is ended."""
    found = fence.in_the_way(plan)
    assert [(one.login, bool(one.since), one.prepared) for one in found] == [(place.app, True, False)]
    assert fence.in_the_way(plan) == found, "the same one is known again"
    fence.end(found)


def down(place: FencePlace, plan: FencePlan) -> None:
    """The fence is opened, and says so."""
    assert place.fence().open_fence(plan, LONG_S).standing is Standing.DOWN
