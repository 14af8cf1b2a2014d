"""Places behind commits of tables that nobody captures are gathered; nothing else is, and nothing is lost."""

from __future__ import annotations

import time

from migrator.adapters.sources.postgres.log.ready_records import ReadyRecords
from migrator.model.event import LogProgress, MarkKind, WatermarkSeen
from migrator.model.position import Position

MARK = WatermarkSeen("token", MarkKind.LOW)


def place(order: int) -> LogProgress:
    return LogProgress(Position(order, str(order)))


def test_of_places_that_follow_each_other_the_last_is_handed_out() -> None:
    ready = ReadyRecords()
    ready.progress(place(1).position)
    ready.progress(place(2).position)
    ready.append(MARK)
    ready.progress(place(3).position)
    ready.progress(place(4).position)
    assert ready.take() == [place(2), MARK, place(4)]
    assert not ready
    assert ready.take() == []


def test_only_places_wait_and_only_shortly_after_the_last_one() -> None:
    ready, now = ReadyRecords(), time.monotonic()
    assert ready.wait_until(now + 5) == now + 5, "there is nothing yet"
    ready.progress(place(1).position)
    assert ready.wait_until(now + 5) < now, "the first for a while"
    ready.take()
    ready.progress(place(2).position)
    assert now < ready.wait_until(now + 5) < now + 1
    assert ready.wait_until(now) == now, "no longer than the caller has time"
    ready.append(MARK)
    assert ready.wait_until(now + 5) < now
