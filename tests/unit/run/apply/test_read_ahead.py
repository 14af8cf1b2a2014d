"""The moment to read the next batch: not while others wait, and never so late that the target does."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.run.apply import read_ahead
from migrator.run.apply.read_ahead import ReadAhead
from migrator.run.failure import Stopping

DEADLINE_S = 30.0
SECONDS = st.floats(0.0, 100.0)


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def known(clock: Clock, mapped_s: float, *applied_s: float) -> ReadAhead:
    """Times of batches that were mapped and applied one after the other."""
    reads = ReadAhead(clock)
    for seconds in applied_s:
        reads.mapped(mapped_s)
        with reads.applying():
            clock.now_s += seconds
    return reads


def test_nothing_is_known_at_first_and_nothing_is_put_off() -> None:
    reads = ReadAhead(Clock())
    assert reads.early_s() == 0
    reads.mapped(1.0)
    assert reads.early_s() == 0


def test_a_batch_that_is_mapped_quickly_is_read_when_the_target_is_nearly_ready() -> None:
    clock = Clock()
    reads = known(clock, 0.01, 2.0)
    reads.mapped(0.01)
    with reads.applying():
        assert reads.early_s() == pytest.approx(1.97)
        clock.now_s += 1.98
        assert reads.early_s() == 0


def test_a_batch_that_is_mapped_slowly_is_read_at_once() -> None:
    clock = Clock()
    reads = known(clock, 1.0, 2.0)
    reads.mapped(1.0)
    with reads.applying():
        assert reads.early_s() == 0


def test_those_that_wait_count_as_well() -> None:
    clock = Clock()
    reads = known(clock, 1.0, 2.0)
    reads.mapped(1.0)
    reads.mapped(1.0)
    with reads.applying():
        assert reads.early_s() == pytest.approx(1.99)


def test_the_quickest_transaction_of_late_and_the_slowest_mapping_decide() -> None:
    clock = Clock()
    reads = known(clock, 0.0, 9.0, 3.0, 7.0)
    reads.mapped(0.5)
    with reads.applying():
        assert reads.early_s() == pytest.approx(3.0 - 1.01)


def test_a_transaction_that_takes_longer_than_any_before_puts_off_only_what_is_behind_those_that_wait() -> (
    None
):
    clock = Clock()
    reads = known(clock, 0.0, 2.0)
    reads.mapped(0.0)
    with reads.applying():
        clock.now_s += 50.0
        assert reads.early_s() == 0
        reads.mapped(0.0)
        assert reads.early_s() == pytest.approx(1.99)


@given(st.lists(st.tuples(SECONDS, SECONDS), max_size=9))
def test_the_target_never_waits_for_a_batch_that_could_be_read(times: list[tuple[float, float]]) -> None:
    clock = Clock()
    reads = ReadAhead(clock)
    for mapped_s, applied_s in times:
        assert reads.early_s() == 0
        reads.mapped(mapped_s)
        with reads.applying():
            clock.now_s += applied_s
    assert reads.early_s() == 0


@given(st.lists(SECONDS, min_size=1, max_size=9), SECONDS)
def test_it_is_read_in_time_if_neither_changes_its_pace(applied_s: list[float], mapped_s: float) -> None:
    """The wait ends with enough time left to map the batch before the quickest transaction would be over."""
    clock = Clock()
    reads = known(clock, mapped_s, *applied_s)
    reads.mapped(mapped_s)
    with reads.applying():
        left_s = min(applied_s[-4:]) - reads.early_s()
        assert reads.early_s() == 0 or left_s >= mapped_s


def waiter(reads: ReadAhead, stopping: Stopping) -> threading.Event:
    """A thread that waits; the event is set once it goes on."""
    gone_on = threading.Event()

    def wait() -> None:
        reads.wait(stopping)
        gone_on.set()

    threading.Thread(target=wait, daemon=True).start()
    return gone_on


def test_who_waits_goes_on_as_soon_as_the_target_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "_LOOK_S", 2 * DEADLINE_S)  # nothing but the target's word ends the wait
    reads = known(Clock(), 0.0, 1000.0)
    reads.mapped(0.0)
    with reads.applying():
        gone_on = waiter(reads, Stopping())
        assert not gone_on.wait(0.05)
    assert gone_on.wait(DEADLINE_S)


def test_a_stop_ends_the_wait() -> None:
    reads = known(Clock(), 0.0, 1000.0)
    reads.mapped(0.0)
    stopping = Stopping()
    with reads.applying():
        gone_on = waiter(reads, stopping)
        assert not gone_on.wait(0.05)
        stopping.request()
        assert gone_on.wait(DEADLINE_S)
