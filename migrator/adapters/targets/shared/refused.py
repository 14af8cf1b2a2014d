"""The errors of a target's transaction that no row is to blame for, and the check of what a batch names."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.errors import ConnectionFailed, TargetError
from migrator.ports.target import TargetRows


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
        remedy="run preflight: a grant may be missing, or the target's schema changed while we ran",
    )


def check_once(batch: Sequence[TargetRows]) -> None:
    """Raises ``TargetError`` when a batch names a table twice."""
    twice = [rows.table.id for rows in batch if sum(rows.table == other.table for other in batch) > 1]
    if twice:
        raise TargetError(f"a batch names the target table {twice[0]} twice", where=str(twice[0]))
