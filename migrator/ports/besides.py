"""Tables beside row-wise targets, which are filled by next mappings, and the switch to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from migrator.model.ledger import Ledger
from migrator.model.progress import Checkpoint, Remap

Change = Callable[[Checkpoint], Checkpoint]
"""Given the ledger's checkpoint as it is under its lock, returns it as it shall be."""


class Besides(Protocol):
    """The tables of one migration in its target, by sessions of their own."""

    def note(self, change: Change, act: str = "", detail: str = "", epoch: int | None = None) -> bool:
        """Changes the ledger's checkpoint under its lock, and keeps the act in the history; False where nothing
        changes.

        ``epoch``: of the leader that does it; None: a command. Raises ``FencedError``, ``TargetError``,
        ``ConnectionFailed``.
        """
        ...

    def exists(self, name: str) -> bool:
        """Tells whether the target has a table, view or the like of that name where its tables are."""
        ...

    def make(self, target: str, beside: str) -> None:
        """Makes the table beside, with the target's columns, keys and rules for values, if it isn't there."""
        ...

    def empty(self, epoch: int, beside: str) -> None:
        """Deletes all rows of it, under the leader's epoch. Raises ``FencedError``."""
        ...

    def drop(self, beside: str) -> None:
        """Drops it, if it is there."""
        ...

    def switch(self, epoch: int, remap: Remap, written: Sequence[str], change: Change) -> Ledger | None:
        """Brings the rows of the table beside into the target and changes the ledger, in one transaction.

        Afterwards the target has a row for each of the table beside, with its values in the ``written`` columns, and
        no other. Returns the ledger as it is then; None where it says that the table isn't filled for that any more.
        The leader's session of the target is closed before: a newer leader ends the one that is found in its place.

        Raises ``TargetError``, naming rows of other tables that point at one which would go; ``FencedError``;
        ``ConnectionFailed``.
        """
        ...
