"""Records a source's log with whole rows, for tables that have no columns of provenance."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pymysqlreplication.row_event import DeleteRowsEvent, WriteRowsEvent

from migrator.errors import VerifyError
from scenarios.database import Database
from scenarios.recording.binlog import BinlogRecorder
from scenarios.recording.clock import RunClock
from scenarios.recording.pgoutput import UNCHANGED, Relation, Row, Values
from scenarios.recording.slot import Published, SlotRecorder
from scenarios.recording.source_log import OpenLog
from scenarios.recording.source_log_mariadb import MariaLogRecorder
from scenarios.recording.source_log_mysql import MysqlLogRecorder

NAME = "scenario_rows_recorder"
"""The name of slot and publication."""
Image = Mapping[str, object]
"""A whole row: values by column, such as its server takes them as parameters."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row before and after; None where there was none, or is none."""

    table: str
    before: Image | None
    after: Image | None


@dataclass(frozen=True, slots=True)
class Committed:
    """A transaction of the log; ``order`` is its place, as the ledger has it."""

    order: int
    changes: tuple[RowChange, ...]


class RowLog:
    """Collects transactions with whole rows, in commit order; an ``OpenLog``."""

    def __init__(self) -> None:
        self.transactions: list[Committed] = []
        self._order: int | None = None
        self._open: list[RowChange] = []

    def begin(self, order: int, at_us: int) -> None:
        """See ``OpenLog``."""
        self._order, self._open = order, []

    def change(self, change: RowChange) -> None:
        """Adds a change to the open transaction."""
        self._open.append(change)

    def hold(self) -> list[RowChange]:
        """See ``OpenLog``."""
        taken, self._open = self._open, []
        return taken

    def release(self, held: Iterable[RowChange], /) -> None:
        """See ``OpenLog``."""
        self._open += held

    def commit(self) -> None:
        """See ``OpenLog``. A transaction without row changes leaves nothing."""
        if self._order is not None and self._open:
            self.transactions.append(Committed(self._order, tuple(self._open)))
        self.abort()

    def abort(self) -> None:
        """See ``OpenLog``."""
        self._order, self._open = None, []


class WholeRowsRecorder(Protocol):
    """Records whole rows of a source's log from ``start`` to ``stop``."""

    rows: RowLog

    def start(self) -> None:
        """Begins at the log's present end. Nobody may write during this call."""

    def stop(self) -> None:
        """Reads up to everything that is committed now and ends."""


class _WholeRowsOfBinlog(BinlogRecorder):
    def __init__(self, database: Database, tables: Sequence[str], clock: RunClock):
        super().__init__(database, (), clock)
        self.rows = RowLog()
        self._tables = tables

    def start(self) -> None:
        """See ``WholeRowsRecorder``."""
        self._begin_reading(self._tables)
        self._thread = self._stopping.thread("log recorder", self._run)

    def _into(self) -> OpenLog:
        return self.rows

    def _rows(self, event: Any) -> None:
        if event.table not in self._columns:
            return
        for row in event.rows:
            before, after = row.get("before_values"), row.get("after_values")
            if isinstance(event, WriteRowsEvent):
                after = row["values"]
            elif isinstance(event, DeleteRowsEvent):
                before = row["values"]
            change = RowChange(event.table, self._image(event.table, before), self._image(event.table, after))
            self.rows.change(change)

    def _image(self, table: str, values: Mapping[str, object] | None) -> Image | None:
        if values is None:
            return None
        return dict(zip(self._names(table, values), map(_parameter, values.values()), strict=True))


class MariaRows(_WholeRowsOfBinlog, MariaLogRecorder):
    """A ``WholeRowsRecorder`` of MariaDB."""


class MysqlRows(_WholeRowsOfBinlog, MysqlLogRecorder):
    """A ``WholeRowsRecorder`` of MySQL."""


class PostgresRows:
    """A ``WholeRowsRecorder`` of PostgreSQL, through a slot of its own. The tables have REPLICA IDENTITY FULL."""

    def __init__(self, database: Database, tables: Sequence[str], clock: RunClock):
        self.rows = RowLog()
        published = [Published(database.schema, name) for name in tables]
        self._slot = SlotRecorder(database, NAME, published, _Taker(self.rows, clock))

    def start(self) -> None:
        """See ``WholeRowsRecorder``."""
        self._slot.start()

    def stop(self) -> None:
        """See ``WholeRowsRecorder``."""
        self._slot.stop()


class _Taker:
    def __init__(self, log: RowLog, clock: RunClock):
        self._log, self._clock = log, clock
        self._known: dict[int, Relation] = {}

    def relation(self, relation: Relation) -> None:
        """A table's columns."""
        self._known[relation.oid] = relation

    def begin(self, commit_lsn: int, committed_at_us: int) -> None:
        """A transaction begins."""
        self._log.begin(commit_lsn, self._clock.at_unix_us(committed_at_us))

    def row(self, row: Row) -> None:
        """A row change."""
        relation = self._known[row.oid]
        before = None if row.old is None else _of_text(relation, row.old, row.old)
        after = None if row.new is None else _of_text(relation, row.new, row.old)
        self._log.change(RowChange(relation.name, before, after))

    def truncate(self, oid: int) -> None:
        """Refuses what no workload does. Raises ``VerifyError``."""
        raise VerifyError("a table was emptied, which isn't recorded", where=self._known[oid].name)

    def commit(self) -> None:
        """Ends the transaction."""
        self._log.commit()

    def abort(self) -> None:
        """Drops the transaction, which comes again."""
        self._log.abort()


def _of_text(relation: Relation, values: Values, old: Values | None) -> Image:
    found: dict[str, object] = {}
    for place, (name, value) in enumerate(zip(relation.columns, values, strict=True)):
        kept = old[place] if value is UNCHANGED and old is not None else value
        if kept is UNCHANGED:
            raise VerifyError(
                "the log holds an update without its whole old row",
                where=f"{relation.name}.{name}",
                remedy="the recorded table needs REPLICA IDENTITY FULL",
            )
        found[name] = kept.decode() if isinstance(kept, bytes) else kept
    return found


def _parameter(value: object) -> object:
    """A decoded value of the binary log as PyMySQL writes it."""
    if isinstance(value, set | frozenset):
        return ",".join(sorted(map(str, value)))
    return json.dumps(_words(value)) if isinstance(value, dict | list) else value


def _words(value: object) -> object:
    if isinstance(value, dict):
        return {str(_words(name)): _words(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_words(one) for one in value]
    return value.decode() if isinstance(value, bytes) else value


ROW_RECORDERS: Mapping[str, Callable[[Database, Sequence[str], RunClock], WholeRowsRecorder]] = {
    "postgresql": PostgresRows,
    "mariadb": MariaRows,
    "mysql": MysqlRows,
}
"""The recorders by the kind of the source."""
