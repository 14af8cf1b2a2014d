"""What a merge must know of before rows: nothing of those whose keys stay; and whether each row is another now."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.adapters.targets.shared.rows import only_changed, vanishing

Keys = list[tuple[int | None, str | None]]
KEYS = st.lists(st.tuples(st.integers(0, 3) | st.none(), st.sampled_from("ab") | st.none()), max_size=8)


def table(keys: Keys) -> pa.Table | None:
    if not keys:
        return None
    numbers, texts = zip(*keys, strict=True)
    return pa.table(
        {"other": [0] * len(keys), "n": pa.array(numbers, pa.int64()), "t": pa.array(texts, pa.string())}
    )


def whole(keys: Keys) -> set[tuple[int | None, str | None]]:
    return {key for key in keys if None not in key}


@given(KEYS, KEYS, st.booleans())
def test_what_is_left_out_changes_no_merge(before: Keys, after: Keys, strict: bool) -> None:
    """The merge deletes before without after, and inserts as new, if strict, after without before."""
    left, still = vanishing(("n", "t"), table(before), table(after), strict)
    known: Keys = [] if left is None else list(zip(left["n"].to_pylist(), left["t"].to_pylist(), strict=True))
    assert whole(known) - whole(after) == whole(before) - whole(after)
    assert whole(known) <= whole(before)
    if still:
        assert strict
        assert whole(after) - whole(known) == whole(after) - whole(before)
    elif strict and before:
        assert whole(after) <= whole(before), "a new row wouldn't be told from an old one"


@pytest.mark.parametrize("strict", [True, False])
def test_updates_that_keep_their_keys_need_no_before_rows(strict: bool) -> None:
    """In any order. The controls: a key that vanishes, and a new one."""
    old: Keys = [(1, "a"), (2, "b"), (3, "a")]
    assert vanishing(("n", "t"), table(old), table(old), strict) == (None, False)
    assert vanishing(("n", "t"), table(old), table(old[::-1]), strict) == (None, False)
    gone, still = vanishing(("n", "t"), table(old), table(old[1:]), strict)
    assert gone is not None
    assert gone.select(["n", "t"]).to_pylist() == [{"n": 1, "t": "a"}]
    assert not still
    kept, still = vanishing(("n", "t"), table(old), table([*old, (4, "a")]), strict)
    assert (kept is not None, still) == (strict, strict)


def numbered(keys: list[int], values: list[int | None], other: str = "same") -> pa.Table:
    return pa.table(
        {
            "n": keys,
            "same": pa.array([None] * len(keys), pa.string()),
            "v": pa.array(values, pa.int64()),
            "t": [other] * len(keys),
        }
    )


def test_batches_of_nothing_but_changes_are_known() -> None:
    """The controls: a row that stays as it is, keys in another order, a new key, one side only, a list."""
    old = numbered([1, 2, 3], [1, None, 3])
    assert only_changed(("n",), old, numbered([1, 2, 3], [2, 0, None]))
    assert only_changed(("n",), old, numbered([1, 2, 3], [1, None, 3], "other"))
    assert not only_changed(("n",), old, old)
    assert not only_changed(("n",), old, numbered([1, 2, 3], [2, None, 4])), "2 stays as it is"
    assert not only_changed(("n",), old, numbered([2, 1, 3], [7, 8, 9]))
    assert not only_changed(("n",), old, numbered([1, 2, 3, 4], [7, 8, 9, 9]))
    assert not only_changed(("n",), None, old)
    assert not only_changed(("n",), old, None)
    lists = pa.table({"n": [1], "v": [[1]]})
    assert not only_changed(("n",), lists, pa.table({"n": [1], "v": [[2]]}))
