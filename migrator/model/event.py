"""What a log reader delivers: transactions in commit order, progress, schema changes, watermarks.

Values travel as the server's canonical text (``bytes`` for binary columns, ``None`` for NULL), one per column in
schema order. Text keeps every value exact and makes equal keys equal strings; turning columns of text into native
Arrow values is done vectorised, later (``migrator.columnar``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from migrator.model.position import Position
from migrator.model.table import TableId, TableSchema

Value = str | bytes | None
Row = tuple[Value, ...]
Key = tuple[Value, ...]
TransactionId = tuple[int, ...]
"""What a witness can decide about: PostgreSQL ``(xid,)`` (32 bit, as in Begin), MariaDB ``(file number,
end)``, MySQL ``(UUID, tag, number)`` of the GTID."""


class Operation(Enum):
    """Kind of a row change."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class RowChange:
    """One row change with its full images; ``before`` is None for an insert, ``after`` for a delete."""

    table: TableId
    operation: Operation
    before: Row | None
    after: Row | None


@dataclass(frozen=True, slots=True)
class TransactionPart:
    """A committed transaction, or a part of a very large one.

    Attributes:
        id: what a witness decides about.
        position: commit position; its token resumes after this transaction.
        committed_at_us: commit time by the source's clock, microseconds since 1970 (for lag only, never for order).
        first_index: index in the transaction of the first change; version of a change = (position, index).
        changes: row changes of the captured tables in log order; may be empty.
        last: whether the transaction ends with this part.
    """

    id: TransactionId
    position: Position
    committed_at_us: int
    first_index: int
    changes: tuple[RowChange, ...]
    last: bool


@dataclass(frozen=True, slots=True)
class LogProgress:
    """Everything committed at or before ``position`` has been delivered (keepalive or foreign transactions)."""

    position: Position


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """The row schema of ``schema.id`` as of this place in the log: sent before the first change that uses it."""

    schema: TableSchema


class MarkKind(Enum):
    """Which side of a chunk read a watermark stands on."""

    LOW = "low"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class WatermarkSeen:
    """A watermark row came by in the log. Sent after the transaction parts that precede it."""

    token: str
    kind: MarkKind


LogRecord = TransactionPart | LogProgress | SchemaChange | WatermarkSeen
