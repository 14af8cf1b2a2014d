"""Room for an event log: what it takes, what is free beside it, and what may still go."""

from __future__ import annotations

import os

from migrator.adapters.event_log.files import durable
from migrator.adapters.event_log.files.batch_reader import FileBatchReader
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.manifest_file import read_manifest
from migrator.adapters.event_log.files.places import places
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter


class FileRoom:
    """An ``EventLogRoom`` of the leader's own writer and reader. Any thread may ask.

    Args:
        directory: of the event log.
        writer: knows what it wrote since the bytes were last counted.
        reader: of the apply loop; knows what the target holds.
    """

    def __init__(self, directory: str | os.PathLike[str], writer: FileSegmentWriter, reader: FileBatchReader):
        self._layout = Layout.of(directory)
        self._writer = writer
        self._reader = reader

    def used_bytes(self) -> int:
        """See the port."""
        return self._writer.total_bytes()

    def free_bytes(self) -> int:
        """See the port: what a user without privileges may take."""
        found = self._filesystem()
        return found.f_bavail * found.f_frsize

    def disk_bytes(self) -> int:
        """See the port."""
        found = self._filesystem()
        return found.f_blocks * found.f_frsize

    def may_shrink(self) -> bool:
        """See the port. Tries to, first: what an output held at the last release, it may have passed since."""
        self._reader.release_again()
        numbers = self._layout.numbers()
        complete = self._complete(numbers)
        # The newest complete segment isn't counted: while it was the newest of all it was kept as such, or an
        # output stands at it, and the next release comes only with the segment that is waiting for room.
        return any(number < complete for number in numbers)

    def kept_by(self) -> tuple[str, ...]:
        """See the port."""
        numbers = self._layout.numbers()
        oldest = numbers[0] if numbers else 0
        applied = self._reader.applied()
        return tuple(
            stored.output for _, stored in places(self._layout) if stored.place.segment <= oldest < applied
        )

    def _complete(self, numbers: list[int]) -> int:
        """The newest segment that ends a transaction; 0: none."""
        for number in reversed(numbers):
            manifest = read_manifest(self._layout, number)
            if manifest is not None and manifest.ends_transaction:
                return number
        return 0

    def _filesystem(self) -> os.statvfs_result:
        try:
            return os.statvfs(self._layout.directory)
        except OSError as error:
            raise durable.disk_refused(
                "the event log's disk can't be looked at", self._layout.directory, error
            ) from error
