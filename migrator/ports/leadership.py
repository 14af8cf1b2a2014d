"""The lease that decides who may write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Lease:
    """Leadership as granted: ``epoch`` is higher than any granted before."""

    owner: str
    epoch: int


class Leadership(Protocol):
    """One leader at a time, each with a higher epoch. Any of these may raise ``ConnectionFailed``."""

    def acquire(self, above_epoch: int) -> Lease:
        """Becomes leader with an epoch above ``above_epoch`` and above all earlier ones.

        Raises ``FencedError`` naming the present holder when there is one.
        """
        ...

    def held(self) -> bool:
        """Tells whether the lease may still hold. Once False, never True again for this lease."""
        ...

    def sure(self) -> bool:
        """Tells whether nobody else can lead now. While it is False, nothing may be written; it may come back."""
        ...

    def stand_by(self, timeout_s: float) -> str:
        """Waits until nobody leads, at most so long, and is seen as a standby meanwhile (until ``release``).

        Returns who leads; empty when nobody does, and ``acquire`` is worth a try.
        """
        ...

    def release(self) -> None:
        """Gives leadership up, or the place as a standby. Safe to call twice."""
        ...
