"""Progress of capture: dump progress per table, and the point to resume from."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from migrator.model.event import Key, TransactionId
from migrator.model.position import Position
from migrator.model.table import TableId, TableSchema

MIRROR = ""
"""Stands for the mirror's copy of a source table, where a target's name would stand."""


@dataclass(frozen=True, slots=True)
class TableDump:
    """Dump progress of one table, as stored with the segment that holds the chunk.

    Attributes:
        table: the source table.
        after: key of the last emitted chunk row; None before the first chunk.
        done: whether the table's last chunk was emitted.
        rows: chunk rows emitted.
        dropped_rows: chunk rows dropped by reconciliation.
        chunks: chunks emitted.
        estimated_rows: the source's own estimate when the dump began (0 = unknown).
        request: ``DumpRequest.name`` of the request it belongs to; empty for the table's first dump.
        key: what ``after`` has values of (``dump_key``); empty before the first chunk, and where an earlier version
            read it.
    """

    table: TableId
    after: Key | None = None
    done: bool = False
    rows: int = 0
    dropped_rows: int = 0
    chunks: int = 0
    estimated_rows: int = 0
    request: str = ""
    key: tuple[str, ...] = ()


def dump_key(schema: TableSchema) -> tuple[str, ...]:
    """The key by which a table's chunks follow each other: its columns, each with what decides their order."""
    columns = {column.name: column for column in schema.columns}
    orders = schema.order or ("",) * len(schema.key)
    return tuple(
        " ".join(filter(None, (name, columns[name].source_type, columns[name].collation, order)))
        for name, order in zip(schema.key, orders, strict=True)
    )


@dataclass(frozen=True, slots=True)
class TableIdentity:
    """The identity of a target table in its server, as far as that shows one.

    Attributes:
        table: of the table; another one of the same name has another.
        ledger: of the ledger's table. Where that is another one too, the whole target was put back or moved.
    """

    table: str
    ledger: str


@dataclass(frozen=True, slots=True)
class Mapped:
    """The way a target's rows were mapped, as far as that can be known without running the mapping.

    Attributes:
        target: its name.
        schema: where its table is.
        shape: whether it is joined, its key, the tables that it is made of, and the like, as one text.
        columns: those that the mapping writes.
        content: fingerprint of what the mapping makes of rows; empty where none could be taken.
        basis: what the fingerprint is taken with: versions, and types of source columns.
        identity: which table it is; None where that isn't known.
        written: whether rows were written into it.
        outline: what the mapping consists of, as JSON of short digests; empty where that isn't known.
        holds: whether it had rows after the last batch that wrote into it; None where that isn't known.
    """

    target: str
    schema: str
    shape: str
    columns: tuple[str, ...] = ()
    content: str = ""
    basis: str = ""
    identity: TableIdentity | None = None
    written: bool = False
    outline: str = ""
    holds: bool | None = None


@dataclass(frozen=True, slots=True)
class Filling:
    """A joined target that is being filled piece by piece; what isn't covered yet has no rows.

    Attributes:
        target: its name.
        pieces: committed so far.
        rows: rows of the grain's tables that they cover.
        of_rows: rows that these tables had when filling began.
    """

    target: str
    pieces: int = 0
    rows: int = 0
    of_rows: int = 0


@dataclass(frozen=True, slots=True)
class Parent:
    """The row that a foreign key of a row set aside points at, and that the target lacks.

    Attributes:
        target: name of its table.
        columns, key: the columns that the foreign key points at, and their values, as text.
        came: whether a row of these values was written since: the one that waits for it can be tried again.
    """

    target: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    came: bool = False

    def is_row(self, target: str, columns: tuple[str, ...], key: tuple[str, ...]) -> bool:
        """Tells whether a row with this key is the one."""
        if self.target != target or {*self.columns} != {*columns}:
            return False
        return tuple(key[columns.index(name)] for name in self.columns) == self.key


GrainName = tuple[tuple[str, ...], tuple[str, ...]]
"""A grain of a joined target: its columns as ``table.column``, and their values as text."""
UNMAPPED = "the mapping fails: "
"""The beginning of the reason of a row that is set aside because its mapping fails."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A target row that was set aside: the target refused it, and has no row of its key. Or a joined target's grain.

    Attributes:
        target: name of the target table.
        columns, key: its key's columns and their values, as text; of a grain as ``GrainName``.
        position: token of the place in the source's log with whose batch it was refused.
        segment: last segment of that batch.
        reason: the target's words.
        row: the mapped row as text; the end of a long one is left out.
        dropped: why an operator accepted that it isn't migrated; empty: nobody did.
        parent: the row that it waits for; None where it was refused for what it holds.
        grain: whether it stands for all rows of a grain, on which the mapping fails; ``row`` is of the source then.
    """

    target: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    position: str
    segment: int
    reason: str
    row: str
    dropped: str = ""
    parent: Parent | None = None
    grain: bool = False

    @property
    def unmapped(self) -> bool:
        """Tells whether its mapping fails, so that there is no mapped row."""
        return self.reason.startswith(UNMAPPED)

    def is_named(self, key: Sequence[str]) -> bool:
        """Tells whether an operator's key is this one's: its values, or each of them behind its column (``id=3``)."""
        return tuple(key) in (self.key, self.spelled())

    def spelled(self) -> tuple[str, ...]:
        """The values of the key, each behind its column."""
        return tuple(f"{name}={value}" for name, value in zip(self.columns, self.key, strict=True))

    def key_text(self) -> str:
        """``name=value`` pairs of the key."""
        return ", ".join(self.spelled())


