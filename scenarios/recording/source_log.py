"""The source log as the history holds it, filled by the recorder of either engine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import pyarrow as pa

from scenarios.recording.growing import GrowingTable
from scenarios.recording.row_version import RowVersion
from verify.history.history import DELETE, PUT


class OpenLog(Protocol):
    """The open transaction of a log that is read: what a reader of an engine says, whatever of a row is kept."""

    def begin(self, order: int, at_us: int) -> None:
        """A transaction begins that the pipeline will call ``order``, committed at this time of the run."""

    def hold(self) -> list[Any]:
        """Takes the open transaction's rows out, for a two-phase commit that is decided later."""

    def release(self, held: Iterable[Any], /) -> None:
        """Puts rows that were held into the open transaction."""

    def commit(self) -> None:
        """The open transaction ends."""

    def abort(self) -> None:
        """Drops the open transaction, which was rolled back or comes again."""


class SourceLogRecorder(Protocol):
    """Records a source's log from ``start`` to ``stop``."""

    @property
    def log(self) -> SourceLog:
        """The log recorded so far; complete once stopped."""

    def start(self) -> None:
        """Begins at the log's present end, the present rows as position 0."""

    def stop(self) -> None:
        """Reads up to everything that is committed now and ends."""


class SourceLog:
    """Collects transactions. Positions are given to transactions with tracked rows only, in commit order."""

    def __init__(self) -> None:
        self._rows = GrowingTable("log")
        self._present: dict[str, dict[str, RowVersion]] = {}
        self._position = 0
        self._order = 0
        self._at_us = 0
        self._index = 0
        self._mark: int | None = None

    @property
    def transactions(self) -> int:
        """The number of transactions with tracked rows."""
        return self._position

    @property
    def last_order(self) -> int:
        """``order`` of the last transaction with tracked rows, 0 if there is none."""
        return self._order

    def initial(self, table: str, rows: Iterable[RowVersion]) -> None:
        """The rows before the run."""
        present = self._present.setdefault(table, {})
        for index, row in enumerate(rows):
            self._rows.add((0, 0, index, table, row.key, row.session, row.number, PUT, row.value, 0))
            present[row.key] = row
        self._rows.settle()

    def begin(self, order: int, at_us: int) -> None:
        """A transaction begins that the pipeline will call ``order``, committed at this time of the run."""
        self.abort()
        self._begun = (order, at_us)
        self._index = 0
        self._mark = self._rows.mark()

    def change(self, table: str, before: RowVersion | None, after: RowVersion | None) -> None:
        """A row change with its images. A key that moves becomes a DELETE and a PUT of one index."""
        if before is not None and (after is None or after.key != before.key):
            self._add(table, before, DELETE)
        if after is not None:
            self._add(table, after, PUT)
        self._index += 1

    def truncate(self, table: str) -> None:
        """The table was emptied: every row that it had, as of the last commit and this transaction, is deleted."""
        present = dict(self._present.get(table, {}))
        if self._mark is not None:
            changes = self._rows.take_back(self._mark)
            for row in changes:
                self._rows.add(row)
                if row[3] == table:
                    _apply(present, row[7], RowVersion(row[4], row[5], row[6], row[8]))
        for version in present.values():
            self.change(table, version, None)

    def hold(self) -> list[tuple[str, int, RowVersion]]:
        """Takes the open transaction's rows out, for a two-phase commit that is decided later."""
        taken = [] if self._mark is None else self._rows.take_back(self._mark)
        return [(row[3], row[7], RowVersion(row[4], row[5], row[6], row[8])) for row in taken]

    def release(self, held: Iterable[tuple[str, int, RowVersion]]) -> None:
        """Puts rows that were held into the open transaction."""
        for table, kind, version in held:
            self._add(table, version, kind)
            self._index += 1

    def commit(self) -> None:
        """The open transaction ends."""
        if self._mark is None:
            return
        rows = self._rows.take_back(self._mark)
        self._mark = None
        if not rows:
            return
        self._position += 1
        self._order, self._at_us = self._begun
        for row in rows:
            _apply(self._present.setdefault(row[3], {}), row[7], RowVersion(row[4], row[5], row[6], row[8]))
            self._rows.add((self._position, self._order, *row[2:9], self._at_us))
        self._rows.settle()

    def abort(self) -> None:
        """Drops the open transaction, which was rolled back or comes again."""
        if self._mark is not None:
            self._rows.take_back(self._mark)
            self._mark = None

    def table(self) -> pa.Table:
        """The history's table."""
        return self._rows.table()

    def _add(self, table: str, row: RowVersion, kind: int) -> None:
        self._rows.add((0, 0, self._index, table, row.key, row.session, row.number, kind, row.value, 0))


def _apply(present: dict[str, RowVersion], kind: int, version: RowVersion) -> None:
    if kind == PUT:
        present[version.key] = version
    else:
        present.pop(version.key, None)
