"""The row changes of the transaction under way that weren't handed out yet."""

from __future__ import annotations

from migrator.adapters.sources.postgres.log.row_codec import RowCodec
from migrator.columnar.emptied import emptied_run
from migrator.model.event import ChangeRun
from migrator.model.table import TableSchema


class OpenPart:
    """Collects messages as runs.

    Attributes:
        count: changes collected.
        bytes: of their messages.
    """

    __slots__ = ("_codec", "_items", "_run_begins", "_runs", "bytes", "count")

    def __init__(self) -> None:
        self.count = self.bytes = self._run_begins = 0
        self._codec: RowCodec | None = None
        self._items: list[bytes] = []
        self._runs: list[ChangeRun] = []

    def add(self, codec: RowCodec, item: bytes) -> None:
        """The next change."""
        if codec is not self._codec:
            self._end_run()
            self._codec = codec
        self._items.append(item)
        self.count += 1
        self.bytes += len(item)

    def empties(self, schema: TableSchema) -> None:
        """The table was emptied here."""
        self._end_run()
        self._codec = None
        self._runs.append(emptied_run(schema))
        self.count += 1

    def take(self) -> tuple[ChangeRun, ...]:
        """Hands on what was collected, and begins anew."""
        self._end_run()
        runs, self._runs = tuple(self._runs), []
        self.count = self.bytes = self._run_begins = 0
        self._codec = None
        return runs

    def _end_run(self) -> None:
        if self._codec is not None:
            self._runs.append(ChangeRun(self._codec, self._items, self.bytes - self._run_begins))
            self._items, self._run_begins = [], self.bytes
