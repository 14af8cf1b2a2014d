"""The place in the log where a reader stands: the engine's own GTIDs behind one small port."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from migrator.adapters.sources.binlog.events.events import Event
from migrator.adapters.sources.binlog.place.undecided import Undecided
from migrator.model.event import TransactionId
from migrator.model.position import Position


class Opening(NamedTuple):
    """The facts of a GTID event about the transaction that it begins.

    Attributes:
        name: its GTID, for messages.
        id: what a witness decides about.
        begun: whether statements follow until a commit. False: a BEGIN statement will say so, or the transaction is
            one statement.
        prepared: it ends with XA PREPARE.
        known: it lies at or before the start: it is looked at for undecided XA transactions only.
    """

    name: str
    id: TransactionId
    begun: bool
    prepared: bool = False
    known: bool = False


class Track(Protocol):
    """Follows the GTIDs of one log.

    Attributes:
        committed_us: when the open transaction was committed, in microseconds since 1970, by the clock of the
            server
            that it was committed on first. 0: the log has only the whole seconds in the headers of its events.
    """

    committed_us: int

    def begin(self, event: Event) -> Opening:
        """A GTID event came.

        Raises ``SourceError`` when it is out of order or of a kind that can't be followed.
        """
        ...

    def begin_next(self, raw: bytes) -> TransactionId | None:
        """The same of a whole event, for a plain transaction that follows the last one; None: ask ``begin``.

        It gives the id that ``begin`` would, with ``known`` and ``prepared`` false.
        """
        ...

    def before(self) -> str:
        """The GTIDs before the open transaction, as the server writes them."""
        ...

    def remember(self, undecided: Undecided) -> None:
        """Makes all later positions carry these undecided XA transactions."""
        ...

    def served_by(self, server: str) -> None:
        """The log is that of the server with this mark (``server_mark``)."""
        ...

    def in_file(self, name: str) -> None:
        """The events that follow are in this file."""
        ...

    def ending(self, offset: int) -> Position:
        """The position of the open transaction, which ends at ``offset`` of the file."""
        ...

    def end(self, offset: int) -> None:
        """The open transaction ended there."""
        ...

    def ended(self, offset: int) -> Position:
        """``ending`` and ``end`` in one, of a transaction that wasn't read before."""
        ...

    def position(self) -> Position:
        """The end of the last finished transaction."""
        ...

    def place(self) -> str:
        """The same in words."""
        ...
