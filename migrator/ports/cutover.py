"""The ports of a cut-over: where its record is kept, what a side can do, and the hook that points the application."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from migrator.model.cutover.record import Effort, Record, Side, What
from migrator.model.position import Position


class CutoverBook(Protocol):
    """The record of a cut-over on both sides. Every method raises ``ConnectionFailed``."""

    def read(self) -> Record | None:
        """Returns the record that holds, the old side's; None before a plan was accepted."""
        ...

    def write(self, record: Record, epoch: int) -> None:
        """Puts the record's next version on the old side, then on the new one.

        Raises ``FencedError`` where a later leader wrote, ``CutoverError`` (retryable) where the record was changed
        meanwhile.
        """
        ...

    def write_old(self, record: Record, epoch: int) -> None:
        """Puts it on the old side alone, as an undo may while the new one can't be reached. Raises likewise."""
        ...

    def bring_up(self, record: Record, epoch: int) -> None:
        """Puts the record on the new side, where that one's copy is older: it couldn't be reached when it changed.

        Raises ``FencedError`` where a later leader wrote.
        """
        ...

    def ask(self, record: Record) -> None:
        """Puts an operator's word on the old side. Raises ``CutoverError`` where the record was changed meanwhile."""
        ...

    def last_epoch(self) -> int:
        """Returns the epoch of the last leader that wrote the record; 0: none did."""
        ...

    def close(self) -> None:
        """Ends the connections."""
        ...


class CutoverSide(Protocol):
    """One side, and the stream that carries its changes across. Every method raises ``ConnectionFailed``."""

    def position(self) -> Position:
        """Returns a place in its log at or behind everything that is committed now."""
        ...

    def reached(self, position: Position) -> bool:
        """Tells whether everything up to there is applied across."""
        ...

    def passed(self) -> str:
        """Describes changes that passed this side's fence and wait to be carried across; empty: none is known."""
        ...

    def compare(self, since: int, effort: Effort) -> int:
        """Compares the rows that were carried across since the last verdict of each table.

        Args:
            since: a segment up to which everything is known to be equal; 0: none is known.
            effort: how much may be done for it.

        Returns the segment up to which everything is known to be equal now; ``since`` where rows weren't settled.
        Raises ``CutoverError`` with what differs, or what can't be compared.
        """
        ...

    def structure(self) -> Mapping[str, str]:
        """Returns a digest of each of this side's tables by name: another one once columns or key are others."""
        ...

    def number(self) -> None:
        """Moves this side's sequences beyond what is in use on both sides."""
        ...


class Hook(Protocol):
    """The way by which the application is pointed at a side."""

    def call(self, side: Side, key: str, limit_s: float, what: What = What.WRITES) -> None:
        """Points it there. Raises ``CutoverError`` where it doesn't, with what was said.

        Args:
            side: the side that is about to be open.
            key: names this call: called again with the same one, it has nothing more to do.
            limit_s: how long it may take.
            what: what of its queries.
        """
        ...
