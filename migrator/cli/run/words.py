"""Words of a run's progress that its lines and its drawing share."""

from __future__ import annotations

from migrator.model.observed.observation import STANDING_BY, STOPPED, Lag
from migrator.model.progress import TableDump
from migrator.run.progress import Snapshot, phase


def phase_words(now: Snapshot) -> str:
    """The phase, and while it starts what it does."""
    found = phase(now)
    return f"{found}: {now.doing}" if now.doing and found not in (STANDING_BY, STOPPED) else found


def stream_words(now: Snapshot, changes_per_s: float, lag: Lag) -> str:
    """Totals, rate, lag and place of the stream."""
    position = now.applied.token if now.applied else "-"
    return (
        f"applied {now.applied_changes:,} changes, {now.applied_chunk_rows:,} dump rows"
        f" | {changes_per_s:,.0f} changes/s | lag {lag_words(lag)} | at {_short(position)}"
    )


def filling_words(now: Snapshot) -> list[str]:
    """A phrase for each joined target that is being filled."""
    return [f"filling {one.target} {one.rows:,} of about {one.of_rows:,} rows" for one in now.filling]


def lag_words(lag: Lag) -> str:
    """The lag in a few words; *unknown* where nobody can know it."""
    if lag.age_s is None:
        at_most = f", at most {duration(lag.at_most_s)}" if lag.at_most_s is not None else ""
        return f"unknown ({lag.unknown}{at_most})"
    return f"{lag.age_s:,.1f} s" if lag.age_s < 60 else duration(lag.age_s)


def share(dump: TableDump) -> float:
    """The part of a table that is dumped, as far as its size is known: 0 to 1."""
    if dump.done:
        return 1.0
    seen = dump.rows + dump.dropped_rows
    return min(0.99, seen / dump.estimated_rows) if dump.estimated_rows else 0.0


def duration(seconds: float | None) -> str:
    """A duration in hours, minutes or seconds; empty for none."""
    if seconds is None:
        return ""
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


def _short(token: str) -> str:
    return token if len(token) <= 40 else token[:37] + "..."
