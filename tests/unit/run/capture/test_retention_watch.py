"""Warnings that the source is about to give up its log: in time, and none where there is time."""

from __future__ import annotations

import time

from migrator.errors import ConnectionFailed
from migrator.model.position import Position
from migrator.model.progress import Checkpoint
from migrator.model.retention import Retention
from migrator.model.table import TableId
from migrator.run.capture.retention_watch import Behind, RetentionWatch, age_s, warnings
from migrator.run.progress import Progress

GIB, MIB = 1 << 30, 1 << 20
AT = Position(9, "0/9")


def at(order: int) -> Position:
    return Position(order, f"0/{order:X}")


def test_capture_is_behind_since_the_newest_end_that_it_passed() -> None:
    behind = Behind()
    assert behind.look(0, at(10), at(10)) == 0
    assert behind.look(10, at(20), at(10)) == 10
    assert behind.look(20, at(30), at(15)) == 20
    assert behind.look(30, at(40), at(20)) == 20, "it holds everything up to the second look"
    assert behind.look(40, at(40), at(40)) == 0


def test_what_was_captured_before_counts_by_its_age() -> None:
    behind = Behind(before_s=500)
    assert behind.look(7, at(10), None) == 500
    assert behind.look(17, at(10), at(9)) == 510
    assert behind.look(27, at(10), at(10)) == 0
    assert age_s(None) == age_s(Checkpoint(AT)) == 0
    minute_ago_us = int((time.time() - 60) * 1e6)
    assert 59 < age_s(Checkpoint(AT, last_changes=((TableId("s", "t"), minute_ago_us),))) < 600


def test_half_of_the_bound_is_warned_of() -> None:
    assert warnings(Retention(AT, left_bytes=600 * MIB, bound_bytes=GIB), 0) == []
    (told,) = warnings(Retention(AT, left_bytes=500 * MIB, bound_bytes=GIB, remedy="do this"), 0)
    assert "1,024 MiB" in told
    assert "500 MiB more: do this" in told
    assert warnings(Retention(AT, left_bytes=None, bound_bytes=GIB), 0) == []
    assert warnings(Retention(AT, left_bytes=5, bound_bytes=None), 0) == []


def test_half_of_the_expiry_is_warned_of() -> None:
    assert warnings(Retention(AT, expiry_s=86400), 43200) == []
    (told,) = warnings(Retention(AT, expiry_s=86400, remedy="do this"), 50000)
    assert told == "capture is up to 13.9 h behind, the source gives up its log after 24.0 h: do this"
    assert warnings(Retention(AT, expiry_s=None), 1e9) == []


def test_a_log_in_danger_is_warned_of_whatever_is_left() -> None:
    assert warnings(Retention(AT, left_bytes=-5, bound_bytes=MIB, endangered="it goes", remedy="now"), 0) == [
        "it goes: now"
    ]


def test_the_watch_warns_takes_it_back_and_says_when_it_can_not_ask() -> None:
    progress = Progress()
    answers: list[Retention | ConnectionFailed] = [
        Retention(at(10), expiry_s=60),
        ConnectionFailed("the source can't be reached", retryable=True),
        Retention(at(10), expiry_s=60),
        Retention(at(10), expiry_s=60),
    ]

    asked: list[Position | None] = []

    def ask(captured: Position | None) -> Retention:
        asked.append(captured)
        answer = answers.pop(0)
        if isinstance(answer, ConnectionFailed):
            raise answer
        return answer

    watch = RetentionWatch(ask, progress, None)
    seen = []
    for now_s, captured in ((0, 5), (40, 5), (50, 5), (60, 10)):
        progress.set(captured=at(captured))
        watch.look(now_s)
        seen.append(" ".join(progress.snapshot().warnings))
    assert seen[0] == ""
    assert "can't be reached" in seen[1]
    assert "capture is up to 50 s behind" in seen[2]
    assert seen[3] == ""
    assert asked == [at(5), at(5), at(5), at(10)], "it is told what is captured by then"
