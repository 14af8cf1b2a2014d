"""Observations of a run in which one thing is wrong, each over some minutes, and what page and metrics say of it.

The ten that are seeded are those of the alerts' cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from migrator.core.watched.hour import after
from migrator.model.observed.hour import Hour
from migrator.model.observed.observation import (
    LEADER,
    STANDBY,
    STANDING_BY,
    STREAMING,
    Ended,
    Judged,
    Lag,
    Observation,
    Room,
    Server,
    VerifiedTable,
    Work,
)
from migrator.model.position import Position
from migrator.model.retention import Retention

BEGAN_US = 29_000_000 * 60_000_000
CAUGHT_UP = Lag(0, 0.0, 0.0, "")
UP = Server(0.002, "", BEGAN_US)
WELL = Observation(
    "shop",
    BEGAN_US,
    BEGAN_US,
    LEADER,
    STREAMING,
    epoch=7,
    lag=CAUGHT_UP,
    capture_lag=CAUGHT_UP,
    source=UP,
    target=UP,
    room=Room(0, 1_000_000, 400_000_000_000),
)
Change = Callable[[Observation, float], Observation]


@dataclass(frozen=True)
class Trouble:
    """One that begins after ten minutes.

    Attributes:
        name: what the page calls it, and, after ``Migrator``, the alert.
        change: the observation of a moment, so many seconds since it began; negative ones came before.
        since_s: since when the page must say it is, on the same scale.
        metric: a metric that its alert looks at, with the value that it must have at the end.
        words: what the page must say of it.
        seeded: which of the ten it is; empty: another one.
        also: what else is wrong then.
        lasts_s: how long it is looked at.
    """

    name: str
    change: Change
    since_s: float
    metric: tuple[str, float]
    words: tuple[str, ...]
    seeded: str = ""
    also: tuple[str, ...] = ()
    lasts_s: int = 300

    def observations(self) -> Iterator[Observation]:
        """The observations of ten minutes before and of the time after, ten seconds apart."""
        for second in range(0, 600 + self.lasts_s + 1, 10):
            seen = replace(WELL, at_us=BEGAN_US + second * 1_000_000, work=work(second))
            yield self.change(seen, second - 600.0)

    def end(self) -> tuple[Observation, Hour]:
        """The last observation, and the hour before it."""
        hour, seen = Hour(), WELL
        for seen in self.observations():
            hour = after(hour, seen)
        return seen, hour


def work(second: float, batches: float | None = None, hot: int = 1) -> Work:
    changes = (((("shop.hot", "update")), int(second * hot)), (("shop.cold", "insert"), int(second)))
    done = second if batches is None else batches
    return Work(
        batches=((("stream",), int(done)),), changes=changes, captured_changes=int(second * (1 + hot))
    )


def moment_us(second: float) -> int:
    """A second of ``Trouble.since_s`` as a moment."""
    return BEGAN_US + int((600 + second) * 1_000_000)


def once(second: float, changed: Callable[[], dict[str, object]], seen: Observation) -> Observation:
    return replace(seen, **changed()) if second >= 0 else seen  # type: ignore[arg-type]


def behind(second: float) -> Lag:
    return Lag(int(second) + 1, second + 1, second + 1, "")


def retried(seen: Observation, second: float) -> Work:
    """The work with one more error every five seconds, and a dozen that this process has from its beginning."""
    return replace(seen.work, errors=((("ConnectionFailed",), 12 + second / 5),))


def target_down(seen: Observation, second: float) -> Observation:
    gone = Server(None, "connection refused", moment_us(0))
    return once(second, lambda: {"target": gone, "lag": behind(second), "work": retried(seen, second)}, seen)


def source_down(seen: Observation, second: float) -> Observation:
    gone = Server(None, "connection refused", moment_us(0))
    unknown = Lag(None, None, second, "connection refused")
    found = {"source": gone, "lag": unknown, "capture_lag": unknown, "work": retried(seen, second)}
    return once(second, lambda: found, seen)


def slot_almost_lost(seen: Observation, second: float) -> Observation:
    kept = Retention(Position(9, "9"), 900 << 20, (200 << 20) - int(second), 1 << 30)
    return once(
        second, lambda: {"retention": kept, "lag": behind(second), "capture_lag": behind(second)}, seen
    )


def disk_filling(seen: Observation, second: float) -> Observation:
    free = 20_000_000_000 - int(second * 10_000_000)
    return replace(seen, room=Room(0, 1, free if second >= 0 else 20_000_000_000))


def hot_table(seen: Observation, second: float) -> Observation:
    total = work(600 + second, hot=50 if second >= 0 else 1)
    return replace(seen, work=total, lag=behind(second) if second >= 0 else CAUGHT_UP)


def different(seen: Observation, second: float) -> Observation:
    wrong = Judged((VerifiedTable("person", "different", moment_us(0), 1.0, 1.0, 3),))
    return once(second, lambda: {"judged": wrong}, seen)


def took_over(seen: Observation, second: float) -> Observation:
    return (
        seen
        if second >= 0
        else replace(seen, role=STANDBY, phase=STANDING_BY, leader="process 1", work=Work())
    )


def mapping_error(seen: Observation, second: float) -> Observation:
    ended = Ended(
        moment_us(0), "MappingError", "column 'nobody' can't be resolved; remedy: correct the mapping"
    )
    return once(second, lambda: {"ended": ended}, seen)


def stalled(seen: Observation, second: float) -> Observation:
    return once(second, lambda: {"work": work(600 + second, 600), "lag": behind(second)}, seen)


def slow(seen: Observation, second: float) -> Observation:
    return once(second, lambda: {"source": replace(UP, answer_s=0.9)}, seen)


def falls_off(seen: Observation, second: float) -> Observation:
    orders = int(min(second, 1800.0) + 600)
    return replace(seen, work=replace(seen.work, changes=((("shop.orders", "insert"), orders),)))


TROUBLES = (
    Trouble(
        "TargetDown", target_down, 0, ("target_up", 0),
        ("target gives no answer", "connection refused", "wait on this machine's disk", "start the target"),
        "target down",
    ),
    Trouble(
        "SourceDown", source_down, 0, ("source_up", 0),
        ("source gives no answer", "the lag is unknown", "start the source"), "source down",
    ),
    Trouble(
        "SourceLogAlmostLost", slot_almost_lost, -1, ("source_log_bound_bytes", 1 << 30),
        ("about to give up log", "of 1,024 MiB are left", "dumped again", "max_slot_wal_keep_size"),
        "slot about to be lost", ("Lag",),
    ),
    Trouble(
        "DiskFilling", disk_filling, -600, ("disk_free_bytes", 11_000_000_000),
        ("disk will be full in", "capture waits", "make room"), "disk filling", lasts_s=900,
    ),
    Trouble(
        "HotTable", hot_table, -1, ("lag_seconds", 301),
        ("shop.hot has 98% of all changes", "all tables wait behind it", "batch_rows"), "one hot table",
    ),
    Trouble(
        "Different", different, 0, ("verify_verdict", 1),
        ("rows of person differ", "3 keys", "wrong rows", "migrator repair"), "verify different",
    ),
    Trouble(
        "TookOver", took_over, 0, ("leading", 1),
        ("stood by and leads now", "nothing is lost", "start it again as a standby"), "standby took over",
    ),
    Trouble(
        "EndedByError", mapping_error, 0, ("last_end_timestamp_seconds", moment_us(0) / 1e6),
        ("ended by MappingError", "column 'nobody'", "positions are kept", "correct the mapping"), "mapping error",
    ),
    Trouble(
        "NothingApplied", stalled, -1, ("backlog_age_seconds", 301),
        ("no batch is applied", "fills the disk", "a restart loses nothing"), "stalled Spark",
    ),
    Trouble(
        "NetworkSlow", slow, 0, ("source_answer_seconds", 0.9),
        ("question to the source takes 0.9 s", "may fall behind", "look at the way"), "network slow",
    ),
    Trouble(
        "InsertsFellOff", falls_off, 1800, ("inserts_fell_off", 1),
        ("inserts fell off in shop.orders", "60 a minute", "stopped writing", "ask who writes"), lasts_s=2400,
    ),
)  # fmt: skip
