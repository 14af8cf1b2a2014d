"""A table whose inserts fall off against its own past hour is noticed; idle, odd and unread ones are not."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from migrator.core.watched.falls import LEAST_PAST, WINDOW, fallen
from migrator.core.watched.hour import after
from migrator.model.observed.hour import MINUTE_US, Hour, Minute
from migrator.model.observed.observation import Lag, Work
from tests.unit.core.watched.test_hour import BEGAN_US, seen


def minutes(amounts: Sequence[float], operation: str = "insert", table: str = "shop.orders") -> list[Minute]:
    return [
        Minute(BEGAN_US + place * MINUTE_US, (((table, operation), number),) if number else (), True)
        for place, number in enumerate(amounts)
    ]


def test_a_table_that_stops_is_told_with_what_was_usual_and_since_when() -> None:
    (found,) = fallen(minutes([60] * 50 + [0] * 5))
    assert (found.table, found.usual, found.now) == ("shop.orders", 60.0, 0.0)
    assert found.since_us == BEGAN_US + 50 * MINUTE_US


def test_a_table_that_has_a_few_left_is_told_as_well() -> None:
    (found,) = fallen(minutes([60] * 50 + [10] * 5))
    assert found.now == 10.0
    assert found.since_us == BEGAN_US + 50 * MINUTE_US


@pytest.mark.parametrize(
    ("amounts", "why"),
    [
        ([60] * 55, "it goes on"),
        ([60] * 50 + [20] * 5, "a third is left"),
        ([60] * 52 + [0] * 3, "three minutes are too few"),
        ([0] * 55, "it never had any"),
        ([3] * 50 + [0] * 5, "it has too few to tell"),
        (([6000] + [0] * 9) * 5 + [0] * 5, "it is filled now and then"),
        ([60] * 15 + [0] * 5, "too little of the past is known"),
        ([60] * 30 + [0] * 25, "nothing is usual by now: less than four fifths of the past had any"),
    ],
)
def test_others_are_quiet(amounts: list[float], why: str) -> None:
    assert fallen(minutes(amounts)) == (), why


def test_updates_and_deletes_may_fall_off() -> None:
    assert fallen(minutes([60] * 50 + [0] * 5, "update")) == ()
    assert fallen(minutes([60] * 50 + [0] * 5, "delete")) == ()


def test_minutes_that_were_not_read_say_nothing() -> None:
    whole = minutes([60] * 50 + [0] * 5)
    assert fallen([*whole[:-1], replace(whole[-1], read=False)]) == ()
    assert fallen([*whole[:-3], *whole[-2:]]) == (), "a minute is missing"
    unread_past = [
        replace(one, read=False) if place % 4 == 0 else one for place, one in enumerate(whole[:50])
    ]
    assert fallen([*unread_past, *whole[50:]]) == ()
    assert fallen([*minutes([0] * 5), *whole[5:]]), "a break long ago hides nothing"


def test_the_least_past_is_the_least() -> None:
    assert fallen(minutes([60] * LEAST_PAST + [0] * WINDOW))
    assert not fallen(minutes([60] * (LEAST_PAST - 1) + [0] * WINDOW))


def test_chance_alone_makes_nobody_look() -> None:
    """Poisson arrivals of an unchanged rate, over a month of one table's minutes, at the least rate that counts."""
    chance = random.Random(32)
    row: list[float] = []
    for _ in range(30 * 24 * 60):
        arrivals, at = 0, chance.expovariate(6)
        while at < 1:
            arrivals, at = arrivals + 1, at + chance.expovariate(6)
        row.append(arrivals)
    falls = sum(bool(fallen(minutes(row[end - 60 : end]))) for end in range(60, len(row), 5))
    assert falls == 0


def test_an_hour_tells_it_at_the_end_of_a_minute_and_forgets_it_once_it_goes_on() -> None:
    hour, inserts, told_at = Hour(), 0, None
    for second in range(0, 5400, 10):
        inserts += 0 if 2400 <= second < 3000 else 10
        hour = after(hour, seen(second, inserts))
        if hour.fallen and told_at is None:
            told_at = second
    assert told_at == 2640, "once four of five minutes had none"
    assert hour.fallen == ()


def test_it_is_told_for_an_hour_unless_it_goes_on() -> None:
    hour, inserts, seconds = Hour(), 0, []
    for second in range(0, 9000, 10):
        inserts += 10 if second < 2400 else 0
        hour = after(hour, seen(second, inserts))
        if hour.fallen:
            seconds.append(second)
            (found,) = hour.fallen
            assert (found.usual, found.since_us) == (60.0, BEGAN_US + 2400 * 1_000_000)
    assert (seconds[0], seconds[-1]) == (2640, 2400 + 3600 + 50), (
        "until the minute that begins an hour later is over"
    )
    assert len(seconds) == (seconds[-1] - seconds[0]) // 10 + 1, "without a break"


def test_minutes_that_were_not_read_end_nothing() -> None:
    whole = minutes([60] * 50 + [0] * 5)
    found = fallen(whole)
    unread = [*whole, Minute(BEGAN_US + 55 * MINUTE_US, (), False)]
    assert fallen(unread) == ()
    assert fallen(unread, found) == found
    assert fallen(minutes([60] * 55), found) == (), "it goes on"


def test_a_source_that_cannot_be_read_is_no_fall_of_its_tables() -> None:
    hour, inserts = Hour(), 0
    for second in range(0, 4200, 10):
        silent = second >= 2400
        inserts += 0 if silent else 10
        lag = Lag(None, None, second - 2400.0, "it is gone") if silent else Lag(0, 0.0, 0.0, "")
        hour = after(hour, seen(second, inserts, capture_lag=lag))
        assert hour.fallen == ()


def test_many_tables_are_told_by_name() -> None:
    hour = Hour()
    for second in range(0, 3600, 10):
        step = min(second, 2700)
        work = Work(
            changes=tuple(
                ((f"shop.t{number:03}", "insert"), step * (1 + number % 2)) for number in range(500)
            )
        )
        hour = after(hour, seen(second, work=work))
    assert [one.table for one in hour.fallen] == [f"shop.t{number:03}" for number in range(500)]
