"""Troubles with servers, with the log that the source keeps, and with room."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from migrator.model.observed.bounds import Bounds
from migrator.model.observed.hour import Hour, Look
from migrator.model.observed.observation import Observation, Server
from migrator.model.observed.trouble import ACT, LOOK, Trouble
from migrator.model.retention import Retention

WATCHED_DISK_BYTES = 50_000_000_000
_FILLS_WITHIN_S = 4 * 3600
_SLOW_OVER_US, _TREND_OVER_US = 120_000_000, 1_800_000_000
_LEAST_LOOKS, _LEAST_TREND_US = 6, 300_000_000


def unreachable(seen: Observation, _hour: Hour, _bounds: Bounds) -> Iterator[Trouble]:
    """Servers that give no answer."""
    if _down(seen.target):
        yield Trouble(
            "TargetDown",
            ACT,
            f"the target gives no answer: {seen.target.problem}",
            seen.target.since_us,
            "changes are captured and wait on this machine's disk; readers of the target see older rows",
            "start the target or mend the way to it; the run tries again by itself. Watch the disk of the"
            " state folder",
            "stop-and-restart",
        )
    if _down(seen.source):
        yield Trouble(
            "SourceDown",
            ACT,
            f"the source gives no answer: {seen.source.problem}",
            seen.source.since_us,
            "the lag is unknown: what the source commits meanwhile isn't captured",
            "start the source or mend the way to it; the run tries again by itself",
            "stop-and-restart",
        )


def _down(server: Server) -> bool:
    return bool(server.problem) and server.since_us > 0


def log_almost_lost(seen: Observation, hour: Hour, bounds: Bounds) -> Iterator[Trouble]:
    """Log of the source that isn't captured and that it is about to give up."""
    kept = seen.retention
    if kept is None:
        return
    at_most_s = seen.uncaptured_s()  # what is captured, the source may give up
    behind_us = None if at_most_s is None else seen.at_us - int(at_most_s * 1e6)
    low_us = hour.since(
        lambda look: (look.log_left or 0.0) < bounds.log_left_share and look.log_left is not None
    )
    since_us = min((us for us in (behind_us, low_us) if us is not None), default=None)
    why = kept.endangered
    left, bound = kept.left_bytes, kept.bound_bytes
    if not why and left is not None and bound and left < bounds.log_left_share * bound:
        why = f"{max(0, left) / 2**20:,.0f} MiB of {bound / 2**20:,.0f} MiB are left"
    if (
        not why
        and kept.expiry_s
        and at_most_s is not None
        and at_most_s > bounds.log_age_share * kept.expiry_s
    ):
        kept_h, behind_h = kept.expiry_s / 3600, at_most_s / 3600
        why = f"it keeps its log for {kept_h:,.1f} h, and capture is {behind_h:,.1f} h behind"
    if why:
        yield Trouble(
            "SourceLogAlmostLost",
            ACT,
            f"the source is about to give up log that is needed: {why}",
            since_us,
            "once it is lost, everything has to be dumped again",
            kept.remedy
            or "raise max_slot_wal_keep_size (PostgreSQL) or binlog_expire_logs_seconds (MySQL, MariaDB) on the"
            " source now, then help the run to catch up",
            "watch",
        )
    elif _kept_for_ever(kept) and (kept.kept_bytes or 0) > bounds.most_log_bytes:
        yield Trouble(
            "SourceKeepsMuchLog",
            ACT,
            f"the source keeps {(kept.kept_bytes or 0) / 2**30:,.0f} GiB of log for this migration, without a bound",
            since_us,
            "the source's disk fills, and the source stops",
            "watch the source's disk; help the run to catch up, or set a bound: max_slot_wal_keep_size (PostgreSQL),"
            " binlog_expire_logs_seconds (MySQL, MariaDB); drop the slot of a migration that nobody runs any more",
            "watch",
        )


def _kept_for_ever(kept: Retention) -> bool:
    """Tells whether neither size nor time bounds what the source keeps."""
    return kept.bound_bytes is None and not kept.expiry_s


def disk_filling(seen: Observation, hour: Hour, bounds: Bounds) -> Iterator[Trouble]:
    """The disk of the state folder, full or full within hours."""
    free = seen.room.disk_free_bytes
    if free is None:
        return
    if free < bounds.least_disk_bytes:
        since_us = hour.since(
            lambda look: look.disk_free_bytes is not None and look.disk_free_bytes < bounds.least_disk_bytes
        )
        what = f"the disk of the state folder is full but for {free / 2**20:,.0f} MiB"
    else:
        falling = _falling(hour) if free < WATCHED_DISK_BYTES else None
        if falling is None or free + falling[0] * _FILLS_WITHIN_S > 0:
            return
        since_us = falling[1]
        full_min = free / -falling[0] / 60
        what = (
            f"the state folder's disk will be full in {full_min:,.0f} min: {free / 2**30:,.1f} GiB are free"
        )
    yield Trouble(
        "DiskFilling",
        ACT,
        what,
        since_us,
        "capture waits before the disk is full, and the source keeps its log meanwhile",
        "make room, or find out why the target doesn't apply, or which output keeps segments (`migrator status`)",
        "watch",
    )


def _falling(hour: Hour) -> tuple[float, int] | None:
    """Bytes a second that the free room changes by over the last half hour, and since when; None: too few looks."""
    looks = (
        [one for one in hour.within(_TREND_OVER_US) if one.disk_free_bytes is not None] if hour.looks else []
    )
    if not looks or looks[-1].at_us - looks[0].at_us < _LEAST_TREND_US:
        return None
    times = [(one.at_us - looks[0].at_us) / 1e6 for one in looks]
    rooms = [float(one.disk_free_bytes or 0) for one in looks]
    middle_s, middle = sum(times) / len(times), sum(rooms) / len(rooms)
    spread = sum((at - middle_s) ** 2 for at in times)
    slope = sum((at - middle_s) * (room - middle) for at, room in zip(times, rooms, strict=True)) / spread
    return slope, looks[0].at_us


def network_slow(_seen: Observation, hour: Hour, bounds: Bounds) -> Iterator[Trouble]:
    """Servers whose answers to a small question take long, over two minutes."""
    looks = hour.within(_SLOW_OVER_US) if hour.looks else ()
    sides: tuple[tuple[str, float, Callable[[Look], float | None]], ...] = (
        ("source", bounds.slow_source_s, lambda look: look.source_s),
        ("target", bounds.slow_target_s, lambda look: look.target_s),
    )
    for side, bound_s, of in sides:
        answers = [answer for look in looks if (answer := of(look)) is not None]
        if len(answers) < _LEAST_LOOKS or sum(answers) / len(answers) <= bound_s:
            continue
        yield Trouble(
            "NetworkSlow",
            LOOK,
            f"a small question to the {side} takes {sum(answers) / len(answers):,.1f} s",
            hour.since(lambda look, of=of, bound_s=bound_s: (of(look) or 0.0) > bound_s)  # type: ignore[misc]
            or next(look.at_us for look in looks if (of(look) or 0.0) > bound_s),
            "the run may fall behind; lag is seen later",
            f"look at the way between this machine and the {side}, and at that server's load",
            "pace",
        )
