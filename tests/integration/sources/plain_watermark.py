"""DBLog's window as published, for tests only: what lies in the log before the low mark counts as seen by the
SELECT.

Every test that uses one of these switches shows with it that its race is real: the plain window must deliver
a stale row where the product does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from migrator.adapters.sources.binlog.chunks.chunk_reader import BinlogChunkReader
from migrator.model.chunk import Witness
from migrator.model.event import LogRecord, TransactionId, TransactionPart
from migrator.model.position import Position
from migrator.ports.source import LogReader
from scenarios.mutants.broken_capture import WITNESS_IGNORED

WRITTEN_MARKS_ONLY = WITNESS_IGNORED
"""The watermark row alone decides: patches for ``patched``, where ``placement`` is ``watermark``."""


@dataclass(frozen=True, slots=True)
class LowMark:
    """A place in the log, taken for a witness: whatever was delivered from before it counts as seen."""

    order: int
    orders: Mapping[TransactionId, int]

    def contains(self, transaction: TransactionId) -> bool:
        return transaction in self.orders and self.orders[transaction] <= self.order


class NotingLog:
    """A log reader that notes the place of every transaction it delivers, in ``orders``."""

    def __init__(self, log: LogReader):
        self._log = log
        self.orders: dict[TransactionId, int] = {}

    def start(self, after: Position | None) -> Position:
        return self._log.start(after)

    def read(self, timeout_s: float) -> list[LogRecord]:
        records = self._log.read(timeout_s)
        self.orders |= {part.id: part.position.order for part in records if isinstance(part, TransactionPart)}
        return records

    def acknowledge(self, position: Position) -> None:
        self._log.acknowledge(position)

    def finish(self) -> None:
        self._log.finish()

    def close(self) -> None:
        self._log.close()


def plain_positions(
    reader: type[BinlogChunkReader], orders: Mapping[TransactionId, int]
) -> type[BinlogChunkReader]:
    """Chunk readers of one engine whose low mark is the end of the log before the SELECT.

    ``orders`` gets its content from a ``NotingLog``.
    """

    class Plain(reader):  # type: ignore[misc, valid-type]
        def _begin_view(self, connection: Any) -> Witness:
            low = self._log_end(connection)
            super()._begin_view(connection)
            return LowMark(low.order, orders)

    return Plain
