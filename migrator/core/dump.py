"""The plan of all dumps: which chunk is read next, and the progress of each dump of each table.

There is one way to dump a table, whoever asked for it. The first dump of all tables is one dump, and every dump
request is another; a dump reads its tables one after the other, and the dumps take turns, so that a small request
doesn't wait for a large one. A table of which the first dump has nothing yet, and a request reads all rows, is read
once: by the request, or by the first dump if the request is paused or ends before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from migrator.core.passes import FIRST
from migrator.model.chunk import MOST_LISTED, Chunk, ChunkRequest
from migrator.model.event import Key
from migrator.model.progress import TableDump
from migrator.model.requests.request import WHOLE, DumpRequest, RequestState, Scope
from migrator.model.table import TableId

_Job = tuple[str, TableId]
"""One table of one dump: name of the dump (``FIRST`` or ``DumpRequest.name``), table."""


@dataclass(slots=True)
class _Piece:
    """A range of one table's keys that is one chunk, from the moment it is known until it is emitted.

    Attributes:
        id: of its request.
        after: where it begins, exclusive.
        until: where it ends, inclusive, if that was found before it was read.
        asked: whether its chunk was asked for.
        open: whether where it ends is still unknown: until then nothing behind it can be asked for.
    """

    id: int
    after: Key | None
    until: Key | None = None
    asked: bool = True
    open: bool = True


@dataclass(slots=True)
class _Reading:
    """The place up to which one table has been read, ahead of the place up to which it has been emitted.

    ``pieces`` are being read or wait for their place in the log, in key order; only the last one may be open.
    """

    after: Key | None
    pieces: deque[_Piece] = field(default_factory=deque)
    exhausted: bool = False
    end: Key | None = None

    def piece(self, request: ChunkRequest) -> _Piece | None:
        """The request's piece, unless it was given up."""
        return next((piece for piece in self.pieces if piece.id == request.id), None)

    def goes_on(self) -> bool:
        """Tells whether there is a next piece whose beginning is known."""
        return not self.exhausted and not (self.pieces and self.pieces[-1].open)


