"""Versions: provenance found in the source log, and the source's rows after any prefix of it.

A *version* is a row of the log, given as its index there (``pos`` of the definitions is its transaction's
position). A *prefix* is the number of the log's rows that a position includes; prefixes end on transaction
boundaries.

One provenance may stand in the log more than once (a key that moves away and back keeps it). Then it means
the newest occurrence within the prefix in question, the reading that is kindest to the accused.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from migrator.errors import VerifyError
from verify.history.history import DELETE, PUT, History
from verify.history.rows import Array, Keys, Rows, integers

BEFORE_ALL = np.iinfo(np.int64).min
"""The order of the rows that existed before the run, and of a ledger without a position."""
NOTHING = -1
"""The version of a key that the log has not written so far."""
UNHEARD_OF = -2
"""The version of a row whose provenance the log does not hold."""
_TWO_TO_62 = 2**62


class Identities:
    """Packs (key, session, number) into one int64, so that equal ones can be searched."""

    def __init__(self, rows: Rows, keys: int):
        """Args: rows of the log, and the number of keys."""
        self._sessions = np.unique(rows.session)
        self._low = int(rows.number.min()) if len(rows) else 0
        span = int(rows.number.max()) - self._low + 1 if len(rows) else 1
        # Numbers are few and dense in practice; only where they are not, they are replaced by their ranks.
        self._numbers = np.unique(rows.number) if keys * len(self._sessions) * span > _TWO_TO_62 else None
        self._span = span if self._numbers is None else len(self._numbers)

    def of(self, rows: Rows) -> Array:
        """One integer per row, rising with the key; -1 for a session or number that the log has never seen."""
        session, known_session = _rank(self._sessions, rows.session)
        if self._numbers is None:
            number = rows.number.astype(np.int64) - self._low
            known_number = (number >= 0) & (number < self._span)
        else:
            number, known_number = _rank(self._numbers, rows.number)
        code = (rows.key.astype(np.int64) * len(self._sessions) + session) * self._span + number
        code[~(known_session & known_number)] = -1
        return code


def _rank(known: Array, values: Array) -> tuple[Array, Array]:
    if not len(known):
        return np.zeros(len(values), np.int64), np.zeros(len(values), bool)
    rank = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return rank, known[rank] == values


class Occurrences:
    """The places in the log at which each identity occurs."""

    def __init__(self, codes: Array, versions: Array):
        """Args: codes: identities of some rows of the log; versions: these rows, ascending."""
        order = np.argsort(codes, kind="stable")
        self._codes, self._versions = codes[order], versions[order]

    def find(self, codes: Array) -> tuple[Array, Array]:
        """Per identity the place of its first occurrence here, and how many there are."""
        first = np.searchsorted(self._codes, codes, "left")
        return first, np.searchsorted(self._codes, codes, "right") - first

    def newest(self, first: Array, count: Array, prefix: Array) -> Array:
        """The newest occurrence within ``prefix`` rows, else the oldest one, else ``UNHEARD_OF``."""
        found = np.full(len(first), UNHEARD_OF, np.int64)
        there = np.flatnonzero(count)
        found[there] = self._versions[first[there]]
        several = np.flatnonzero(count > 1)
        low, high, wanted = first[several], first[several] + count[several], prefix[several]
        while (low + 1 < high).any():  # the last place whose version is within the prefix, for all at once
            middle = (low + high) // 2
            within = self._versions[middle] < wanted
            low, high = np.where(within, middle, low), np.where(within, high, np.maximum(middle, low + 1))
        found[several] = self._versions[low]
        return found

    def contains(self, codes: Array) -> Array:
        """Returns whether each identity occurs at all. Sorts, so any order of ``codes`` is fast."""
        order = np.argsort(codes)
        held = np.empty(len(codes), bool)
        held[order] = self.find(codes[order])[1] > 0
        return held


@dataclass(frozen=True, slots=True)
class SourceLog:
    """The source log, searchable by position, by provenance and by key.

    Attributes:
        rows: in log order.
        position: ordinal of each row's transaction.
        order: ``Position.order`` of each row's transaction; ``BEFORE_ALL`` for rows from before the run.
        identities: how provenance is packed.
        puts, deletes: rows of each kind by provenance.
        by_key: all rows sorted by key, then log order.
        newest_delete: per row of ``by_key``, the newest delete of its key so far, or ``NOTHING``.
    """

    rows: Rows
    position: Array
    order: Array
    identities: Identities
    puts: Occurrences
    deletes: Occurrences
    by_key: Array
    newest_delete: Array
    _places: Array

    def prefix(self, order: Array) -> Array:
        """Counts the rows that are committed at or before each order."""
        return np.searchsorted(self.order, order, "right")

    def last_write(self, key: Array, prefix: Array) -> Array:
        """Index into ``by_key`` of each key's last write within the prefix, or ``NOTHING``."""
        size = len(self.rows) + 1
        place = np.searchsorted(self._places, key.astype(np.int64) * size + prefix, "left") - 1
        if not len(self.by_key):
            return np.full(len(key), NOTHING, np.int64)
        found = (place >= 0) & (self.rows.key[self.by_key[place]] == key)
        return np.where(found, place, NOTHING)

    def of_key(self, key: int) -> Array:
        """All versions of one key, in log order."""
        size = len(self.rows) + 1
        first, last = np.searchsorted(self._places, (key * size, (key + 1) * size), "left")
        return self.by_key[first:last]

    def version_of(self, place: Array) -> Array:
        """Returns the versions of the writes that ``last_write`` found."""
        if not len(self.by_key):
            return np.full(len(place), NOTHING, np.int64)
        return np.where(place >= 0, self.by_key[place], NOTHING)

    def positions(self, versions: Array) -> Array:
        """Transaction positions of versions; negative values (no version) stay as they are."""
        if not len(self.position):
            return versions
        return np.where(versions >= 0, self.position[versions], versions)

    def newest_delete_of(self, place: Array) -> Array:
        """Returns the version of an absent key: its newest delete up to the write that ``last_write`` found."""
        if not len(self.by_key):
            return np.full(len(place), NOTHING, np.int64)
        return np.where(place >= 0, self.newest_delete[place], NOTHING)


