"""Pieces of a table, handed out one after the other, to one sweep or to several at once: who is ready takes
the next.

Where keys are whole numbers that lie close to one another, a piece is the next so many numbers: there can't be more
rows in it than that, and no server has to walk through an index to find its end. Elsewhere one does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from threading import Lock

from verify.readers.chunk_keys import INTEGER, Key, KeyRange

_CLOSE = 2
"""Numbers a row, at most, where keys are said to be close; a piece has half the rows that it could have then."""
_LARGEST = 2**63 - 1
"""The largest number that is reckoned with: a server would compare a larger one as one of another type, and not find
it by the index."""
End = Callable[[KeyRange, int], Key | None]
"""Gives the last key of so many rows at the beginning of a range; None if it has fewer."""


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
        """A range of ``rows`` rows at most, but for the last one, to which there is no end; None if none is
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
