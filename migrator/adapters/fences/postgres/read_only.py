"""A database on PostgreSQL whose transactions are read-only unless a session says otherwise.

The weakest of the fences: it is a default, which any session may set aside for itself (``WAY_ROUND``). Sessions that
began before it have the former default, so they are ended.
"""

from __future__ import annotations

from migrator.adapters.fences.postgres.session import SESSION_ID, PostgresFenceSession, literal, quoted
from migrator.adapters.fences.shared.kept_fence import Before
from migrator.adapters.fences.shared.notes import Noted, Notes
from migrator.adapters.fences.shared.session import Limit
from migrator.model.cutover.fence import (
    FencePlan,
    FenceState,
    LateWriters,
    OpenTransaction,
    Standing,
    WayRound,
)

SETTING = "default_transaction_read_only"
WAY_ROUND = WayRound("setting", SETTING, "any session, role or driver may set it off for itself")
_VALUE = (
    "SELECT pg_catalog.current_database()::text, (SELECT pg_catalog.split_part(one, '=', 2)"
    " FROM pg_catalog.pg_db_role_setting s, pg_catalog.unnest(s.setconfig) one"
    " WHERE s.setdatabase = d.oid AND s.setrole = 0 AND one LIKE 'default\\_transaction\\_read\\_only=%%')"
    " FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database() AND %s = 1"
)
_SESSIONS = (
    "SELECT " + SESSION_ID.format("") + ", usename::text, coalesce(xact_start::text, ''),"
    " pg_catalog.left(query, 200), pid FROM pg_catalog.pg_stat_activity"
    " WHERE datname = pg_catalog.current_database() AND coalesce(backend_type, 'client backend') = 'client backend'"
    " AND pid <> pg_catalog.pg_backend_pid() AND usename <> %s"
    " AND NOT (usename = current_user AND application_name LIKE 'migrator %% fence')"
    " AND coalesce(extract(epoch FROM backend_start)::float8, '-infinity')"
    " <= coalesce(%s, 'infinity'::float8) ORDER BY 1"
)


class ReadOnly:
    """``Means`` by the database's default.

    Args:
        notes: their row is forgotten in the transaction that sets the default back.
    """

    def __init__(self, notes: Notes):
        self._notes = notes

    def before(self, session: PostgresFenceSession, plan: FencePlan) -> Before:
        """Returns the database's own setting, if it has one."""
        database, value = session.rows(_VALUE, (1,))[0]
        return {"database": database, "value": value}

    def put_up(self, session: PostgresFenceSession, noted: Noted, limit: Limit) -> None:
        """Sets the default, and ends the sessions that have the former one."""
        database = quoted(noted.before["database"])
        limit.change(session, f"ALTER DATABASE {database} SET {SETTING} = on")
        self._notes.stamp(session, limit)
        at = self._notes.up_at(session)
        limit.until(lambda: not self._ended(session, noted, at), lambda: self._older(session, noted, at))

    def take_down(self, session: PostgresFenceSession, noted: Noted, limit: Limit) -> None:
        """Sets the database back to what it had, and ends the sessions that began with the fence's default."""
        limit.change(session, *self._set_back(noted))
        ((now,),) = session.rows(f"SELECT {self._notes.clock}")
        limit.until(
            lambda: not self._ended(session, noted, float(now)),
            lambda: self._older(session, noted, float(now)),
        )
        limit.change(session, self._notes.forget(noted))

    def state(self, session: PostgresFenceSession, noted: Noted) -> FenceState:
        """Returns what the database's setting is, and who began before it."""
        _, value = session.rows(_VALUE, (1,))[0]
        if value != "on" or noted.before["value"] == "on":
            down = f"{SETTING} of the database is {value or 'not set'}"
            return FenceState(Standing.DOWN, (down,))
        found = self._older(session, noted, self._notes.up_at(session))
        older = tuple(f"session {one.words()} began before it" for one in found)
        return FenceState(Standing.PARTLY if older else Standing.UP, older)

    def late(self, session: PostgresFenceSession, noted: Noted) -> LateWriters:
        """Nothing: PostgreSQL counts no refused statements."""
        return LateWriters(
            0,
            (),
            "not counted: PostgreSQL writes refused statements to its own log only (read-only transaction)",
        )

    def by_hand(self, session: PostgresFenceSession, noted: Noted) -> list[str]:
        """Returns the statement that sets the database back."""
        return [f"SET {SETTING} = off", *self._set_back(noted)]

    def _set_back(self, noted: Noted) -> list[str]:
        database, value = quoted(noted.before["database"]), noted.before["value"]
        if value is None:
            return [f"ALTER DATABASE {database} RESET {SETTING}"]
        return [f"ALTER DATABASE {database} SET {SETTING} = {literal(value)}"]

    def _older(
        self, session: PostgresFenceSession, noted: Noted, until: float | None
    ) -> list[OpenTransaction]:
        """The sessions of others that began until then, in seconds since 1970; all of them where it is None."""
        rows = session.rows(_SESSIONS, (noted.plan.login, until))
        return [OpenTransaction(id_, login, since, doing) for id_, login, since, doing, _ in rows]

    def _ended(self, session: PostgresFenceSession, noted: Noted, until: float | None) -> bool:
        """Ends them; tells whether there were any."""
        found = session.rows(_SESSIONS, (noted.plan.login, until))
        for *_, pid in found:
            session.rows("SELECT pg_catalog.pg_terminate_backend(%s)", (pid,))
        return bool(found)