def read_log(history: History, rows: Rows, keys: Keys) -> SourceLog:
    """Prepares the log. Raises ``VerifyError`` where its positions or orders fall: then it is no commit order."""
    position = integers(history.log["position"])
    order = integers(history.log["order"], BEFORE_ALL).astype(np.int64, copy=True)
    order[position == 0] = BEFORE_ALL
    for name, column in (("position", position), ("order", order)):
        fallen = np.flatnonzero(column[1:] < column[:-1])
        if len(fallen):
            raise VerifyError(
                f"the recorded log is not in commit order: its {name} falls",
                where=f"row {int(fallen[0]) + 1} of the log",
                remedy="the recorder is at fault; record the run again",
            )
    identities = Identities(rows, len(keys))
    codes = identities.of(rows)
    by_kind = {}
    for kind in (PUT, DELETE):
        of_kind = np.flatnonzero(rows.kind == kind)
        by_kind[kind] = Occurrences(codes[of_kind], of_kind)
    places = np.sort(rows.key.astype(np.int64) * (len(rows) + 1) + np.arange(len(rows)))
    by_key = places % (len(rows) + 1)
    return SourceLog(
        rows,
        position,
        order,
        identities,
        by_kind[PUT],
        by_kind[DELETE],
        by_key,
        _newest_delete(rows, by_key),
        places,
    )


def _newest_delete(rows: Rows, by_key: Array) -> Array:
    place = np.arange(len(by_key))
    carried = np.maximum.accumulate(np.where(rows.kind[by_key] == DELETE, place, -1)) if len(place) else place
    same_key = (carried >= 0) & (rows.key[by_key[carried]] == rows.key[by_key])
    return np.where(same_key, by_key[carried], NOTHING) if len(place) else place
