"""The last hour: bounded, of whole minutes, and honest about what wasn't seen."""

from __future__ import annotations

from dataclasses import replace

from migrator.core.watched.hour import after
from migrator.model.observed.hour import MINUTE_US, MOST_LOOKS, MOST_MINUTES, Hour
from migrator.model.observed.observation import LEADER, STANDBY, STREAMING, Lag, Observation, Work

BEGAN_US = 29_000_000 * MINUTE_US
CAUGHT_UP = Lag(0, 0.0, 0.0, "")
SEEN = Observation("shop", BEGAN_US, BEGAN_US, LEADER, STREAMING, lag=CAUGHT_UP, capture_lag=CAUGHT_UP)


def seen(second: float, inserts: int = 0, **values: object) -> Observation:
    changes = (((("shop.orders"), "insert"), inserts),) if inserts else ()
    work = Work(changes=changes, captured_changes=inserts, applied_changes=inserts)
    found = replace(SEEN, at_us=BEGAN_US + int(second * 1e6), work=work)
    return replace(found, **values)  # type: ignore[arg-type]


def hour_of(*observations: Observation) -> Hour:
    hour = Hour()
    for one in observations:
        hour = after(hour, one)
    return hour


def test_looks_are_ten_seconds_apart_and_an_hour_of_them_is_kept() -> None:
    hour = hour_of(*(seen(second, second) for second in range(0, 3 * 3600, 2)))
    assert len(hour.looks) == MOST_LOOKS
    assert hour.looks[-1].at_us - hour.looks[0].at_us == (MOST_LOOKS - 1) * 10_000_000
    assert len(hour.minutes) == MOST_MINUTES
    assert {number for minute in hour.whole_minutes() for _, number in minute.counts} == {60}
    assert hour.rate(lambda look: look.captured) == 1.0
    assert set(hour.rates(lambda look: look.applied)) == {None, 1.0}


def test_tables_that_never_changed_cost_nothing_and_others_no_more_than_their_minutes() -> None:
    names = [((f"shop.t{number}", "insert"), 7) for number in range(500)]
    still = Work(changes=tuple(names))
    hour = hour_of(*(seen(second, work=still) for second in range(0, 7200, 10)))
    assert [minute.counts for minute in hour.minutes] == [()] * MOST_MINUTES


def test_what_was_counted_before_the_first_look_is_no_change_of_its_minute() -> None:
    hour = hour_of(seen(0, 1000), seen(10, 1003))
    assert hour.changes(1) == {"shop.orders": 3}
    assert hour.rate(lambda look: look.captured) == 0.3


def test_a_minute_counts_as_read_only_if_it_was_all_the_time() -> None:
    whole = [seen(second) for second in range(0, 130, 10)]
    assert [minute.read for minute in hour_of(*whole).minutes] == [False, True, True], "the first is a part"
    behind = replace(whole[8], capture_lag=Lag(9, 99.0, 99.0, ""))
    assert [minute.read for minute in hour_of(*whole[:8], behind, *whole[9:]).minutes][1] is False
    unknown = replace(whole[8], capture_lag=Lag())
    assert [minute.read for minute in hour_of(*whole[:8], unknown, *whole[9:]).minutes][1] is False
    standby = replace(whole[8], role=STANDBY)
    assert [minute.read for minute in hour_of(*whole[:8], standby, *whole[9:]).minutes][1] is False
    gap = hour_of(*whole[:7], *whole[10:])
    assert [minute.read for minute in gap.minutes][1] is False, "nobody looked for a while"


def test_a_clock_that_was_put_back_begins_anew() -> None:
    hour = hour_of(seen(100), seen(200, 5), seen(50, 9))
    assert [look.at_us for look in hour.looks] == [BEGAN_US + 50_000_000]
    assert hour.changes(60) == {}


def test_since_is_the_first_look_of_an_unbroken_row() -> None:
    hour = hour_of(*(seen(second, standbys=second % 30) for second in (0, 10, 30, 60, 90)))
    assert hour.since(lambda look: look.standbys == 0) == BEGAN_US + 30_000_000
    assert hour.since(lambda look: look.standbys == 5) is None
    assert Hour().since(lambda look: True) is None
    assert Hour().rate(lambda look: look.captured) is None
