"""Shrinking keeps the failure, leaves nothing out that it needs, and nothing in that it doesn't."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from scenarios.chaos.incident.history import Change, History, Row, Transaction
from scenarios.chaos.incident.incident_file import Incident
from scenarios.chaos.incident.shrink import consistent, least, shrunk
from tests.unit.scenarios.incident.made_up import INCIDENT, STRUCTURE, customer, order

MANY = History(
    {
        "customer": [customer(number, f"name {number}") for number in range(1, 30)],
        "orders": [order(f"code-{number}", number) for number in range(1, 30)],
    },
    tuple(
        Transaction(
            number,
            (
                Change("orders", order(f"code-{number}", number), order(f"code-{number}", number + 1)),
                Change("orders", None, order(f"new-{number}", number)),
            ),
        )
        for number in range(1, 20)
    ),
)
LARGE = replace(INCIDENT, history=MANY)


def guilty(incident: Incident) -> bool:
    """A fault that needs one customer, and one change of an order."""
    there = any(row["id"] == "7" for row in incident.history.start["customer"])
    return there and any(
        change.after is not None and change.after["code"] == "new-5" and change.after["customer"] == "5"
        for change in incident.history.changes()
    )


@given(st.sets(st.integers(0, 40)), st.integers(1, 41))
def test_the_least_part_is_exactly_what_is_needed(needed: set[int], size: int) -> None:
    items = [*range(max(size, max(needed, default=0) + 1))]
    assert least(items, lambda kept: needed <= {*kept}) == sorted(needed)


def test_only_what_the_failure_needs_is_left() -> None:
    found = shrunk(LARGE, 3600, replayed=guilty)
    assert found is not None
    assert [row["id"] for row in found.history.start["customer"]] == ["7"]
    assert found.history.start["orders"] == []
    (transaction,) = found.history.transactions
    (change,) = transaction.changes
    assert change.after is not None
    assert change.after["code"] == "new-5"
    assert found.structure.tables["customer"].names() == ("id",)
    assert [*change.after] == ["code", "customer"]
    assert guilty(found)


def test_what_does_not_fail_is_not_shrunk() -> None:
    assert shrunk(LARGE, 3600, replayed=lambda _: False) is None


def test_without_time_everything_stays() -> None:
    asked = []

    def fails(incident: Incident) -> bool:
        asked.append(incident)
        return True

    found = shrunk(LARGE, 0, replayed=fails)
    assert found is not None
    assert found.history == MANY
    assert len(asked) == 1


def images(history: History) -> list[tuple[Row | None, Row | None]]:
    return [(change.before, change.after) for change in history.changes()]


def test_changes_of_rows_that_are_gone_become_what_a_server_takes() -> None:
    one, other, third = order("a", 1), order("a", 2), order("b", 2)
    changes = (
        Transaction(1, (Change("orders", one, other),)),
        Transaction(2, (Change("orders", other, third),)),
        Transaction(3, (Change("orders", third, None),)),
        Transaction(4, (Change("orders", third, None),)),
        Transaction(5, (Change("orders", None, one), Change("orders", None, other))),
    )
    found = consistent(History({"orders": [], "customer": []}, changes), STRUCTURE)
    assert images(found) == [(None, other), (other, third), (third, None), (None, one), (one, other)]
    assert [transaction.order for transaction in found.transactions] == [1, 2, 3, 5]


def test_a_quick_judge_is_asked_and_the_other_one_confirms() -> None:
    asked = list[Incident]()

    def slow(incident: Incident) -> bool:
        asked.append(incident)
        return guilty(incident)

    found = shrunk(LARGE, 3600, replayed=slow, quick=guilty)
    assert found is not None
    assert found.history.rows() == 2
    assert asked == [found]


def test_a_quick_judge_that_is_wrong_has_no_say() -> None:
    found = shrunk(LARGE, 3600, replayed=guilty, quick=lambda _: True)
    assert found is not None
    assert guilty(found)
    assert found.history.rows() == 2
    assert shrunk(LARGE, 3600, replayed=lambda _: False, quick=lambda _: True) is None


def test_what_a_quick_judge_left_too_little_of_is_found_in_an_earlier_step() -> None:
    """It believes that rows of the start don't matter: what it keeps of the transactions does show."""

    def quick(incident: Incident) -> bool:
        return any(
            change.after is not None and change.after["code"] == "new-5"
            for change in incident.history.changes()
        )

    asked = list[Incident]()

    def slow(incident: Incident) -> bool:
        asked.append(incident)
        return guilty(incident)

    found = shrunk(LARGE, 3600, replayed=slow, quick=quick)
    assert found is not None
    assert guilty(found)
    assert found.history.rows() == 2
    assert all(len(incident.history.transactions) <= 1 for incident in asked)


def test_a_failure_that_shows_is_never_said_not_to_because_the_time_is_over() -> None:
    found = shrunk(LARGE, 0, replayed=guilty, quick=lambda _: True)
    assert found is not None
    assert guilty(found)
