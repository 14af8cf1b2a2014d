"""Refused statements and lost sessions of a target, and the errors for those that no row is to blame for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from migrator.adapters.targets.shared.structure import ForeignKey
from migrator.columnar.shown import key_text
from migrator.connections.states import RefusingState
from migrator.errors import CORRECTED_MAPPING, BesideError, ConnectionFailed, TargetError
from migrator.model.table import TableId
from migrator.ports.target import TargetRows

CORRECT_REMEDY = (
    "correct the mapping or the target's schema, then start again: positions are kept, nothing was written. A source"
    " row that is corrected comes later in the event log: it helps where both are applied in one batch; if the next"
    " start meets the same, start anew (docs/how-to/start-anew.md)"
    f"{CORRECTED_MAPPING}"
)
"""The remedy for a row that a target refuses. It stays in the event log as it was."""


class StatementRefused(Exception, ABC):
    """An error report of the server. Internal to targets: it becomes a ``TargetError``. Each engine has its own."""

    @abstractmethod
    def cause(self) -> str:
        """The server's own words."""

    def coded(self) -> str:
        """The server's own words with its code of the error."""
        return self.cause()

    @abstractmethod
    def retryable(self) -> bool:
        """Tells whether another try without any change may succeed."""


class ConnectionLost(Exception):
    """The session is gone; whether an outstanding COMMIT happened is unknown. Internal to targets."""


def temporary(refusal: StatementRefused) -> TargetError:
    """A refusal that another try may not meet: deadlock, lock timeout, no space, too many connections, shutdown."""
    return TargetError(
        "the target is busy or short of something", cause=refusal.cause(), remedy="try again", retryable=True
    )


def in_state(state: RefusingState, cause: str) -> TargetError:
    """The error for a statement that the state of the server or the login's account refuses: no right is missing."""
    return TargetError(
        state.problem_of("target"),
        cause=cause,
        remedy=f"{state.remedy}; then start again: positions are kept",
        retryable=state.retryable,
    )


def lost_connection(address: str, cause: str) -> ConnectionFailed:
    """The error for a session that is gone while or before a batch is written."""
    return ConnectionFailed(
        "the connection to the target was lost",
        where=address,
        cause=cause,
        remedy="try again: nothing of the batch is in the target unless the ledger says so",
        retryable=True,
    )


def refused_statement(address: str, cause: str) -> TargetError:
    """The error for a statement of ours that the server refuses for good."""
    return TargetError(
        "the target refuses a statement",
        where=address,
        cause=cause,
        remedy="run `migrator check`: a grant may be missing, or the target's schema changed while we ran",
    )


def refused_query(address: str, refusal: StatementRefused, remedy: str) -> TargetError:
    """The error for a query outside of batches that the server refuses; ``remedy``: where it does for good."""
    if refusal.retryable():
        return temporary(refusal)
    return TargetError("the target refuses a query", where=address, cause=refusal.cause(), remedy=remedy)


def check_once(batch: Sequence[TargetRows]) -> None:
    """Raises ``TargetError`` when a batch names a table twice."""
    twice = [rows.table.id for rows in batch if sum(rows.table == other.table for other in batch) > 1]
    if twice:
        raise TargetError(f"a batch names the target table {twice[0]} twice", where=str(twice[0]))


def first_refused(first: int, last: int, refused: Callable[[int, int], bool | None]) -> int | None:
    """The first row from ``first`` to ``last`` (exclusive) that a server refuses, by halves; None when it doesn't
    refuse again.

    ``refused``: tries the rows from, to (exclusive); None where it meets another refusal, which hides whether there
    is this one. Twice the work of all rows at most, and as much again for each row that hides it.
    """
    if first == last:
        return None
    said = refused(first, last)
    if said is False or last - first == 1:
        return first if said else None
    middle = (first + last) // 2
    found = first_refused(first, middle, refused)
    return first_refused(middle, last, refused) if found is None else found


def not_as_written(
    table: TableId, key: Sequence[str], values: Sequence[object], triggers: Sequence[str], off: str
) -> BesideError:
    """The error for a row that isn't in its table as it was written, where triggers run.

    Args:
        table: the row's.
        key: its key's columns.
        values: of these.
        triggers: names of those that run when the batch is written.
        off: what turns them off.
    """
    return BesideError(
        f"a trigger changes what is written to {table}",
        where=f"{table}, {key_text(key, list(values))}, triggers {', '.join(triggers)}",
        cause="the row isn't in the table as the mapping made it",
        remedy=f"{off} until cut-over (of several, those that change data), then start again: positions are kept,"
        " nothing was written",
    )


def orphaned(key: ForeignKey, child_key: Sequence[str], row: Sequence[object]) -> TargetError:
    """The error for a row whose foreign key points at nothing; ``row``: its key's values, then the foreign key's."""
    own, values = list(row[: len(child_key)]), list(row[len(child_key) :])
    return TargetError(
        f"a row of {key.child} points at a row of {key.parent} that doesn't exist",
        where=f"{key.child}, {key_text(child_key, own)}, constraint {key.name}",
        cause=f"{key_text(key.child_columns, values)} has no {', '.join(key.parent_columns)} in {key.parent}",
        remedy=f"drop the foreign key from the target's schema; or {CORRECT_REMEDY}",
    )
