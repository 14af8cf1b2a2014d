"""The plan of a dump: which chunk is read next, and the progress of each table."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.event import Key
from migrator.model.progress import TableDump
from migrator.model.table import TableId


@dataclass(slots=True)
class _Reading:
    """How far one table has been read, which runs ahead of how far it has been emitted."""

    after: Key | None
    outstanding: deque[int] = field(default_factory=deque)
    """Ids of the chunks that are being read or wait for their place in the log, in key order."""
    in_flight: int | None = None
    exhausted: bool = False


class DumpPlan:
    """Chunks of each table in key order; tables one after the other, one SELECT under way at a time.

    Reading runs ahead of emitting: the next SELECT needs only the last key of the previous one, not its place in the
    log. At most ``max_waiting`` chunks wait, which bounds memory.
    """

    def __init__(
        self, dumps: Sequence[TableDump], limit_rows: int, max_waiting: int = 3, token_prefix: str = ""
    ):
        self._dumps = {dump.table: dump for dump in dumps}
        self._reading = {dump.table: _Reading(dump.after, exhausted=dump.done) for dump in dumps}
        self._limit_rows = limit_rows
        self._max_waiting = max_waiting
        self._token_prefix = token_prefix
        self._next_id = 1

    def dumps(self) -> tuple[TableDump, ...]:
        """Progress of every table, by what was emitted."""
        return tuple(self._dumps.values())

    def resize(self, limit_rows: int) -> None:
        """Bound of rows for the next requests."""
        self._limit_rows = limit_rows

    def next_request(self) -> ChunkRequest | None:
        """The next chunk to read, or None when a read is under way, enough chunks wait, or all is read."""
        if any(reading.in_flight is not None for reading in self._reading.values()):
            return None
        if sum(len(reading.outstanding) for reading in self._reading.values()) >= self._max_waiting:
            return None
        table = self.next_table()
        if table is None:
            return None
        reading = self._reading[table]
        request = self._request(table, reading.after)
        reading.in_flight = request.id
        reading.outstanding.append(request.id)
        return request

    def next_table(self) -> TableId | None:
        """The table that the next request will be about, if any table is left to read."""
        return next((table for table, reading in self._reading.items() if not reading.exhausted), None)

    def _request(self, table: TableId, after: Key | None) -> ChunkRequest:
        number, self._next_id = self._next_id, self._next_id + 1
        token = f"{self._token_prefix}{number}" if self._token_prefix else ""
        return ChunkRequest(number, table, after, self._limit_rows, token)

    def arrived(self, chunk: Chunk) -> bool:
        """Notes a read; False if the chunk was given up meanwhile (its table is being read again)."""
        reading = self._reading[chunk.request.table]
        if reading.in_flight == chunk.request.id:
            reading.in_flight = None
        if chunk.request.id not in reading.outstanding:
            return False
        reading.after = chunk.last_key if chunk.last_key is not None else reading.after
        reading.exhausted = chunk.final
        return True

    def is_head(self, chunk: Chunk) -> bool:
        """Whether the chunk is the next one of its table in key order."""
        outstanding = self._reading[chunk.request.table].outstanding
        return bool(outstanding) and outstanding[0] == chunk.request.id

    def emitted(self, chunk: Chunk, dropped_rows: int) -> TableDump:
        """Moves the table's progress past an emitted chunk."""
        table = chunk.request.table
        self._reading[table].outstanding.popleft()
        old = self._dumps[table]
        new = replace(
            old,
            after=chunk.last_key if chunk.last_key is not None else old.after,
            done=chunk.final,
            rows=old.rows + chunk.row_count - dropped_rows,
            dropped_rows=old.dropped_rows + dropped_rows,
            chunks=old.chunks + 1,
        )
        self._dumps[table] = new
        return new

    def read_again(self, table: TableId) -> None:
        """Gives up all chunks of the table that were not emitted and goes on from the last emitted key.

        The later ones go too: a second read of the same range may end at another key, and their range began where
        the first read ended.
        """
        self._reading[table] = _Reading(self._dumps[table].after, exhausted=self._dumps[table].done)


def next_limit(limit_rows: int, elapsed_s: float, *, target_s: float, least: int, most: int) -> int:
    """Rows for the next chunk so that a read takes about ``target_s``; at most doubled or halved at a time."""
    if elapsed_s <= 0:
        return most
    wanted = limit_rows * target_s / elapsed_s
    return int(min(most, max(least, min(2 * limit_rows, max(limit_rows / 2, wanted)))))
