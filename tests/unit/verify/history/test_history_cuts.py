"""The checker of cuts, D6: every commit and every observer has seen one state of the source."""

from __future__ import annotations

from typing import Any

import pytest

from tests.histories.made import order_of
from tests.histories.tiny import Tiny, started
from verify.history.history import PUT, TrackedTable
from verify.history.result import Outcome


def test_a_transaction_in_two_commits_is_no_cut() -> None:
    tiny = started(k1=None, k2=None)
    left, right = tiny.row("1", 1, 1), tiny.row("2", 1, 2)
    tiny.write(left, right)
    tiny.commit(left, position=0)
    tiny.commit(right)
    result = tiny.judged("D6")
    assert (result.checked, result.violations) == (3, 1)
    assert result.witnesses[0].headline == (
        "commit 2 is no cut: register 1 is session 1 number 1, at its position 0 the source has initial row 0"
    )


def test_two_equal_mistakes_do_not_cancel() -> None:
    """With an exclusive or, the same wrong row twice would leave no trace; and swapped rows none in a plain sum."""
    tiny = started(k1=None, k2=None)
    tiny.write(tiny.row("1", 1, 1), tiny.row("2", 1, 2))
    tiny.commit(tiny.row("1", 1, 2), tiny.row("2", 1, 1))
    assert tiny.judged("D6").outcome is Outcome.VIOLATED


@pytest.mark.parametrize("change", [{"position": 0}, {"epoch": 0}], ids=["position", "epoch"])
def test_position_and_epoch_never_fall(change: dict[str, int]) -> None:
    tiny = started(k1=None)
    tiny.write(tiny.row("1", 1, 1))
    tiny.commit(tiny.row("1", 1, 1))
    tiny.commit(**change)
    result = tiny.judged("D6")
    assert result.violations == 1
    assert f"{'order' if 'position' in change else 'epoch'} 0 after" in result.witnesses[0].headline


def test_positions_with_one_order_are_one_cut() -> None:
    tiny = started(k1=None, k2=None)
    tiny.write(tiny.row("1", 1, 1))
    tiny.write(tiny.row("2", 1, 2))
    tiny.records["log"][-1]["order"] = tiny.records["log"][-2]["order"]
    tiny.commit(tiny.row("1", 1, 1), tiny.row("2", 1, 2), position=1)
    assert tiny.violated() == set()
    tiny.records["changes"].pop()
    assert "D6" in tiny.violated()


def observed(tiny: Tiny, name: str, order: int, at_us: int, **seen: Any) -> None:
    read = {
        "at_us": at_us,
        "observer": "reader",
        "snapshot": at_us,
        "order": order,
        "name": name,
        "kind": PUT,
    }
    tiny.records["observations"].append({**read, **seen})


def bank() -> Tiny:
    tiny = Tiny(TrackedTable("account", total="bank"), k1=50, k2=50)
    tiny.commit(tiny.row("1", 0, 0, 50), position=0, covered="1")
    tiny.commit(tiny.row("2", 0, 1, 50), position=0)
    tiny.write(tiny.row("1", 1, 1, 40), tiny.row("2", 1, 2, 60))
    tiny.commit(tiny.row("1", 1, 1, 40), tiny.row("2", 1, 2, 60))
    return tiny


def test_a_total_that_an_observer_saw_differ() -> None:
    tiny = bank()
    observed(
        tiny, "total bank", 0, 1, value=50
    )  # the dump was still going on at the first commit with order 0
    observed(tiny, "total bank", order_of(1), 2, value=100)
    assert tiny.judged("D6").outcome is Outcome.HOLDS
    observed(tiny, "total bank", order_of(1), 3, value=90)
    assert tiny.judged("D6").witnesses[0].headline == (
        "total bank: 90 was observed at position 1, the source has 100"
    )


def test_a_row_that_no_state_of_that_position_had() -> None:
    tiny = bank()
    first, second = (tiny.row("1", *cell) for cell in ((0, 0, 50), (1, 1, 40)))
    observed(tiny, "row account", 0, 1, **first)
    observed(tiny, "row account", order_of(1), 2, **second)
    assert tiny.judged("D6").outcome is Outcome.HOLDS
    observed(tiny, "row account", order_of(1), 3, **first)
    assert tiny.judged("D6").witnesses[0].headline == (
        "account 1: an observer saw initial row 0, value 50, where commit 3 has session 1 number 1, value 40"
    )


def test_an_observer_is_never_sent_back() -> None:
    tiny = bank()
    observed(tiny, "total bank", order_of(1), 1, value=100)
    observed(tiny, "total bank", 0, 2, value=100)
    assert tiny.judged("D6").witnesses[0].headline == "observer reader: order 0 after order 103"
