"""Bags of mapped rows compared, and keys that leave one slice told from those that stay."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from migrator.run.apply.difference import _ordered, difference, parted


def table(rows: Sequence[tuple[int, int, str | None]]) -> pa.Table:
    sides, keys, values = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            "side": pa.array(sides, pa.int8()),
            "k": pa.array(keys, pa.int64()),
            "v": pa.array(values, pa.string()),
        }
    )


def bag(rows: pa.Table) -> Counter[tuple[int, str | None]]:
    return Counter((row["k"], row["v"]) for row in rows.to_pylist())


def test_only_what_differs_is_left() -> None:
    rows = [(0, 1, "a"), (0, 2, None), (0, 3, "x"), (1, 2, None), (1, 1, "b"), (1, 4, "y"), (1, 3, "x")]
    before, after = difference(table(rows), "side", ["k"])
    assert bag(before) == {(1, "a"): 1}
    assert bag(after) == {(1, "b"): 1, (4, "y"): 1}


def test_a_row_made_twice_stays_twice_so_that_the_target_refuses_it() -> None:
    _, after = difference(table([(0, 1, "a"), (1, 1, "a"), (1, 1, "a"), (1, 1, "a")]), "side", ["k"])
    assert bag(after) == {(1, "a"): 2}


def test_it_is_the_difference_of_bags() -> None:
    chance = random.Random(7)
    for _ in range(50):
        rows = [
            (chance.randint(0, 1), chance.randint(1, 4), chance.choice(["a", "b", None]))
            for _ in range(chance.randint(0, 30))
        ]
        old, new = (Counter((k, v) for side, k, v in rows if side == wanted) for wanted in (0, 1))
        before, after = difference(table(rows), "side", ["k"])
        assert bag(before) == old - new
        assert bag(after) == new - old


def test_changed_rows_of_both_sides_come_in_the_order_of_their_keys() -> None:
    rows = [(1, 3, "z"), (0, 1, "a"), (0, 3, "c"), (1, 2, "y"), (0, 2, "b"), (1, 1, "x")]
    before, after = difference(table(rows), "side", ["k"])
    assert before["k"].to_pylist() == after["k"].to_pylist() == [1, 2, 3]
    before, after = difference(table(rows), "side", ["not mapped"])
    assert len(before) == len(after) == 3, "refused later, by name"


def test_keys_that_have_no_order_are_left_as_they_come() -> None:
    rows = pa.table({"k": pa.array([[2], [1]], pa.list_(pa.int8())), "v": ["a", "b"]})
    assert _ordered(rows, ["k"]).equals(rows)


def test_both_sides_are_left_alone_where_dump_rows_are_to_be_written() -> None:
    before, after = difference(table([(0, 1, "a"), (1, 1, "a")]), "side", ["k"], keep_equal=True)
    assert bag(before) == bag(after) == {(1, "a"): 1}


def test_keys_that_leave_a_slice_are_told_from_those_that_stay() -> None:
    before = table([(0, 1, "a"), (0, 2, "b"), (0, 3, "c")]).drop_columns(["side"])
    after = table([(1, 2, "B"), (1, 9, "z")]).drop_columns(["side"])
    gone, staying = parted(before, after, ["k"])
    assert bag(gone) == {(1, "a"): 1, (3, "c"): 1}
    assert bag(staying) == {(2, "b"): 1}
    assert bag(parted(before, after.slice(0, 0), ["k"])[0]) == bag(before)
