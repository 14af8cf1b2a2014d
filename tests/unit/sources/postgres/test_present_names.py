"""Columns of a Relation message under the names that they have by now: told by drawn histories of a table."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence

import pytest

from migrator.adapters.sources.postgres.log.present_names import present_names

Names = Callable[[Sequence[str], Sequence[tuple[str, int]], Collection[int]], dict[str, str]]


def history(chance: random.Random, drops: bool) -> list[dict[int, str]]:
    """The columns of a table, names by numbers, after each statement. No name is ever given to a second column."""
    table, last, fresh = {number: f"c{number}" for number in range(1, 5)}, 4, 0
    states = [dict(table)]
    for _ in range(chance.randint(1, 6)):
        kind = chance.choice(("add", "drop", "rename", "rename") if drops else ("add", "rename", "rename"))
        others = [number for number in table if number > 1]
        if kind == "add":
            last += 1
            table[last] = f"c{last}"
        elif others:
            number = chance.choice(others)
            if kind == "drop":
                del table[number]
            else:
                fresh += 1
                table[number] = chance.choice((f"c{number}", f"r{fresh}"))
        states.append(dict(table))
    return states


def mistaken(told: Names, drops: bool) -> tuple[int, int, int]:
    """Of how many columns with another name a wrong one was told, the right one, and none."""
    wrong = right = untold = 0
    for seed in range(3000):
        states = history(random.Random(seed), drops)
        now, last = states[-1], max(number for state in states for number in state)
        dropped = [number for number in range(1, last + 1) if number not in now]
        for state in states:
            seen = [name for _, name in sorted(state.items())]
            found = told(seen, [(name, number) for number, name in now.items()], dropped)
            for number, name in state.items():
                other = now.get(number)
                if name in found:
                    right, wrong = right + (found[name] == other), wrong + (found[name] != other)
                elif other is not None and other != name:
                    untold += 1
    return wrong, right, untold


def test_no_column_is_taken_for_another() -> None:
    wrong, right, untold = mistaken(present_names, drops=True)
    assert wrong == 0
    assert right > untold > 0, "most are told, and some may be a column that was dropped"


def test_all_are_told_where_none_was_dropped() -> None:
    wrong, right, untold = mistaken(present_names, drops=False)
    assert (wrong, untold) == (0, 0)
    assert right > 5000


def test_without_dropped_columns_in_mind_some_would_be_taken_for_others() -> None:
    wrong, _, _ = mistaken(lambda seen, now, dropped: present_names(seen, now, ()), drops=True)
    assert wrong > 0


@pytest.mark.parametrize(
    ("seen", "now", "dropped", "told"),
    [
        pytest.param(["k", "a"], [("k", 1), ("a", 2)], [], {}, id="nothing"),
        pytest.param(["k", "a"], [("k", 1), ("b", 2), ("c", 3)], [], {"a": "b"}, id="and one added"),
        pytest.param(["k", "a", "z"], [("k", 1), ("b", 3), ("z", 4)], [2], {"a": "b"}, id="between others"),
        pytest.param(["k", "a"], [("k", 1), ("b", 3)], [2], {}, id="it may be the dropped one"),
        pytest.param(
            ["k", "a", "g", "z"], [("k", 1), ("b", 2), ("z", 4)], [3], {"a": "b"}, id="nor was it gone"
        ),
        pytest.param(["k", "b", "a"], [("k", 1), ("a", 2), ("b", 3)], [], {}, id="exchanged"),
    ],
)
def test_what_is_told(
    seen: Sequence[str], now: Sequence[tuple[str, int]], dropped: Sequence[int], told: dict[str, str]
) -> None:
    assert present_names(seen, now, dropped) == told


def test_a_name_that_was_dropped_and_added_again_tells_no_column() -> None:
    now = [("k", 1), ("b", 2), ("z", 4), ("gone", 5)]
    seen = ["k", "a", "gone", "z"]
    assert present_names(seen, now, [3]) == {}
    assert present_names(seen, now, [3], {"gone": 3}) == {"a": "b"}
    assert present_names(["k", "a", "z"], now, [3], {"gone": 3}) == {"a": "b"}
