"""Scattered byte slices as one Arrow array, against Python's own slicing."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from migrator.adapters.sources.postgres.log.row_codec import gather


@given(st.data(), st.binary(max_size=40))
def test_values_are_the_slices_that_were_picked(data: st.DataObject, buffer: bytes) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(buffer)), max_size=8)))
    cuts = cuts[: len(cuts) // 2 * 2]
    starts, ends = np.array(cuts[::2], np.int64), np.array(cuts[1::2], np.int64)
    picks = data.draw(st.lists(st.integers(0, len(starts) - 1), max_size=6)) if len(starts) else []
    missing = data.draw(st.lists(st.booleans(), min_size=len(picks), max_size=len(picks)))
    found = gather(buffer, starts, ends, np.array(picks, np.int64), np.array(missing, bool))
    expected = [None if gone else buffer[starts[n] : ends[n]] for n, gone in zip(picks, missing, strict=True)]
    assert found.to_pylist() == expected
    assert gather(buffer, starts, ends, np.array(picks, np.int64), None).to_pylist() == [
        buffer[starts[n] : ends[n]] for n in picks
    ]
