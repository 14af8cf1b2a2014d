"""Places in a MySQL log.

A place is the set of all transactions up to it, so it is the same on every server that has the same transactions: a
promoted replica is read on from where the old primary was left. Along one log every transaction adds exactly one
GTID, so places compare as the sizes of their sets do.

MySQL Reference Manual, "GTID Auto-Positioning".
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from migrator.adapters.mysql.gtid_set import GtidSet, parse_set
from migrator.errors import SourceError
from migrator.model.position import Position


@dataclass(frozen=True, slots=True)
class LogPlace:
    """A parsed position. ``file`` and ``offset`` are for people; empty and 0 if unknown."""

    gtids: GtidSet
    file: str = ""
    offset: int = 0

    def position(self) -> Position:
        """The place as the rest of the program sees it."""
        return position_of(self.gtids.count(), str(self.gtids), self.file, self.offset)

    def __str__(self) -> str:
        return place_text(str(self.gtids), self.file, self.offset)


def position_of(count: int, gtids: str, file: str, offset: int) -> Position:
    """A position from the number of transactions and the text of their set."""
    return Position(count, json.dumps({"gtid": gtids, "file": file, "offset": offset}))


def place_text(gtids: str, file: str, offset: int) -> str:
    """A place in words."""
    return f"GTID {gtids or 'none'}" + (f" ({file}:{offset})" if file else "")


def parse_position(position: Position) -> LogPlace:
    """The place a position's token holds. Raises ``SourceError`` for a token of another kind of source."""
    try:
        parts = json.loads(position.token)
        return LogPlace(parse_set(parts["gtid"]), str(parts["file"]), int(parts["offset"]))
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(
            "a stored position is no MySQL position",
            where=position.token[:200],
            cause=str(error),
            remedy="the event log belongs to another source; use another `state` directory",
        ) from error
