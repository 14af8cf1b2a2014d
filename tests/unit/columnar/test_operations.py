"""Row images counted by operation, against a walk through them."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from migrator.columnar.operations import operations

KINDS = {"insert": (1,), "update": (-1, 1), "delete": (-1,), "truncate": (0,)}


def images(changes: list[str]) -> pa.Table:
    rows = [(place // 3, place % 3, sign) for place, change in enumerate(changes) for sign in KINDS[change]]
    names = ("__position", "__index", "__sign")
    return pa.table({name: pa.array([row[at] for row in rows], pa.int64()) for at, name in enumerate(names)})


@given(st.lists(st.sampled_from(sorted(KINDS))))
def test_each_change_counts_once(changes: list[str]) -> None:
    assert operations(images(changes)) == dict(Counter(changes))
