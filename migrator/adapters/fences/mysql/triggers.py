"""Triggers that refuse rows on MySQL and MariaDB: three on every table, before any other of their kind.

Each waits until nobody holds the table, in short tries, so transactions that wrote it have ended by then. ``USER()``
is whose session it is; ``CURRENT_USER()`` would be the trigger's own definer. TRUNCATE, replication and cascades of
foreign keys fire no triggers: the survey names who could.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from migrator.adapters.fences.mysql.counting import Counting
from migrator.adapters.fences.mysql.session import MysqlFenceSession
from migrator.adapters.fences.mysql.transactions import holding, running
from migrator.adapters.fences.shared.kept_fence import Before
from migrator.adapters.fences.shared.notes import Noted, Notes
from migrator.adapters.fences.shared.session import Limit
from migrator.connections.mysql.sql import quote, quote_table
from migrator.errors import CutoverError
from migrator.model.cutover.fence import FencePlan, FenceState, LateWriters, Standing
from migrator.model.table import TableId

EVENTS = ("INSERT", "UPDATE", "DELETE")
_SESSION_LOGIN = "SUBSTRING(USER(), 1, CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER())))"
_THERE = (
    "SELECT TRIGGER_NAME, EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE, EVENT_MANIPULATION"
    " FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = %s AND TRIGGER_NAME = %s"
)
_FIRST = (
    "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = %s AND EVENT_OBJECT_TABLE = %s"
    " AND ACTION_TIMING = 'BEFORE' AND EVENT_MANIPULATION = %s ORDER BY ACTION_ORDER LIMIT 1"
)
_TABLE = (
    "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    " AND TABLE_TYPE = 'BASE TABLE'"
)


@dataclass(frozen=True, slots=True)
class OurTrigger:
    """One trigger of the fence: its table, its event, and its name."""

    table: TableId
    event: str
    name: str

    def quoted(self) -> str:
        """Returns its full name, quoted."""
        return f"{quote(self.table.schema)}.{quote(self.name)}"


class Triggers:
    """``Means`` by triggers.

    Args:
        name: beginning of their names.
        notes: of the fence.
        counting: counts the refused writers.
    """

    def __init__(self, name: str, notes: Notes, counting: Counting):
        self._name, self._notes, self._counting = name, notes, counting

    def before(self, session: MysqlFenceSession, plan: FencePlan) -> Before:
        """Returns what the count of refused writers begins with: nothing that is there is changed."""
        for table in plan.tables:
            if not session.rows(_TABLE, (table.schema, table.name))[0][0]:
                raise CutoverError(
                    f"there is no table {table}",
                    where=str(table),
                    cause="the fence is to keep rows of it from being changed",
                    remedy="name tables that exist, with their databases",
                )
        return {"counted": self._counting.before(session, plan)}

    def put_up(self, session: MysqlFenceSession, noted: Noted, limit: Limit) -> None:
        """Makes the triggers that lack, each in short tries."""
        lacking = [one for one in self._triggers(noted.plan) if not self._is_there(session, one)]
        for statement in self._counting.making(noted.before["counted"]):
            limit.change(session, statement)
        limit.all_of(
            lacking,
            lambda one: self._create(session, one, noted),
            lambda left: holding(session, [one.table for one in left]),
        )
        self._notes.stamp(session, limit)

    def take_down(self, session: MysqlFenceSession, noted: Noted, limit: Limit) -> None:
        """Drops them in short tries, and forgets the notes."""
        limit.all_of(
            [one for one in self._triggers(noted.plan) if session.rows(_THERE, (one.table.schema, one.name))],
            lambda one: session.change(f"DROP TRIGGER IF EXISTS {one.quoted()}"),
            lambda left: holding(session, [one.table for one in left]),
        )
        for statement in self._counting.dropping(noted.before["counted"]):
            limit.change(session, statement, holders=lambda: running(session))
        limit.change(session, self._notes.forget(noted))

    def state(self, session: MysqlFenceSession, noted: Noted) -> FenceState:
        """Returns which of them are there."""
        every = self._triggers(noted.plan)
        lacking = [one for one in every if not self._is_there(session, one)]
        missing = tuple(f"{one.table} has no trigger before {one.event}" for one in lacking)
        if len(lacking) == len(every):
            return FenceState(Standing.DOWN, missing)
        return FenceState(Standing.PARTLY if missing else Standing.UP, missing)

    def late(self, session: MysqlFenceSession, noted: Noted) -> LateWriters:
        """Returns what was counted."""
        return self._counting.late(session, noted.before["counted"])

    def by_hand(self, session: MysqlFenceSession, noted: Noted) -> list[str]:
        """Returns the statements that drop the triggers, and what counts."""
        triggers = [f"DROP TRIGGER IF EXISTS {one.quoted()}" for one in self._triggers(noted.plan)]
        return [*triggers, *self._counting.dropping(noted.before["counted"])]

    def _triggers(self, plan: FencePlan) -> Sequence[OurTrigger]:
        return [
            OurTrigger(table, event, f"{self._name}_{number}_{event[0].lower()}")
            for number, table in enumerate(plan.tables)
            for event in EVENTS
        ]

    def _is_there(self, session: MysqlFenceSession, one: OurTrigger) -> bool:
        found = session.rows(_THERE, (one.table.schema, one.name))
        return [row[1:] for row in found] == [(one.table.schema, one.table.name, one.event)]

    def _create(self, session: MysqlFenceSession, one: OurTrigger, noted: Noted) -> None:
        if self._is_there(session, one):
            return
        plan = noted.plan
        first = session.rows(_FIRST, (one.table.schema, one.table.name, one.event))
        order = f" PRECEDES {quote(first[0][0])}" if first else ""
        count = self._counting.in_trigger(session, noted.before["counted"], _SESSION_LOGIN)
        refuse = f"{count}SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = {session.literal(plan.message)};"
        ours = f"CAST({_SESSION_LOGIN} AS BINARY) = CAST({session.literal(plan.login)} AS BINARY)"
        does = f"IF NOT {ours} THEN {refuse} END IF;" if plan.login else refuse
        session.change(
            f"CREATE TRIGGER {one.quoted()} BEFORE {one.event} ON {quote_table(one.table)} FOR EACH ROW{order}"
            f" BEGIN {does} END"
        )
