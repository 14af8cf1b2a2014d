"""The place where the leader leaves hints about its run for onlookers."""

from __future__ import annotations

from typing import Protocol

from migrator.model.hint import Hint


class Hints(Protocol):
    """Holds one ``Hint``, the last one published. It is no truth: it may be lost or old; nothing depends on it."""

    def publish(self, hint: Hint) -> None:
        """Replaces the hint. Raises a ``MigratorError`` when the place can't be used now."""
        ...

    def read(self) -> Hint | None:
        """The last hint; None if there is none, or none that this version understands.

        Raises a ``MigratorError`` when the place can't be used now.
        """
        ...
