"""Keys of target rows that changes have written: a cut-over compares just these, while nobody can write."""

from __future__ import annotations

from typing import Any, Protocol

UNKNOWN_EPOCH = -1


class ChangedKeysWriter(Protocol):
    """The list as the leader writes it. Keys are ``pyarrow.Table`` with the key's columns."""

    def claim(self, epoch: int, follows: int) -> None:
        """Notes that a leader of this machine is about to take the ledger over; it applies nothing before ``begin``.

        Killed in between, it leaves an epoch in the ledger and no part: the claim tells that nothing is missing.
        ``epoch`` and ``follows``: as for ``begin``.
        """
        ...

    def begin(self, epoch: int, after: int, follows: int) -> None:
        """Begins a leader's part of the list.

        Args:
            epoch: the leader's.
            after: the segment at which the ledger stands.
            follows: the epoch that the ledger had before; 0: nothing was ever applied; ``UNKNOWN_EPOCH``: another
                leader has applied something since the ledger was read.
        """
        ...

    def note(self, segment: int, table: str, keys: Any) -> None:
        """Adds keys that the batch ending with ``segment`` writes; called before it is applied.

        Raises ``EventLogError`` where the disk refuses.
        """
        ...

    def unknown(self, segment: int, table: str) -> None:
        """Notes that the batch writes rows of the table whose keys nobody listed."""
        ...

    def close(self) -> None:
        """Ends the leader's part. Safe to call twice."""
        ...


class ChangedKeysReader(Protocol):
    """The list as others read it, also while it is written."""

    def since(self, segment: int, table: str, epoch: int) -> Any | None:
        """Returns the distinct keys that batches after ``segment`` have written; without rows where there are none.

        None where they aren't all known: rows were written whose keys nobody listed, another machine led meanwhile,
        or the list doesn't reach back so far. ``epoch``: the ledger's, whose leader's part must be the last.
        """
        ...
