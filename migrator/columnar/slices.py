"""Values that lie scattered in a buffer, gathered into one Arrow array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def gather(buffer: Any, starts: Any, ends: Any, picks: Any, missing: Any) -> pa.Array:
    """The byte slices of ``buffer`` as a ``binary`` array, copied by Arrow rather than one by one.

    Args:
        buffer: ``bytes``.
        starts, ends: int64 numpy arrays; the slices must not overlap and must come in the order they lie in.
        picks: which slice each value of the result is (int64 numpy array, any order, any number of times).
        missing: where the result is NULL (bool numpy array), or None for nowhere.
    """
    # A binary array whose values are the slices and the gaps between them, in turns: no byte is moved for it.
    count = len(starts)
    offsets = np.empty(2 * count + 1, dtype=np.int64)
    offsets[0:-1:2], offsets[1::2], offsets[-1] = starts, ends, ends[-1] if count else 0
    both = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(buffer)]
    )
    return both.take(pa.array(picks * 2, mask=missing)).cast(pa.binary())
