"""The event log: durable numbered segments, the only interface between capture and apply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from migrator.errors import EventLogError, FencedError
from migrator.model.progress import Checkpoint
from migrator.model.requests.request import Doubt
from migrator.model.segment import FileKind, Link, Manifest, SegmentFile
from migrator.model.table import TableId, TableSchema


@dataclass(frozen=True, slots=True)
class TableData:
    """Rows of one table and kind for a new segment; ``rows`` is a ``pyarrow.Table`` laid out as ``FileKind``
    says."""

    schema: TableSchema
    kind: FileKind
    rows: Any


@dataclass(frozen=True, slots=True)
class SegmentContent:
    """The content of the next segment (see ``Manifest`` for the fields' meaning)."""

    checkpoint: Checkpoint
    ends_transaction: bool
    committed_at_us: int
    transactions: int
    row_changes: int
    data: tuple[TableData, ...]
    begins_batch: bool = False
    continues: bool = False
    doubts: tuple[Doubt, ...] = ()
    echo: bool = False

    def manifest(
        self, number: int, epoch: int, files: tuple[SegmentFile, ...], previous: str, identity: str = ""
    ) -> Manifest:
        """The manifest of the segment of that number, whose rows are in these files (see ``Manifest``)."""
        return Manifest(
            number=number,
            epoch=epoch,
            checkpoint=self.checkpoint,
            ends_transaction=self.ends_transaction,
            committed_at_us=self.committed_at_us,
            transactions=self.transactions,
            row_changes=self.row_changes,
            files=files,
            begins_batch=self.begins_batch,
            continues=self.continues,
            doubts=self.doubts,
            id=identity,
            previous=previous,
            echo=self.echo,
        )


@dataclass(frozen=True, slots=True)
class NetDelta:
    """The net effect of a batch's log images on one source table.

    ``before``: for every key whose first image in the batch is a before image, that image; in a batch that also has
    dump rows of the table, every before image (see ``columnar.netting``).
    ``after``: for every key whose last image is an after image, that image. Both ``pyarrow.Table`` with the source
    columns of ``schema``.
    ``emptied``: the table was emptied in the batch (TRUNCATE). Then no row of before the batch is left, and both
    tables, like the batch's dump rows, tell of what came after that only.
    """

    schema: TableSchema
    before: Any
    after: Any
    emptied: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive segments ``first..last`` that end on a transaction boundary, ready for mapping.

    ``chunks`` lists, per table schema, the Parquet paths of dump rows and their number.
    ``deltas`` holds the net log delta per table, ``doubts`` the target rows to be decided on (``Manifest.doubts``),
    ``link`` how the batch hangs on the event log; None only where a test made it up. ``echo``: see ``Manifest``.
    """

    first: int
    last: int
    checkpoint: Checkpoint
    committed_at_us: int
    transactions: int
    row_changes: int
    chunk_rows: int
    chunks: tuple[tuple[TableSchema, tuple[str, ...], int], ...]
    deltas: tuple[NetDelta, ...]
    doubts: tuple[Doubt, ...] = ()
    link: Link | None = None
    echo: bool = False

    def tables(self) -> set[TableId]:
        """Source tables that the batch touches."""
        return {schema.id for schema, _, _ in self.chunks} | {delta.schema.id for delta in self.deltas}

    def emptied(self) -> set[TableId]:
        """Source tables that were emptied in it."""
        return {delta.schema.id for delta in self.deltas if delta.emptied}


def mixed(segment: int) -> EventLogError:
    """The error for changes that were written the other way amid those that one batch must hold."""
    return EventLogError(
        f"segment {segment} has changes that came from the other side, amid rows that are read for a dump request",
        cause="changes went both ways while rows were asked for with doubts about what the target has",
        remedy="cancel the request with `migrator dump cancel`; then start again",
    )


@dataclass(frozen=True, slots=True)
class Segment:
    """One whole segment: its manifest, and the rows of its files in the manifest's order."""

    manifest: Manifest
    data: tuple[TableData, ...]


@dataclass(frozen=True, slots=True)
class ReaderPlace:
    """The place in the event log up to which a reader that isn't the target has come.

    Attributes:
        segment: everything up to this segment is done; 0 before the first.
        order, epoch: ``checkpoint.position.order`` and ``epoch`` of that segment's manifest, by which a reader that
            comes back knows that it is still the same event log; ``order`` None when no segment was read yet.
        id: of that manifest, which tells it for certain; empty where earlier versions stored the place.
        first: the segment that it began with.
        tables: what the reader chose, as the user wrote it; empty for all tables.
        mark: what the reader's output needs to find its own end again (see ``EventOutput``).
    """

    segment: int
    order: int | None
    epoch: int
    first: int
    tables: tuple[str, ...]
    mark: int
    id: str = ""


class SegmentWriter(Protocol):
    """Appends segments under an epoch."""

    def last(self) -> Manifest | None:
        """The newest segment, its manifest checked; None in an empty event log."""
        ...

    def append(self, content: SegmentContent) -> Manifest:
        """Writes the data files, makes them durable, then creates the manifest of the next number atomically.

        Raises ``FencedError`` when another leader created that number or a higher epoch was seen,
        ``EventLogError`` when the disk refuses.
        """
        ...

    def awaited(self) -> bool:
        """Tells whether the batch reader beside it has read all there is, so that the next segment is waited for.

        True where that isn't known.
        """
        ...


class BatchReader(Protocol):
    """Reads ranges of the event log. May run in another thread or process than the writer."""

    def read(self, after: int, max_rows: int, timeout_s: float) -> Batch | None:
        """The segments after number ``after`` up to about ``max_rows`` rows, ending on a transaction boundary.

        Waits up to ``timeout_s`` for the first one; None when there is none yet. A transaction larger than
        ``max_rows`` is returned whole. Raises ``DamageError`` for a missing, torn or corrupt segment, once
        all whole transactions before it were returned.
        """
        ...

    def manifest(self, number: int) -> Manifest | None:
        """The manifest of a segment, checked; None when there is none (any more)."""
        ...

    def release(self, up_to: int) -> None:
        """The target holds the segments up to ``up_to``: they may be deleted. The newest manifest always stays."""
        ...


class EventLogRoom(Protocol):
    """Room for the event log: what capture asks before it writes a segment. Any thread may ask."""

    def used_bytes(self) -> int:
        """Bytes that the event log takes; at most half a second old."""
        ...

    def free_bytes(self) -> int:
        """Bytes that are free on its disk."""
        ...

    def disk_bytes(self) -> int:
        """Size of its disk in bytes."""
        ...

    def may_shrink(self) -> bool:
        """Tells whether segments will be released without anything new being written: the target, or an output of
        change events, has to get past them first."""
        ...

    def kept_by(self) -> tuple[str, ...]:
        """Outputs of change events that keep segments which the target holds already."""
        ...


class SegmentReader(Protocol):
    """Reads the event log segment by segment, beside the target, and keeps what it hasn't read from being
    deleted."""

    def place(self) -> ReaderPlace | None:
        """Returns the place where this reader stands; None when it never stored one."""
        ...

    def store(self, place: ReaderPlace) -> None:
        """Makes the place durable. Segments from ``place.segment`` on are kept until it moves on."""
        ...

    def forget(self) -> bool:
        """Removes the place, so that no segment is kept for this reader any more; whether there was one."""
        ...

    def read_segment(self, after: int, timeout_s: float) -> Segment | None:
        """The segment after number ``after``; waits up to ``timeout_s`` for it; None when there is none yet.

        Raises ``EventLogError`` for a missing, torn or corrupt segment, and for one that was released.
        """
        ...

    def manifest(self, number: int) -> Manifest | None:
        """The manifest of a segment; None when there is none (any more)."""
        ...

    def close(self) -> None:
        """Lets others take this reader's name; what it stored stays."""
        ...


__all__ = [
    "Batch",
    "BatchReader",
    "EventLogRoom",
    "FileKind",
    "NetDelta",
    "ReaderPlace",
    "Segment",
    "SegmentContent",
    "SegmentReader",
    "SegmentWriter",
    "TableData",
]


def fenced(epoch: int, cause: str) -> FencedError:
    """The error of a writer that may not write any more, as another leader does."""
    return FencedError(
        f"this leader (epoch {epoch}) may not write to the event log any more",
        where="event log",
        cause=cause,
        remedy="nothing is lost; if no other migrator is running, start again: it goes on from the newest segment",
    )
