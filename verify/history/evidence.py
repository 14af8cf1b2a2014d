"""The parts of one history that checkers share, each computed when it is first used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from verify.history.commits import Steps, read_steps
from verify.history.coverage import Spans, is_origin, read_spans
from verify.history.history import LOG, PUT, History
from verify.history.points import Points, read_points
from verify.history.rows import MISSING, Array, Keys, Rows, encode, integers
from verify.history.target import Target, read_target
from verify.history.versions import BEFORE_ALL, UNHEARD_OF, SourceLog, read_log


@dataclass(frozen=True, slots=True)
class Deliveries:
    """The rows that capture delivered, in delivery order.

    Attributes:
        rows: the rows.
        segment: of each.
        from_log: whether it came from the log; else from a chunk.
        order: of a log delivery; of a chunk row the newest log order delivered up to the end of its segment.
        version: the write that each delivers, or ``UNHEARD_OF``.
    """

    rows: Rows
    segment: Array
    from_log: Array
    order: Array
    version: Array


class Evidence:
    """One history, prepared. Parts raise ``VerifyError`` where the record contradicts itself."""

    def __init__(self, history: History):
        self.history = history

    @cached_property
    def _encoded(self) -> tuple[Keys, Mapping[str, Rows]]:
        return encode(self.history)

    @property
    def keys(self) -> Keys:
        """All keys of the history."""
        return self._encoded[0]

    @property
    def rows(self) -> Mapping[str, Rows]:
        """Rows of every row table by its name."""
        return self._encoded[1]

    @cached_property
    def log(self) -> SourceLog:
        """The source log."""
        return read_log(self.history, self.rows["log"], self.keys)

    @cached_property
    def steps(self) -> Steps:
        """The target's committed states."""
        return read_steps(self.history, self.log)

    @cached_property
    def target(self) -> Target:
        """The target's contents at each step."""
        return read_target(self.rows["changes"], self.steps)

    @cached_property
    def spans(self) -> Spans:
        """The spans of steps in which each key was under judgement."""
        return read_spans(self.history, self.rows, self.keys, self.steps)

    @cached_property
    def points(self) -> Points:
        """The versions of both sides at all states in which they can differ from the state before."""
        return read_points(self.log, self.steps, self.target, self.spans)

    @cached_property
    def deliveries(self) -> Deliveries:
        """The deliveries into the event log."""
        rows = self.rows["deliveries"]
        segment = integers(self.history.deliveries["segment"])
        from_log = is_origin(self.history, LOG)
        order = integers(self.history.deliveries["order"], BEFORE_ALL)
        order = _read_so_far(segment, from_log, order)
        return Deliveries(rows, segment, from_log, order, _versions(self.log, rows, order))

    def of_tables(self, names: set[str]) -> Array:
        """Per key whether it belongs to one of these tables."""
        wanted = np.array([name in names for name in self.keys.tables] or [False], bool)
        return np.asarray(wanted[self.keys.table])


def _read_so_far(segment: Array, from_log: Array, order: Array) -> Array:
    """Gives chunk rows the newest order that the log had delivered by the end of their segment."""
    if not len(order):
        return order
    newest = np.maximum.accumulate(np.where(from_log, order, BEFORE_ALL))
    ends = np.flatnonzero(np.append(segment[1:] != segment[:-1], True))
    end_of = ends[np.searchsorted(ends, np.arange(len(order)), "left")]
    return np.where(from_log, order, newest[end_of])


def _versions(log: SourceLog, rows: Rows, order: Array) -> Array:
    """Finds the write that each delivered row is. Rows are sorted by key first: so searches stay in the cache."""
    version = np.full(len(rows), UNHEARD_OF, np.int64)
    by_key = np.argsort(rows.key, kind="stable")
    prefix = log.prefix(order)
    is_put = rows.kind[by_key] == PUT
    for occurrences, index in ((log.puts, by_key[is_put]), (log.deletes, by_key[~is_put])):
        first, count = occurrences.find(log.identities.of(rows.take(index)))
        version[index] = occurrences.newest(first, count, prefix[index])
    bare = np.flatnonzero(
        (rows.kind != PUT) & (rows.number == MISSING)
    )  # before images that hold the key alone
    deleted = log.newest_delete_of(log.last_write(rows.key[bare], prefix[bare]))
    version[bare] = np.where(deleted >= 0, deleted, UNHEARD_OF)
    return version
