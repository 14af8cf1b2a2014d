"""The old database: its commits reach the log before they become visible, in an order that decisions choose.

Small and pessimistic: any commit may stay in the gap between log and visibility for as long as the decisions
like, as on PostgreSQL with a slow synchronous standby or MariaDB with semi-sync AFTER_SYNC. With ``ordered``
commits become visible in log order, as with ``binlog_order_commits=ON``. What was acknowledged is forgotten,
as a replication slot forgets it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from migrator.columnar.emptied import emptied_run
from migrator.columnar.text import rows_to_table
from migrator.columnar.text_codec import TextCodec, text_runs
from migrator.errors import ConnectionFailed
from migrator.model.chunk import Chunk, ChunkRequest, Witness
from migrator.model.event import (
    ChangeRun,
    Key,
    LogProgress,
    LogRecord,
    MarkKind,
    Operation,
    RowChange,
    TransactionId,
    TransactionPart,
    WatermarkSeen,
)
from migrator.model.position import Position
from migrator.model.table import TableId, TableSchema
from scenarios.simulation.tables import SCHEMAS, Stored

ORDERS_APART = 10
"""``Position.order`` of consecutive log entries differ by this, so that nobody can take them for ordinals."""

CODECS = {table: TextCodec(schema) for table, schema in SCHEMAS.items()}


def position(entries: int) -> Position:
    """The place after so many log entries."""
    return Position(entries * ORDERS_APART, str(entries))


@dataclass(frozen=True, slots=True)
class SeenSet:
    """An exact witness: the transactions visible to the read view."""

    ids: frozenset[TransactionId]

    def contains(self, transaction: TransactionId) -> bool:
        """See ``Witness``."""
        return transaction in self.ids


@dataclass(frozen=True, slots=True)
class Write:
    """One row change: key and row before (None: inserted), key and row after (None: deleted).

    ``truncates``: it is one of the rows that a TRUNCATE takes away, which come first in their transaction.
    """

    table: TableId
    before: tuple[int, Stored] | None
    after: tuple[int, Stored] | None
    truncates: bool = False

    def __str__(self) -> str:
        before, after = (
            "nothing"
            if image is None
            else f"{image[0]} ({image[1].session}.{image[1].number} = {image[1].value})"
            for image in (self.before, self.after)
        )
        return f"{self.table.name} {before} -> {after}"

    def change(self) -> RowChange:
        """Returns the change as the log reader delivers it."""
        before = None if self.before is None else self.before[1].text(self.before[0])
        after = None if self.after is None else self.after[1].text(self.after[0])
        kind = Operation.INSERT if before is None else Operation.DELETE if after is None else Operation.UPDATE
        return RowChange(self.table, kind, before, after)

    def locks(self) -> list[tuple[TableId, int]]:
        """The rows it locks."""
        return [(self.table, image[0]) for image in (self.before, self.after) if image is not None]


@dataclass(frozen=True, slots=True)
class Entry:
    """One transaction in the log.

    Attributes:
        number: its place in the log, from 1.
        ordinal: its place among the transactions with rows; 0 for watermarks.
        session: the client, 0 for watermarks.
        at_us: when.
    """

    number: int
    ordinal: int
    session: int
    at_us: int
    writes: tuple[Write, ...]
    mark: WatermarkSeen | None = None

    def __str__(self) -> str:
        if self.mark is not None:
            return f"{self.mark.kind.value} watermark {self.mark.token}"
        return f"position {self.ordinal}, " + ", ".join(map(str, self.writes))

    def records(self, part_rows: int) -> list[LogRecord]:
        """Returns the entry as the log reader delivers it: large transactions in parts."""
        place = position(self.number)
        if self.mark is not None:
            return [self.mark, LogProgress(place)]
        emptied = [write.table for write in self.writes if write.truncates][:1]
        changes = [RowChange(table, Operation.TRUNCATE, None, None) for table in emptied]
        changes += [write.change() for write in self.writes if not write.truncates]
        cuts = range(0, len(changes), part_rows)
        return [
            TransactionPart(
                (self.number,),
                place,
                self.at_us,
                at,
                _runs(changes[at : at + part_rows]),
                at == cuts[-1],
            )
            for at in cuts
        ]


def _runs(changes: Sequence[RowChange]) -> tuple[ChangeRun, ...]:
    emptied = [change for change in changes if change.operation is Operation.TRUNCATE]
    return (
        *(emptied_run(SCHEMAS[change.table]) for change in emptied),
        *text_runs(CODECS, changes[len(emptied) :]),
    )


Rows = dict[TableId, dict[int, Stored]]


@dataclass(slots=True)
class Source:
    """The server.

    Attributes:
        ordered: see the module.
        log: everything that was ever committed.
        logged: the rows after the whole log.
        visible: the rows that readers see.
        hidden: log entries that are not visible yet, in log order.
        locked: rows that transactions still hold.
        acknowledged: the log's reader said it needs nothing up to here.
        transactions: how many entries have rows.
        notes: what happens, in words, for those who want to read it.
        clock_us: now.
    """

    ordered: bool
    initial: Rows
    log: list[Entry] = field(default_factory=list)
    logged: Rows = field(default_factory=dict)
    visible: Rows = field(default_factory=dict)
    hidden: list[Entry] = field(default_factory=list)
    locked: set[tuple[TableId, int]] = field(default_factory=set)
    acknowledged: Position = field(default_factory=lambda: position(0))
    clock_us: int = 0
    transactions: int = 0
    notes: list[str] = field(default_factory=list)
    _visible_ids: set[TransactionId] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.logged = {table: dict(rows) for table, rows in self.initial.items()}
        self.visible = {table: dict(rows) for table, rows in self.initial.items()}

    def commit(self, session: int, writes: Sequence[Write]) -> Entry:
        """A client commits: the log has it at once, readers when ``reveal`` says so."""
        self.transactions += 1
        entry = Entry(len(self.log) + 1, self.transactions, session, self.clock_us, tuple(writes))
        self._append(entry)
        _apply(self.logged, writes)
        self.locked.update(key for write in writes for key in write.locks())
        return entry

    def mark(self, token: str, kind: MarkKind) -> None:
        """Commits a watermark. Like any other transaction it may become visible late, which no reader notices."""
        self._append(Entry(len(self.log) + 1, 0, 0, self.clock_us, (), WatermarkSeen(token, kind)))
        while self.ordered and self.hidden:
            self.reveal(0)  # on return of its commit it is visible, and so is all before it

    def _append(self, entry: Entry) -> None:
        self.log.append(entry)
        self.hidden.append(entry)
        self.notes.append(f"log entry {entry.number}: {entry}")

    def reveal(self, which: int) -> None:
        """A logged commit becomes visible: the oldest if ``ordered``, else any."""
        if not self.hidden:
            return
        entry = self.hidden.pop(0 if self.ordered else which % len(self.hidden))
        self.notes.append(f"log entry {entry.number} becomes visible")
        self._visible_ids.add((entry.number,))
        _apply(self.visible, entry.writes)
        self.locked.difference_update(key for write in entry.writes for key in write.locks())

    def witness(self) -> SeenSet:
        """Returns the set of transactions that are visible now."""
        return SeenSet(frozenset(self._visible_ids))

    def end(self) -> Position:
        """The end of the log."""
        return position(len(self.log))

    def visible_end(self) -> Position:
        """The newest place of which everything before is visible."""
        oldest = min((entry.number for entry in self.hidden), default=len(self.log) + 1)
        return position(oldest - 1)


def _apply(rows: Rows, writes: Iterable[Write]) -> None:
    for write in writes:
        table = rows[write.table]
        if write.before is not None:
            table.pop(write.before[0], None)
        if write.after is not None:
            table[write.after[0]] = write.after[1]


@dataclass(slots=True)
class Link:
    """The connections of one process to the source, and which of them break at their next use.

    Attributes:
        source: the server.
        part_rows: row changes of a transaction that come at once.
        has_witness: whether reads come with witnesses.
        records: log records that the next read returns at most.
        step: the process's hook of named points.
        cut: names of connections that break: ``log``, ``chunk``.
    """

    source: Source
    part_rows: int
    has_witness: bool
    step: Callable[[str], None] = lambda point: None
    records: int = 1
    cut: set[str] = field(default_factory=set)

    def use(self, name: str) -> None:
        """Raises ``ConnectionFailed`` if that connection breaks now."""
        if name in self.cut:
            self.cut.discard(name)
            raise ConnectionFailed("the connection to the source was lost", where=name, retryable=True)


class SimulatedLogReader:
    """A ``LogReader``."""

    def __init__(self, link: Link):
        self._link = link
        self._next = 0
        self._parts: list[LogRecord] = []

    def start(self, after: Position | None) -> Position:
        """See the port. Without a place: the newest one of which everything before is visible.

        The end of the log would be wrong: what is logged there but not visible yet would reach neither the log's
        reader nor the first chunks.
        """
        source = self._link.source
        begin = source.visible_end() if after is None else after
        begin = max(
            begin, source.acknowledged
        )  # like a replication slot: what is forgotten is silently missing
        self._next = int(begin.token)
        self._parts = []
        return begin

    def read(self, timeout_s: float) -> list[LogRecord]:
        """See the port."""
        self._link.use("log")
        log = self._link.source.log
        if not self._parts and self._next < len(log):
            self._parts = log[self._next].records(self._link.part_rows)
            self._next += 1
        taken = self._parts[: self._link.records]
        self._parts = self._parts[self._link.records :]
        return taken

    def acknowledge(self, position: Position) -> None:
        """See the port."""
        source = self._link.source
        if position > source.acknowledged:
            self._link.step("log.acknowledge")
            source.acknowledged = position
            self._link.step("log.acknowledged")

    def finish(self) -> None:
        """See the port: its log shows everything."""

    def close(self) -> None:
        """See the port."""


def _wanted(request: ChunkRequest, rows: Iterable[int]) -> list[int]:
    """Keys that the request's scope and bounds admit, in order."""
    scope = request.scope
    if scope.keys:
        listed = {_number(key) for key in request.listed()}
        return sorted(key for key in rows if key in listed)
    after, low = _number(request.after), _number(scope.low)
    high = _number(scope.high if request.top() is None else request.top())
    return sorted(
        key
        for key in rows
        if (after is None or key > after) and (low is None or key >= low) and (high is None or key <= high)
    )


