"""All recorders of one run, started and stopped together, and the history that they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from scenarios.database import Database
from scenarios.recording.clock import RunClock
from scenarios.recording.deliveries import Deliveries, SegmentKeeper, deliveries
from scenarios.recording.observers import Observers
from scenarios.recording.source_log import SourceLogRecorder
from scenarios.recording.source_log_mariadb import MariaLogRecorder
from scenarios.recording.source_log_mysql import MysqlLogRecorder
from scenarios.recording.source_log_postgres import PostgresLogRecorder
from scenarios.recording.states import final_state
from scenarios.recording.target_commits import TargetCommitRecorder
from scenarios.workloads.base import Tracked
from verify.history.history import Description, History

LOG_RECORDERS: Mapping[str, Callable[[Database, Sequence[Tracked], RunClock], SourceLogRecorder]] = {
    "postgresql": PostgresLogRecorder,
    "mariadb": MariaLogRecorder,
    "mysql": MysqlLogRecorder,
}
"""The recorders of source logs, by the kind of the source."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The migration that is recorded.

    Attributes:
        source, target: both sides, reached directly.
        migration: its name in the ledger.
        event_log: the pipeline's.
        tracked: tables.
    """

    source: Database
    target: Database
    migration: str
    event_log: Path
    tracked: Sequence[Tracked]


class Recorders:
    """Everything that is recorded beside operations and faults.

    Args:
        recorded: the migration.
        kept: folder for the segments.
        clock: of the run.
        seed: of the observers' choices.
    """

    def __init__(self, recorded: Recorded, kept: Path, clock: RunClock, seed: int):
        source, target = recorded.source, recorded.target
        migration, tracked = recorded.migration, recorded.tracked
        self._source, self._target = source, target
        self._tracked = tracked
        self._kept = kept
        self.log: SourceLogRecorder = LOG_RECORDERS[source.kind](source, tracked, clock)
        self.commits = TargetCommitRecorder(target, migration, tracked, clock)
        self.segments = SegmentKeeper(recorded.event_log, kept)
        self.observers = Observers(target, migration, tracked, clock, seed=seed)
        self._running: list[Callable[[], None]] = []

    def start(self) -> None:
        """Starts all. Nobody may write to the source during this call."""
        for recorder in (self.log, self.commits, self.segments, self.observers):
            recorder.start()
            self._running.append(recorder.stop)

    def stop(self) -> None:
        """Records what is there now and ends; raises the first failure once all have ended. May be called again."""
        failure: BaseException | None = None
        while self._running:
            try:
                self._running.pop()()
            except BaseException as error:  # noqa: BLE001 - raised below, after the others have ended
                failure = failure or error
        if failure is not None:
            raise failure

    def delivered(self) -> Deliveries:
        """Reads what the event log held; call it once stopped."""
        return deliveries(self._kept, self._tracked)

    def history(
        self, description: Description, operations: pa.Table, faults: pa.Table, delivered: Deliveries
    ) -> History:
        """The whole history, final states read now."""
        commits, changes = self.commits.tables()
        return History(
            description=description,
            operations=operations,
            log=self.log.log.table(),
            deliveries=delivered.table,
            commits=commits,
            changes=changes,
            observations=self.observers.table(),
            faults=faults,
            final_source=final_state(self._source, self._tracked, "old"),
            final_target=final_state(self._target, self._tracked, "new"),
        )
