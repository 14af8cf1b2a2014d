"""Places in a source log."""

from __future__ import annotations

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
