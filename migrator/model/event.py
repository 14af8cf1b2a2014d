"""Records that a log reader delivers: transactions in commit order, progress, schema changes, watermarks.

Row changes travel as the source encodes them, each run of them with the codec that knows how to read them. Nearly
nobody needs the values of a single change: the capture core wants keys, and only of the few transactions that
a chunk may have missed; a segment wants Arrow columns, of all changes of a table at once. So decoding waits
until it can be done for thousands of changes in one go (docs/decisions/0023).

Where values do appear, they are the server's canonical text (``bytes`` for binary columns, ``None`` for NULL), one
per column in schema order. Text keeps every value exact and makes equal keys equal strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol

from migrator.model.position import Position
from migrator.model.table import TableId, TableSchema

Value = str | bytes | None
Row = tuple[Value, ...]
Key = tuple[Value, ...]
TransactionId = tuple[int, ...]
"""A transaction's id, as a witness can decide about it: PostgreSQL ``(xid,)`` (32 bit, as in Begin), MariaDB
``(file number, end)``, MySQL ``(UUID, tag, number)`` of the GTID."""


class Operation(Enum):
    """Kind of a row change."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    TRUNCATE = "truncate"


@dataclass(frozen=True, slots=True)
class RowChange:
    """One row change with its full images; ``before`` is None for an insert, ``after`` for a delete.

    A TRUNCATE, which takes every row that the table has in its place of the log, has neither.
    """

    table: TableId
    operation: Operation
    before: Row | None
    after: Row | None


class Images(NamedTuple):
    """Row images of many changes: a deleted row, an inserted row, or an updated row's before and after.

    Attributes:
        places: int64 numpy array: which of the changes each image belongs to; never falls.
        signs: int8 numpy array: -1 for a before image, 1 for an after image; of one change, -1 comes first. 0 for a
            TRUNCATE, all values of which are NULL.
        rows: ``pyarrow.Table`` in ``columnar.types.arrow_schema`` of the codec's schema.
    """

    places: Any
    signs: Any
    rows: Any


class ChangeCodec(Protocol):
    """Reads encoded row changes of one table under one row schema; they may come from any number of transactions.

    A codec holds no state that its answers depend on, may be used from two threads at once, and equals those that
    would read the same. A log reader keeps one for as long as the row schema stays: changes of different codecs are
    decoded apart.
    """

    @property
    def schema(self) -> TableSchema:
        """The table and the row schema of every change that comes with this codec."""

    def changes(self, items: Sequence[Any]) -> list[RowChange]:
        """The changes one by one, as text."""

    def keys(self, items: Sequence[Any]) -> list[tuple[Key, ...]]:
        """Returns for each change the keys that it touches, as chunk reads give them: of its before and its after
        image.

        One key is enough where both are equal.
        """

    def images(self, items: Sequence[Any]) -> Images:
        """All images in order. Raises ``SourceError`` naming table, column, key and value that a type can't
        hold."""


class EmptyingCodec:
    """The base class of every ``ChangeCodec`` whose changes are TRUNCATEs."""

    __slots__ = ()


class ChangeRun(NamedTuple):
    """Consecutive changes of one table in a transaction.

    Attributes:
        codec: reads them.
        items: the changes in log order, one item a change; can be sliced. What an item is, is the codec's affair.
        bytes: what they hold in memory, roughly.
    """

    codec: ChangeCodec
    items: Sequence[Any]
    bytes: int

    @property
    def empties(self) -> bool:
        """Tells whether all changes are TRUNCATEs: each touches every key, those included that nobody has heard
        of."""
        return isinstance(self.codec, EmptyingCodec)


class TransactionPart(NamedTuple):
    """A committed transaction, or a part of a very large one. A named tuple: immutable, and made at C speed.

    Attributes:
        id: what a witness decides about.
        position: commit position; its token resumes after this transaction.
        committed_at_us: commit time by the source's clock, microseconds since 1970 (for lag only, never for order).
        first_index: index in the transaction of the first change; version of a change = (position, index).
        runs: row changes of the captured tables in log order; may be empty, but no run is.
        last: whether the transaction ends with this part.
        echo: whether the migration that goes the other way wrote it here: it must not be carried back.
    """

    id: TransactionId
    position: Position
    committed_at_us: int
    first_index: int
    runs: tuple[ChangeRun, ...]
    last: bool
    echo: bool = False

    @property
    def changes(self) -> tuple[RowChange, ...]:
        """The changes one by one, decoded as text: for those who look at single rows."""
        return tuple(change for run in self.runs for change in run.codec.changes(run.items))

    def size(self) -> int:
        """Returns the number of changes."""
        return sum([len(run.items) for run in self.runs])


@dataclass(frozen=True, slots=True)
class LogProgress:
    """Everything committed at or before ``position`` has been delivered (keepalive or foreign transactions)."""

    position: Position


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """The row schema of ``schema.id`` as of this place in the log: sent before the first change that uses it."""

    schema: TableSchema


class MarkKind(Enum):
    """The side of a chunk read on which a watermark stands."""

    LOW = "low"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class WatermarkSeen:
    """A watermark row came by in the log. Sent after the transaction parts that precede it."""

    token: str
    kind: MarkKind


LogRecord = TransactionPart | LogProgress | SchemaChange | WatermarkSeen
