"""Access to the generators of numbers in target and source, for the hand-over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from migrator.model.sequence import Advance, HandedOut, NumberSequence

Columns = Sequence[tuple[str, str]]
SourceNumbers = Callable[[Columns], Mapping[tuple[str, str], HandedOut]]
"""Reads how far the source's sequences of these (table, column) are; columns without one are absent. Raises
``SourceError`` when one can't be read, ``ConnectionFailed``."""


class TargetNumbers(Protocol):
    """The target's sequences."""

    def find(self, tables: Sequence[str]) -> list[NumberSequence]:
        """Everything that hands out numbers for columns of these tables, by name. Changes nothing.

        Raises ``TargetError`` when it can't be read, ``ConnectionFailed``.
        """
        ...

    def statement(self, advance: Advance) -> str:
        """The statement that sets a sequence, for somebody to run by hand."""
        ...

    def move(self, advances: Sequence[Advance]) -> None:
        """Sets sequences, each unless it is there or farther by now.

        Raises ``TargetError`` naming the one that can't be set; those before it are.
        """
        ...
