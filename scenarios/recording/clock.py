"""The clock of a history: microseconds since the run's start. Times are for people; checkers never order by them."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunClock:
    """The two clocks of this machine at the run's start.

    Attributes:
        unix_us: wall clock, microseconds since 1970.
        monotonic_us: monotonic clock in microseconds.
    """

    unix_us: int
    monotonic_us: int

    @staticmethod
    def started_now() -> RunClock:
        """A run that starts now."""
        return RunClock(time.time_ns() // 1000, time.monotonic_ns() // 1000)

    def now_us(self) -> int:
        """Time since the start."""
        return time.monotonic_ns() // 1000 - self.monotonic_us

    def at_unix_us(self, unix_us: int) -> int:
        """A server's wall clock time as time since the start (wrong by as much as the server's clock is)."""
        return unix_us - self.unix_us
