"""Locked accounts on MySQL and MariaDB, and ended sessions: a lock alone stops new sessions only."""

from __future__ import annotations

import re
import time

from migrator.adapters.fences.mysql.rights import must_see
from migrator.adapters.fences.mysql.session import MysqlFenceSession, parted
from migrator.adapters.fences.shared.kept_fence import Before
from migrator.adapters.fences.shared.notes import Noted, Notes
from migrator.adapters.fences.shared.session import Limit
from migrator.errors import CutoverError
from migrator.model.cutover.fence import FencePlan, FenceState, LateWriters, OpenTransaction, Standing

_LOCKED = re.compile(r"\bACCOUNT LOCK\b")
_SESSIONS = (
    "SELECT CAST(ID AS CHAR), USER, '', LEFT(COALESCE(INFO, COMMAND), 200) FROM information_schema.PROCESSLIST"
    " WHERE ID <> CONNECTION_ID() AND COMMAND NOT LIKE 'Binlog Dump%%' AND USER IN ({places}) ORDER BY 1"
)
_LATE = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Locked_connects', 'Access_denied_errors')"
_PASSING = frozenset({"Killed", "Connect"})
"""Commands of a session that is about to go, and of one that is being let in or refused."""
_MOMENT_S = 0.02
_MOMENTS = 25
"""Looks, a moment apart, at a session that may be passing."""
_ROUNDS = 2
"""Looks in a row without a session: one that was let in before the lock may show itself a moment later."""


class Accounts:
    """``Means`` by ACCOUNT LOCK.

    Args:
        notes: of the fence.
    """

    def __init__(self, notes: Notes):
        self._notes = notes

    def before(self, session: MysqlFenceSession, plan: FencePlan) -> Before:
        """Returns which accounts are locked already, and how many logins were refused so far."""
        return {
            "locked": [account for account in plan.roles if self._is_locked(session, account)],
            "refused": _refused(session),
        }

    def put_up(self, session: MysqlFenceSession, noted: Noted, limit: Limit) -> None:
        """Locks the accounts, and ends their sessions until there are none."""
        open_ = self._open(noted)
        if not open_:
            raise CutoverError(
                "all accounts of the plan are locked already",
                where=", ".join(noted.plan.roles),
                cause="the fence would change nothing",
                remedy="name the accounts that the survey names",
            )
        (own,) = session.rows("SELECT CURRENT_USER()")[0]
        if parted(str(own))[0] in {parted(account)[0] for account in open_}:
            raise CutoverError(
                f"the fence would lock the account that raises it, {own}",
                where=str(own),
                cause="its own sessions would be ended too, and nobody could open it again",
                remedy="raise the fence with a login that no application uses",
            )
        for account in open_:
            limit.change(session, (f"ALTER USER {_NAME} ACCOUNT LOCK", parted(account)))
        self._notes.stamp(session, limit)
        free = 0

        def none_left() -> bool:
            nonlocal free
            free = 0 if self._ended(session, noted.plan) else free + 1
            return free >= _ROUNDS

        limit.until(none_left, lambda: self._sessions(session, noted.plan))

    def take_down(self, session: MysqlFenceSession, noted: Noted, limit: Limit) -> None:
        """Unlocks the accounts that weren't locked before, and forgets the notes."""
        for account in self._open(noted):
            limit.change(session, (f"ALTER USER {_NAME} ACCOUNT UNLOCK", parted(account)))
        limit.change(session, self._notes.forget(noted))

    def state(self, session: MysqlFenceSession, noted: Noted) -> FenceState:
        """Returns which accounts the server lets in, and whose sessions are there."""
        missing = [
            f"account {account} isn't locked"
            for account in noted.plan.roles
            if not self._is_locked(session, account)
        ]
        if len(missing) == len(self._open(noted)):
            return FenceState(Standing.DOWN, tuple(missing))
        missing += [f"session {one.words()} is there" for one in self._sessions(session, noted.plan)]
        return FenceState(Standing.PARTLY if missing else Standing.UP, tuple(missing))

    def late(self, session: MysqlFenceSession, noted: Noted) -> LateWriters:
        """Returns how many logins were refused since: the server names none of them."""
        before, now = noted.before["refused"], _refused(session)
        count = sum(max(0, number - before.get(name, 0)) for name, number in now.items())
        names = ", ".join(sorted(now))
        return LateWriters(count, (), f"a count of the whole server without names: refused logins ({names})")

    def by_hand(self, session: MysqlFenceSession, noted: Noted) -> list[str]:
        """Returns the statements that unlock the accounts."""
        return [f"ALTER USER {_quoted(session, account)} ACCOUNT UNLOCK" for account in self._open(noted)]

    def _open(self, noted: Noted) -> list[str]:
        return [account for account in noted.plan.roles if account not in noted.before["locked"]]

    def _is_locked(self, session: MysqlFenceSession, account: str) -> bool:
        return bool(_LOCKED.search(str(session.rows(f"SHOW CREATE USER {_NAME}", parted(account))[0][0])))

    def _sessions(self, session: MysqlFenceSession, plan: FencePlan) -> list[OpenTransaction]:
        """The sessions of users with these names, from whichever host: the server doesn't tell their accounts."""
        must_see(session)
        users = sorted({parted(account)[0] for account in plan.roles} - {plan.login})
        if not users:
            return []
        sql = _SESSIONS.format(places=", ".join(["%s"] * len(users)))
        found = [OpenTransaction(*row) for row in session.rows(sql, users)]
        # A refused login is listed for a moment, an ended session until it is rolled back. One that stays counts,
        # also by the name of a login: the server looked at its account before the lock, and may let it in yet.
        for _ in range(_MOMENTS):
            if all(one.doing not in _PASSING for one in found):
                break
            time.sleep(_MOMENT_S)
            left = {str(row[0]): OpenTransaction(*row) for row in session.rows(sql, users)}
            found = [left.get(one.id, one) for one in found if one.id in left or one.doing not in _PASSING]
        return found

    def _ended(self, session: MysqlFenceSession, plan: FencePlan) -> bool:
        found = self._sessions(session, plan)
        for one in found:
            session.kill(int(one.id))
        return bool(found)


_NAME = "%s@%s"


def _refused(session: MysqlFenceSession) -> dict[str, int]:
    return {str(name): int(count) for name, count in session.rows(_LATE)}


def _quoted(session: MysqlFenceSession, account: str) -> str:
    user, host = parted(account)
    return f"{session.literal(user)}@{session.literal(host)}"
