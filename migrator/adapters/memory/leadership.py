"""Leadership in memory: one ``MemoryElection`` per migration, one ``MemoryLeadership`` per playing process."""

from __future__ import annotations

import threading

from migrator.errors import FencedError
from migrator.ports.leadership import Lease


class MemoryElection:
    """The present lease, and the highest epoch granted."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.lease: Lease | None = None
        self.epoch = 0

    def expire(self) -> None:
        """Takes the lease from its holder, as a lost session would; the holder only learns it by asking."""
        with self.lock:
            self.lease = None


class MemoryLeadership:
    """A ``Leadership`` in an election, under the name ``owner``."""

    def __init__(self, election: MemoryElection, owner: str) -> None:
        self._election = election
        self._owner = owner
        self._lease: Lease | None = None

    def acquire(self, above_epoch: int) -> Lease:
        """Becomes leader. Raises ``FencedError`` naming the present holder."""
        election = self._election
        with election.lock:
            if election.lease is not None:
                raise FencedError(
                    "this migration is already being run",
                    where="election",
                    cause=f"{election.lease.owner} is its leader",
                    remedy="stop that process first",
                )
            election.epoch = max(election.epoch, above_epoch) + 1
            election.lease = self._lease = Lease(self._owner, election.epoch)
            return self._lease

    def held(self) -> bool:
        """Tells whether the lease of the last ``acquire`` still holds."""
        with self._election.lock:
            return self._lease is not None and self._election.lease == self._lease

    def sure(self) -> bool:
        """Answers as ``held`` does."""
        return self.held()

    def stand_by(self, timeout_s: float) -> str:
        """See the port; doesn't wait."""
        return self.holder()

    def holder(self) -> str:
        """Names who leads now; empty when nobody does."""
        with self._election.lock:
            return "" if self._election.lease is None else self._election.lease.owner

    def release(self) -> None:
        """Gives leadership up. Safe to call twice."""
        with self._election.lock:
            if self._lease is not None and self._election.lease == self._lease:
                self._election.lease = None
            self._lease = None
