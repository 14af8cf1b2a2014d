"""Refusals by the server: its message, and what that means for us."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pymysql

from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.shared.refused import ConnectionLost, StatementRefused, in_state
from migrator.connections.mysql.settings import LOST_CODES, login_problem
from migrator.connections.mysql.states import state_of
from migrator.errors import ConnectionFailed

DUPLICATE = 1062
LOCK_WAIT = 1205
NO_SAVEPOINT = 1305
TOO_LARGE = 1153
NO_PRIVILEGE = frozenset({1044, 1142, 1143, 1227, 1370})

# Another try without any change may succeed: deadlock, lock wait, interrupted or timed out statement, no space, too
# many connections or transactions, a row that changed meanwhile.
_RETRYABLE = frozenset(
    {1020, 1021, 1040, 1114, 1203, LOCK_WAIT, 1206, 1213, 1317, 1615, 1637, 1969, 3024, 3572}
)
# A value that a type doesn't take, NULL, a CHECK constraint: nothing but the row itself is to blame.
_CONTENT = frozenset(
    {1048, 1264, 1265, 1292, 1300, 1366, 1367, 1406, 1411, 1526, 1690, 3140, 3141, 3819, 4025, 4161}
)
_CONSTRAINT = re.compile(r"(?:Check constraint '(.+?)' is violated|CONSTRAINT `(.+?)` failed)")
_DUPLICATE = re.compile(r"^Duplicate entry '(.*)' for key '(.*)'$", re.DOTALL)


@dataclass
class Refusal(StatementRefused):
    """An error, or a warning that counts as one. Internal: it becomes a ``TargetError`` with table and key.

    ``before``: of rows that were loaded by several statements, how many came before the refused one's.
    """

    code: int
    message: str
    before: int = 0

    def __str__(self) -> str:
        return self.cause()

    def cause(self) -> str:
        """The server's own words."""
        return f"{self.message} (error {self.code})"

    def retryable(self) -> bool:
        """Tells whether another try without any change may succeed. The transaction may be over already."""
        return self.code in _RETRYABLE

    def of_content(self) -> bool:
        """Tells whether the row is refused for what it holds, whatever other rows and our code do."""
        return self.code in _CONTENT

    def constraint(self) -> str:
        """The CHECK constraint that is named, or empty."""
        found = _CONSTRAINT.search(self.message)
        return (found[1] or found[2]) if found else ""

    def duplicate(self) -> tuple[str, str]:
        """Returns a duplicate's values as the server prints them, and the name of the index; else two empty texts."""
        found = _DUPLICATE.match(self.message)
        if self.code != DUPLICATE or not found:
            return "", ""
        return found[1], found[2].rpartition(".")[2]


def explained(error: Exception) -> Refusal | ConnectionLost:
    """The driver's error as ours. Raises ``TargetError`` where the state of server or account is to blame for it."""
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    message = str(error.args[1]) if len(error.args) > 1 else str(error)
    lost = isinstance(error, (OSError, pymysql.err.InterfaceError)) or code in LOST_CODES
    if lost:
        return ConnectionLost(message or type(error).__name__)
    refusal, state = Refusal(code, message), state_of(code, message)
    if state is not None:
        raise in_state(state, refusal.cause()) from None
    return refusal


def not_reached(settings: MysqlTarget, error: Exception) -> ConnectionFailed:
    """The named error for a target that can't be asked."""
    if isinstance(
        error, RuntimeError | ValueError
    ):  # see ``tls_options``: the password isn't sent without TLS
        cause = f"the user's password may not be sent without TLS: {error}"
        return ConnectionFailed(
            "the target can't be reached",
            where=settings.server.address,
            cause=cause,
            remedy='set tls = "require"',
        )
    message = str(error.args[1]) if len(error.args) > 1 else str(error)
    known = login_problem(error)
    cause, remedy, retryable = known or ("", "check that the server runs", True)
    return ConnectionFailed(
        "the target can't be reached" if retryable else "the target refuses the login",
        where=settings.server.address,
        cause=f"{cause}: {message}" if cause else message,
        remedy=remedy.replace("[source]", "[target]"),
        retryable=retryable,
    )
