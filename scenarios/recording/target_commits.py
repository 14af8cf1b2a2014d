"""Records every committed transaction of the target: its row changes, and the ledger row that moved in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql

from migrator.errors import VerifyError
from scenarios.database import Database
from scenarios.recording.clock import RunClock
from scenarios.recording.growing import GrowingTable
from scenarios.recording.pgoutput import UNCHANGED, Relation, Row
from scenarios.recording.row_version import RowShape, RowVersion
from scenarios.recording.slot import Published, SlotRecorder
from scenarios.workloads.base import Tracked, key_text
from verify.history.history import DELETE, PUT

NAME = "scenario_target_recorder"
"""The name of slot and publication."""
_LEDGER = ("migrator", "ledger")


@dataclass(frozen=True, slots=True)
class _LedgerRow:
    """The ledger's columns as text; see ``migrator/schema/versions/target_0001_ledger.py``."""

    epoch: int
    segment: int
    order: int | None
    checkpoint: str | None

    def moved_from(self, before: _LedgerRow | None) -> bool:
        """Returns whether the row shows that something was applied since; a new epoch alone shows nothing."""
        if before is None:
            return self.checkpoint is not None
        return (self.segment, self.order, self.checkpoint) != (
            before.segment,
            before.order,
            before.checkpoint,
        )


class TargetCommitRecorder:
    """A slot on the target cluster, read until ``stop``. Row changes without a move of the ledger get commit 0.

    Args:
        database: the new side. Its tables and the ledger's table must exist; the tables get REPLICA IDENTITY
            FULL, so
            that the log tells what a delete removed.
        migration: whose row of the ledger.
        tracked: which tables.
        clock: of the run.
    """

    def __init__(self, database: Database, migration: str, tracked: Sequence[Tracked], clock: RunClock):
        self._database = database
        self._tracked = tracked
        self._taker = _Taker(database.schema, migration, tracked, clock)
        tables = [Published(database.schema, sides.new.table) for sides in tracked]
        self._slot = SlotRecorder(database, NAME, [*tables, Published(*_LEDGER)], self._taker)

    @property
    def commits(self) -> int:
        """The number of commits that moved the ledger, as far as it was read."""
        return self._taker.commits

    def start(self) -> None:
        """Begins at the target's present end of log. Raises ``VerifyError``."""
        try:
            with self._database.postgres(autocommit=True) as connection:
                for sides in self._tracked:
                    table = sql.Identifier(self._database.schema, sides.new.table)
                    connection.execute(sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(table))
        except psycopg.Error as error:
            raise VerifyError("the target's tables can't be recorded", cause=str(error).strip()) from error
        self._slot.start()

    def stop(self) -> None:
        """Reads up to what is committed now and ends."""
        self._slot.stop()

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """The history's tables of commits and of row changes."""
        return self._taker.commit_rows.table(), self._taker.change_rows.table()


class _Taker:
    def __init__(self, schema: str, migration: str, tracked: Sequence[Tracked], clock: RunClock):
        self.commit_rows = GrowingTable("commits")
        self.change_rows = GrowingTable("changes")
        self.commits = 0
        self._clock = clock
        self._migration = migration
        self._wanted = {(schema, sides.new.table): sides for sides in tracked}
        self._sources = tuple(sides.table.name for sides in tracked)
        self._known: dict[int, tuple[str, RowShape]] = {}
        self._ledger_oid = 0
        self._ledger_columns: tuple[str, ...] = ()
        self._before: _LedgerRow | None = None
        self._present: dict[str, dict[str, RowVersion]] = {}
        self._open = False
        self._clear()

    def _clear(self) -> None:
        self._ledger = self._before
        self._changes: list[tuple[str, int, RowVersion]] = []

    def relation(self, relation: Relation) -> None:
        """A table's columns."""
        if (relation.schema, relation.name) == _LEDGER:
            self._ledger_oid, self._ledger_columns = relation.oid, relation.columns
            return
        tracked = self._wanted.get((relation.schema, relation.name))
        if tracked is not None:
            self._known[relation.oid] = (tracked.table.name, RowShape(tracked.new, relation.columns))

    def begin(self, commit_lsn: int, committed_at_us: int) -> None:
        """A transaction begins."""
        self._clear()
        self._at_us = self._clock.at_unix_us(committed_at_us)

    def row(self, row: Row) -> None:
        """A row change, or a move of the ledger."""
        if row.oid == self._ledger_oid:
            self._move(row)
            return
        table, shape = self._known[row.oid]
        before = None if row.old is None else shape.version(row.old)
        after = None if row.new is None else shape.version(row.new)
        if before is not None and (after is None or after.key != before.key):
            self._changes.append((table, DELETE, before))
        if after is not None:
            self._changes.append((table, PUT, after))

    def truncate(self, oid: int) -> None:
        """All rows of a table are gone: a row deleted for each."""
        if oid == self._ledger_oid:
            self._ledger = None
            return
        table, _ = self._known[oid]
        self._changes += [(table, DELETE, version) for version in self._present.get(table, {}).values()]

    def commit(self) -> None:
        """The transaction ends: one commit, or rows that nobody's batch wrote."""
        number = 0
        if self._ledger is not None and self._ledger.moved_from(self._before):
            self.commits += 1
            number = self.commits
            self.commit_rows.add(
                (
                    number,
                    self._ledger.epoch,
                    self._ledger.segment,
                    self._ledger.order,
                    _covered(self._ledger.checkpoint, self._sources),
                    self._at_us,
                )
            )
        for table, kind, version in self._changes:
            self.change_rows.add(
                (number, table, version.key, version.session, version.number, kind, version.value)
            )
            present = self._present.setdefault(table, {})
            if kind == PUT:
                present[version.key] = version
            else:
                present.pop(version.key, None)
        self._before = self._ledger
        self._clear()
        self.commit_rows.settle()
        self.change_rows.settle()

    def abort(self) -> None:
        """Drops the transaction, which comes again."""
        self._clear()

    def _move(self, row: Row) -> None:
        if row.new is None:
            self._ledger = None
            return
        values: dict[str, Any] = dict(zip(self._ledger_columns, row.new, strict=True))
        if values["migration"].decode() != self._migration:
            return
        last = self._ledger.checkpoint if self._ledger is not None else None
        checkpoint = values["checkpoint"]
        order = values["position_order"]
        self._ledger = _LedgerRow(
            int(values["epoch"]),
            int(values["segment"]),
            None if order is None else int(order),
            last if checkpoint is UNCHANGED else checkpoint and checkpoint.decode(),
        )


def _covered(checkpoint: str | None, sources: Sequence[str]) -> str:
    """Per source table: null before its first chunk, the last dumped key, or true after its dump."""
    dumps = {} if checkpoint is None else {dump["table"][1]: dump for dump in json.loads(checkpoint)["dumps"]}
    covered: dict[str, object] = {}
    for source in sources:
        dump = dumps.get(source)
        if dump is None or (dump["after"] is None and not dump["done"]):
            covered[source] = None
        else:
            covered[source] = True if dump["done"] else key_text(dump["after"])
    return json.dumps(covered)
