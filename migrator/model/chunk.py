"""Chunks of a dump: what is asked of a chunk reader, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from migrator.model.event import Key, TransactionId
from migrator.model.position import Position
from migrator.model.requests.request import WHOLE, Scope
from migrator.model.table import TableId

MOST_LISTED = 500
"""Listed keys that one chunk asks for at most: each is part of the statement."""


class Witness(Protocol):
    """Says which transactions a chunk's read view surely contains (the visibility witness).

    A witness is a frozen, picklable value taken from the same snapshot as the SELECT. Witnesses taken later on the
    same server contain whatever earlier ones contain.
    """

    def contains(self, transaction: TransactionId) -> bool:
        """Tells whether the read view surely contains the transaction. False when in doubt."""
        ...


@dataclass(frozen=True, slots=True)
class ChunkRequest:
    """One key-ordered bounded read.

    Attributes:
        id: unique in this process, rising.
        table: the source table.
        after: key (canonical text) of the last row of the previous chunk, exclusive; None starts the table.
            Of listed
            keys: the last one asked for.
        limit_rows: upper bound of rows.
        token: watermark token when the placement writes watermarks, else empty.
        dump: ``DumpRequest.name`` of the request it belongs to; empty for the table's first dump.
        scope: which rows of the table are wanted.
        end: key of the table's last row when this dump of it began, inclusive: what was inserted behind it comes by
            the log. None: not looked for yet, or there was no row.
        until: key at which this chunk ends, inclusive; None: not before ``end``.
        ahead: ``until`` is to be found first, so that the next chunk can be asked for before this one was read.
        doubting: whether its request decides on target rows (``DumpRequest.doubts``).
    """

    id: int
    table: TableId
    after: Key | None
    limit_rows: int
    token: str = ""
    dump: str = ""
    scope: Scope = WHOLE
    end: Key | None = None
    until: Key | None = None
    ahead: bool = False
    doubting: bool = False

    def top(self) -> Key | None:
        """Last key that may be read, inclusive; None is open."""
        return self.end if self.until is None else self.until

    def unbounded(self) -> bool:
        """Tells whether ``ChunkReader.bounded`` has something to find first."""
        return not self.scope.keys and (self.end is None or (self.ahead and self.until is None))

    def boundary_rows(self) -> int:
        """Returns how many rows lie up to ``until`` when it is found: a tenth less than the bound, so that a range
        may grow a little before it has to be read in two."""
        return max(1, self.limit_rows * 9 // 10)

    def ending(self, row_count: int, last_row: Key | None) -> tuple[Key | None, bool]:
        """``Chunk.last_key`` and ``Chunk.final`` of a read that brought so many rows up to that key.

        Two texts may be one key to the source. Where that hides that the end was reached, one more read tells.
        """
        if self.scope.keys:
            return self.listed()[-1], self.ends_list()
        if row_count >= self.limit_rows and last_row != self.top():
            return last_row, False
        return (last_row, True) if self.until is None else (self.until, False)

    def listed(self) -> tuple[Key, ...]:
        """Returns the listed keys of this chunk, if the scope lists keys."""
        begin = self._begin()
        return self.scope.keys[begin : begin + min(self.limit_rows, MOST_LISTED)]

    def ends_list(self) -> bool:
        """Tells whether these are the last listed keys."""
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
        last_key: up to where the chunk has every row that is wanted, and where the next one begins: canonical text;
            None when there are no rows. Before ``request.until`` if the row limit came first.
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
