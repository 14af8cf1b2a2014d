"""``ports.fence.Fence`` on PostgreSQL 14 or newer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from migrator.adapters.fences.postgres.read_only import ReadOnly
from migrator.adapters.fences.postgres.relations import at_work
from migrator.adapters.fences.postgres.revoked import Revoked
from migrator.adapters.fences.postgres.session import SESSION_ID, PostgresFenceSession, database_url, literal
from migrator.adapters.fences.postgres.survey import survey
from migrator.adapters.fences.postgres.triggers import Triggers
from migrator.adapters.fences.shared.kept_fence import KeptFence, Side
from migrator.adapters.fences.shared.notes import Notes
from migrator.model.cutover.fence import FenceKind, FencePlan, OpenTransaction, Survey
from migrator.model.table import TableId
from migrator.schema import upgrade_fence
from migrator.schema.dialects import fence_table

_ALONE = "SELECT pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended(%s, 0))"
_LOCKED_BY = (
    "SELECT " + SESSION_ID.format("a.") + ", a.usename::text, a.backend_start::text,"
    " 'raises or opens the same fence' FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid"
    " WHERE l.locktype = 'advisory' AND l.granted AND a.pid <> pg_catalog.pg_backend_pid()"
    " AND a.datname = pg_catalog.current_database() AND l.objsubid = 1"
    " AND ((l.classid::bigint << 32) | l.objid::bigint) = pg_catalog.hashtextextended(%s, 0)"
)
_OURS = " AND a.application_name LIKE 'migrator %% fence' AND a.usename = current_user"
_END = (
    "SELECT pg_catalog.pg_terminate_backend(pid, 2000) FROM pg_catalog.pg_stat_activity"
    " WHERE " + SESSION_ID.format("") + " = %s"
)


class PostgresFence(KeptFence[PostgresFenceSession]):
    """The fence of a PostgreSQL database.

    Args:
        side: what is fenced.
        step: see ``KeptFence``.
    """

    def __init__(self, side: Side, step: Callable[[str], None] = lambda name: None):
        table = fence_table(side.server.kind, side.side)
        self._kept = Notes(
            table,
            f"SELECT pg_catalog.to_regclass('{table}') IS NOT NULL",
            side.name(),
            side.migration,
            side.side,
            side.server.address,
            "extract(epoch FROM pg_catalog.clock_timestamp())::text",
        )
        super().__init__(
            side,
            {
                FenceKind.TRIGGERS: Triggers(side.name(), self._kept),
                FenceKind.REVOKE: Revoked(self._kept),
                FenceKind.READ_ONLY: ReadOnly(self._kept),
            },
            step,
        )

    def _notes(self) -> Notes:
        return self._kept

    def _new_session(self) -> PostgresFenceSession:
        return PostgresFenceSession(self._side.server, self._side.migration)

    def _make_notes_table(self) -> None:
        upgrade_fence(database_url(self._side.server), self._side.side)

    def _alone(self, session: PostgresFenceSession) -> bool:
        return bool(session.rows(_ALONE, (self._side.name(),))[0][0])

    def _lock_holders(self, session: PostgresFenceSession) -> Sequence[OpenTransaction]:
        return [OpenTransaction(*row) for row in session.rows(_LOCKED_BY, (self._side.name(),))]

    def _our_holders(self, session: PostgresFenceSession) -> Sequence[OpenTransaction]:
        return [OpenTransaction(*row) for row in session.rows(_LOCKED_BY + _OURS, (self._side.name(),))]

    def _surveyed(self, session: PostgresFenceSession, tables: Sequence[TableId], our_login: str) -> Survey:
        return survey(session, tables, our_login)

    def _open_transactions(self, session: PostgresFenceSession, plan: FencePlan) -> Sequence[OpenTransaction]:
        return at_work(session, plan.tables, but=plan.login, until=self._kept.up_at(session))

    def _in_the_way(self, session: PostgresFenceSession, plan: FencePlan) -> Sequence[OpenTransaction]:
        return at_work(session, plan.tables, but=plan.login)

    def _end(self, session: PostgresFenceSession, one: OpenTransaction) -> None:
        if one.prepared:
            # ROLLBACK PREPARED can't stand in a transaction, nor can its name be a value.
            session.alone(f"ROLLBACK PREPARED {literal(one.id)}")
        else:
            session.rows(_END, (one.id,))

    def _forgotten_by_hand(self) -> list[str]:
        statement = f"DELETE FROM {self._kept.table} WHERE name = {literal(self._kept.name)}"
        there = f"pg_catalog.to_regclass({literal(self._kept.table)}) IS NOT NULL"
        return ["DO " + literal(f"BEGIN IF {there} THEN {statement}; END IF; END")]
