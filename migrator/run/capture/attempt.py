"""The values with which one leader's capture begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from migrator.core.passes import FIRST
from migrator.model.limits import CaptureLimits
from migrator.model.progress import Checkpoint, TableDump, dump_key
from migrator.model.table import TableId, TableSchema

_BEFORE = "r0"
"""Stands for a dump of before, where a request's name would stand; the first request is number 1."""


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

    def with_dumps(self, known: Checkpoint, anew: frozenset[TableId]) -> Checkpoint:
        """Adds the first dump of each table to what is known.

        Of a table that replaced another, or begins to be mirrored, nothing counts as dumped any more, by requests
        neither: whatever becomes of a request for its rows, all of them are read. Nor does what a dump has read by
        another key.

        Rows of the dump before may wait in the event log, unapplied. So the next rows of such a table begin a batch
        (see ``core.passes``): one batch has no key of a table twice.
        """

        def void(dump: TableDump) -> bool:
            return dump.table in anew or (dump.table in self.schemas and self._rekeyed(dump))

        begun = {dump.table: dump for dump in known.dumps if not void(dump)}
        requests = [
            TableDump(dump.table, request=dump.request) if void(dump) else dump for dump in known.requests
        ]
        dumps = [begun.get(table) or self.first_dump(table) for table in self.schemas]
        passes = known.passes
        again = anew | {dump.table for dump in (*known.dumps, *known.requests) if void(dump)}
        if again:
            so_far = dict.fromkeys(begun, FIRST) if passes is None else dict(passes)
            passes = tuple({**so_far, **dict.fromkeys(sorted(again), _BEFORE)}.items())
        return replace(known, dumps=tuple(dumps), requests=tuple(requests), passes=passes)

    def _rekeyed(self, dump: TableDump) -> bool:
        """Tells whether a dump is under way by another key than its table has by now.

        It begins anew then: the last key that it read says nothing about where the rest of the rows lies.
        """
        return bool(dump.key) and not dump.done and dump.key != dump_key(self.schemas[dump.table])
