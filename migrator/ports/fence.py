"""The fence of a cut-over: the database itself refuses the writes of everybody else.

After ``raise_fence`` has returned, and ``open_transactions`` is empty, no session but our login's commits a row
change of the plan's tables. After ``open_fence`` has returned, everything is as it was before. Both may be killed
between any two statements, and be called again, twice or at once. What was there before is durable in the database's
control tables before anything is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from migrator.model.cutover.fence import (
    FencePlan,
    FenceState,
    LateWriters,
    OpenTransaction,
    Survey,
)
from migrator.model.table import TableId


class Fence(Protocol):
    """The fence of one side of a migration. Every method raises ``ConnectionFailed``, and ``CutoverError`` where the
    server refuses a statement."""

    def survey(self, tables: Sequence[TableId], our_login: str) -> Survey:
        """Returns which kinds can be raised and what would pass them. Changes nothing."""

    def raise_fence(self, plan: FencePlan, limit_s: float, epoch: int = 0) -> FenceState:
        """Raises the fence; returns its state, which is up.

        Args:
            plan: a plan that ``Survey.refusals`` lets pass. One that stands already is completed.
            limit_s: for all waiting for locks and sessions. Locks are waited for in short tries, so that nobody
                queues behind us.
            epoch: of the leader that acts; 0: nobody leads. A leader ends a session of ours that keeps the fence's
                lock from it.

        Raises ``FencedError`` where a leader of a higher epoch has raised or opened it since. Raises ``CutoverError``
        for a plan that is refused, for another plan that stands, and, past the limit and retryable, with who held the
        lock. Whatever was done is undone then.
        """

    def state(self, plan: FencePlan) -> FenceState:
        """Returns what the server says of the fence."""

    def open_transactions(self, plan: FencePlan) -> tuple[OpenTransaction, ...]:
        """Returns who holds or could still commit changes of the tables: begun before the fence was up, or prepared.

        Ours aren't among them.
        """

    def in_the_way(self, plan: FencePlan) -> tuple[OpenTransaction, ...]:
        """Returns the open transactions that keep the fence from being raised, each with its beginning.

        Ours aren't among them; nor are those of which the server doesn't tell that they are on the plan's tables.
        Empty for kinds that wait for nobody.
        """

    def end(self, transactions: Sequence[OpenTransaction]) -> None:
        """Ends these, by their ids: sessions are ended, prepared transactions are rolled back."""

    def late(self, plan: FencePlan) -> LateWriters:
        """Returns the writers that were refused since the fence was raised."""

    def open_fence(self, plan: FencePlan, limit_s: float, epoch: int = 0) -> FenceState:
        """Puts everything back as it was before; returns the state, which is down. Nothing where nothing stands.

        Writers pass at once. Raises ``FencedError`` as ``raise_fence`` does, and ``CutoverError``, retryable, where
        remains could not be removed in ``limit_s``.
        """

    def by_hand(self, plan: FencePlan) -> list[str]:
        """Returns the statements that do as ``open_fence`` does, for a client of the server alone.

        They hold for a fence that is down, partly there or up, and may be run twice.
        """
