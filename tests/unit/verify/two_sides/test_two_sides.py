"""The checks of a cut-over: each holds over a true history, and sees what one false step makes of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from migrator.errors import VerifyError
from verify.history.result import Outcome
from verify.two_sides import file
from verify.two_sides.checks import CHECKS, NUMBERS, READS, judge
from verify.two_sides.history import (
    CLOSED,
    FAILED,
    FENCED,
    NEW,
    OK,
    OLD,
    OPENED_BY_HAND,
    OPENS,
    REOPENS,
    UNKNOWN,
    Moment,
    Period,
    Pointed,
    Read,
    State,
    TwoSides,
    Write,
    periods,
)

HOLDS, VIOLATED = Outcome.HOLDS, Outcome.VIOLATED
WRITES = (
    Write(1, 1, OLD, "11", 0, 5, OK),
    Write(2, 1, OLD, "21", 3, 8, OK),
    Write(1, 2, OLD, "12", 9, 12, FAILED),
    Write(1, 3, NEW, "13", 25, 27, OK),
    Write(2, 2, NEW, "22", 26, 30, UNKNOWN),
    Write(1, 4, OLD, "14", 45, 48, OK),
)
MOMENTS = (
    Moment(9, FENCED),
    Moment(10, CLOSED),
    Moment(20, OPENS),
    Moment(21, OPENS),  # by a leader that goes on with it
    Moment(33, CLOSED),  # by a leader that slept at that step
    Moment(34, FENCED),
    Moment(35, CLOSED),
    Moment(40, OPENS),
)
KEYS = ("11", "13", "14", "21")
TRUE = TwoSides(
    writes=WRITES,
    seen=(State(OLD, 4, ("11",)), State(NEW, 6, ()), State(OLD, 9, ("11", "21")), State(NEW, 28, ("11", "13", "21"))),
    last=(State(OLD, 60, KEYS, rows=KEYS), State(NEW, 61, KEYS, rows=KEYS)),
    moments=MOMENTS,
    looks=2,
)  # fmt: skip


def outcomes(history: TwoSides) -> dict[str, Outcome]:
    """The verdicts by code."""
    return {check.code: check.outcome for check in judge(history)}


def violated(history: TwoSides) -> set[str]:
    """Codes of the checks that see something."""
    return {code for code, outcome in outcomes(history).items() if outcome is VIOLATED}


def ended(*keys: str, rows: tuple[str, ...] = KEYS) -> tuple[State, ...]:
    """Last states of which the new side has these keys."""
    return (TRUE.last[0], State(NEW, 61, keys, rows=rows))


def test_a_true_history_holds() -> None:
    assert outcomes(TRUE) == dict.fromkeys([check.code for check in CHECKS], HOLDS)


@pytest.mark.parametrize(
    ("history", "seen_by"),
    [
        (replace(TRUE, last=ended("11", "13", "21")), {"S1"}),  # the last write of a client is gone
        (replace(TRUE, last=ended("13", "14", "21")), {"S1", "S4"}),  # one in the middle
        (replace(TRUE, last=ended(*KEYS, "13")), {"S2"}),
        (replace(TRUE, last=ended(*KEYS, "12")), {"S2"}),  # which was refused
        (replace(TRUE, seen=(*TRUE.seen, State(OLD, 50, KEYS, ("counter 1 is 3",)))), {"S2"}),
        (replace(TRUE, writes=(*WRITES, Write(3, 1, OLD, "14", 14, 18, OK))), {"S3"}),  # behind the wait
        (
            replace(TRUE, writes=(*WRITES, Write(3, 1, NEW, "14", 11, 19, OK))),
            {"S1", "S3"},
        ),  # before the opening
        (replace(TRUE, writes=(*WRITES, Write(3, 1, NEW, "14", 50, 52, OK))), {"S3"}),  # behind the return
        (replace(TRUE, seen=(*TRUE.seen, State(NEW, 29, ("13", "21")))), {"S1", "S4"}),
        # a row is seen no more
        (replace(TRUE, seen=(*TRUE.seen, State(NEW, 29, ("11", "13")))), {"S1", "S4"}),
        # opened before all was carried
        (replace(TRUE, seen=(*TRUE.seen[:3], State(NEW, 22, ("11",)))), {"S1"}),
        (replace(TRUE, seen=(*TRUE.seen, State(OLD, 49, ("11", "13", "21")))), {"S1"}),  # it has answered
        (replace(TRUE, last=(TRUE.last[0], State(NEW, 61, KEYS, rows=(*KEYS, "13")))), {"S6"}),
        (replace(TRUE, stuck=("nobody could write",)), {"S5"}),
        (replace(TRUE, last=ended(*KEYS, rows=("11", "13", "14", "21, other"))), {"S6"}),
    ],
)
def test_each_check_sees_what_it_is_for(history: TwoSides, seen_by: set[str]) -> None:
    assert violated(history) == seen_by


POINTED = (Pointed(10, 12, NEW), Pointed(20, 22, OLD))
READ = (
    Read(1, 2, OLD),
    Read(9, 11, NEW),
    Read(11, 13, OLD),
    Read(13, 14, NEW),
    Read(19, 21, OLD),
    Read(23, 24, OLD),
)


@pytest.mark.parametrize(
    "read",
    [Read(8, 9, NEW), Read(13, 14, OLD), Read(18, 19, OLD), Read(23, 24, NEW)],
    ids=["before the word", "switched", "not yet back", "back"],
)
def test_a_read_on_another_side_than_the_one_pointed_to_is_seen(read: Read) -> None:
    history = replace(TRUE, reads=READ, pointed=POINTED)
    assert outcomes(history)[READS.code] is HOLDS
    assert violated(replace(history, reads=(*READ, read))) == {READS.code}
    nobody = replace(history, reads=tuple(one for one in READ if one.side == OLD))
    assert outcomes(nobody)[READS.code] is Outcome.UNKNOWN, "nobody read where reads went"


def test_reads_are_judged_where_there_are_some_or_should_be() -> None:
    assert READS.code not in outcomes(TRUE)
    assert outcomes(replace(TRUE, reads=(Read(1, 2, OLD),)))[READS.code] is HOLDS, "nobody has pointed them"
    assert violated(replace(TRUE, reads=(Read(1, 2, NEW),))) == {READS.code}
    assert outcomes(replace(TRUE, pointed=POINTED))[READS.code] is Outcome.UNKNOWN


def test_numbers_that_collide_or_fall_behind_the_other_side_are_seen() -> None:
    writes = (
        Write(1, 1, OLD, "7", 0, 5, OK),
        Write(2, 1, OLD, "6", 4, 6, OK),  # beside the first: either may be numbered first
        Write(1, 2, NEW, "8", 25, 27, OK),
    )
    keys = ("6", "7", "8")
    last = tuple(State(side, 60, keys, rows=keys) for side in (OLD, NEW))
    history = TwoSides(writes, last=last, moments=MOMENTS, looks=1, seen=last, numbered=True)
    assert outcomes(history)[NUMBERS.code] is HOLDS
    assert violated(history) == set()
    collided = Write(3, 1, NEW, "", 24, 26, FAILED, collided=True)
    assert violated(replace(history, writes=(*writes, collided))) == {NUMBERS.code}
    behind = (*writes[:1], Write(2, 1, NEW, "6", 25, 26, OK), *writes[2:])
    assert violated(replace(history, writes=behind)) == {NUMBERS.code}
    assert NUMBERS.code not in outcomes(replace(history, numbered=False))


def test_nothing_looked_at_is_unknown() -> None:
    assert set(outcomes(TwoSides(())).values()) == {Outcome.UNKNOWN}
    found = outcomes(replace(TRUE, last=()))
    assert (found["S1"], found["S6"]) == (Outcome.UNKNOWN, Outcome.UNKNOWN)


def test_a_write_that_nobody_knows_the_end_of_may_be_there_or_not() -> None:
    both = ("11", "13", "14", "21", "22")
    last = (State(OLD, 60, both, rows=both), State(NEW, 61, both, rows=both))
    assert violated(replace(TRUE, last=last)) == set()


def test_a_side_is_open_from_the_announced_opening_to_the_finished_fence() -> None:
    assert periods(MOMENTS) == (Period(OLD, -1, 10), Period(NEW, 20, 35), Period(OLD, 40))
    undone = (Moment(5, REOPENS), *MOMENTS[:2], Moment(11, CLOSED), Moment(12, REOPENS))
    assert periods(undone) == (Period(OLD, -1, 10), Period(OLD, 12)), "before a fence nothing is opened again"
    by_hand = (*MOMENTS[:2], Moment(15, OPENED_BY_HAND, OLD))
    assert periods(by_hand) == (Period(OLD, -1, 10), Period(OLD, 15, by_hand=True))
    both = (*MOMENTS[:3], Moment(30, OPENED_BY_HAND, OLD))
    assert periods(both) == (Period(OLD, -1, 10), Period(NEW, 20, 30), Period(OLD, 30, by_hand=True))


def test_a_history_is_read_as_it_was_saved(tmp_path: Path) -> None:
    for history in (TRUE, replace(TRUE, reads=READ, pointed=POINTED, numbered=True)):
        file.save(history, tmp_path)
        assert file.load(tmp_path) == history
    (tmp_path / file.NAME).write_text("{}")
    with pytest.raises(VerifyError, match="no history of a cut-over"):
        file.load(tmp_path)
