"""Names of versions, rows and positions in the texts that people read."""

from __future__ import annotations

import numpy as np

from verify.history.evidence import Evidence
from verify.history.history import PUT
from verify.history.rows import MISSING, Array, Rows
from verify.history.versions import UNHEARD_OF


class Names:
    """Names for the versions, rows, positions and deliveries of one history."""

    def __init__(self, evidence: Evidence):
        self._of = evidence

    def version(self, version: int) -> str:
        """``version 11``: the position of the write; ``version 11.2`` where its transaction wrote the key twice."""
        if version == UNHEARD_OF:
            return "a row that nobody committed"
        if version < 0:
            return "no row"
        log = self._of.log
        position = int(log.position[version])
        kind = "version" if log.rows.kind[version] == PUT else "the delete of version"
        of_key = log.of_key(int(log.rows.key[version]))
        same = of_key[log.position[of_key] == position]
        suffix = f".{int(np.searchsorted(same, version)) + 1}" if len(same) > 1 else ""
        return f"{kind} {position}{suffix}"

    def writer(self, rows: Rows, index: int) -> str:
        """``session 3 number 9``."""
        if rows.session[index] == MISSING:
            return "no provenance"
        if rows.session[index] == 0:
            return f"initial row {rows.number[index]}"
        return f"session {rows.session[index]} number {rows.number[index]}"

    def row(self, rows: Rows, index: int) -> str:
        """``session 3 number 9, value 40``."""
        value = f", value {rows.value[index]}" if rows.known[index] else ""
        return self.writer(rows, index) + value

    def holding(self, rows: Rows, index: int) -> str:
        """Names the row that one side holds under a key, as in ``row``, or ``no row``."""
        return self.row(rows, index) if rows.kind[index] == PUT else "no row"

    def positions(self, prefixes: Array) -> Array:
        """The positions that prefixes of the log end with."""
        return np.where(prefixes > 0, np.append(self._of.log.position, 0)[prefixes - 1], 0)

    def position(self, prefix: int) -> int:
        """The position that one prefix of the log ends with."""
        return int(self._of.log.position[prefix - 1]) if prefix > 0 else 0

    def delivery(self, index: int) -> str:
        """``version 11 from a chunk (delivery 812, segment 5)``."""
        deliveries = self._of.deliveries
        by = "the log" if deliveries.from_log[index] else "a chunk"
        what = self.version(int(deliveries.version[index]))
        return f"{what} from {by} (delivery {index + 1}, segment {int(deliveries.segment[index])})"