class DumpPlan:
    """Chunks of each table, read by one or several workers and emitted in key order.

    Reading runs ahead of emitting: the next SELECT needs only the last key of the previous one, not its place
    in the log. Of one table several chunks are read side by side once it is known where they end
    (``ChunkRequest.ahead``). With one worker that is found by reading them. A range found ahead may have
    grown past the row limit when it is
    read: the rest of it is a piece of its own, before those behind it.

    Args:
        dumps: progress of the first dump, per table.
        limit_rows: bound of rows of a chunk, of any table or per table.
        max_waiting: how many chunks one worker may have read or be reading that wait for their place in the log;
            with every further worker it is one more. Bounds memory.
        token_prefix: of the watermarks; empty where none are written.
        requests: progress of dump requests. They go on once ``follow`` says what is wanted of them.
        workers: how many reads may be under way.
        key: what a table's chunks are read in the order of, see ``TableDump.key``.
    """

    def __init__(
        self,
        dumps: Sequence[TableDump],
        limit_rows: int | Callable[[TableId], int],
        max_waiting: int = 3,
        token_prefix: str = "",
        requests: Sequence[TableDump] = (),
        workers: int = 1,
        key: Callable[[TableId], tuple[str, ...]] = lambda table: (),
    ):
        self._dumps: dict[_Job, TableDump] = {
            (dump.request, dump.table): dump for dump in (*dumps, *requests)
        }
        self._reading = {job: _begun(dump) for job, dump in self._dumps.items()}
        self._scopes: dict[str, Scope] = {FIRST: WHOLE}
        self._running = [FIRST]
        self._doubting: frozenset[str] = frozenset()
        self._whole: frozenset[TableId] = frozenset()
        self._held = ""
        self._refused: set[str] = set()
        self._served = FIRST
        self._in_flight: set[int] = set()
        self._workers = workers
        self._key = key
        self._limit_rows = limit_rows if callable(limit_rows) else lambda table: limit_rows
        self._max_waiting = max_waiting
        self._token_prefix = token_prefix
        self._next_id = 1

    def dumps(self) -> tuple[TableDump, ...]:
        """Progress of the first dump of every table, by what was emitted."""
        return tuple(dump for dump in self._dumps.values() if dump.request == FIRST)

    def requests(self) -> tuple[TableDump, ...]:
        """Progress of the open dump requests, by what was emitted."""
        return tuple(dump for dump in self._dumps.values() if dump.request != FIRST)

    def employ(self, workers: int) -> None:
        """Sets how many reads may be under way from now on; more that are, end as they would."""
        self._workers = workers

    # -- dump requests ------------------------------------------------------------------------------------------

    def follow(self, requests: Sequence[DumpRequest], estimates: Mapping[TableId, int]) -> None:
        """Does from now on what is wanted: new requests join, others go on, pause, or are given up with their
        chunks.

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
        self._doubting = frozenset(name for name, request in opened.items() if request.doubts)
        whole = [opened[name] for name in self._running if name != FIRST and opened[name].scope == WHOLE]
        self._whole = frozenset(table for request in whole if not request.doubts for table in request.tables)

    def refuse(self, name: str) -> None:
        """Gives a request up that can't be read; it stays so, whatever the next ``follow`` says."""
        self._refused.add(name)
        self._give_up([job for job in self._dumps if job[0] == name])

    def _give_up(self, jobs: Sequence[_Job]) -> None:
        for job in jobs:
            del self._dumps[job], self._reading[job]

    def hold(self, name: str) -> None:
        """Asks for this request's chunks only, until its last chunk goes out or another name is given.

        It begins anew: what was emitted of it before lies in another batch. Empty: all take turns again.
        """
        self._held = name
        for job in [job for job in self._dumps if job[0] == name and name]:
            self._dumps[job] = TableDump(job[1], estimated_rows=self._dumps[job].estimated_rows, request=name)
            self._reading[job] = _begun(self._dumps[job])

    def open(self, name: str) -> bool:
        """Tells whether something of this request is still to be emitted, and it isn't paused."""
        return name in self._running and any(
            job[0] == name and not dump.done for job, dump in self._dumps.items()
        )

    def must_hold(self) -> str:
        """Name of the request that the next chunk is of, if that must not be read before a hold stands for it."""
        job = self._next_job()
        return "" if job is None or job[0] not in self._doubting or job[0] == self._held else job[0]

    # -- chunks -------------------------------------------------------------------------------------------------

    def next_request(self) -> ChunkRequest | None:
        """The next chunk to read, or None when all workers read, enough chunks wait, or nothing can be asked
        for."""
        job = self._next_job() if len(self._in_flight) < self._workers else None
        if job is None:
            return None
        reading = self._reading[job]
        piece = next((piece for piece in reading.pieces if not piece.asked), None)
        if piece is None:
            piece = _Piece(self._new_id(), reading.after)
            reading.pieces.append(piece)
            self._served = job[0]
        piece.asked = True
        self._in_flight.add(piece.id)
        return self._request(job, piece)

    def next_table(self) -> TableId | None:
        """The table that the next request will be about, if there is one."""
        job = self._next_job()
        return None if job is None else job[1]

    def _next_job(self) -> _Job | None:
        """A table with the rest of a range to read, else the next one in turn.

        A rest comes first, and of a paused dump too: chunks behind it wait for it, in memory. One at the head
        of its table is read however many chunks wait, since it is what they wait for.
        """
        asked = sum(piece.asked for reading in self._reading.values() for piece in reading.pieces)
        room = asked < self._max_waiting + self._workers - 1
        for job, reading in self._reading.items():
            if any(not piece.asked and (room or n == 0) for n, piece in enumerate(reading.pieces)):
                return job
        return self._job_in_turn() if room else None

    def _job_in_turn(self) -> _Job | None:
        """The first table that can be read on of the dump whose turn it is, the one after the dump served last."""
        first: dict[str, _Job] = {}
        for job, reading in self._reading.items():
            if reading.goes_on() and not (job[0] == FIRST and self._left_to_a_request(job[1])):
                first.setdefault(job[0], job)
        dumps = [self._held] if self._held and self._held in self._running else self._running
        start = dumps.index(self._served) + 1 if self._served in dumps else 0
        turns = (*dumps[start:], *dumps[:start])
        return next((first[dump] for dump in turns if dump in first), None)

    def _left_to_a_request(self, table: TableId) -> bool:
        """Tells whether the first dump has nothing of a table yet, and a request is reading all of its rows."""
        first = self._dumps.get((FIRST, table))
        unread = (
            first is not None
            and not first.done
            and not first.chunks
            and not self._reading[FIRST, table].pieces
        )
        return unread and table in self._whole

    def _request(self, job: _Job, piece: _Piece) -> ChunkRequest:
        name, table = job
        scope = self._scopes[name]
        listed = name in self._doubting and bool(scope.keys)  # one chunk: two would be two dumps to a batch
        return ChunkRequest(
            id=piece.id,
            table=table,
            after=piece.after,
            limit_rows=max(self._limit_rows(table), MOST_LISTED if listed else 0),
            token=f"{self._token_prefix}{piece.id}" if self._token_prefix else "",
            dump=name,
            scope=scope,
            end=self._reading[job].end,
            until=piece.until,
            ahead=not scope.keys and (self._workers > 1 or bool(scope.predicate)),
            doubting=name in self._doubting,
        )

    def _new_id(self) -> int:
        number, self._next_id = self._next_id, self._next_id + 1
        return number

    def bounded(self, request: ChunkRequest) -> None:
        """Notes bounds that were found: the next chunk of the table may be asked for beside this one."""
        reading = self._reading.get((request.dump, request.table))
        piece = None if reading is None else reading.piece(request)
        if reading is None or piece is None:
            return
        reading.end = request.end
        if request.until is not None:
            piece.until, piece.open, reading.after = request.until, False, request.until

    def arrived(self, chunk: Chunk) -> bool:
        """Notes a read; False if the chunk was given up meanwhile (it is read again, or not wanted any more)."""
        self.over(chunk.request)
        reading = self._reading.get(_job(chunk))
        piece = None if reading is None else reading.piece(chunk.request)
        if reading is None or piece is None:
            return False
        if piece.open:
            piece.open = False
            reading.after = chunk.last_key if chunk.last_key is not None else reading.after
            reading.exhausted = chunk.final
        elif chunk.last_key != piece.until:  # the range has grown: the row limit came before its end
            rest = _Piece(self._new_id(), chunk.last_key, piece.until, asked=False, open=False)
            reading.pieces.insert(reading.pieces.index(piece) + 1, rest)
        return True

    def over(self, request: ChunkRequest) -> None:
        """A read has ended, in whichever way."""
        self._in_flight.discard(request.id)

    def expects(self, chunk: Chunk) -> bool:
        """Tells whether the chunk is still wanted."""
        reading = self._reading.get(_job(chunk))
        return reading is not None and reading.piece(chunk.request) is not None

    def is_head(self, chunk: Chunk) -> bool:
        """Tells whether the chunk is the next one of its table in key order."""
        pieces = self._reading[_job(chunk)].pieces
        return bool(pieces) and pieces[0].id == chunk.request.id

    def emitted(self, chunk: Chunk, dropped_rows: int) -> TableDump:
        """Moves the table's progress past an emitted chunk."""
        job = _job(chunk)
        self._reading[job].pieces.popleft()
        old = self._dumps[job]
        new = replace(
            old,
            after=chunk.last_key if chunk.last_key is not None else old.after,
            done=chunk.final,
            rows=old.rows + chunk.row_count - dropped_rows,
            dropped_rows=old.dropped_rows + dropped_rows,
            chunks=old.chunks + 1,
            key=self._key(chunk.request.table),
        )
        self._dumps[job] = new
        if new.done and self._left_to_a_request(new.table) and self._scopes[job[0]] == WHOLE:
            self._dumps[FIRST, new.table] = replace(self._dumps[FIRST, new.table], done=True)
            self._reading[FIRST, new.table] = _begun(self._dumps[FIRST, new.table])
        return new

    def begin_again(self) -> None:
        """Gives up all chunks that were not emitted, those being read included, and goes on from the last
        emitted."""
        for (name, table), reading in list(self._reading.items()):
            if reading.pieces:
                self.read_again(table, name)

    def read_again(self, table: TableId, name: str = FIRST) -> None:
        """Gives up all chunks of the table in this dump that were not emitted and goes on from the last
        emitted key.

        The later ones go too: a second read of the same range may end at another key, and their range began where
        the first read ended.
        """
        end = self._reading[name, table].end
        self._reading[name, table] = replace(_begun(self._dumps[name, table]), end=end)


def _job(chunk: Chunk) -> _Job:
    return chunk.request.dump, chunk.request.table


def _begun(dump: TableDump) -> _Reading:
    return _Reading(dump.after, exhausted=dump.done)


def _estimate(scope: Scope, table_rows: int) -> int:
    """Rows that a scope has: unknown where only the source can tell."""
    if scope.keys:
        return len(scope.keys)
    return table_rows if scope == WHOLE else 0
