"""The interface that a capture tool must offer to be tortured."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from migrator.errors import MigratorError
from scenarios.torture.deliveries import Deliveries

DEADLINE_S = 60.0
_POLL_S = 0.01


class Tool(Protocol):
    """A running capture tool. It was started on construction and follows the log."""

    @property
    def version(self) -> str:
        """The name of the tool, and its version."""
        ...

    @property
    def chunks(self) -> int:
        """Chunk reads done so far."""
        ...

    @property
    def rows_read(self) -> int:
        """Rows that those chunk reads found."""
        ...

    def dump(self) -> None:
        """Reads the whole table once more beside the log; returns when its rows are delivered.

        Raises ``ToolEnded`` when the tool has given up.
        """
        ...

    def drain(self) -> None:
        """Waits until everything committed by now is delivered. Raises ``ToolEnded``."""
        ...

    def close(self) -> None:
        """Ends it. Safe to call twice."""
        ...

    def deliveries(self) -> Deliveries:
        """Everything it delivered; after ``close``."""
        ...


class ToolEnded(MigratorError):
    """The tool ended by itself; what it delivered until then can be judged all the same."""


def wait_until(done: Callable[[], bool], what: str, timeout_s: float = DEADLINE_S) -> None:
    """Asks until the answer is yes. Raises MigratorError after the deadline."""
    deadline = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > deadline:
            raise MigratorError(
                f"{what} did not happen within {timeout_s:g} s", remedy="see the logs in --out"
            )
        time.sleep(_POLL_S)
