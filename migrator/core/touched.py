"""Keys of delivered transactions that a chunk might not contain yet.

Why this exists (the visibility gap): engines write a commit to their log before it becomes visible to SELECT. So

1. T updates key 5 and is in the log; the log reader delivers T's event; T is not visible yet;
2. a low watermark is written (or none is), the chunk SELECT runs and reads key 5 as it was before T;
3. the high watermark comes by. T's event was before the low watermark, so DBLog's window holds no event of key 5 and
   the stale row goes out after T's event: time travel.

The remedy: remember which keys each delivered transaction touched until a witness shows the transaction to be
visible to every read view that can still turn up; drop a chunk row exactly if a remembered transaction that its
witness does not contain touched its key.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from migrator.model.chunk import Witness
from migrator.model.event import Key, TransactionId
from migrator.model.table import TableId

EVERY_KEY = None
"""Stands for "too many keys to remember one by one": a chunk of such a table is read again instead."""


@dataclass(slots=True)
class _Touched:
    """Keys of one transaction per table; ``EVERY_KEY`` in place of the set when there were too many."""

    tables: dict[TableId, set[Key] | None] = field(default_factory=dict)
    count: int = 0


@dataclass(frozen=True, slots=True)
class Stale:
    """What a chunk has missed: ``keys`` to drop, or ``reread`` when that can't be told key by key."""

    keys: frozenset[Key]
    reread: bool


class TouchedKeys:
    """Remembers keys of delivered transactions until they are surely visible.

    Args:
        max_keys: keys remembered for one transaction before it counts as touching every key of its tables.
        inherited: transactions delivered before a restart and not known to be visible; their keys are lost, so a
            chunk whose witness lacks one of them has to be read again.
    """

    def __init__(self, max_keys: int = 20_000, inherited: Iterable[TransactionId] = ()):
        self._max_keys = max_keys
        self._transactions: dict[TransactionId, _Touched] = {}
        self._inherited = set(inherited)

    def note(self, transaction: TransactionId, table: TableId, keys: Iterable[Key]) -> None:
        """A delivered transaction touched these keys."""
        touched = self._transactions.setdefault(transaction, _Touched())
        known = touched.tables.setdefault(table, set())
        if known is EVERY_KEY:
            return
        before = len(known)
        known.update(keys)
        touched.count += len(known) - before
        if touched.count > self._max_keys:
            for name in touched.tables:
                touched.tables[name] = EVERY_KEY

    def confirm(self, witnesses: Iterable[Witness]) -> None:
        """Forgets the transactions that all these witnesses contain.

        The caller passes the newest witness and one for each chunk read still under way or waiting: a lower bound
        of the witness it has or will have. Forgetting by the newest witness alone would be wrong: a chunk whose
        SELECT began before that witness was taken may still arrive with an older read view.
        """
        bounds = list(witnesses)

        def surely_visible(transaction: TransactionId) -> bool:
            return all(witness.contains(transaction) for witness in bounds)

        self._inherited = {item for item in self._inherited if not surely_visible(item)}
        for transaction in [item for item in self._transactions if surely_visible(item)]:
            del self._transactions[transaction]

    def stale(self, table: TableId, witness: Witness) -> Stale:
        """Which rows of a chunk of ``table`` with this witness have missed a delivered event."""
        if self.must_wait(table, witness):
            return Stale(frozenset(), reread=True)
        keys: set[Key] = set()
        for transaction, touched in self._transactions.items():
            found = touched.tables.get(table)
            if found and not witness.contains(transaction):
                keys |= found
        return Stale(frozenset(keys), reread=False)

    def must_wait(self, table: TableId, witness: Witness) -> bool:
        """Whether a chunk of ``table`` with this witness would have to be read again as a whole."""
        return any(not witness.contains(item) for item in self._inherited) or any(
            touched.tables.get(table, set()) is EVERY_KEY and not witness.contains(transaction)
            for transaction, touched in self._transactions.items()
        )

    def unconfirmed(self) -> tuple[TransactionId, ...]:
        """Transactions still remembered, to be stored in the checkpoint."""
        return (*sorted(self._inherited), *self._transactions)
