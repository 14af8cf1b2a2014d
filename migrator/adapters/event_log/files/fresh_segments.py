"""News of the newest segments between a writer and a batch reader in the same process.

A hint and never a way of its own: a batch is still made from manifests that are durable and visible, of files that
are there. It only saves polling, and decoding again what this process encoded a moment ago. A reader in another
process, or one that begins anew, decodes the files.
"""

from __future__ import annotations

import os
import threading

import pyarrow as pa

from migrator.model.segment import FileKind, Manifest, SegmentFile
from migrator.ports.eventlog import TableData

MOST_BYTES = 64 << 20
"""The limit of the buffers, in bytes, that held rows lie in."""


class FreshSegments:
    """The newest number created, rows that weren't read yet, and how far the reader has come.

    One writer announces, one reader takes.

    Args:
        most_bytes: rows of a segment aren't held where that would make more than this.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._condition = threading.Condition()
        self._most_bytes = most_bytes
        self._newest = 0
        self._taken: int | None = None
        self._held: dict[int, tuple[int, dict[str, pa.Table]]] = {}

    def announce(self, manifest: Manifest, data: tuple[TableData, ...]) -> None:
        """Announces that this segment exists now; ``data`` is what its files were written from, in their order."""
        rows = {
            file.path: table.rows
            for file, table in zip(manifest.files, data, strict=True)
            if file.kind is FileKind.LOG  # dump rows are read by Spark, from the files
        }
        size_bytes = sum(table.get_total_buffer_size() for table in rows.values())
        with self._condition:
            self._newest = max(self._newest, manifest.number)
            if rows and self.held_bytes() + size_bytes <= self._most_bytes:
                self._held[manifest.number] = (size_bytes, rows)
            self._condition.notify_all()

    def wait(self, number: int, timeout_s: float) -> bool:
        """Returns as soon as ``number`` was announced; False after ``timeout_s`` without it."""
        with self._condition:
            return self._condition.wait_for(lambda: self._newest >= number, timeout_s)

    def rows(self, file: SegmentFile, segment: int) -> pa.Table | None:
        """The rows of a log file, where they are held and the file is there as it was written; else None."""
        with self._condition:
            _, rows = self._held.get(segment, (0, {}))
        table = rows.get(file.path)
        if table is None:
            return None
        try:
            return table if os.stat(file.path).st_size == file.size_bytes else None
        except OSError:
            return None  # who decodes it will say what is wrong

    def taken(self, up_to: int) -> None:
        """The reader has a batch that ends with this segment."""
        with self._condition:
            self._taken = up_to

    def forget(self, up_to: int) -> None:
        """Rows up to this segment won't be asked for again."""
        with self._condition:
            self._held = {number: held for number, held in self._held.items() if number > up_to}

    def awaited(self) -> bool:
        """Tells whether the reader has taken all there is. True as long as nobody has read at all."""
        with self._condition:
            return self._taken is None or self._taken >= self._newest

    def held_bytes(self) -> int:
        """Counts the bytes of all rows that are held."""
        return sum(size_bytes for size_bytes, _ in self._held.values())
