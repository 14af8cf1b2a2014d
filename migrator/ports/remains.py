"""Remains of a migration at each place, and how they are removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class Kind(Enum):
    """The kinds of what is left, in the order in which they are removed (see ``run.commands.reset``)."""

    SLOT = "slot"
    PUBLICATION = "publication"
    WATERMARK = "watermark"
    STAGING = "staging"
    ROWS = "rows"
    MIRROR = "mirror"
    KEY_MAPS = "key maps"
    ASKED = "requests"
    LEDGER = "ledger"
    STATE = "state"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Left:
    """A thing that a migration left behind.

    Attributes:
        kind: which it is.
        name: exact, as its place knows it.
        said: the same for people, with what it holds where that is known.
        trifle: whether it may be there without any migration, and is no reason for a reset.
    """

    kind: Kind
    name: str
    said: str
    trifle: bool = False

    def proves(self) -> bool:
        """Tells whether it shows that a migration of this name began here: rows of a table don't."""
        return not self.trifle and self.kind not in (Kind.ROWS, Kind.KEY_MAPS, Kind.ASKED)


@dataclass(frozen=True, slots=True)
class Found:
    """Remains at one place.

    Attributes:
        place: the place in words.
        left: what a reset removes there.
        kept: what it leaves there, each with the reason or with what removes it.
    """

    place: str
    left: tuple[Left, ...] = ()
    kept: tuple[str, ...] = ()


class Remains(Protocol):
    """One place: the source, the target, what processes of several machines share, the state folder."""

    def found(self) -> Found:
        """Looks. Raises a named error where something has to be done before anything may be removed."""
        ...

    def remove(self, lefts: Sequence[Left]) -> None:
        """Removes things of one kind. What is gone already is no error: a killed reset begins again.

        Raises ``ConnectionFailed``, or a named error with the SQL that somebody with more rights has to run.
        """
        ...


class MarkedRemains(Remains, Protocol):
    """The target, whose ledger says that a reset is under way: every process of the migration reads it first."""

    def epoch(self) -> int:
        """The highest epoch that the ledger saw; 0 without a row, and before the tool's tables are there."""
        ...

    def rows_of(self, target: str) -> Left | None:
        """Returns the rows of one target table that the mapping makes; None if it has none.

        Raises ``TargetError`` where rows of a table that no mapping makes point at them.
        """
        ...

    def forget(self, epoch: int, target: str, said: str) -> None:
        """Has the ledger say, under a newer epoch, that this target was never given any row.

        Raises ``TargetError``, ``HalfResetError``.
        """
        ...

    def mark(self, epoch: int, said: str) -> None:
        """Puts the mark of a reset in the place of the ledger's checkpoint, under a newer epoch.

        From then on no run reads where it stood, and whoever still writes is refused. Nothing happens where there
        is no ledger.
        """
        ...


class NotedRemains(Remains, Protocol):
    """The state folder, which says the same to processes of its machine, and says it last."""

    def begun(self) -> str:
        """Says which reset began here and isn't finished; empty if none."""
        ...

    def note(self, said: str) -> None:
        """Notes durably that a reset is under way."""
        ...

    def finish(self) -> None:
        """Removes the note (``Kind.NOTE``), then what the leadership lives in, and the folder once it is empty."""
        ...
