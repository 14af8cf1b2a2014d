"""Counts of the writers that triggers refuse, on MySQL and MariaDB: each server has something that no rollback turns
back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from migrator.adapters.fences.mysql.rights import WRITES, holders, rights, role_members
from migrator.adapters.fences.mysql.session import MysqlFenceSession, parted
from migrator.model.cutover.fence import FencePlan, LateWriters

_SIGNALLED = 1644
"""MySQL's number of an error that a SIGNAL raised."""
_ERRORS = (
    "SELECT USER, SUM(SUM_ERROR_RAISED) FROM performance_schema.events_errors_summary_by_user_by_error"
    " WHERE ERROR_NUMBER = %s AND USER IS NOT NULL GROUP BY USER HAVING SUM(SUM_ERROR_RAISED) > 0"
)
_MOST_NAMES = 8
"""Every statement on a fenced table, ours too, opens each of the sequences, and the log names them."""


class Counting(Protocol):
    """The means of one engine. ``before`` is JSON, part of the fence's notes."""

    def before(self, session: MysqlFenceSession, plan: FencePlan) -> Any:
        """Returns what is counted already, or who will be counted by name."""

    def making(self, before: Any) -> list[str]:
        """Returns the statements that make what counts."""

    def in_trigger(self, session: MysqlFenceSession, before: Any, login: str) -> str:
        """Returns statements of a trigger that count the session; ``login`` is an expression of its user's name."""

    def dropping(self, before: Any) -> list[str]:
        """Returns the statements that remove what counts."""

    def late(self, session: MysqlFenceSession, before: Any) -> LateWriters:
        """Returns the counts."""


class CountedErrors:
    """The errors that the server counts by user, where performance_schema is on."""

    def before(self, session: MysqlFenceSession, plan: FencePlan) -> Any:
        """Returns the errors of a SIGNAL so far, by user; None where they aren't counted."""
        if not session.rows("SELECT @@performance_schema")[0][0]:
            return None
        return {str(user): int(count) for user, count in session.rows(_ERRORS, (_SIGNALLED,))}

    def making(self, before: Any) -> list[str]:
        """Nothing: the server counts by itself."""
        return []

    def in_trigger(self, session: MysqlFenceSession, before: Any, login: str) -> str:
        """Nothing likewise."""
        return ""

    def dropping(self, before: Any) -> list[str]:
        """Nothing likewise."""
        return []

    def late(self, session: MysqlFenceSession, before: Any) -> LateWriters:
        """Returns errors of any SIGNAL since."""
        if before is None:
            return LateWriters(0, (), "not counted: performance_schema is off")
        counts = session.rows(_ERRORS, (_SIGNALLED,))
        since = tuple((str(user), int(count) - before.get(str(user), 0)) for user, count in sorted(counts))
        since = tuple((user, count) for user, count in since if count > 0)
        return LateWriters(
            sum(count for _, count in since),
            since,
            "errors raised by any SIGNAL since the fence was raised, by login (performance_schema)",
        )


class Sequences:
    """Sequences of MariaDB, one for each of the logins that can write, and one for all others.

    Args:
        name: the beginning of their names, with their database, quoted for statements.
    """

    def __init__(self, name: str):
        self._name = name

    def before(self, session: MysqlFenceSession, plan: FencePlan) -> Any:
        """Returns the logins that are counted by name."""
        able = holders(rights(session), role_members(session), WRITES, plan.tables)
        users = sorted({user for user, host in map(parted, able) if host} - {plan.login, ""})
        return users[:_MOST_NAMES]

    def making(self, before: Any) -> list[str]:
        """Returns the statements that make the sequences."""
        return [
            f"CREATE SEQUENCE IF NOT EXISTS {sequence} MINVALUE 0 START 0 NOCACHE ENGINE = InnoDB"
            for sequence in self._sequences(before)
        ]

    def in_trigger(self, session: MysqlFenceSession, before: Any, login: str) -> str:
        """Returns statements that count in the session's sequence."""
        others, *known = self._sequences(before)
        cases = "".join(
            f" WHEN CAST({session.literal(user)} AS BINARY) THEN DO NEXTVAL({sequence});"
            for user, sequence in zip(before, known, strict=True)
        )
        if not cases:
            return f"DO NEXTVAL({others}); "
        return f"CASE CAST({login} AS BINARY){cases} ELSE DO NEXTVAL({others}); END CASE; "

    def dropping(self, before: Any) -> list[str]:
        """Returns the statements that drop the sequences."""
        return [f"DROP SEQUENCE IF EXISTS {sequence}" for sequence in self._sequences(before)]

    def late(self, session: MysqlFenceSession, before: Any) -> LateWriters:
        """Returns the sequences' counts."""
        counts = [
            (user, int(session.rows(f"SELECT next_not_cached_value FROM {sequence}")[0][0]))
            for user, sequence in zip(["", *before], self._sequences(before), strict=True)
        ]
        return LateWriters(
            sum(count for _, count in counts),
            tuple((user, count) for user, count in counts if count),
            "refused rows or statements, by login; logins beyond the first eight have no name",
        )

    def _sequences(self, before: Sequence[str]) -> list[str]:
        return [f"{self._name}_s{number}`" for number in range(len(before) + 1)]
