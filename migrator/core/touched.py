"""Keys of delivered transactions that a chunk might not contain yet.

Why this exists (the visibility gap): engines write a commit to their log before it becomes visible to SELECT. So

1. T updates key 5 and is in the log; the log reader delivers T's event; T is not visible yet;
2. a low watermark is written (or none is), the chunk SELECT runs and reads key 5 as it was before T;
3. the high watermark comes by. T's event was before the low watermark, so DBLog's window holds no event of
key 5 and
   the stale row goes out after T's event: time travel.

The remedy: remember which keys each delivered transaction touched until a witness shows the transaction to be
visible to every read view that can still turn up; drop a chunk row exactly if a remembered transaction that its
witness does not contain touched its key.

Hardly any key is ever asked for: what a transaction touched is kept as the log delivered it, and its keys are
decoded only for a chunk that may have missed it, or when too many bytes are held. Answers are the same as if
each key were decoded and counted at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from migrator.model.chunk import Witness
from migrator.model.event import ChangeCodec, ChangeRun, Key, TransactionId
from migrator.model.table import TableId

EVERY_KEY = None
"""Stands for "too many keys to remember one by one": a chunk of such a table is read again instead."""

HELD_BYTES = 32 << 20
"""Undecoded changes held in memory, of all transactions; beyond that their keys are decoded."""


_PIECE = 2048
"""Changes decoded at a time where the count of keys may end the work."""


@dataclass(slots=True)
class _Touched:
    """The keys that one transaction touched, per table; ``EVERY_KEY`` in place of the set when there were too many.

    ``pending`` are changes whose keys aren't decoded yet; ``at_most`` how many keys those can be.
    """

    pending: list[ChangeRun] = field(default_factory=list)
    at_most: int = 0
    tables: dict[TableId, set[Key] | None] = field(default_factory=dict)
    count: int = 0

    def add(self, table: TableId, keys: Iterable[tuple[Key, ...]]) -> None:
        """Decoded keys of changes of a table."""
        known = self.tables.setdefault(table, set())
        if known is not EVERY_KEY:
            before = len(known)
            for images in keys:
                known.update(images)
            self.count += len(known) - before


@dataclass(frozen=True, slots=True)
class Stale:
    """The rows of a chunk that miss an event: ``keys`` to drop, or ``reread`` when that can't be told key by key."""

    keys: frozenset[Key]
    reread: bool


class TouchedKeys:
    """Remembers keys of delivered transactions until they are surely visible.

    Args:
        max_keys: keys remembered for one transaction before it counts as touching every key of its tables.
        inherited: transactions delivered before a restart and not known to be visible; their keys are lost, so a
            chunk whose witness lacks one of them has to be read again.
        held_bytes: see ``HELD_BYTES``.
    """

    def __init__(
        self, max_keys: int = 20_000, inherited: Iterable[TransactionId] = (), held_bytes: int = HELD_BYTES
    ):
        self._max_keys = max_keys
        self._held_bytes = held_bytes
        self._transactions: dict[TransactionId, _Touched] = {}
        self._inherited = set(inherited)
        self._large: set[TransactionId] = set()
        self._pending_bytes = 0

    def note(self, transaction: TransactionId, runs: Iterable[ChangeRun]) -> None:
        """A delivered transaction made these changes."""
        touched = self._transactions.get(transaction)
        if touched is None:
            touched = self._transactions[transaction] = _Touched()
        for run in runs:
            if run.empties:
                touched.tables[run.codec.schema.id] = EVERY_KEY
                self._large.add(transaction)
                continue
            touched.pending.append(run)
            touched.at_most += 2 * len(run.items)
            self._pending_bytes += run.bytes
        if touched.count + touched.at_most > self._max_keys:
            self._large.add(transaction)
        if self._pending_bytes > self._held_bytes:
            self._settle(self._transactions.values())

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
            self._pending_bytes -= sum(run.bytes for run in self._transactions.pop(transaction).pending)
            self._large.discard(transaction)

    def stale(self, table: TableId, witness: Witness) -> Stale:
        """Returns the rows of a chunk of ``table`` with this witness that have missed a delivered event."""
        if self.must_wait(table, witness):
            return Stale(frozenset(), reread=True)
        missed = [
            touched
            for transaction, touched in self._transactions.items()
            if not witness.contains(transaction)
        ]
        self._settle(missed)
        keys: set[Key] = set()
        for touched in missed:
            keys |= touched.tables.get(table) or set()
        return Stale(frozenset(keys), reread=False)

    def must_wait(self, table: TableId, witness: Witness) -> bool:
        """Tells whether a chunk of ``table`` with this witness would have to be read again as a whole."""
        if any(not witness.contains(item) for item in self._inherited):
            return True
        missed = [self._transactions[item] for item in self._large if not witness.contains(item)]
        self._settle(missed)
        return any(touched.tables.get(table, set()) is EVERY_KEY for touched in missed)

    def unconfirmed(self) -> tuple[TransactionId, ...]:
        """Transactions still remembered, to be stored in the checkpoint."""
        return (*sorted(self._inherited), *self._transactions)

    def pending_bytes(self) -> int:
        """Returns how many bytes of changes are held undecoded."""
        return self._pending_bytes

    def _settle(self, transactions: Iterable[_Touched]) -> None:
        """Decodes the keys of what is pending: of small transactions all at once, of each large one until it has
        too many.
        """
        found: dict[int, tuple[ChangeCodec, list[tuple[_Touched, ChangeRun]]]] = {}
        for touched in transactions:
            self._pending_bytes -= sum(run.bytes for run in touched.pending)
            if touched.count + touched.at_most > self._max_keys:
                self._settle_large(touched)
            else:
                for run in touched.pending:
                    found.setdefault(id(run.codec), (run.codec, []))[1].append((touched, run))
            touched.pending, touched.at_most = [], 0
        for codec, runs in found.values():
            keys = iter(codec.keys([item for _, run in runs for item in run.items]))
            for touched, run in runs:
                touched.add(codec.schema.id, islice(keys, len(run.items)))

    def _settle_large(self, touched: _Touched) -> None:
        for codec, items, _ in touched.pending:
            for first in range(0, len(items), _PIECE):
                if touched.count <= self._max_keys:
                    touched.add(codec.schema.id, codec.keys(items[first : first + _PIECE]))
            touched.tables.setdefault(codec.schema.id, set())
        if touched.count > self._max_keys:
            touched.tables = dict.fromkeys(touched.tables, EVERY_KEY)
