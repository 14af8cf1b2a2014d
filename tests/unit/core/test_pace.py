"""How fast a dump reads: chunk size and rest, by the operator's word and by the slowest reads."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.core.pace import Pacer
from migrator.core.throttle import (
    ALONE_S,
    BESIDE_OTHERS_S,
    FIRST_SAMPLES,
    QUICKLY_S,
    QUIET_SAMPLES,
    SURE_SAMPLES,
    Throttle,
)
from migrator.model.limits import CaptureLimits
from migrator.model.load import Load
from migrator.model.requests.request import Pace
from tests.unit.core.test_core import OTHER, TABLE

LIMITS = CaptureLimits(
    chunk_rows=1000, chunk_rows_min=100, chunk_rows_max=8000, chunk_target_s=0.4, dump_share=1.0
)


def weighed(limits: CaptureLimits, pace: Pace) -> Pacer:
    """Rows of the tables are known to be narrow."""
    pacer = Pacer(limits, pace)
    for table in (TABLE, OTHER):
        pacer.weigh(table, 10, 100)
    return pacer


def test_without_a_bound_chunks_adapt_or_are_what_the_operator_says() -> None:
    pacer = weighed(LIMITS, Pace())
    pacer.note(TABLE, pacer.limit_rows(TABLE), 0.1, full=True)
    assert (pacer.limit_rows(TABLE), pacer.rest_s) == (2000, 0.0)
    pacer.note(TABLE, pacer.limit_rows(TABLE), 9.0, full=False)
    assert pacer.limit_rows(TABLE) == 2000, "the end of a table says nothing about speed"
    pacer.follow(Pace(chunk_rows=7, delay_s=1.5))
    pacer.note(TABLE, pacer.limit_rows(TABLE), 0.1, full=True)
    assert (pacer.limit_rows(TABLE), pacer.rest_s) == (7, 1.5)


def test_slow_reads_make_chunks_smaller_and_rests_longer_until_they_are_fast_again() -> None:
    pacer = weighed(LIMITS, Pace(chunk_rows=4000, p95_s=0.5))
    pacer.note(TABLE, pacer.limit_rows(TABLE), 0.6, full=True)
    assert (pacer.limit_rows(TABLE), pacer.rest_s) == (2000, 0.6)
    for _ in range(10):
        pacer.note(TABLE, pacer.limit_rows(TABLE), 3.0, full=True)
    assert (pacer.limit_rows(TABLE), pacer.rest_s) == (100, 10.0)
    for _ in range(40):
        pacer.note(TABLE, pacer.limit_rows(TABLE), 0.1, full=True)
    assert (pacer.limit_rows(TABLE), pacer.rest_s) == (4000, 0.0)


def test_one_slow_read_in_twenty_is_not_yet_the_95th_percentile() -> None:
    pacer = weighed(LIMITS, Pace(chunk_rows=1000, p95_s=0.5))
    for _ in range(19):
        pacer.note(TABLE, pacer.limit_rows(TABLE), 0.1, full=True)
    pacer.note(TABLE, pacer.limit_rows(TABLE), 0.6, full=True)
    assert pacer.limit_rows(TABLE) == 1000
    pacer.note(TABLE, pacer.limit_rows(TABLE), 0.6, full=True)
    assert pacer.limit_rows(TABLE) == 500


def test_a_new_bound_is_measured_anew() -> None:
    pacer = weighed(LIMITS, Pace(chunk_rows=1000, p95_s=0.5))
    pacer.note(TABLE, pacer.limit_rows(TABLE), 0.6, full=True)
    pacer.follow(Pace(chunk_rows=1000, p95_s=2.0))
    assert (pacer.limit_rows(TABLE), pacer.rest_s) == (1000, 0.0)


def test_each_table_has_a_size_of_its_own_by_time_and_bytes() -> None:
    pacer = Pacer(replace(LIMITS, chunk_rows=5000, chunk_bytes=1_000_000), Pace())
    assert pacer.limit_rows(TABLE) == 1000, "rows that may be of any width are tried first"
    pacer.weigh(TABLE, 1000, 100_000)
    pacer.weigh(OTHER, 1000, 10_000_000)
    assert (pacer.limit_rows(TABLE), pacer.limit_rows(OTHER)) == (5000, 100)
    pacer.note(TABLE, 5000, 0.8, full=True)
    assert (pacer.limit_rows(TABLE), pacer.limit_rows(OTHER)) == (2500, 100)
    pacer.weigh(OTHER, 1, 50_000_000)
    assert pacer.limit_rows(OTHER) == 1, (
        "a wide row counts at once, and bytes go before the least number of rows"
    )
    for _ in range(30):
        pacer.weigh(OTHER, 10, 1000)
    assert pacer.limit_rows(OTHER) == 5000
    pacer.follow(Pace(chunk_rows=8000))
    pacer.weigh(TABLE, 10, 10_000)
    assert pacer.limit_rows(TABLE) == 1000, "the operator's size, too"


def test_a_busy_source_is_read_ever_more_slowly_by_one_worker_and_faster_step_by_step() -> None:
    pacer = Pacer(replace(LIMITS, dump_workers=4, max_active_sessions=10), Pace())
    assert pacer.sampled(Load(10, None)) == ""
    assert (pacer.workers, pacer.rest_s) == (4, 0.0)
    rests = []
    for _ in range(12):
        assert "active sessions: 11, above 10" in pacer.sampled(Load(11, 99.0))
        rests.append(pacer.rest_s)
    assert (pacer.workers, rests[:3], rests[-1]) == (1, [0.1, 0.2, 0.4], 10.0)
    back = []
    while pacer.rest_s:
        assert pacer.sampled(Load(3, None)) == ""
        back.append(pacer.rest_s)
    assert (pacer.workers, len(back), back == sorted(back, reverse=True)) == (4, 8, True)
    pacer.sampled(Load(11, None))
    assert pacer.sampled(None) == ""
    assert (pacer.workers, pacer.rest_s) == (4, 0.0)


def test_an_operator_moves_the_bounds_of_load_and_hears_what_cannot_be_seen() -> None:
    pacer = Pacer(replace(LIMITS, max_active_sessions=10), Pace(replica_lag_s=2.0))
    assert pacer.bounds == Load(10, 2.0)
    assert "replica lag in s: 3, above 2" in pacer.sampled(Load(1, 3.0))
    pacer.follow(Pace(active_sessions=50))
    assert pacer.bounds == Load(50, None)
    assert "active sessions can't be seen" in pacer.sampled(Load(None, 9.0))
    assert Pacer(LIMITS, Pace()).bounds == Load()


def test_without_bounds_nothing_slows_down() -> None:
    pacer = Pacer(LIMITS, Pace(active_sessions=1))
    pacer.sampled(Load(2, None))
    assert pacer.rest_s > 0
    pacer.follow(Pace())
    assert pacer.rest_s == 0
    assert pacer.sampled(Load(10**6, 1e6)) == ""
    assert pacer.rest_s == 0


def test_several_reads_at_once_do_not_double_the_size_again_and_again() -> None:
    pacer = weighed(LIMITS, Pace())
    for _ in range(3):
        pacer.note(TABLE, 1000, 0.01, full=True)
    assert pacer.limit_rows(TABLE) == 2000


@given(
    st.lists(st.tuples(st.floats(0, 60), st.booleans()), max_size=60),
    st.integers(0, 10**6),
    st.floats(0, 5),
)
def test_chunks_and_rests_stay_in_their_bounds(
    times: list[tuple[float, bool]], rows: int, p95_s: float
) -> None:
    pacer = weighed(LIMITS, Pace(chunk_rows=rows, delay_s=0.2, p95_s=p95_s))
    for elapsed_s, full in times:
        pacer.note(TABLE, pacer.limit_rows(TABLE), elapsed_s, full)
        assert 1 <= pacer.limit_rows(TABLE) <= LIMITS.chunk_rows_max
        assert 0.2 <= pacer.rest_s <= 10.2


def sampled(pacer: Pacer, active: int | None, times: int) -> None:
    for _ in range(times):
        pacer.sampled(Load(active, None))


def worked(pacer: Pacer) -> None:
    sampled(pacer, 2, SURE_SAMPLES)


def alone(pacer: Pacer) -> None:
    sampled(pacer, 0, max(QUIET_SAMPLES, FIRST_SAMPLES))


def test_a_dump_is_gentle_until_it_is_known_that_nobody_works() -> None:
    """Else one that begins beside others goes at full speed for as long as it takes to see them."""
    pacer = weighed(replace(LIMITS, dump_share=0.25), Pace())
    pacer.note(TABLE, 1000, 0.1, full=True)
    assert pacer.workers == 1
    assert pacer.rest_s == pytest.approx(0.3)
    assert pacer.look_again_s == QUICKLY_S, "that should not take long"
    sampled(pacer, 0, FIRST_SAMPLES - 1)
    assert pacer.workers == 1
    assert pacer.rest_s == pytest.approx(0.3)
    sampled(pacer, 0, 1)
    assert (pacer.workers, pacer.rest_s, pacer.look_again_s) == (2, 0.0, ALONE_S)
    pacer.sampled(None)
    assert (pacer.workers, pacer.look_again_s) == (1, QUICKLY_S), (
        "nobody looked meanwhile: the next dump asks anew"
    )


def test_where_no_meter_is_a_dump_goes_at_full_speed() -> None:
    pacer = Pacer(replace(LIMITS, dump_share=0.25), Pace(), metered=False)
    pacer.note(TABLE, 1000, 0.1, full=True)
    assert (pacer.workers, pacer.rest_s) == (2, 0.0)


def test_while_others_work_one_worker_reads_for_its_share_of_the_time() -> None:
    pacer = weighed(replace(LIMITS, dump_share=0.25), Pace())
    alone(pacer)
    pacer.note(TABLE, 1000, 0.4, full=True)
    assert (pacer.workers, pacer.rest_s) == (2, 0.0)
    worked(pacer)
    assert pacer.workers == 1
    assert pacer.rest_s == pytest.approx(1.2), "the read before they came counts, too"
    assert pacer.look_again_s == BESIDE_OTHERS_S
    pacer.note(TABLE, 1000, 0.2, full=True)
    assert pacer.rest_s == pytest.approx(0.6)
    pacer.note(TABLE, 1000, 0.1, full=True)
    assert pacer.rest_s == pytest.approx(0.3), "each read is paid for by itself"
    assert pacer.limit_rows(TABLE) == 1000, "a read should take a fourth of what it may take alone"


def test_a_dump_goes_at_full_speed_once_nobody_was_seen_for_a_while() -> None:
    pacer = weighed(replace(LIMITS, dump_share=0.5), Pace())
    worked(pacer)
    pacer.note(TABLE, 1000, 0.1, full=True)
    for _ in range(QUIET_SAMPLES - 1):
        pacer.sampled(Load(0, None))
        assert (pacer.workers, pacer.rest_s) == (1, 0.1)
    pacer.sampled(Load(0, None))
    assert (pacer.workers, pacer.rest_s) == (2, 0.0)
    worked(pacer)
    assert pacer.workers == 1


def test_somebody_seen_once_was_one_of_ours() -> None:
    """A meter that takes a session of ours for another one time in so many; who works for long is seen twice."""
    pacer = weighed(replace(LIMITS, dump_share=0.5), Pace())
    alone(pacer)
    for _ in range(3):
        sampled(pacer, 1, 1)
        assert (pacer.workers, pacer.look_again_s) == (1, QUICKLY_S), (
            "it may be another, until a few quick looks"
        )
        sampled(pacer, 0, FIRST_SAMPLES)
        assert (pacer.workers, pacer.look_again_s) == (2, ALONE_S)
    worked(pacer)
    sampled(pacer, 0, 1)
    sampled(pacer, 1, 1)
    sampled(pacer, 0, QUIET_SAMPLES - 1)
    assert pacer.workers == 1, "once they were there, each time counts"


def test_who_ran_a_statement_a_moment_ago_is_at_work() -> None:
    pacer = weighed(replace(LIMITS, dump_share=0.5, max_active_sessions=1), Pace())
    alone(pacer)
    for _ in range(SURE_SAMPLES):
        assert pacer.sampled(Load(0, None, lately=True)) == "", (
            "the bound is one of sessions that are active now"
        )
    assert (pacer.workers, pacer.look_again_s) == (1, BESIDE_OTHERS_S)
    sampled(pacer, 0, QUIET_SAMPLES)
    assert pacer.workers == 2


def test_who_cannot_be_seen_is_taken_to_work() -> None:
    pacer = weighed(replace(LIMITS, dump_share=0.5), Pace())
    alone(pacer)
    assert pacer.sampled(Load(None, None)) == ""
    pacer.note(TABLE, 1000, 0.1, full=True)
    assert (pacer.workers, pacer.rest_s, pacer.look_again_s) == (1, 0.1, BESIDE_OTHERS_S)


def test_an_operator_lifts_the_share() -> None:
    pacer = weighed(replace(LIMITS, dump_share=0.5), Pace())
    worked(pacer)
    pacer.note(TABLE, 1000, 0.1, full=True)
    assert (pacer.watches, pacer.rest_s) == (True, 0.1)
    pacer.follow(Pace(share=1.0))
    assert (pacer.watches, pacer.workers, pacer.rest_s) == (False, 2, 0.0)
    pacer.follow(Pace(share=0.2))
    assert pacer.rest_s == pytest.approx(0.4)
    pacer.note(TABLE, 1000, 9.0, full=True)
    assert pacer.rest_s == 10.0, "no rest is longer"


@given(st.lists(st.floats(0.001, 60), min_size=1, max_size=60), st.floats(0.01, 1))
def test_reads_take_no_more_than_their_share(times: list[float], share: float) -> None:
    throttle = Throttle()
    for _ in range(SURE_SAMPLES):
        throttle.sampled(Load(1, None))
    reading = resting = 0.0
    for elapsed_s in times:
        throttle.note(elapsed_s)
        reading, resting = reading + elapsed_s, resting + throttle.rest_s(share)
    assert reading <= share * (reading + resting) * (1 + 1e-9)
