"""What the judge makes of histories that prove nothing, contradict themselves, or break a checker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.histories.made import Records, busy_seed, make
from tests.histories.tiny import REGISTER, Tiny, started
from verify.history.history import LOG
from verify.history.judge import ALL, CHECKERS, judge
from verify.history.result import CheckResult, Outcome, overall


def test_an_empty_history_proves_nothing() -> None:
    results = judge(Tiny().records.history())
    assert [result.code for result in results] == list(ALL) == [f"D{number}" for number in range(1, 9)]
    assert {result.outcome for result in results} == {Outcome.UNKNOWN}
    assert all(result.reason for result in results)
    assert overall(results) is Outcome.UNKNOWN


def test_a_checker_that_fails_says_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> CheckResult:
        raise ZeroDivisionError("by nothing")

    check, _ = CHECKERS["D1"]
    monkeypatch.setitem(CHECKERS, "D1", (check, broken))
    result = judge(make(1).history(), ["D1"])[0]
    assert (result.outcome, result.code) == (Outcome.UNKNOWN, "D1")
    assert result.reason == "the checker failed: ZeroDivisionError: by nothing"


def falling_log(records: Records) -> None:
    records["log"].reverse()


def unnumbered(records: Records) -> None:
    records["commits"].reverse()


def unrecorded(records: Records) -> None:
    records["commits"].pop()


def unreadable(records: Records) -> None:
    records["commits"][0]["covered"] = "{"


def not_numeric(records: Records) -> None:
    records["log"].append({**records["log"][-1], "table": "register", "key": "seven"})


@pytest.mark.parametrize("spoil", [falling_log, unnumbered, unrecorded, unreadable, not_numeric])
def test_a_record_that_contradicts_itself_is_unknown(spoil: Callable[[Records], None]) -> None:
    records = make(busy_seed())
    spoil(records)
    result = judge(records.history(), ["D6"])[0]
    assert result.outcome is Outcome.UNKNOWN
    assert "VerifyError" in result.reason


def test_keys_beyond_64_bits_are_compared_as_numbers() -> None:
    small, large = "9", str(2**64 + 5)
    tiny = Tiny(REGISTER[0])
    tiny.write(tiny.row(small, 1, 1))
    tiny.write(tiny.row(large, 1, 2))
    tiny.commit(tiny.row(small, 1, 1), covered=str(2**64))
    assert tiny.violated() == set()
    tiny.commit(covered=large)
    assert "D6" in tiny.violated()


def test_rows_without_provenance_are_told_apart_by_what_they_hold() -> None:
    """SQL of a fault that writes no provenance, e.g. a rogue insert at the source."""
    tiny = started(k1=None)
    bare = {**tiny.row("2", 0, 0, 5), "session": None, "number": None}
    tiny.write(bare)
    tiny.deliver(LOG, bare)
    tiny.commit(bare)
    assert tiny.violated() == set()
    tiny.rogue({**bare, "value": 6})
    assert tiny.violated() == {"D6"}
