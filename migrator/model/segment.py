"""The event log's unit: a segment, described by its manifest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from migrator.model.progress import Checkpoint
from migrator.model.requests.request import Doubt
from migrator.model.table import TableSchema


class FileKind(Enum):
    """The content of a segment's data file."""

    CHUNK = "chunk"
    """Dump rows: the source columns only."""
    LOG = "log"
    """Row images in log order: ``__position`` int64, ``__index`` int64, ``__sign`` int8, then the source columns.

    Sign 0, since format 3: here the table was emptied (TRUNCATE); the source columns are NULL.
    """


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """One Parquet file of a segment.

    Attributes:
        schema: of its rows.
        kind: see there.
        path: absolute.
        rows: their number.
        size_bytes: of the file.
        sha256: over the whole file.
        held_bytes: what its rows take in memory; 0 if that is not known (formats before 3).
    """

    schema: TableSchema
    kind: FileKind
    path: str
    rows: int
    size_bytes: int
    sha256: str
    held_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Manifest:
    """One durable segment.

    Attributes:
        number: 1, 2, 3, ...; the atomic create of this number is the fence.
        epoch: of the leader that wrote it; never falls along the log.
        checkpoint: where capture resumes after this segment, with dump progress up to and including it.
        ends_transaction: whether the segment ends on a transaction boundary.
        committed_at_us: source commit time of its last transaction (0 = none), for lag only.
        transactions: transactions that end in it.
        row_changes: log events in it.
        files: its data files.
        begins_batch: whether a batch must begin with it: its dump rows may repeat keys of dump rows before it.
        continues: whether the batch must go on after it, up to the segment that has the doubts (see ``core.hold``),
            or that begins another batch.
        doubts: target rows to be decided on with the batch that holds this segment.
        echo: whether its changes are those that the migration which goes the other way wrote: mirrors follow them,
            no target does.
        id: what it is, told by its content: no two segments that differ have the same. Kept beside it, not in it.
        previous: ``id`` of the segment before, so that logs which part can be told apart by any later
            segment; empty
            in the first one, and where formats before 4 wrote the one before.
    """

    number: int
    epoch: int
    checkpoint: Checkpoint
    ends_transaction: bool
    committed_at_us: int
    transactions: int
    row_changes: int
    files: tuple[SegmentFile, ...]
    begins_batch: bool = False
    continues: bool = False
    doubts: tuple[Doubt, ...] = ()
    id: str = ""
    previous: str = ""
    echo: bool = False

    def joins(self, batch: Sequence[Manifest]) -> bool:
        """Tells whether its changes may be in one batch with those: either all of them are echoes, or none."""
        changing = next((one for one in batch if one.row_changes), None)
        return changing is None or not self.row_changes or self.echo == changing.echo


@dataclass(frozen=True, slots=True)
class Link:
    """The place of a batch in the event log.

    Attributes:
        first: number of its first segment.
        previous: ``Manifest.id`` of the segment before; empty where that isn't known.
        id: of its last segment.
    """

    first: int
    previous: str
    id: str
