"""The values with which one leader's capture begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from migrator.model.limits import CaptureLimits
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.table import TableId, TableSchema


@dataclass(frozen=True, slots=True)
class Anew:
    """Tables of a begun migration whose rows are all dumped from now on.

    Attributes:
        replaced: names that other tables are known to have by now.
        joining: tables that nobody captured until now.
        mirrored: those that a mirror may have rows of, from an earlier time.
        unmirrored: tables that nobody kept in a mirror until now.
    """

    replaced: frozenset[TableId] = frozenset()
    joining: frozenset[TableId] = frozenset()
    mirrored: frozenset[TableId] = frozenset()
    unmirrored: frozenset[TableId] = frozenset()

    def emptied(self, found: frozenset[TableId]) -> frozenset[TableId]:
        """Returns the tables whose rows have to go first; ``found``: those that the log reader found replaced."""
        return (found - self.joining) | (self.joining & self.mirrored)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One process's attempt to capture: which tables, from where on, within which bounds.

    Attributes:
        schemas: the captured tables as they are now.
        checkpoint: where to go on from; None starts at the log's present end with a dump of every table.
        limits: the user's bounds.
        run_token: distinguishes this process's watermarks from an earlier attempt's.
        estimates: the source's row estimates, for a dump that begins now.
        max_keys: bound of keys remembered per transaction or window (see ``Capture``).
        applied: whether somebody applies what is captured: a halt waits until that is done.
        anew: tables whose rows are all dumped though the migration has begun.
        changes_only: whether the target has its rows already: a first start dumps only what mirrors need.
    """

    schemas: Mapping[TableId, TableSchema]
    checkpoint: Checkpoint | None
    limits: CaptureLimits
    run_token: str
    estimates: Mapping[TableId, int] = field(default_factory=dict)
    max_keys: int = 20_000
    applied: bool = False
    anew: Anew = Anew()
    changes_only: bool = False

    def first_dump(self, table: TableId) -> TableDump:
        """Returns where the first dump of a table stands when it begins."""
        if self.changes_only and table not in self.anew.mirrored:
            return TableDump(table, done=True)
        return TableDump(table, estimated_rows=self.estimates.get(table, 0))
