"""Chunks of a dump: what is asked of a chunk reader, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from migrator.model.event import Key, TransactionId
from migrator.model.position import Position
from migrator.model.request import WHOLE, Scope
from migrator.model.table import TableId

MOST_LISTED = 500
"""Listed keys that one chunk asks for at most: each is part of the statement."""


class Witness(Protocol):
    """Says which transactions a chunk's read view surely contains (the visibility witness).

    A witness is a frozen, picklable value taken from the same snapshot as the SELECT. Witnesses taken later on the
    same server contain whatever earlier ones contain.
    """

    def contains(self, transaction: TransactionId) -> bool:
        """Whether the read view surely contains the transaction. False when in doubt."""
        ...


@dataclass(frozen=True, slots=True)
class ChunkRequest:
    """One key-ordered bounded read.

    Attributes:
        id: unique in this process, rising.
        table: the source table.
        after: key (canonical text) of the last row of the previous chunk, exclusive; None starts the table. Of listed
            keys: the last one asked for.
        limit_rows: upper bound of rows.
        token: watermark token when the placement writes watermarks, else empty.
        dump: ``DumpRequest.name`` of the request it belongs to; empty for the table's first dump.
        scope: which rows of the table are wanted.
    """

    id: int
    table: TableId
    after: Key | None
    limit_rows: int
    token: str = ""
    dump: str = ""
    scope: Scope = WHOLE

    def listed(self) -> tuple[Key, ...]:
        """Of a scope with listed keys, those of this chunk."""
        begin = self._begin()
        return self.scope.keys[begin : begin + min(self.limit_rows, MOST_LISTED)]

    def ends_list(self) -> bool:
        """Whether these are the last listed keys."""
        return self._begin() + len(self.listed()) == len(self.scope.keys)

    def brings(self) -> str:
        """Name of what its rows belong to: within it no key comes twice.

        Listed keys that differ as text may be the same to the source, so there each chunk is on its own.
        """
        return self.dump if not self.scope.keys else f"{self.dump} after {self.after}"

    def _begin(self) -> int:
        return 0 if self.after is None else self.scope.keys.index(self.after) + 1


@dataclass(frozen=True, slots=True)
class Chunk:
    """The rows of one chunk read, not yet placed in the log.

    Attributes:
        request: what was asked.
        rows: a ``pyarrow.Table`` in the table's schema, ordered by key (the core never looks inside).
        row_count: number of rows.
        last_key: where the next chunk begins: key of the last row as canonical text, or of the last row that was
            looked at; None when there are no rows.
        final: whether the table, or the part of it that is wanted, ends here.
        witness: from the same snapshot as the SELECT, or None where the source has none (then placement by
            watermarks only).
        high: a log position taken after the SELECT: once the log was read to here, everything the chunk contains
            was delivered.
        schema_version: digest of the row schema that the rows have.
        elapsed_s: time the read took, for the adaptive size.
    """

    request: ChunkRequest
    rows: Any
    row_count: int
    last_key: Key | None
    final: bool
    witness: Witness | None
    high: Position
    schema_version: str
    elapsed_s: float = 0.0
