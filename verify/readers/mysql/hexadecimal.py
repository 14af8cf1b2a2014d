"""Bytes as the digits that the judge compares."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)


def hexadecimal(values: pa.Array) -> pa.Array:
    """A binary array as an array of lower-case hexadecimal texts, NULLs kept."""
    plain = values.cast(pa.large_binary())
    _, places, data = plain.buffers()
    offsets = np.frombuffer(places, np.int64)[plain.offset : plain.offset + len(plain) + 1]
    octets = np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]]
    digits = np.empty(2 * len(octets), np.uint8)
    digits[0::2], digits[1::2] = _DIGITS[octets >> 4], _DIGITS[octets & 15]
    null = None
    if plain.null_count:
        null = pa.py_buffer(np.packbits(np.array(plain.is_valid()), bitorder="little").tobytes())
    ends = pa.py_buffer(((offsets - offsets[0]) * 2).astype(np.int64).tobytes())
    texts = pa.Array.from_buffers(pa.large_string(), len(plain), [null, ends, pa.py_buffer(digits.tobytes())])
    return texts.cast(pa.string())
