"""The performance that a load loses by being read, separated from the ups and downs of the machine.

Windows of the same kind differ by a tenth and more among themselves: checkpoints, purge, other work on the machine.
So the three kinds take short turns, each is compared with its neighbours only, and of all rounds the median counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, quantiles

Window = tuple[float, float]
"""Transactions a second, latency (ms)."""


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of each: alone, the log captured, beside dumps, the log captured again, alone again."""

    alone: Window
    log: Window
    dump: Window
    log_again: Window
    alone_again: Window


@dataclass(frozen=True, slots=True)
class Figure:
    """Over all rounds: medians of rate and latency, and of the ratio to its neighbours with its quartiles."""

    tps: float
    latency_ms: float
    ratio: float
    low: float
    high: float

    def shown(self) -> str:
        """The ratio, for a table."""
        return f"{self.ratio:.2f}x ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True, slots=True)
class Turns:
    """The figures of each kind; ``dump_to_log``: beside dumps against the log being captured."""

    alone: Figure
    log: Figure
    dump: Figure
    dump_to_log: Figure


def compared(rounds: Sequence[Round]) -> Turns:
    """Medians over rounds, of which there are two at least."""
    alone = [_mean(round_.alone, round_.alone_again) for round_ in rounds]
    log = [_mean(round_.log, round_.log_again) for round_ in rounds]
    dump = [round_.dump for round_ in rounds]
    firsts = [round_.alone for round_ in rounds]
    return Turns(
        _figure(firsts, [round_.alone_again for round_ in rounds]),
        _figure(log, alone),
        _figure(dump, alone),
        _figure(dump, log),
    )


def _figure(windows: Sequence[Window], neighbours: Sequence[Window]) -> Figure:
    ratios = [own / other for (own, _), (other, _) in zip(windows, neighbours, strict=True)]
    low, _, high = quantiles(ratios, n=4, method="inclusive")
    return Figure(
        median(tps for tps, _ in windows),
        median(latency_ms for _, latency_ms in windows),
        median(ratios),
        low,
        high,
    )


def _mean(first: Window, second: Window) -> Window:
    return fmean((first[0], second[0])), fmean((first[1], second[1]))
