"""Records the log of a PostgreSQL source through a second slot."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.errors import VerifyError
from scenarios.database import Database
from scenarios.recording.clock import RunClock
from scenarios.recording.pgoutput import Relation, Row
from scenarios.recording.row_version import RowShape
from scenarios.recording.slot import Published, SlotRecorder
from scenarios.recording.source_log import SourceLog
from scenarios.recording.states import rows_of
from scenarios.workloads.base import Tracked

NAME = "scenario_recorder"
"""The name of slot and publication."""


class PostgresLogRecorder:
    """A ``SourceLogRecorder``. ``order`` is the LSN at which a commit record starts, as the pipeline has it."""

    def __init__(self, database: Database, tracked: Sequence[Tracked], clock: RunClock):
        self.log = SourceLog()
        self._database = database
        self._tracked = tracked
        tables = [Published(database.schema, sides.old.table) for sides in tracked]
        taker = _Taker(self.log, database.schema, tracked, clock)
        self._slot = SlotRecorder(database, NAME, tables, taker, failover=True)

    def start(self) -> None:
        """See ``SourceLogRecorder``. Nobody may write between the slot's creation and the end of this call."""
        self._slot.start()
        for sides in self._tracked:
            self.log.initial(sides.table.name, rows_of(self._database, sides.old))

    def stop(self) -> None:
        """See ``SourceLogRecorder``."""
        self._slot.stop()


class _Taker:
    def __init__(self, log: SourceLog, schema: str, tracked: Sequence[Tracked], clock: RunClock):
        self._log = log
        self._clock = clock
        self._wanted = {(schema, sides.old.table): sides for sides in tracked}
        self._known: dict[int, tuple[str, RowShape]] = {}

    def relation(self, relation: Relation) -> None:
        """A table's columns; tables of no interest have none."""
        tracked = self._wanted.get((relation.schema, relation.name))
        if tracked is not None:
            self._known[relation.oid] = (tracked.table.name, RowShape(tracked.old, relation.columns))

    def begin(self, commit_lsn: int, committed_at_us: int) -> None:
        """A transaction begins."""
        self._log.begin(commit_lsn, self._clock.at_unix_us(committed_at_us))

    def row(self, row: Row) -> None:
        """A row change."""
        table, shape = self._known[row.oid]
        if row.old is None and row.new is None:
            raise VerifyError(f"a row change of {table} has no image")
        before = None if row.old is None else shape.version(row.old)
        self._log.change(table, before, None if row.new is None else shape.version(row.new))

    def truncate(self, oid: int) -> None:
        """All rows of a table are gone."""
        self._log.truncate(self._known[oid][0])

    def commit(self) -> None:
        """Ends the transaction."""
        self._log.commit()

    def abort(self) -> None:
        """Drops the transaction, which comes again."""
        self._log.abort()
