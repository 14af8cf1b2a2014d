"""The judge of projects: what was seen must be the mapping at its place, and nothing compared is unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from scenarios.chaos.judge import Facts, judged, looked_at, sampled
from scenarios.chaos.snapshots import Seen
from scenarios.chaos.states import TableState, Texts
from scenarios.chaos.writes.changes import Kind
from scenarios.recording.whole_rows import Committed, RowChange
from verify.history.result import CheckResult, Outcome
from verify.readers.snapshot import LedgerState, TargetSnapshot

Rows = Mapping[str, str]
FIRST: Rows = {"1": "a", "2": "b"}
SECOND: Rows = {"1": "A", "2": "b", "3": "c"}
LOG = (
    Committed(10, (RowChange("t", None, {"id": "3"}), RowChange("t", {"id": "1"}, {"id": "1"}))),
    Committed(20, (RowChange("t", {"id": "9"}, None),)),
)
ACKNOWLEDGED: Mapping[tuple[str, Kind], int] = {("t", "insert"): 1, ("t", "update"): 1, ("t", "delete"): 1}
FACTS = Facts(True, "", LOG, ACKNOWLEDGED, {"ok": 2, "failed": 0}, (), ("t",))


class At(Seen):
    """A snapshot whose dump is done, or not."""

    __slots__ = ()
    done = True

    def dumped(self) -> bool:
        return self.done


class Dumping(At):
    """A snapshot during the dump."""

    __slots__ = ()
    done = False


def seen(number: int, order: int, kind: type[At] = At) -> At:
    ledger = LedgerState(1, 1, order, "", None)
    return kind(number, ledger, cast(TargetSnapshot, None), Path())


def state(expected: Rows, found: Rows) -> TableState:
    def rows(of: Rows) -> tuple[Texts, ...]:
        return tuple((key, value) for key, value in of.items())

    return TableState("t", ("id", "name"), (0,), rows(expected), rows(found))


def verdicts(
    snapshots: Sequence[tuple[Seen, TableState]],
    facts: Facts = FACTS,
    ended: Sequence[TableState] | None = None,
) -> dict[str, CheckResult]:
    states = {one.number: at for one, at in snapshots}
    all_ = [one for one, _ in snapshots]
    found = looked_at(all_, lambda one: [states[one.number]], 100, 60.0)
    last = [state(SECOND, SECOND)] if ended is None else ended
    return {check.code: check for check in judged(facts, all_, found, last)}


GOOD = ((seen(1, 10), state(FIRST, FIRST)), (seen(2, 20), state(SECOND, SECOND)))


def broken(found: Mapping[str, CheckResult]) -> set[str]:
    return {code for code, check in found.items() if check.outcome is Outcome.VIOLATED}


def test_what_the_mapping_says_at_each_place_holds() -> None:
    assert {check.outcome for check in verdicts(GOOD).values()} == {Outcome.HOLDS}


def test_a_row_that_the_mapping_never_made_is_found() -> None:
    wrong = state(SECOND, {**SECOND, "2": "planted"})
    found = verdicts((GOOD[0], (seen(2, 20), wrong)), ended=[wrong])
    assert broken(found) == {"D6", "D7"}
    assert found["D6"].witnesses[0].headline.endswith("t, id 2: name is planted, the mapping says b")


@pytest.mark.parametrize(("key", "value"), [("1", "a"), ("3", "")])
def test_a_row_of_an_earlier_place_is_time_travel(key: str, value: str) -> None:
    rows = {**SECOND, key: value} if value else {one: SECOND[one] for one in SECOND if one != key}
    found = verdicts((*GOOD, (seen(3, 30), state(SECOND, rows))))
    assert broken(found) == ({"D1", "D6"} if value else {"D6"})


def test_a_deleted_row_that_is_back_is_time_travel() -> None:
    gone = {key: value for key, value in SECOND.items() if key != "2"}
    assert broken(verdicts((*GOOD, (seen(3, 30), state(gone, SECOND))))) == {"D1", "D6"}


def test_a_ledger_that_goes_back_is_time_travel() -> None:
    assert broken(verdicts((GOOD[1], GOOD[0]))) == {"D1"}


def test_a_row_twice_is_found() -> None:
    twice = replace(state(SECOND, SECOND), found=(*state(SECOND, SECOND).found, ("2", "b")))
    assert broken(verdicts((*GOOD, (seen(3, 30), twice)))) == {"D6"}


def test_rows_may_be_missing_until_the_table_was_whole_once() -> None:
    part, other = state(SECOND, {"2": "b"}), state(SECOND, {"2": "x"})
    filled = ((seen(7, 6), state(FIRST, FIRST)), (seen(8, 20), state(SECOND, SECOND)))
    assert not broken(verdicts(((seen(6, 5, Dumping), part), *GOOD)))
    assert not broken(verdicts(((seen(6, 5), part), *filled)))
    assert broken(verdicts((*GOOD, (seen(9, 30), part)))) == {"D6"}
    assert broken(verdicts(((seen(6, 5, Dumping), other), *filled))) == {"D6"}


def test_an_acknowledged_write_that_the_log_lacks_is_lost() -> None:
    more: Mapping[tuple[str, Kind], int] = {**ACKNOWLEDGED, ("t", "insert"): 2}
    found = verdicts(GOOD, replace(FACTS, acknowledged=more))
    assert broken(found) == {"D3"}
    assert "1 acknowledged insert" in found["D3"].witnesses[0].headline


def test_a_log_that_the_ledger_never_reached_is_lost() -> None:
    assert broken(verdicts((GOOD[0], (seen(2, 15), GOOD[1][1])))) == {"D3"}


def test_a_write_that_is_lost_in_the_end_is_found() -> None:
    lost = state(SECOND, {key: value for key, value in SECOND.items() if key != "3"})
    assert broken(verdicts(GOOD, ended=[lost])) == {"D7"}


@pytest.mark.parametrize(
    ("facts", "code", "said"),
    [
        (replace(FACTS, silent=("kill_pipeline",)), "D8", "kill_pipeline"),
        (replace(FACTS, ends={"ok": 5, "failed": 5}, left_out={"t": "check"}), "D8", "refused 5 of 10"),
        (replace(FACTS, targets=("t", "other")), "D8", "no row was seen of other"),
        (replace(FACTS, acknowledged={}), "D3", "no write was acknowledged"),
        (replace(FACTS, replay_differs=("t",)), "D3", "doesn't give these tables: t"),
        (replace(FACTS, drained=False), "D7", "had not caught up"),
        (replace(FACTS, halted="a named stop"), "D7", "a named stop"),
    ],
)
def test_what_was_not_checked_is_unknown(facts: Facts, code: str, said: str) -> None:
    found = verdicts(GOOD, facts)[code]
    assert found.outcome is Outcome.UNKNOWN
    assert said in found.reason


def test_nothing_compared_is_never_a_pass() -> None:
    found = verdicts((), ended=())
    assert {code: found[code].outcome for code in ("D1", "D6", "D7", "D8")} == dict.fromkeys(
        ("D1", "D6", "D7", "D8"), Outcome.UNKNOWN
    )
    empty = verdicts(((seen(1, 10), state({}, {})), (seen(2, 20), state({}, {}))), ended=[state({}, {})])
    assert {empty[code].outcome for code in ("D6", "D7", "D8")} == {Outcome.UNKNOWN}


def test_without_time_the_first_and_the_last_are_compared() -> None:
    many = [seen(number, number) for number in range(1, 50)]
    asked = list[int]()

    def states(one: Seen) -> list[TableState]:
        asked.append(one.number)
        return [state(FIRST, FIRST)]

    assert looked_at(many, states, 20, 0.0).snapshots == 2
    assert asked == [1, 49]
    assert looked_at(many, states, 20, 3600.0).snapshots == 20


def test_a_sample_has_the_first_and_the_last() -> None:
    many = [seen(number, number) for number in range(100)]
    found = [one.number for one in sampled(many, 7)]
    assert (found[0], found[-1], len(found)) == (0, 99, 7)
    assert sampled(many[:5], 7) == many[:5]
