"""Has the target look at its tables once a dump has filled them, so that it knows them when the first
question comes.

Beside the apply loop, which doesn't wait for it. Each table once, when the target holds the dumps of all its
sources, and the last piece of a joined one. Of a table that was complete when this run began an earlier run has seen
to it, unless the server says otherwise: so a restart repeats nothing, and makes up for what a crash prevented.

No failure of it stops a run: a table that isn't looked at is slower, and the server gets to it some day.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Iterable, Sequence
from threading import Thread

from migrator.errors import MigratorError
from migrator.model.table import TableId
from migrator.model.target import TargetTable
from migrator.ports.upkeep import Upkeep
from migrator.run.failure import Stopping
from migrator.run.progress import Progress, Snapshot
from transforms.registry import Mapping

ABOUT = "upkeep"
_LOOK_S = 0.2
_ASK_AGAIN_S = 60.0
_MIRROR = TableId("mirror", "any table")
Sources = frozenset[str]
Filled = abc.Mapping[TableId, Sequence[str]]


def looked_at(
    upkeep: Upkeep | None,
    mapping: Mapping,
    targets: Sequence[TargetTable],
    progress: Progress,
    stopping: Stopping,
) -> Thread:
    """A started thread that has all tables of the mapping looked at; without ``upkeep`` one with nothing to do."""
    by_name = {table.id.name: table.id for table in targets}
    filled = {by_name[target.name]: target.sources for target in mapping.targets}
    joined = {name for target in mapping.targets if target.grain is not None for name in target.sources}
    if upkeep is None:
        return stopping.thread("upkeep", lambda: progress.set(kept_up=True))
    tables = TablesFilled(upkeep, filled, joined, progress)
    return stopping.thread("upkeep", lambda: tables.run(stopping))


class TablesFilled:
    """The tables that dumps fill, and what was done about them.

    Args:
        upkeep: of the target.
        tables: names of the source tables whose dumps fill each target table.
        mirrored: names of those that the mirror holds, if there is one.
        progress: says which dumps the target holds; gets a warning about tables that could not be looked at.
        ask_again_s: how often to look whether the server has got to those by itself.
    """

    def __init__(
        self,
        upkeep: Upkeep,
        tables: Filled,
        mirrored: Iterable[str],
        progress: Progress,
        ask_again_s: float = _ASK_AGAIN_S,
    ):
        self._upkeep, self._progress, self._ask_again_s = upkeep, progress, ask_again_s
        self._left: list[tuple[TableId | None, Sources]] = [
            (table, frozenset(sources)) for table, sources in tables.items()
        ]
        if united := frozenset(mirrored):
            self._left.append((None, united))  # the mirror, whatever its tables are by then
        self._before = _dumped(progress.snapshot())
        self._failed: dict[TableId, str] = {}

    def run(self, stopping: Stopping) -> None:
        """Works until every table was looked at, or a stop is requested."""
        while self._left and not stopping.wait(_LOOK_S):
            self.step(stopping)
        self._progress.set(kept_up=not self._left)
        while self._failed and not stopping.wait(self._ask_again_s):
            self._failed = {table: why for table, why in self._failed.items() if self._still_lacking(table)}
            self._warn(stopping)

    def step(self, stopping: Stopping) -> None:
        """Looks at the tables whose dumps the target has got since, and that aren't being filled piece by piece."""
        now = self._progress.snapshot()
        dumped, filling = _dumped(now), {one.target for one in now.filling}
        for left in [left for left in self._left if left[1] <= dumped]:
            table, sources = left
            if table is not None and table.name in filling:
                continue
            for one in self._named(table, stopping):
                if not stopping.requested():
                    self._look_at(one, sources <= self._before, stopping)
            if stopping.requested():
                return
            self._left.remove(left)

    def _named(self, table: TableId | None, stopping: Stopping) -> list[TableId]:
        try:
            return [table] if table is not None else self._upkeep.mirror()
        except MigratorError as error:
            self._failed[_MIRROR] = str(error)
            self._warn(stopping)
            return []

    def _look_at(self, table: TableId, before: bool, stopping: Stopping) -> None:
        try:
            if before and not self._upkeep.lacking(table):
                return
            why = self._upkeep.refresh(table, stopping.requested)
        except MigratorError as error:
            why = str(error)
        if why:
            self._failed[table] = why
            self._warn(stopping)

    def _still_lacking(self, table: TableId) -> bool:
        try:
            return self._upkeep.lacking(table)
        except MigratorError:
            return True

    def _warn(self, stopping: Stopping) -> None:
        if not stopping.requested():
            said = (f"the target knows little of {table}: {why}" for table, why in self._failed.items())
            self._progress.warn(ABOUT, *said)


def _dumped(now: Snapshot) -> Sources:
    """Names of the source tables whose dumps the target holds."""
    return frozenset(dump.table.name for dump in now.applied_dumps if dump.done)
