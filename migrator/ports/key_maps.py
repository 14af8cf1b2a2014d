"""Key maps: which number of the new schema stands for an old key, once given for good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class KeyMaps(Protocol):
    """Tables beside the target that only grow. One thread uses it."""

    def numbers(self, name: str, keys: Sequence[str]) -> dict[str, int]:
        """The number of each old key in a map; a key without one gets the next, durably, before this returns.

        Two callers at a time give a key the same number. Raises ``TargetError`` for a key that can't be held,
        ``ConnectionFailed`` (retryable).
        """
        ...

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        ...
