"""The checkers of the end, D7 and D8: both sides are the same, and what ought to happen has happened."""

from __future__ import annotations

import pytest

from tests.histories.made import Records, busy_seed, make, row
from tests.histories.tiny import Tiny
from verify.history.history import CHUNK, FAILED, LOG
from verify.history.judge import judge
from verify.history.result import Outcome


def change_end(records: Records, change: str) -> None:
    target = records["final_target"]
    if change == "lost":
        target.pop()
    elif change == "altered":
        target[0]["number"] += 1
    elif change == "extra":
        target.append(row("register", "999", (1, 1, None)))
    else:
        target.append(dict(target[0]))


@pytest.mark.parametrize("change", ["lost", "altered", "extra", "doubled"])
def test_the_ends_must_be_the_same(change: str) -> None:
    records = make(1)
    assert judge(records.history(), ["D7"])[0].outcome is Outcome.HOLDS
    change_end(records, change)
    result = judge(records.history(), ["D7"])[0]
    assert (result.outcome, result.violations) == (Outcome.VIOLATED, 1)
    assert len(result.witnesses) == 1
    if change != "doubled":  # the recorded changes do not lead there
        assert judge(records.history(), ["D8"])[0].outcome is Outcome.UNKNOWN


def test_convergence_is_unknown_where_there_is_no_end() -> None:
    records = make(1)
    records.drained = False
    assert "not drained" in judge(records.history(), ["D7"])[0].reason
    records.halted = "SchemaError"
    assert "judged as a cut" in judge(records.history(), ["D7"])[0].reason
    empty = Tiny()
    assert empty.judged("D7").outcome is Outcome.UNKNOWN


def forget(records: Records, what: str) -> None:
    if what == "acknowledged":
        for each in records["operations"]:
            each["outcome"] = FAILED
    elif what == "fault":
        records["faults"].append({"name": "kill_server", "point": "apply.commit:3", "fired": False})
    elif what == "chunk":
        records["deliveries"][:] = [each for each in records["deliveries"] if each["origin"] == LOG]
    elif what == "change event":
        records["deliveries"][:] = [each for each in records["deliveries"] if each["origin"] == CHUNK]
    elif what == "cut":
        records["commits"].clear()
        records["changes"].clear()
    elif what == "lead to the final source":
        records["log"].pop()
    else:
        for each in records["deliveries"]:
            each["segment"] = 99 if each["origin"] == LOG else 1


@pytest.mark.parametrize(
    "what",
    ["acknowledged", "fault", "chunk", "change event", "cut", "lead to the final source", "dump passed"],
)
def test_nothing_done_is_nothing_proved(what: str) -> None:
    records = make(busy_seed())
    forget(records, what)
    result = judge(records.history(), ["D8"])[0]
    assert result.outcome is Outcome.UNKNOWN
    assert what in result.reason
