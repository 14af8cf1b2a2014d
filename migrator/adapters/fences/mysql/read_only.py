"""A read-only server: for one that holds nothing but the database that is fenced off.

MySQL's ``super_read_only`` stops everybody, our login too. MariaDB's ``read_only`` lets those pass who have a right
for it. Both wait for transactions that commit, in short tries, and refuse the COMMIT of those that changed rows.
"""

from __future__ import annotations

from migrator.adapters.fences.mysql.session import MysqlFenceSession
from migrator.adapters.fences.mysql.transactions import running
from migrator.adapters.fences.shared.kept_fence import Before
from migrator.adapters.fences.shared.notes import Noted, Notes
from migrator.adapters.fences.shared.session import Limit
from migrator.errors import CutoverError
from migrator.model.cutover.fence import FencePlan, FenceState, LateWriters, Standing

_OFF = "OFF"


class ReadOnly:
    """``Means`` by the server's variables.

    Args:
        notes: of the fence; written and forgotten while the server may be written to.
    """

    def __init__(self, notes: Notes):
        self._notes = notes

    def before(self, session: MysqlFenceSession, plan: FencePlan) -> Before:
        """Returns the variables as they are now, and as a restart would have them."""
        kept = dict(session.rows(session.words.kept)) if session.words.kept else {}
        return {"now": _now(session), "kept": {str(name): str(value) for name, value in kept.items()}}

    def put_up(self, session: MysqlFenceSession, noted: Noted, limit: Limit) -> None:
        """Sets the strictest variable, which sets the others."""
        variable = session.words.read_only[0]
        if noted.before["now"][variable] != _OFF:
            raise CutoverError(
                "the server is read-only already",
                where=variable,
                cause="the fence would change nothing",
                remedy="choose another kind of fence, or let the server be written to first",
            )
        limit.change(
            session, f"SET {session.words.keep or 'GLOBAL'} {variable} = 1", holders=lambda: running(session)
        )

    def take_down(self, session: MysqlFenceSession, noted: Noted, limit: Limit) -> None:
        """Sets the variables to what they were, and forgets the notes."""
        for statement in self._back(session, noted):
            limit.change(session, statement, holders=lambda: running(session))
        limit.change(session, self._notes.forget(noted))

    def state(self, session: MysqlFenceSession, noted: Noted) -> FenceState:
        """Returns the variables' state."""
        now, variable = _now(session), session.words.read_only[0]
        if now == noted.before["now"]:
            return FenceState(Standing.DOWN, (f"{variable} is {now[variable]}",))
        if now[variable] == _OFF:
            return FenceState(Standing.PARTLY, (f"{variable} is {_OFF}",))
        return FenceState(Standing.UP)

    def late(self, session: MysqlFenceSession, noted: Noted) -> LateWriters:
        """Nothing: neither server counts statements that it refuses for being read-only."""
        return LateWriters(0, (), "not counted: the server counts no statements refused for being read-only")

    def by_hand(self, session: MysqlFenceSession, noted: Noted) -> list[str]:
        """Returns the statements that set the variables back."""
        return self._back(session, noted)

    def _back(self, session: MysqlFenceSession, noted: Noted) -> list[str]:
        statements = []
        for variable in session.words.read_only:  # the strictest first: it can't stay where the next one goes
            value = 0 if noted.before["now"][variable] == _OFF else 1
            statements.append(f"SET GLOBAL {variable} = {int(value)}")
        if session.words.kept:
            kept = noted.before["kept"]
            statements += [
                f"SET PERSIST_ONLY {variable} = {int(kept[variable] != _OFF)}"
                if variable in kept
                else f"RESET PERSIST IF EXISTS {variable}"
                for variable in session.words.read_only
            ]
        return statements


def _now(session: MysqlFenceSession) -> dict[str, str]:
    found = session.rows(
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN (%s, %s)",
        (session.words.read_only[0], session.words.read_only[-1]),
    )
    return {str(name): str(value) for name, value in found}
