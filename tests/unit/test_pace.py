"""How fast a dump reads: chunk size and rest, by the operator's word and by the slowest reads."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from migrator.core.pace import Pacer
from migrator.model.limits import CaptureLimits
from migrator.model.request import Pace

LIMITS = CaptureLimits(chunk_rows=1000, chunk_rows_min=100, chunk_rows_max=8000, chunk_target_s=0.4)


def test_without_a_bound_chunks_adapt_or_are_what_the_operator_says() -> None:
    pacer = Pacer(LIMITS, Pace())
    pacer.note(0.1, full=True)
    assert (pacer.limit_rows, pacer.rest_s) == (2000, 0.0)
    pacer.note(9.0, full=False)
    assert pacer.limit_rows == 2000, "the end of a table says nothing about speed"
    pacer.follow(Pace(chunk_rows=7, delay_s=1.5))
    pacer.note(0.1, full=True)
    assert (pacer.limit_rows, pacer.rest_s) == (7, 1.5)


def test_slow_reads_make_chunks_smaller_and_rests_longer_until_they_are_fast_again() -> None:
    pacer = Pacer(LIMITS, Pace(chunk_rows=4000, p95_s=0.5))
    pacer.note(0.6, full=True)
    assert (pacer.limit_rows, pacer.rest_s) == (2000, 0.6)
    for _ in range(10):
        pacer.note(3.0, full=True)
    assert (pacer.limit_rows, pacer.rest_s) == (100, 10.0)
    for _ in range(40):
        pacer.note(0.1, full=True)
    assert (pacer.limit_rows, pacer.rest_s) == (4000, 0.0)


def test_one_slow_read_in_twenty_is_not_yet_the_95th_percentile() -> None:
    pacer = Pacer(LIMITS, Pace(chunk_rows=1000, p95_s=0.5))
    for _ in range(19):
        pacer.note(0.1, full=True)
    pacer.note(0.6, full=True)
    assert pacer.limit_rows == 1000
    pacer.note(0.6, full=True)
    assert pacer.limit_rows == 500


def test_a_new_bound_is_measured_anew() -> None:
    pacer = Pacer(LIMITS, Pace(chunk_rows=1000, p95_s=0.5))
    pacer.note(0.6, full=True)
    pacer.follow(Pace(chunk_rows=1000, p95_s=2.0))
    assert (pacer.limit_rows, pacer.rest_s) == (1000, 0.0)


@given(
    st.lists(st.tuples(st.floats(0, 60), st.booleans()), max_size=60),
    st.integers(0, 10**6),
    st.floats(0, 5),
)
def test_chunks_and_rests_stay_in_their_bounds(
    times: list[tuple[float, bool]], rows: int, p95_s: float
) -> None:
    pacer = Pacer(LIMITS, Pace(chunk_rows=rows, delay_s=0.2, p95_s=p95_s))
    for elapsed_s, full in times:
        pacer.note(elapsed_s, full)
        assert 1 <= pacer.limit_rows <= LIMITS.chunk_rows_max
        assert 0.2 <= pacer.rest_s <= 10.2
