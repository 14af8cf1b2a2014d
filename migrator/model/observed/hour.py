"""The last hour of a run, as it was seen by one process: amounts over time, bounded whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from migrator.model.observed.observation import Counts, Fallen

LOOK_EVERY_US = 10_000_000
MOST_LOOKS = 360
MINUTE_US = 60_000_000
MOST_MINUTES = 60
OPERATIONS = ("insert", "update", "delete")


@dataclass(frozen=True, slots=True)
class Look:
    """A run at one moment. Totals count since the process started; None: unknown.

    Attributes:
        at_us: by this machine's clock, microseconds since 1970.
        role, phase: as in an observation.
        lag_s: age of the oldest change that isn't applied.
        capture_lag_s: the same of what isn't captured.
        segments: of the event log that wait.
        source_s, target_s: seconds that the server's last answer took.
        disk_free_bytes: on the disk of the state folder.
        captured, applied, dumped: changes captured, changes applied, dump rows applied.
        batches, errors: target transactions; errors met.
        standbys: processes that stand by.
        log_left: share of its own bound that the source may yet write before it gives up log that is needed.
    """

    at_us: int
    role: str = ""
    phase: str = ""
    lag_s: float | None = None
    capture_lag_s: float | None = None
    segments: int | None = None
    source_s: float | None = None
    target_s: float | None = None
    disk_free_bytes: int | None = None
    captured: int = 0
    applied: int = 0
    dumped: int = 0
    batches: int = 0
    errors: int = 0
    standbys: int | None = None
    log_left: float | None = None


@dataclass(frozen=True, slots=True)
class Minute:
    """The changes that were captured within one minute.

    Attributes:
        start_us: its beginning.
        counts: by table and operation; what had none is left out.
        read: whether the source's log was read to its end all the time: only then no change means none.
    """

    start_us: int
    counts: Counts = ()
    read: bool = False


@dataclass(frozen=True, slots=True)
class Hour:
    """Looks ten seconds apart, and minutes, the oldest first; the last minute is still going on.

    ``totals``: captured changes by table and operation at the last look, from which the next minute's follow.
    ``fallen``: tables whose inserts fell off, as of the last whole minute.
    ``begun_us``: since when there has been each trouble of the last verdict, by its name; without any, the phase that
    goes on well. It reaches back further than the looks.
    """

    looks: tuple[Look, ...] = ()
    minutes: tuple[Minute, ...] = ()
    totals: Counts = field(default=(), repr=False)
    fallen: tuple[Fallen, ...] = ()
    begun_us: tuple[tuple[str, int], ...] = ()

    def whole_minutes(self) -> tuple[Minute, ...]:
        """The minutes that are over."""
        return self.minutes[:-1]

    def within(self, span_us: int) -> tuple[Look, ...]:
        """The looks of the last so many microseconds before the newest one."""
        return tuple(one for one in self.looks if one.at_us >= self.looks[-1].at_us - span_us)

    def since(self, holds: Callable[[Look], bool]) -> int | None:
        """Returns since when something holds without a break until the newest look; None: it doesn't."""
        found = None
        for look in reversed(self.looks):
            if not holds(look):
                break
            found = look.at_us
        return found

    def rates(self, total: Callable[[Look], int]) -> Iterator[float | None]:
        """Rises of a total a second, up to each look; None where there is nothing to compare with."""
        before: Look | None = None
        for look in self.looks:
            yield rate(before, look, total)
            before = look

    def rate(self, total: Callable[[Look], int], span_us: int = MINUTE_US) -> float | None:
        """Rise of a total a second over the last minute."""
        looks = self.within(span_us) if self.looks else ()
        return rate(looks[0], looks[-1], total) if looks else None

    def changes(self, span_minutes: int) -> dict[str, int]:
        """Changes by table over the last so many minutes, the one that goes on included."""
        found: dict[str, int] = {}
        for minute in self.minutes[-span_minutes:]:
            for (table, *_), number in minute.counts:
                found[table] = found.get(table, 0) + int(number)
        return found


def rate(before: Look | None, after: Look, total: Callable[[Look], int]) -> float | None:
    """Rise of a total a second between two looks; None where that isn't known."""
    if before is None or after.at_us <= before.at_us:
        return None
    return max(0, total(after) - total(before)) * 1e6 / (after.at_us - before.at_us)
