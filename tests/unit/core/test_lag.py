"""The lag: 0 when caught up, rising with the clock in a stall, unknown without an answer, and never too small."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrator.core.lag import STALE_S, LagMeter, seen_once
from migrator.model.observed.observation import Applied, Lag
from migrator.model.position import Position


def at(order: int) -> Position:
    return Position(order, str(order))


@dataclass
class World:
    """A source that commits, a target that follows, a meter that asks, and one clock."""

    meter: LagMeter = field(default_factory=LagMeter)
    now_s: float = 100.0
    commits: list[float] = field(default_factory=list)
    applied: int = 0

    def ask(self) -> None:
        self.meter.answered(self.now_s, at(len(self.commits)))

    def lag(self) -> Lag:
        return self.meter.reading(self.now_s, at(self.applied))

    def true_age_s(self) -> float:
        """The age of the oldest commit that isn't applied; 0 without one."""
        waiting = self.commits[self.applied :]
        return self.now_s - waiting[0] if waiting else 0.0


ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.just(0.0)),
        st.tuples(st.just("apply"), st.just(0.0)),
        st.tuples(st.just("wait"), st.floats(0.01, 3.0)),
        st.tuples(st.just("ask"), st.just(0.0)),
    ),
    max_size=60,
)


def played(world: World, acts: list[tuple[str, float]]) -> None:
    for act, seconds in acts:
        match act:
            case "commit":
                world.commits.append(world.now_s)
            case "apply":
                world.applied = min(world.applied + 1, len(world.commits))
                world.lag()  # somebody looks
            case "wait":
                world.now_s += seconds
            case "ask":
                world.ask()


@given(ACTS)
@settings(max_examples=300)
def test_it_is_never_smaller_than_it_is_where_the_source_answered_just_now(
    acts: list[tuple[str, float]],
) -> None:
    world = World()
    played(world, acts)
    world.ask()
    lag = world.lag()
    assert lag.behind == len(world.commits) - world.applied
    assert lag.behind or lag.age_s == 0.0
    if lag.age_s is not None:
        assert lag.age_s >= world.true_age_s()
    assert lag.at_most_s is None or lag.at_most_s >= world.true_age_s()


@given(ACTS, st.lists(st.floats(0.05, 2.0), min_size=2, max_size=20))
def test_in_a_stall_it_rises_with_the_clock(acts: list[tuple[str, float]], waits: list[float]) -> None:
    world = World()
    world.ask()
    world.lag()
    played(world, acts)
    world.commits.append(world.now_s)
    world.ask()
    before = world.lag()
    assert before.age_s is not None
    for seconds in waits:
        world.now_s += seconds
        world.commits.append(world.now_s)
        world.ask()
        after = world.lag()
        assert after.age_s is not None
        assert before.behind is not None
        assert after.behind is not None
        assert after.age_s == pytest.approx(before.age_s + seconds)
        assert after.behind > before.behind
        before = after


@given(ACTS, st.floats(STALE_S + 0.01, 1e6))
def test_without_an_answer_it_is_unknown_and_its_bound_rises(
    acts: list[tuple[str, float]], silent_s: float
) -> None:
    world = World()
    world.ask()
    played(world, acts)
    world.ask()
    before = world.lag()
    world.meter.refused("the source can't be reached")
    world.now_s += silent_s
    after = world.lag()
    assert (after.behind, after.age_s) == (None, None)
    assert after.unknown == "the source can't be reached"
    assert not after.known
    if before.at_most_s is not None:
        assert after.at_most_s == pytest.approx(before.at_most_s + silent_s)


def test_an_idle_run_shows_no_lag_of_before() -> None:
    world = World(commits=[1.0])
    world.ask()
    assert world.lag().age_s is None, "nobody knows since when"
    world.applied = 1
    assert world.lag() == Lag(0, 0.0, 0.0, "")
    for _ in range(1800):
        world.now_s += 1
        world.ask()
        assert world.lag().age_s == 0.0


def test_an_earlier_run_knows_since_when() -> None:
    world = World(commits=[1.0])
    world.meter.known_before(40.0)
    world.ask()
    assert world.lag() == Lag(1, 60.0, 60.0, "")


def test_a_source_that_was_put_back_takes_its_old_answers_with_it() -> None:
    world = World(commits=[1.0, 2.0, 3.0])
    world.ask()
    world.commits, world.now_s = [1.0], 110.0
    world.ask()
    world.applied = 1
    assert world.lag() == Lag(0, 0.0, 0.0, "")


def test_a_stall_of_days_takes_little_memory_and_stays_at_its_true_age() -> None:
    world = World()
    world.ask()
    world.lag()
    for _ in range(20_000):
        world.now_s += 1
        world.commits.append(world.now_s)
        world.ask()
    assert len(world.meter._ahead) <= 2048
    assert world.lag().age_s == 20_000
    world.applied = 10_000
    lag = world.lag()
    assert lag.age_s is not None
    assert 10_000 <= lag.age_s < 10_000 * 1.1, "thinned answers make it larger, never smaller"


def test_what_is_seen_once_is_by_the_last_runs_word() -> None:
    now_us = 1_000_000_000
    assert seen_once(at(5), at(5), None, now_us) == Lag(0, 0.0, None, "")
    assert seen_once(at(5), None, None, now_us).unknown == "nothing is applied yet"
    known = Applied(now_us - 60_000_000, 3)
    assert seen_once(at(5), at(3), known, now_us) == Lag(2, 60.0, 60.0, "")
    put_back = seen_once(at(5), at(2), known, now_us)
    assert (put_back.behind, put_back.age_s, put_back.at_most_s) == (3, None, None)
