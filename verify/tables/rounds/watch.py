"""The time that a verification has, and the line that it prints now and then while it works."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from verify.readers.snapshot import LedgerState, LogPlace
from verify.tables.rounds.progress import TableProgress
from verify.tables.sweeps.pairing import TARGET_READ, TimeIsUp

WITHIN_S = 600.0
"""The time of a verification that nobody gave another."""
SAY_EVERY_S = 10.0
_PATIENCE = 0.9
"""The share of the rest that a wait takes at most: behind a wait in vain, what was read is compared still."""


def _silent(_: str) -> None:
    """Prints nothing."""


@dataclass(slots=True)
class Watch:
    """The time of one verification, from the making of this value on.

    The end is looked at between two chunks: a statement or a job that runs then is not broken off.

    Attributes:
        within_s: the time it has.
        say: prints a line about what it does, every ``SAY_EVERY_S`` at most.
        clock: seconds.
        sleep: rests some seconds.
        round: the number of the round, from 1.
        tables: all tables, as they stand while a line is said.
        read: how many were read in this round.
        of_round: how many are to be.
    """

    within_s: float = math.inf
    say: Callable[[str], None] = _silent
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    round: int = 1
    tables: Sequence[TableProgress] = ()
    read: int = 0
    of_round: int = 0
    _began: float = field(init=False)
    _said: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.clock()
        self._said = self._began - SAY_EVERY_S  # the first line comes at once

    def over(self) -> bool:
        """Returns whether the time is up."""
        return self.clock() - self._began >= self.within_s

    def check(self) -> None:
        """Raises ``TimeIsUp`` once the time is up."""
        if self.over():
            raise TimeIsUp(self.ended())

    def stepped(self, name: str, step: Callable[[str], None]) -> None:
        """Takes a step of a sweep. Raises ``TimeIsUp``, but not behind a target read: that may have been the last."""
        step(name)
        if name != TARGET_READ:
            self.check()

    def patience_s(self, wait_s: float) -> float:
        """Returns the longest wait for the target: ``wait_s``, or less where that takes the time that is left."""
        return min(wait_s, _PATIENCE * max(0.0, self.within_s - (self.clock() - self._began)))

    def ended(self) -> str:
        """The words for a verification whose time is up."""
        return f"the {self.within_s:g} s given (--within) were over"

    def begins(self, number: int, tables: Sequence[TableProgress]) -> None:
        """Begins a round over those of the tables that are open."""
        self.round, self.tables = number, tables
        self.read, self.of_round = 0, sum(table.open for table in tables)

    def reading(self, tables: str) -> None:
        """Has a line said about tables that are read."""
        self._tell(lambda: f"reading {tables}")

    def waiting(self, tables: str, upto: LogPlace, ledger: LedgerState) -> None:
        """Has a line said about a wait: the place that is waited for, and where the target stands."""
        self._tell(
            lambda: (
                f"{tables}: waiting for the target to reach {upto.state or upto.order}, it stands at"
                f" {ledger.token or ledger.order}"
            )
        )

    def _tell(self, words: Callable[[], str]) -> None:
        now = self.clock()
        if now - self._said < SAY_EVERY_S:
            return
        self._said = now
        of = "" if math.isinf(self.within_s) else f" of {self.within_s:g}"
        self.say(f"round {self.round}: {words()}; {self._standing()}; {now - self._began:.0f}{of} s")

    def _standing(self) -> str:
        """The tables and keys as they stand now: what the rounds before and this one have found out."""
        done = sum(not table.open for table in self.tables)
        settled = sum(sum(dict(table.statuses).values()) for table in self.tables)
        aside = sum(table.aside_keys for table in self.tables)
        return (
            f"{self.read} of {self.of_round} tables read, {done} of {len(self.tables)} tables settled,"
            f" {settled:,} keys settled, {aside:,} keys set aside"
        )
