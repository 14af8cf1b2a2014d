"""MySQL's length-encoded integers, as they stand in events and packets."""

from __future__ import annotations

_WIDTHS = {252: 2, 253: 3, 254: 8}


def read_length(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at ``at``, and the place after it. Raises ``IndexError``, ``KeyError``."""
    first = data[at]
    if first < 251:
        return first, at + 1
    stop = at + 1 + _WIDTHS[first]
    if stop > len(data):
        raise IndexError("the data ends too early")
    return int.from_bytes(data[at + 1 : stop], "little"), stop
