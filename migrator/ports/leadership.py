"""Who may write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Lease:
    """Leadership as granted: ``epoch`` is higher than any granted before."""

    owner: str
    epoch: int


class Leadership(Protocol):
    """One leader at a time, each with a higher epoch."""

    def acquire(self, above_epoch: int) -> Lease:
        """Becomes leader with an epoch above ``above_epoch`` and above all earlier ones.

        Raises ``FencedError`` naming the present holder when there is one.
        """
        ...

    def held(self) -> bool:
        """Whether the lease surely still holds. Once False, never True again for this lease."""
        ...

    def release(self) -> None:
        """Gives leadership up. Safe to call twice."""
        ...
