"""The writers that fail over, and the receipts that they leave."""

from __future__ import annotations

import random
from typing import Any

import pytest

from scenarios.database import Database
from scenarios.demo import outcome
from scenarios.flights import draws, new_writers
from scenarios.flights.application import FlightApplication, Receipts, judged
from scenarios.two_sides import FENCED, longest_pause_s
from scenarios.workload import Operation, RowWrite

OLD = Database("postgresql", "127.0.0.1", 1, "old", "application")
NEW = Database("postgresql", "127.0.0.1", 1, "new", "application")


def write(receipt: int, outcome: str) -> RowWrite:
    return RowWrite(1, receipt, receipt, "receipt", str(receipt), 0, None, 0, 1, outcome)


def test_a_lost_receipt_and_an_invented_one_are_told_apart() -> None:
    writes = [write(1, "ok"), write(2, "ok"), write(3, "unknown"), write(4, "failed")]
    right = judged(writes, {"old": {1, 2, 3}, "new": {1, 2}})
    assert right.kept()
    assert right.text() == "all 2 acknowledged transactions are on both sides, and no other one is"
    wrong = judged(writes, {"old": {1, 3}, "new": {1, 2, 4}})
    assert wrong == Receipts(2, {"old": [2], "new": []}, {"old": [], "new": [4]})
    assert not wrong.kept()
    assert wrong.text() == (
        "of 2 acknowledged transactions: 1 lost on the old side (first: 2);"
        " 1 not acknowledged and there on the new side (first: 4)"
    )


def test_no_transactions_prove_nothing() -> None:
    nothing = judged([write(1, "failed")], {"old": set(), "new": set()})
    assert not nothing.kept()
    assert nothing.text() == "of 0 acknowledged transactions: none at all"


@pytest.mark.parametrize(
    ("verdicts", "kept", "code"),
    [
        ((0, 0, 0), True, 0),
        ((0, 0, 0), False, 1),
        ((0, 3, 1), True, 3),
        ((0, 0, 1), False, 1),
        ((1, 0, 0), True, 1),
    ],
)
def test_one_verdict_that_is_not_equal_fails_the_demo(
    verdicts: tuple[int, ...], kept: bool, code: int
) -> None:
    assert outcome(verdicts, kept) == code


def test_who_is_refused_by_a_fence_goes_to_the_other_side_and_nobody_else() -> None:
    application = FlightApplication(OLD, NEW, 1, 100.0)
    application._halt.set()  # naps take no time
    old, new = application._sides
    application._refused(OLD, "deadlock detected")
    assert application._place() is old
    application._refused(OLD, f"{FENCED}: write to elsewhere")
    assert application._place() is new
    application._refused(OLD, f"{FENCED}: write to elsewhere")  # another thread that was late
    assert application._place() is new
    application._refused(NEW, f"{FENCED}: write to elsewhere")
    assert application._place() is old


def test_the_longest_pause_is_between_two_commits_of_the_switch() -> None:
    def ended(moment: float, how: Any = "ok") -> Operation:
        return Operation(0, "report times", moment - 0.1, moment, how, 1)

    operations = [ended(1.0), ended(9.0), ended(10.5), ended(11.0, "failed"), ended(12.0), ended(12.1)]
    assert longest_pause_s(operations, 10.0) == 1.5
    assert longest_pause_s(operations, 20.0) == 0.0


def test_exact_values_are_on_the_old_instruments_scales() -> None:
    rng = random.Random(5)
    for _ in range(2000):
        drawn = draws.as_instruments_do(rng)
        wind = drawn["wind_speed"]
        assert wind is None or float(wind) == pytest.approx(round(float(wind) / 1.15078) * 1.15078, abs=1e-5)
        celsius = None if drawn["temp"] is None else (float(drawn["temp"]) - 32) / 1.8
        assert celsius is None or celsius == pytest.approx(round(celsius, 1))
        assert draws.day(rng, exact=True)[1:] not in ((3, 9), (3, 10), (11, 2), (11, 3))


def test_keys_are_those_of_the_mapping() -> None:
    """As the mapping's own tests have them: RFC 9562, version 5, of the parts joined by ``|``."""
    key = new_writers.identity("flight", 2013, 1, 1, "UA", 1545, "EWR")
    assert key.version == 5
    assert key != new_writers.identity("flight", 2013, 1, 1, "UA", 1546, "EWR")
