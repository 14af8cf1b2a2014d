"""The plan of all dumps: which chunk is read next, and the progress of each dump of each table.

There is one way to dump a table, whoever asked for it. The first dump of all tables is one *lane*, and every dump
request is another; a lane dumps its tables one after the other, and the lanes take turns, so that a small request
doesn't wait for a large one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from migrator.core.passes import FIRST
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.event import Key
from migrator.model.progress import TableDump
from migrator.model.request import WHOLE, DumpRequest, RequestState, Scope
from migrator.model.table import TableId

_Job = tuple[str, TableId]
"""One table of one dump: name of the dump (``FIRST`` or ``DumpRequest.name``), table."""


@dataclass(slots=True)
class _Reading:
    """How far one table has been read, which runs ahead of how far it has been emitted."""

    after: Key | None
    outstanding: deque[int] = field(default_factory=deque)
    """Ids of the chunks that are being read or wait for their place in the log, in key order."""
    exhausted: bool = False


class DumpPlan:
    """Chunks of each table in key order, one SELECT under way at a time.

    Reading runs ahead of emitting: the next SELECT needs only the last key of the previous one, not its place in the
    log. At most ``max_waiting`` chunks wait, which bounds memory.

    Args:
        dumps: progress of the first dump, per table.
        limit_rows: bound of rows of a chunk.
        max_waiting: how many chunks may wait for their place in the log.
        token_prefix: of the watermarks; empty where none are written.
        requests: progress of dump requests. They go on once ``follow`` says what is wanted of them.
    """

    def __init__(
        self,
        dumps: Sequence[TableDump],
        limit_rows: int,
        max_waiting: int = 3,
        token_prefix: str = "",
        requests: Sequence[TableDump] = (),
    ):
        self._dumps: dict[_Job, TableDump] = {
            (dump.request, dump.table): dump for dump in (*dumps, *requests)
        }
        self._reading = {job: _begun(dump) for job, dump in self._dumps.items()}
        self._scopes: dict[str, Scope] = {FIRST: WHOLE}
        self._running = [FIRST]
        self._refused: set[str] = set()
        self._served = FIRST
        self._in_flight: int | None = None
        self._limit_rows = limit_rows
        self._max_waiting = max_waiting
        self._token_prefix = token_prefix
        self._next_id = 1

    def dumps(self) -> tuple[TableDump, ...]:
        """Progress of the first dump of every table, by what was emitted."""
        return tuple(dump for dump in self._dumps.values() if dump.request == FIRST)

    def requests(self) -> tuple[TableDump, ...]:
        """Progress of the open dump requests, by what was emitted."""
        return tuple(dump for dump in self._dumps.values() if dump.request != FIRST)

    def resize(self, limit_rows: int) -> None:
        """Bound of rows for the next requests."""
        self._limit_rows = limit_rows

    # -- dump requests ------------------------------------------------------------------------------------------

    def follow(self, requests: Sequence[DumpRequest], estimates: Mapping[TableId, int]) -> None:
        """Does from now on what is wanted: new requests join, others go on, pause, or are given up with their chunks.

        A request's progress is kept while it is open. A restart is another name, and so another dump.
        """
        opened = {one.name(): one for one in requests if one.is_open() and one.name() not in self._refused}
        self._give_up([job for job in self._dumps if job[0] not in opened and job[0] != FIRST])
        for name, request in opened.items():
            for table in request.tables:
                if (name, table) not in self._dumps:
                    rows = _estimate(request.scope, estimates.get(table, 0))
                    dump = TableDump(table, estimated_rows=rows, request=name)
                    self._dumps[name, table] = dump
                    self._reading[name, table] = _begun(dump)
        self._scopes = {FIRST: WHOLE} | {name: request.scope for name, request in opened.items()}
        self._running = [
            FIRST,
            *(name for name, request in opened.items() if request.state is RequestState.RUNNING),
        ]

    def refuse(self, name: str) -> None:
        """Gives a request up that can't be read; it stays so, whatever the next ``follow`` says."""
        self._refused.add(name)
        self._give_up([job for job in self._dumps if job[0] == name])

    def _give_up(self, jobs: Sequence[_Job]) -> None:
        for job in jobs:
            del self._dumps[job], self._reading[job]

    # -- chunks -------------------------------------------------------------------------------------------------

    def next_request(self) -> ChunkRequest | None:
        """The next chunk to read, or None when a read is under way, enough chunks wait, or all is read."""
        if self._in_flight is not None:
            return None
        if sum(len(reading.outstanding) for reading in self._reading.values()) >= self._max_waiting:
            return None
        job = self._next_job()
        if job is None:
            return None
        reading = self._reading[job]
        request = self._request(job, reading.after)
        self._served, self._in_flight = job[0], request.id
        reading.outstanding.append(request.id)
        return request

    def next_table(self) -> TableId | None:
        """The table that the next request will be about, if any table is left to read."""
        job = self._next_job()
        return None if job is None else job[1]

    def _next_job(self) -> _Job | None:
        """The first unread table of the lane whose turn it is, which is the one after the lane served last."""
        first: dict[str, _Job] = {}
        for job, reading in self._reading.items():
            if not reading.exhausted:
                first.setdefault(job[0], job)
        lanes = self._running
        start = lanes.index(self._served) + 1 if self._served in lanes else 0
        turns = (*lanes[start:], *lanes[:start])
        return next((first[lane] for lane in turns if lane in first), None)

    def _request(self, job: _Job, after: Key | None) -> ChunkRequest:
        number, self._next_id = self._next_id, self._next_id + 1
        token = f"{self._token_prefix}{number}" if self._token_prefix else ""
        name, table = job
        return ChunkRequest(number, table, after, self._limit_rows, token, name, self._scopes[name])

    def arrived(self, chunk: Chunk) -> bool:
        """Notes a read; False if the chunk was given up meanwhile (it is read again, or not wanted any more)."""
        self.over(chunk.request)
        if not self.expects(chunk):
            return False
        reading = self._reading[_job(chunk)]
        reading.after = chunk.last_key if chunk.last_key is not None else reading.after
        reading.exhausted = chunk.final
        return True

    def over(self, request: ChunkRequest) -> None:
        """A read has ended, in whichever way."""
        if self._in_flight == request.id:
            self._in_flight = None

    def expects(self, chunk: Chunk) -> bool:
        """Whether the chunk is still wanted."""
        reading = self._reading.get(_job(chunk))
        return reading is not None and chunk.request.id in reading.outstanding

    def is_head(self, chunk: Chunk) -> bool:
        """Whether the chunk is the next one of its table in key order."""
        outstanding = self._reading[_job(chunk)].outstanding
        return bool(outstanding) and outstanding[0] == chunk.request.id

    def emitted(self, chunk: Chunk, dropped_rows: int) -> TableDump:
        """Moves the table's progress past an emitted chunk."""
        job = _job(chunk)
        self._reading[job].outstanding.popleft()
        old = self._dumps[job]
        new = replace(
            old,
            after=chunk.last_key if chunk.last_key is not None else old.after,
            done=chunk.final,
            rows=old.rows + chunk.row_count - dropped_rows,
            dropped_rows=old.dropped_rows + dropped_rows,
            chunks=old.chunks + 1,
        )
        self._dumps[job] = new
        return new

    def read_again(self, table: TableId, name: str = FIRST) -> None:
        """Gives up all chunks of the table in this dump that were not emitted and goes on from the last emitted key.

        The later ones go too: a second read of the same range may end at another key, and their range began where
        the first read ended.
        """
        self._reading[name, table] = _begun(self._dumps[name, table])


def _job(chunk: Chunk) -> _Job:
    return chunk.request.dump, chunk.request.table


def _begun(dump: TableDump) -> _Reading:
    return _Reading(dump.after, exhausted=dump.done)


def _estimate(scope: Scope, table_rows: int) -> int:
    """Rows that a scope has: unknown where only the source can tell."""
    if scope.keys:
        return len(scope.keys)
    return table_rows if scope == WHOLE else 0


def next_limit(limit_rows: int, elapsed_s: float, *, target_s: float, least: int, most: int) -> int:
    """Rows for the next chunk so that a read takes about ``target_s``; at most doubled or halved at a time."""
    if elapsed_s <= 0:
        return most
    wanted = limit_rows * target_s / elapsed_s
    return int(min(most, max(least, min(2 * limit_rows, max(limit_rows / 2, wanted)))))
