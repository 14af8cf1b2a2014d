"""Owners of keys are found whichever buckets make a row that only looks right; and with few calls where none
does."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verify.tables.sweeps.bucket_owners import owners


class Mapping:
    """What buckets make: a key's row where its true owner is, and by chance where a false one is.

    Args:
        true: the owner of each key, or None: it has one elsewhere.
        false: buckets that have a part of a key's rows, and make its row by themselves.
        chance: what decides whether other buckets beside a false one spoil its row; None: they never do.
    """

    def __init__(self, true: Sequence[int | None], false: Sequence[set[int]], chance: int | None = None):
        self._true, self._false, self._chance = true, false, chance
        self.calls: list[tuple[int, ...]] = []

    def makes(self, some: Sequence[int]) -> set[int]:
        self.calls.append(tuple(some))
        return {key for key in range(len(self._true)) if self._made(key, frozenset(some))}

    def _made(self, key: int, some: frozenset[int]) -> bool:
        if self._true[key] in some:
            return True
        spoiled = self._chance is not None and len(some) > 1 and hash((self._chance, key, some)) % 2 == 0
        return bool(some & self._false[key]) and not spoiled


@st.composite
def mappings(draw: st.DrawFn) -> tuple[int, list[int | None], list[set[int]], int]:
    count = draw(st.integers(1, 40))
    of_key = st.tuples(st.none() | st.integers(0, count - 1), st.sets(st.integers(0, count - 1), max_size=3))
    keys = draw(st.lists(of_key, max_size=6))
    return count, [true for true, _ in keys], [false for _, false in keys], draw(st.integers(0, 9))


@given(mappings())
def test_a_key_s_true_owner_is_always_found(made: tuple[int, list[int | None], list[set[int]], int]) -> None:
    count, true, false, chance = made
    mapping = Mapping(true, false, chance)
    found = owners(range(count), range(len(true)), mapping.makes)
    for key, owner in enumerate(true):
        assert owner is None or owner in found[key]
    for key, by in found.items():
        assert set(by) <= {true[key], *false[key]}
        assert len(by) == len(set(by))


@given(mappings())
def test_never_are_there_many_more_calls_than_buckets(
    made: tuple[int, list[int | None], list[set[int]], int],
) -> None:
    count, true, false, chance = made
    mapping = Mapping(true, false, chance)
    owners(range(count), range(len(true)), mapping.makes)
    assert len(mapping.calls) <= count + (count - 1).bit_length() + 1


@pytest.mark.parametrize(
    ("count", "true", "calls"),
    [
        (80, [33], 9),
        (80, [0], 9),
        (80, [79, 5, 5, None], 11),
        (14, [9], 6),
        (5, [2], 5),
        (80, range(80), 80),
        (80, [], 8),
    ],
)
def test_few_calls_do(count: int, true: Sequence[int], calls: int) -> None:
    mapping = Mapping(true, [set()] * len(true))
    found = owners(range(count), range(len(true)), mapping.makes)
    assert found == {key: [owner] for key, owner in enumerate(true) if owner is not None}
    assert len(mapping.calls) <= calls


def test_a_bucket_whose_row_only_looks_right_hides_no_owner() -> None:
    """The true owner is 2 (10 in digits), and 3 (11) makes the row too: the digits name 3."""
    mapping = Mapping([2], [{3}])
    assert owners(range(40), [0], mapping.makes) == {0: [3, 2]}

    def blind(some: Sequence[int]) -> set[int]:
        return set() if len(some) > 30 else mapping.makes(some)

    assert owners(range(40), [0], blind) == {0: [3]}, (
        "the control: whoever doesn't look at the others misses it"
    )
