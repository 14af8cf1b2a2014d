"""An output: where the ordered change events of the event log go, beside the target (docs/reference/events.md)."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from migrator.errors import OutputError
from migrator.model.position import Position
from migrator.model.table import TableId, TableSchema

WHOLE = 1 << 62
"""Number of an event beyond the last one of any segment."""


@dataclass(frozen=True, slots=True)
class TableEvents:
    """Events of one table and row schema; ``rows`` is a ``pyarrow.Table`` as ``columnar.events`` says."""

    schema: TableSchema
    rows: Any


@dataclass(frozen=True, slots=True)
class SegmentEvents:
    """The events of one segment.

    Attributes:
        segment: its number; (segment, number of the event in it) identifies an event and orders all of them.
        position: where capture resumes after the segment.
        committed_at_us: commit time of the segment's last transaction (0 = none), microseconds since 1970.
        tables: the events; numbers rise within a table, and are distinct over all tables.
        captured: every table whose events go to this output, whether or not the segment has some of it.
    """

    segment: int
    position: Position
    committed_at_us: int
    tables: tuple[TableEvents, ...]
    captured: frozenset[TableId] = frozenset()

    def count(self) -> int:
        """Number of events."""
        return sum(table.rows.num_rows for table in self.tables)


@dataclass(frozen=True, slots=True)
class Held:
    """The end of an output beyond its last commit, after its torn end was repaired.

    Attributes:
        segment, number: the last complete event; ``number`` is ``WHOLE`` where the segment is complete.
        cut_bytes: bytes of an incomplete end that were removed.
    """

    segment: int
    number: int
    cut_bytes: int = 0


class EventOutput(Protocol):
    """Takes events in order. One thread uses it.

    The promise is exactly once: after a kill at any moment, ``open`` with the mark of the last ``commit``
    whose place was stored finds out how much arrived beyond it, and the caller goes on with the very next
    event.
    """

    def open(self, mark: int | None) -> Held | None:
        """Takes the output over and removes an incomplete end.

        Args:
            mark: what the last stored ``commit`` returned; None for an output that must be new: then it raises
                ``OutputError`` when there is something already.

        Returns:
            What it holds beyond ``mark``; None for nothing. Raises ``OutputError`` when what was committed is gone.
        """
        ...

    def write(self, events: SegmentEvents) -> None:
        """Adds the events of the next segment, or the rest of them. Raises ``OutputError``."""
        ...

    def commit(self, segment: int) -> int:
        """Makes everything up to ``segment`` durable; returns the mark to open with. Raises ``OutputError``."""
        ...

    def close(self) -> None:
        """Frees what is open; what wasn't committed may be lost."""
        ...

    def forget(self) -> None:
        """Removes what the output keeps on this machine besides what it wrote: it is given up. Not open."""
        ...


def refused(what: str, path: Path | str, error: OSError) -> OutputError:
    """The named error for an ``OSError`` of an output."""
    return OutputError(
        what,
        where=str(error.filename or path),
        cause=f"{error.strerror or error} ({errno.errorcode.get(error.errno or 0, 'no errno')})",
        remedy=_REMEDIES.get(error.errno or 0, "look at the disk and the kernel's log, then start again"),
    )


_GO_ON = "then start again: it goes on after the last complete event"
_REMEDIES = {
    errno.ENOSPC: f"free space on this filesystem, {_GO_ON}",
    errno.EDQUOT: f"raise the quota or free space on this filesystem, {_GO_ON}",
    errno.EFBIG: f"raise the limit of file sizes (ulimit -f), {_GO_ON}",
    errno.EACCES: "give the user who runs this command write access, or choose another --output",
    errno.EPERM: "give the user who runs this command write access, or choose another --output",
    errno.EROFS: "the filesystem is mounted read-only: choose another --output",
    errno.ENOENT: "make the folder first, or choose another --output",
    errno.ENOTDIR: "a file is in the way of a folder: choose another --output",
    errno.EISDIR: "it is a folder: name a file, or use --format parquet",
    errno.EPIPE: "the program that read the output has ended: start both again",
}