class Phase(enum.Enum):
    """The state of a row-wise target that gets rows of its next mapping."""

    FILLING = "filling"
    SWITCHED = "switched"
    IN_FORCE = "in force"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class Remap:
    """A row-wise target whose next mapping comes, or came, into force (see ``model.remaps.remap``).

    Attributes:
        target: its name.
        beside: name of the table that is filled by the next mapping; empty once it is dropped.
        phase: see ``Phase``: until the switch readers see rows of the mapping before.
    """

    target: str
    beside: str
    phase: Phase


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state from which capture goes on after a restart. Stored in every manifest, never apart from the data.

    Attributes:
        position: last completely stored transaction; reading resumes after it.
        partial_order: ``position.order`` of a transaction of which only a part is stored, or None.
        partial_index: index of the first change of it that isn't stored yet.
        unconfirmed: transactions delivered but not yet known to be visible to new snapshots. After a restart their
            keys are not known any more, so a chunk whose witness lacks one of them is read again.
        dumps: progress of the first dump, per table.
        requests: progress of the dump requests, per request and table.
        passes: whose dump rows each table has got since the last segment that begins a batch, as
            ``TableDump.request`` (see ``core.passes``); None where only first dumps can have brought any.
        last_changes: per table, commit time by the source's clock of its newest change in the log, microseconds
            since 1970. A table without one has had no change since its capture began.
        notes: per table, what the log reader wants to be told again (see ``migrator.ports.log_notes``).
        fed: a ledger's only: which target has been given all rows so far of which source table (an empty name: the
            mirror); None where that isn't known. See ``run.carried``.
        awaited: those that will have been once a dump request is done.
        mapped: a ledger's only: how each target's rows were mapped; None where that isn't known.
        filling: a ledger's only: the joined targets that are being filled piece by piece: how many pieces,
            and of rows of their grains' tables, are covered so far, and how many such rows there are.
        bad_rows: a ledger's only: the rows that are set aside.
        remaps: a ledger's only: row-wise targets whose next mapping comes, or came, into force.
    """

    position: Position
    partial_order: int | None = None
    partial_index: int = 0
    unconfirmed: tuple[TransactionId, ...] = ()
    dumps: tuple[TableDump, ...] = field(default=())
    requests: tuple[TableDump, ...] = ()
    passes: tuple[tuple[TableId, str], ...] | None = None
    last_changes: tuple[tuple[TableId, int], ...] = ()
    notes: tuple[tuple[TableId, str], ...] = ()
    fed: tuple[tuple[str, TableId], ...] | None = field(default=None, compare=False)
    awaited: tuple[tuple[str, TableId, str], ...] = field(default=(), compare=False)
    mapped: tuple[Mapped, ...] | None = field(default=None, compare=False)
    filling: tuple[Filling, ...] = field(default=(), compare=False)
    bad_rows: tuple[BadRow, ...] = field(default=(), compare=False)
    remaps: tuple[Remap, ...] = field(default=(), compare=False)

    def dump_of(self, table: TableId) -> TableDump | None:
        """Dump progress of one table, if the dump knows it."""
        return next((dump for dump in self.dumps if dump.table == table), None)

    def maps(self, target: str) -> bool:
        """Tells whether a target is one of the mapping; so is each where that isn't known."""
        return self.mapped is None or any(one.target == target for one in self.mapped)

    def dumps_named(self) -> frozenset[str]:
        """Names of the dump requests that it knows of."""
        passed = (name for _, name in self.passes or () if name)
        return frozenset(
            [*(d.request for d in self.requests), *passed, *(name for _, _, name in self.awaited)]
        )

    def dump_complete(self) -> bool:
        """Tells whether every table's first dump is done."""
        return all(dump.done for dump in self.dumps)

    def dumping(self) -> bool:
        """Tells whether any dump is under way, a request's included: rows may then come before those they point
        at."""
        return not all(dump.done for dump in (*self.dumps, *self.requests))


def without(checkpoint: Checkpoint, target: str) -> Checkpoint:
    """Returns a ledger's checkpoint as if this target had never been given any row."""
    return replace(
        checkpoint,
        fed=None if checkpoint.fed is None else tuple(pair for pair in checkpoint.fed if pair[0] != target),
        awaited=tuple(one for one in checkpoint.awaited if one[0] != target),
        bad_rows=tuple(one for one in checkpoint.bad_rows if one.target != target),
        mapped=None
        if checkpoint.mapped is None
        else tuple(replace(one, written=False) if one.target == target else one for one in checkpoint.mapped),
    )
