"""A target in memory, with a history of every committed state for the checkers.

Rows are dicts of column name to Python value, under their key values. Dates and timestamps are Arrow's
integers (days, microseconds since 1970): Python's own types can't hold ``infinity``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from migrator.columnar.bad_rows import StillBad, key_at
from migrator.errors import FencedError, TargetError, of_row
from migrator.model.finding import Finding
from migrator.model.fit import Rule
from migrator.model.grants import NOTHING_BESIDE, Beside
from migrator.model.ledger import Ledger
from migrator.model.lineage import due, identity
from migrator.model.progress import Checkpoint
from migrator.model.table import TableId
from migrator.model.target import TargetTable
from migrator.ports.mirror import JoinedTarget, Mirror
from migrator.ports.target import OrphansAside, TargetBatch, TargetRows

Key = tuple[Any, ...]
Row = Mapping[str, Any]
Step = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Commit:
    """One committed state change; ``changed`` holds the new row per key, None where the key vanished."""

    epoch: int
    segment: int
    checkpoint: Checkpoint
    changed: Mapping[TableId, Mapping[Key, Row | None]]


@dataclass(slots=True)
class MemoryDatabase:
    """The database itself: it outlives the targets (sessions) that use it.

    Attributes:
        tables: the target tables there are.
        rows: present rows by table and key.
        ledger: present ledger.
        history: every commit, oldest first.
        remakes: how often a table was dropped and made again, by its name.
        refuses: of table and row, why that isn't taken; empty: it is.
    """

    tables: tuple[TargetTable, ...]
    ledger: Ledger = field(default_factory=lambda: Ledger("memory", 0, 0, None))
    rows: dict[TableId, dict[Key, Row]] = field(default_factory=dict)
    history: list[Commit] = field(default_factory=list)
    remakes: dict[str, int] = field(default_factory=dict)
    refuses: Callable[[str, Row], str] = lambda table, row: ""
    lock: threading.Lock = field(default_factory=threading.Lock)


class MemoryTarget:
    """A ``Target`` on a ``MemoryDatabase``.

    Args:
        database: shared by all sessions.
        step: called with ``target.merged`` (before the commit) and ``target.committed`` (after it); what it
            raises acts like a crash at that point.
    """

    def __init__(self, database: MemoryDatabase, *, step: Step | None = None) -> None:
        self._database = database
        self._step: Step = step or (lambda name: None)
        self._epoch = 0

    def preflight(self, tables: Sequence[str], beside: Beside = NOTHING_BESIDE) -> list[Finding]:
        """A finding for every table that doesn't exist."""
        known = {table.id.name for table in self._database.tables}
        return [
            Finding("target table", name, "the table doesn't exist", "create it", fatal=True)
            for name in tables
            if name not in known
        ]

    def tables(self, names: Sequence[str]) -> list[TargetTable]:
        """The named tables. Raises ``TargetError`` naming those that don't exist."""
        known = {table.id.name: table for table in self._database.tables}
        missing = [name for name in names if name not in known]
        if missing:
            raise TargetError(f"target tables don't exist: {', '.join(missing)}", remedy="create them")
        return [known[name] for name in names]

    def holds(self, table: TargetTable) -> Mapping[str, Sequence[Rule]]:
        """Returns no rules: the target takes whatever is mapped."""
        return {}

    def refused(self, table: TargetTable, rows: Any, untried: Collection[str] = ()) -> TargetError | None:
        """Returns None: the target takes whatever is mapped."""
        return None

    def prepare_mirror(self, targets: Sequence[JoinedTarget]) -> None:
        """Raises ``TargetError`` when a mirror is needed: there is none in memory."""
        if targets:
            raise TargetError("a target in memory takes row-wise mappings only", remedy="use PostgreSQL")

    def open(self, epoch: int) -> Ledger:
        """Takes the ledger over. Raises ``FencedError`` when it saw a higher epoch."""
        database = self._database
        with database.lock:
            ledger = database.ledger
            if ledger.epoch > epoch:
                raise _fenced(epoch, ledger)
            database.ledger = replace(ledger, epoch=epoch)
            self._epoch = epoch
            return database.ledger

    def apply(self, batch: TargetBatch) -> None:
        """Merges and commits, or changes nothing. Raises ``TargetError`` and ``FencedError`` as the port says."""
        database = self._database
        with database.lock:
            ledger = database.ledger
            if ledger.epoch != self._epoch:
                raise _fenced(self._epoch, ledger)
            if not due(ledger, batch.segment, batch.link):
                raise TargetError(
                    "a batch was applied already",
                    where=f"segment {batch.segment}",
                    cause=f"the ledger stands at segment {ledger.segment}",
                    remedy="this is a defect of the apply loop: please report it",
                )
            self._refuse(batch)
            changed = {
                rows.table.id: _merge(database.rows.get(rows.table.id, {}), rows) for rows in batch.rows
            }
            self._step("target.merged")
            for table, keys in changed.items():
                _store(database.rows.setdefault(table, {}), keys)
            held = () if ledger.checkpoint is None else ledger.checkpoint.bad_rows
            checkpoint = replace(batch.checkpoint, bad_rows=StillBad(held, batch.rows).left(batch.checkpoint))
            database.ledger = Ledger(
                ledger.migration, self._epoch, batch.segment, checkpoint, identity(batch.link)
            )
            database.history.append(Commit(self._epoch, batch.segment, checkpoint, changed))
        self._step("target.committed")

    def _refuse(self, batch: TargetBatch) -> None:
        """Raises ``RowRefused`` for the first row that the database doesn't take."""
        for rows in batch.rows:
            for part in (rows.chunk, rows.after):
                for number, row in enumerate(python_rows(part)):
                    cause = self._database.refuses(rows.table.id.name, row)
                    if cause:
                        error = TargetError(f"the target refuses a row of {rows.table.id}", cause=cause)
                        raise of_row(error, str(rows.table.id), key_at(part, rows.table.key, number))

    def fill(self, piece: Callable[[Mirror], Iterator[TargetRows]]) -> None:
        """Raises ``TargetError``: there is no mirror in memory."""
        raise TargetError("a target in memory takes row-wise mappings only", remedy="use PostgreSQL")

    def set_orphans_aside(self, orphans: OrphansAside) -> None:
        """Does nothing: no foreign keys are in memory."""

    def close(self) -> None:
        """Nothing is held. Safe to call twice."""


