"""Refusals by the server: its message, and what that means for us."""

from __future__ import annotations

import re
from dataclasses import dataclass

import psycopg

from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.adapters.targets.shared.refused import ConnectionLost, StatementRefused, in_state
from migrator.connections.postgres.logins import refused_login
from migrator.connections.postgres.refusal import NO_PRIVILEGE as NO_PRIVILEGE
from migrator.connections.postgres.refusal import for_good
from migrator.connections.postgres.states import state_of
from migrator.errors import ConnectionFailed

UNIQUE_VIOLATION = "23505"
FOREIGN_KEY_VIOLATIONS = frozenset({"23503", "23001"})
SECOND_TIME = "21000"
"""ON CONFLICT DO UPDATE met one key twice in one statement."""
UNKNOWN_NAMES = ("42P01", "42883", "42704", "3F000")
"""SQLSTATEs of unknown names: no such table, function or operator, type, schema."""
LOCK_NOT_AVAILABLE = "55P03"
INVALID_SETTING = "22023"
NO_SCHEMA_OR_TABLE = frozenset({"3F000", "42P01"})

# Another try without any change may succeed: serialisation and deadlock, lock timeout, out of connections or space,
# cancelled statement.
_RETRYABLE_CLASSES = ("40", "53", "55", "57")
_LOST = ("08", "57P0")  # no connection, shut down, ended by an administrator
_ROW_CLASSES = ("22", "23", "44", "P0", "XX")
_CONTENT = ("22", "23502", "23514")
"""A value that a type doesn't take, NULL, a CHECK constraint: nothing but the row itself is to blame."""
_ROW_AS_DETAIL = frozenset({"23502", "23514", "44000"})
"""NULL, a CHECK, a view's WITH CHECK OPTION: the detail of the report is all of the row."""
# The server speaks its own language (lc_messages), so only the punctuation is relied on.
_COPY_LINE = re.compile(r"COPY .*?, \S+ (\d+)(?:, \S+ (.+?)(?:: .*)?)?$", re.MULTILINE)


@dataclass
class Refusal(StatementRefused):
    """An error report of the server, field by field. Internal: it becomes a ``TargetError`` with table and key."""

    sqlstate: str
    message: str
    detail: str = ""
    constraint: str = ""
    table: str = ""
    column: str = ""
    context: str = ""
    hint: str = ""

    def __str__(self) -> str:
        return self.cause()

    def cause(self) -> str:
        """The server's own words."""
        return " ".join(part for part in (self.message, self.detail, self.hint) if part)

    def coded(self) -> str:
        """The server's own words and the SQLSTATE."""
        return f"{self.cause()} (SQLSTATE {self.sqlstate})"

    def retryable(self) -> bool:
        """Tells whether another try without any change may succeed."""
        return self.sqlstate[:2] in _RETRYABLE_CLASSES

    def about_a_row(self) -> bool:
        """Tells whether some row's content is to blame."""
        return self.sqlstate[:2] in _ROW_CLASSES

    def of_content(self) -> bool:
        """Tells whether the row is refused for what it holds, whatever other rows and our code do."""
        return self.sqlstate.startswith(_CONTENT)

    def copy_line(self) -> int | None:
        """Number (from 1) of the COPY row the server names, if it does."""
        found = _COPY_LINE.search(self.context)
        return int(found[1]) if found else None

    def copy_column(self) -> str:
        """Column of the COPY row the server names, or empty."""
        found = _COPY_LINE.search(self.context)
        return (found[2] or "") if found else ""


class NeedsRelaxedKeys(Exception):
    """The ordinary order of statements would fire a cascading foreign key. Internal to this adapter."""


def explained(error: psycopg.Error) -> Refusal | ConnectionLost:
    """The driver's error as ours. A login that fails has no SQLSTATE: nobody can be asked.

    Raises ``TargetError`` as ``blamed_on_rows`` does.
    """
    message, state = str(error).strip(), error.sqlstate or ""
    if state in _ROW_AS_DETAIL:
        message = error.diag.message_primary or ""
    lost = state.startswith(_LOST) if state else isinstance(error, psycopg.OperationalError)
    return ConnectionLost(message) if lost else blamed_on_rows(Refusal(state, message))


def telling_detail(sqlstate: str, detail: str) -> str:
    """The detail of a report; empty where it is the whole row, with columns that no mapping fills.

    Which row it is, and what the mapping gave it, is told by its key.
    """
    return "" if sqlstate in _ROW_AS_DETAIL else detail


def blamed_on_rows(refusal: Refusal) -> Refusal:
    """The refusal, which a row or a right may be to blame for.

    Raises ``TargetError`` where it is the state of the server or of the login's account.
    """
    if (state := state_of(refusal.sqlstate)) is not None:
        raise in_state(state, refusal.coded()) from None
    return refusal


def not_reached(settings: PostgresTarget, message: str, sqlstate: str) -> ConnectionFailed:
    """The named error for a target that can't be asked, from the driver's words and the server's SQLSTATE."""
    cause = message.replace("\n", " ").strip()
    found = refused_login(message, sqlstate, "target", settings.server.user, settings.server.database)
    if sqlstate == INVALID_SETTING:
        return ConnectionFailed(found.what, where=settings.server.address, cause=cause, remedy=found.remedy)
    refused = for_good(sqlstate, message)
    return ConnectionFailed(
        "the target refuses the login" if refused else "the target can't be reached",
        where=settings.server.address,
        cause=cause,
        remedy=found.remedy,
        retryable=not refused,
    )
