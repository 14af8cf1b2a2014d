"""The choice of tests that have each value of each parameter once."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tests.each_value import covering


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_each_value_occurs_in_no_more_members_than_the_longest_parameter_has(sizes: list[int]) -> None:
    members = [
        {str(place): value for place, value in enumerate(values)} for values in product(*map(range, sizes))
    ]
    chosen = covering(members)
    for name, size in enumerate(sizes):
        assert {members[place][str(name)] for place in chosen} == set(range(size))
    assert len(chosen) == max(sizes)


def test_in_a_product_with_gaps_each_value_that_is_there_occurs() -> None:
    assert covering([{"a": 0, "b": 0}, {"a": 0, "b": 1}, {"a": 1, "b": 0}]) == {0, 1, 2}
    assert covering([{"a": 0, "b": 1}, {"a": 0, "b": 0}, {"a": 1, "b": 0}]) == {0, 2}
