"""Places in a source log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, order=True, slots=True)
class Position:
    """An opaque, totally ordered place in a source log.

    Attributes:
        order: rises strictly along one source log, one value per transaction (PostgreSQL: LSN of the commit
            record; MariaDB: sum of the sequence numbers of the GTID state; MySQL: size of the GTID set).
        token: what the adapter needs to go on reading after this transaction. Only adapters parse it.
    """

    order: int
    token: str = field(compare=False)


_new = object.__new__
_set_order: Callable[[Position, int], None] = Position.__dict__["order"].__set__
_set_token: Callable[[Position, str], None] = Position.__dict__["token"].__set__


def position_at(order: int, token: str) -> Position:
    """A ``Position`` in half the time of calling the class: a log of small transactions has one for each."""
    position = _new(Position)
    _set_order(position, order)
    _set_token(position, token)
    return position
