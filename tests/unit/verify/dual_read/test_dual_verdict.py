"""Verdicts of the dual read from answers and positions alone; each verdict with a case that must not get it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verify.dual_read.answer import Answer, answer_of
from verify.dual_read.verdict import (
    Failure,
    Outcome,
    Read,
    Round,
    Rules,
    exact,
    first_verdict,
    steady,
    verdict,
)
from verify.readers.snapshot import LogPlace

RULES = Rules(order="total", steady_rounds=3)


def read(value: object, low: int | None, high: int | None = None) -> Read:
    result = value if isinstance(value, Answer | Failure) else answer_of([(value,)])
    top = low if high is None else high
    return Read(result, _place(low), _place(top), 0.0)


def _place(order: int | None) -> LogPlace | None:
    return None if order is None else LogPlace(order, str(order))


def moving(number: int, old: object = "a", new: object = "b", after: object | None = None) -> Round:
    """A round of a busy source: every read is at a place of its own."""
    at = 100 * number
    last = old if after is None else after
    return Round(read(old, at, at + 1), read(new, at + 10), read(last, at + 20, at + 21), True, False)


def test_equal_answers_match_wherever_they_stand() -> None:
    found = first_verdict(read(1, 5), read(1, None), RULES)
    assert found is not None
    assert found.outcome is Outcome.MATCH


def test_different_answers_prove_nothing_at_first() -> None:
    assert first_verdict(read("a", 5), read("b", 5), RULES) is None


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_new_answer_that_meets_an_old_one_was_lag(where: str) -> None:
    done = moving(1, old="b" if where == "before" else "a", after="b" if where == "after" else "a")
    found = verdict([done], RULES)
    assert found is not None
    assert found.outcome is Outcome.LAG


def test_an_unpassed_ledger_settles_nothing_not_even_lag() -> None:
    assert verdict([replace(moving(1, old="b"), reached=False)], RULES) is None
    assert verdict([replace(moving(1), reached=False)] * 9, RULES) is None


def test_one_position_on_both_sides_is_certain_at_once() -> None:
    done = Round(read("a", 7), read("b", 7), read("a", 7), True, False)
    found = verdict([done], RULES)
    assert exact(done)
    assert found is not None
    assert found.outcome is Outcome.BUG


def test_a_verdict_beside_two_positions_never_says_that_they_are_one() -> None:
    """What the log holds between them is nothing of ours: that, and no more, is what the reason claims."""
    still = Round(read("a", 7), read("b", 9), read("a", 9), reached=True, still=True)
    one = Round(read("a", 7), read("b", 7), read("a", 7), reached=True, still=False)
    busy = [moving(number) for number in range(1, RULES.steady_rounds + 1)]
    reasons = [found.reason for rounds in ([still], [one], busy) if (found := verdict(rounds, RULES))]
    assert len(reasons) == 3
    assert {reason.rpartition("; ")[2] for reason in reasons} == {
        "no change lies between the places at which both sides stood",
        "the same in 3 rounds, the target further on in each",
    }
    assert not any(re.search(r"(one|same) (position|place)", reason) for reason in reasons)


@pytest.mark.parametrize(
    "done",
    [
        Round(read("a", 6, 7), read("b", 7), read("a", 7), True, False),  # something may lie between
        Round(read("a", 7), read("b", 7), read("a", None, 7), True, False),  # hidden commits are not excluded
        Round(read("a", 7), read("b", 7), read("a", 7), False, False),
        Round(
            read("a", 5), read("b", 6), read("a", 5), True, True
        ),  # the second old read lacks what the target has
    ],
)
def test_anything_less_than_one_position_is_not(done: Round) -> None:
    assert not exact(done)
    assert verdict([done], RULES) is None


def test_steadiness_needs_all_its_rounds() -> None:
    rounds = [moving(n) for n in range(1, 4)]
    assert verdict(rounds[:2], RULES) is None
    found = verdict(rounds, RULES)
    assert found is not None
    assert found.outcome is Outcome.BUG


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    "change",
    [
        lambda r: replace(r, before=replace(r.before, result=answer_of("other"))),
        lambda r: replace(r, after=replace(r.after, result=answer_of("other"))),
        lambda r: replace(r, new=replace(r.new, result=answer_of("other"))),
        lambda r: replace(r, after=replace(r.after, low=LogPlace(1, "1"))),
        lambda r: replace(r, reached=False),
    ],
)
def test_a_round_that_differs_in_anything_breaks_the_row(place: int, change) -> None:  # type: ignore[no-untyped-def]
    rounds = [moving(n) for n in range(1, 4)]
    rounds[place] = change(rounds[place])
    assert steady(rounds, RULES) < 3


def test_a_target_that_does_not_move_is_no_further_evidence() -> None:
    rounds = [replace(moving(n), new=read("b", 110)) for n in range(1, 9)]
    assert steady(rounds, RULES) == 1


def test_named_causes_only_are_semantic_and_may_be_accepted() -> None:
    rounds = [moving(n, old="Ann", new="ANN ") for n in range(1, 4)]
    assert verdict(rounds, RULES).outcome is Outcome.BUG  # type: ignore[union-attr]  # both at once has no name
    rounds = [moving(n, old="Ann", new="ANN") for n in range(1, 4)]
    found = verdict(rounds, RULES)
    assert found is not None
    assert (found.outcome, found.accepted) == (Outcome.SEMANTIC, False)
    early = first_verdict(rounds[0].before, rounds[0].new, replace(RULES, accept=("case",)))
    assert early is not None
    assert (early.outcome, early.accepted) == (Outcome.SEMANTIC, True)


def test_a_side_that_fails_is_unknown_and_a_refused_query_is_a_bug() -> None:
    down, refused = Failure("the server is down"), Failure("no such column", wrong=True)
    outcomes = [
        first_verdict(read("a", 1), read(down, None), RULES),
        first_verdict(read(down, None), read("a", 1), RULES),
        first_verdict(read(refused, None), read("a", 1), RULES),
        first_verdict(read("a", 1), read(refused, None), RULES),
    ]
    assert [found.outcome for found in outcomes if found] == [
        Outcome.UNKNOWN,
        Outcome.UNKNOWN,
        Outcome.UNKNOWN,
        Outcome.BUG,
    ]


def judged(
    history: Sequence[int], steps: Sequence[tuple[int, int, int]], rules: Rules, wrong: int = 0
) -> set[Outcome]:
    """A target (``wrong`` by a number, or faultless) follows ``history``; reads are where ``steps`` puts them."""
    rounds: list[Round] = []
    at, found = 0, set()
    for ahead, behind, later in steps:
        before = min(at + ahead, len(history) - 1)
        new = min(before + behind, len(history) - 1)
        at = min(new + later, len(history) - 1)
        rounds.append(
            Round(
                read(history[before], before),
                read(history[new] + wrong, new),
                read(history[at], at),
                True,
                before == new == at,
            )
        )
        done = verdict(rounds, rules)
        if done is not None:
            found.add(done.outcome)
            break
    return found


STEPS = st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=30)


@given(steps=STEPS, written=st.lists(st.booleans(), min_size=1, max_size=60))
def test_a_value_that_only_moves_on_is_never_called_wrong(
    steps: list[tuple[int, int, int]], written: list[bool]
) -> None:
    """Whatever is written between the reads, and wherever they are placed."""
    history = [0]
    for changed in written:
        history.append(history[-1] + changed)
    assert judged(history, steps, RULES) <= {Outcome.LAG}


@given(steps=STEPS, length=st.integers(1, 60))
def test_a_wrong_row_is_never_called_lag(steps: list[tuple[int, int, int]], length: int) -> None:
    """The control of the test above: a target that is wrong is found or stays open, whatever moves."""
    assert judged(list(range(0, 2 * length, 2)), steps, RULES, wrong=1) <= {Outcome.BUG}


def test_a_quiet_wrong_row_is_found() -> None:
    assert judged([1] * 200, [(1, 1, 1)] * 30, RULES, wrong=1) == {Outcome.BUG}


def test_broken_rules_are_caught() -> None:
    """A judge that doesn't bracket on the far side calls a row wrong that was only written again."""
    history = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    steps = [(0, 1, 0)] * 9
    assert judged(history, steps, RULES) <= {Outcome.LAG}
    careless = [Round(read(a, a), read(b, b), read(a, a), True, False) for a, b in pairwise(history)]
    assert steady(careless, RULES) <= 1