def python_rows(table: pa.Table | None) -> list[dict[str, Any]]:
    """Rows of an Arrow table as dicts, dates and timestamps as their integers."""
    if table is None:
        return []
    columns = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        elif pa.types.is_date32(column.type):
            column = column.cast(pa.int32())
        columns.append(column)
    rows: list[dict[str, Any]] = pa.table(columns, names=table.column_names).to_pylist()
    return rows


def _merge(present: Mapping[Key, Row], rows: TargetRows) -> dict[Key, Row | None]:
    """New row, or None, of every key that the batch names: chunk rows, then the net log delta."""
    changed: dict[Key, Row | None] = {}
    dumped: set[Key] = set()
    if rows.emptied:
        changed, present = dict.fromkeys(present), {}
    for row in python_rows(rows.chunk):
        key = _key(rows.table, row)
        if key in dumped:
            raise TargetError(
                "the mapping returned two rows for one key",
                where=f"{rows.table.id}, key {key!r}",
                cause="a target row must come from one source row",
                remedy="correct the mapping's key",
            )
        changed[key] = row
        dumped.add(key)
    before = {_key(rows.table, row) for row in python_rows(rows.before)}
    after: dict[Key, Row] = {}
    for row in python_rows(rows.after):
        key = _key(rows.table, row)
        if rows.strict_inserts and (key in after or (key in present and key not in before)):
            raise TargetError(
                "two source rows map to one target key",
                where=f"{rows.table.id}, key {key!r}",
                cause="the row exists and doesn't come from the rows that changed",
                remedy="correct the mapping's key",
            )
        after[key] = row
    doubted = {_key(rows.table, row) for row in python_rows(rows.doubted)} - set(changed)
    for key in before | doubted:
        changed[key] = None
    changed.update(after)
    return changed


def _store(present: dict[Key, Row], changed: Mapping[Key, Row | None]) -> None:
    for key, row in changed.items():
        if row is None:
            present.pop(key, None)
        else:
            present[key] = row


def _key(table: TargetTable, row: Row) -> Key:
    return tuple(row[name] for name in table.key)


def _fenced(epoch: int, ledger: Ledger) -> FencedError:
    return FencedError(
        f"this leader (epoch {epoch}) may not write to the target any more",
        where="ledger",
        cause=f"it was taken over under epoch {ledger.epoch}",
        remedy="start again",
    )