def _number(key: Key | None) -> int | None:
    return None if key is None else int(str(key[0]))


class SimulatedChunkReader:
    """A ``ChunkReader``."""

    def __init__(self, link: Link):
        self._link = link

    def bounded(self, request: ChunkRequest, schema: TableSchema) -> ChunkRequest:
        """See the port. Pessimistic: often the end is as far as if rows had come in since."""
        self._link.use("chunk")
        rows = self._link.source.visible[request.table]
        if request.end is None:
            wanted = _wanted(request, rows)
            request = replace(request, end=(str(wanted[-1]),) if wanted else None)
        wanted = _wanted(request, rows)[request.boundary_rows() - 1 + request.id % 3 :]
        if request.ahead and wanted and (str(wanted[0]),) != request.end:
            request = replace(request, until=(str(wanted[0]),))
        return request

    def read(self, request: ChunkRequest, schema: TableSchema) -> Chunk:
        """See the port."""
        self._link.use("chunk")
        source = self._link.source
        self._link.step("chunk.snapshot")
        rows = source.visible[request.table]
        keys = _wanted(request, rows)[: request.limit_rows]
        source.notes.append(f"SELECT of {request.table.name} {request.after} to {request.top()}: {keys}")
        last_key, final = request.ending(len(keys), (str(keys[-1]),) if keys else None)
        return Chunk(
            request,
            rows_to_table(schema, [rows[key].text(key) for key in keys]),
            len(keys),
            last_key,
            final,
            self.witness(),
            source.end(),
            SCHEMAS[request.table].version(),
            elapsed_s=1.0,
        )

    def witness(self) -> Witness | None:
        """See the port."""
        return self._link.source.witness() if self._link.has_witness else None

    def close(self) -> None:
        """See the port."""


class SimulatedWatermarks:
    """A ``WatermarkWriter``."""

    def __init__(self, link: Link):
        self._link = link

    def write(self, token: str, kind: MarkKind) -> None:
        """See the port."""
        self._link.source.mark(token, kind)

    def close(self) -> None:
        """See the port."""
