"""Places in a MySQL log.

A place is the set of all transactions up to it, so it is the same on every server that has the same transactions: a
promoted replica is read on from where the old primary was left. Along one log every transaction adds exactly one
GTID, so places compare as the sizes of their sets do.

MySQL Reference Manual, "GTID Auto-Positioning".
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from migrator.adapters.sources.binlog.place.proof import Proof, proof_of
from migrator.adapters.sources.binlog.place.undecided import NONE, Undecided, token, undecided_of
from migrator.adapters.sources.mysql.gtid_set import GtidSet, parse_set
from migrator.errors import SourceError
from migrator.model.position import Position


@dataclass(frozen=True, slots=True)
class LogPlace:
    """A parsed position. ``file`` and ``offset`` are for people; empty and 0 if unknown."""

    gtids: GtidSet
    file: str = ""
    offset: int = 0
    undecided: Undecided = NONE
    proof: Proof | None = None

    def position(self) -> Position:
        """The place as the rest of the program sees it."""
        return Position(
            self.gtids.count(), token(str(self.gtids), self.file, self.offset, self.undecided, self.proof)
        )

    def read_from(self) -> GtidSet:
        """The transactions that the server need not send."""
        text = self.undecided.read_from
        return self.gtids if text is None else parse_set(text)

    def __str__(self) -> str:
        return place_text(str(self.gtids), self.file, self.offset)


def place_text(gtids: str, file: str, offset: int) -> str:
    """A place in words."""
    return f"GTID {gtids or 'none'}" + (f" ({file}:{offset})" if file else "")


def parse_position(position: Position) -> LogPlace:
    """The place a position's token holds. Raises ``SourceError`` for a token of another kind of source."""
    try:
        parts = json.loads(position.token)
        place = parse_set(parts["gtid"]), str(parts["file"]), int(parts["offset"])
        return LogPlace(*place, undecided_of(parts), proof_of(parts))
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(
            "a stored position is no MySQL position",
            where=position.token[:200],
            cause=str(error),
            remedy="the event log belongs to another source; use another `state` directory",
        ) from error
