"""How far a sequence is moved: beyond what is held and given out, never backwards, never beyond its end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.model.sequence import HandedOut, NumberSequence, advance

ONE = NumberSequence("s", "sequence", (("t", "id"),), 1, 1, 1, 2**31 - 1, False, None)


@pytest.mark.parametrize(
    ("following", "step", "held", "source", "margin", "expected"),
    [
        (1, 1, None, None, 0, 1),
        (1, 1, None, None, 1000, 1),  # nothing is in use: nothing to leave out
        (1, 1, 100, None, 0, 101),
        (101, 1, 100, None, 0, 101),
        (500, 1, 100, None, 0, 500),
        (1, 1, 100, 120, 0, 121),
        (1, 1, None, 120, 0, 121),
        (1, 1, 100, None, 10, 111),
        (1, 50, 100, None, 0, 151),  # 101 to 150 may be a client's that counts within a step
        (2, 2, 100, None, 0, 102),  # stays even
        (1, 2, 100, None, 0, 103),  # stays odd
        (1, 1, -7, None, 0, 1),
    ],
)
def test_the_next_value(
    following: int, step: int, held: int | None, source: int | None, margin: int, expected: int
) -> None:
    found = advance(
        replace(ONE, following=following, step=step, held=held),
        () if source is None else (HandedOut(source, 1),),
        margin,
    )
    assert (found.problem, found.following) == ("", expected)
    assert found.moves() == (expected != following)


def test_one_that_counts_down() -> None:
    down = NumberSequence("s", "sequence", (("t", "id"),), -1, -1, -(2**31), -1, False, -40)
    assert advance(down, (HandedOut(-60, -1), HandedOut(900, 1))).following == -61
    assert not advance(replace(down, following=-41)).moves()


@pytest.mark.parametrize("cycles", [False, True])
def test_one_without_a_value_left_is_refused(cycles: bool) -> None:
    small = replace(ONE, greatest=32767, cycles=cycles)
    assert advance(replace(small, held=32766)).following == 32767
    full = advance(replace(small, held=32767))
    assert "no value is left" in full.problem
    assert ("begin again" in full.problem) == cycles
    assert not full.moves()
    assert full.following == 1
    assert "no value is left" in advance(replace(small, following=32768, held=5)).problem, "exhausted already"


def test_one_that_cannot_be_judged_stays() -> None:
    found = advance(replace(ONE, held=100, problem="its column is text", remedy="by hand"))
    assert (found.problem, found.remedy, found.moves()) == ("its column is text", "by hand", False)


@given(
    st.integers(-1000, 1000), st.integers(-60, 60).filter(bool), st.integers(-5000, 5000), st.integers(0, 300)
)
def test_it_never_goes_back_nor_hands_out_what_is_held(
    following: int, step: int, held: int, margin: int
) -> None:
    wide = NumberSequence("s", "sequence", (("t", "id"),), following, step, -(2**63), 2**63 - 1, False, held)
    found = advance(wide, (), margin)
    sign = 1 if step > 0 else -1
    assert found.following * sign >= following * sign
    assert (found.following - following) % step == 0
    assert (found.following - step - held) * sign >= margin
    assert not advance(replace(wide, following=found.following), (), margin).moves(), "not idempotent"
