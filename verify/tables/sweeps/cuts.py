"""Pieces of a table, handed out one after the other to one sweep or to several at once: a sweep that is ready takes
the next one.

Where keys are whole numbers close to one another, a piece is a range of as many numbers as it may have rows, and no
server has to walk through an index to find its end. Elsewhere the source's server finds the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from threading import Lock

from verify.readers.chunk_keys import INTEGER, Key, KeyRange

_CLOSE = 2
"""Numbers for each row, at most, where keys count as close; then a piece has at least half the rows it may have."""
_LARGEST = 2**63 - 1
"""The largest end of a range: a server would compare a larger number as another type, and not use the index."""
End = Callable[[KeyRange, int], Key | None]
"""Returns the key of the n-th row of a range; None if it has fewer rows."""


class Cuts:
    """The ranges that together are all keys, each handed out once. May be shared by threads.

    Args:
        kinds: of the key's columns, in the order of the source's primary key.
    """

    def __init__(self, kinds: Sequence[str]):
        self._whole = tuple(kinds) == (INTEGER,)
        self._lock = Lock()
        self._after: Key | None = None
        self._close = self._done = False

    def next(self, rows: int, end: End) -> KeyRange | None:
        """Returns the next range, of ``rows`` rows at most; the last one has no end and no limit. None if none is
        left."""
        with self._lock:
            if self._done:
                return None
            after = self._after
            upto = self._reckoned(rows) if self._close else None
            if upto is None:
                upto = end(KeyRange(after), rows)
                self._judge(KeyRange(after, upto), rows)
            self._after, self._done = upto, upto is None
            return KeyRange(after, upto)

    def found(self, piece: KeyRange, rows: int) -> None:
        """Tells how many rows there were in a piece."""
        with self._lock:
            self._judge(piece, rows)

    def _reckoned(self, rows: int) -> Key | None:
        assert self._after is not None
        upto = int(self._after[0]) + rows
        return (str(upto),) if upto <= _LARGEST else None

    def _judge(self, piece: KeyRange, rows: int) -> None:
        ends = [end[0] for end in (piece.after, piece.upto) if end is not None and self._whole]
        whole = len(ends) == 2 and all(re.fullmatch(r"-?\d+", end) for end in ends)
        self._close = whole and int(ends[1]) - int(ends[0]) <= rows * _CLOSE
