"""The facts of one run for a page, a JUnit file or a terminal: its result, and figures from its history."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from migrator.errors import VerifyError
from scenarios.play import bundle
from scenarios.play.run_result import RunResult, as_expected
from verify.history.history import FAILED, OK, UNKNOWN, History, load_history

_BINS = 240
_LEAST_BIN_S = 0.25


@dataclass(frozen=True, slots=True)
class FaultFact:
    """A planned fault and the time during which it really worked, in seconds since the run's start."""

    name: str
    point: str
    fired: bool
    fired_s: float | None
    healed_s: float | None
    detail: str


@dataclass(frozen=True, slots=True)
class Series:
    """Throughput and lag over the run.

    Attributes:
        bin_s: width of a bin.
        written: row changes per second that clients committed, one number per bin.
        applied: row changes per second that became visible in the target, one number per bin.
        lag: (second, milliseconds): longest lag of the target commits of a bin.
    """

    bin_s: float
    written: tuple[float, ...]
    applied: tuple[float, ...]
    lag: tuple[tuple[float, float], ...]

    @property
    def end_s(self) -> float:
        """The end of the last bin, in seconds."""
        return self.bin_s * len(self.written)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The facts that the history adds to a result.

    Attributes:
        counts: of operations, transactions, commits, ...
        faults: planned ones, and whether they fired.
        series: throughput and lag, None if nothing happened.
        versions: of the tool, Python, Spark and the servers.
        command: replays the run.
        problem: why there is no history to show, or empty.
    """

    counts: tuple[tuple[str, int], ...] = ()
    faults: tuple[FaultFact, ...] = ()
    series: Series | None = None
    versions: tuple[tuple[str, str], ...] = ()
    command: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """One run with all that is shown of it."""

    run: RunResult
    recorded: Recorded

    @property
    def name(self) -> str:
        """Scenario and engine, and the broken variant if one was run."""
        mutant = f", {self.run.mutant}" if self.run.mutant else ""
        return f"{self.run.scenario.name} [{self.run.engine}{mutant}]"

    @property
    def fired(self) -> int:
        """Faults that really fired."""
        return sum(fault.fired for fault in self.recorded.faults)

    def ending_is_right(self) -> bool:
        """Returns whether the run ended as the scenario expects."""
        return as_expected(self.run.scenario.expect, self.run.ending)


def facts(results: Sequence[RunResult]) -> list[Fact]:
    """Reads the history of every result; a bundle without one (a refusal has none) has nothing recorded."""
    return [Fact(result, recorded(result.bundle)) for result in results]


def recorded(folder: Path) -> Recorded:
    """Reads the facts from the history of a bundle, or the reason why there are none."""
    history = folder / bundle.HISTORY
    if not history.is_dir():
        return bundle_alone(folder)
    try:
        return of_history(load_history(history))
    except VerifyError as error:
        return Recorded(problem=str(error))


def bundle_alone(folder: Path) -> Recorded:
    """The facts of a bundle without a history: what its result says, and the faults beside it."""
    problem = "no history was recorded"
    try:
        document = json.loads((folder / bundle.RESULT).read_text())
        rows = json.loads((folder / bundle.FAULTS).read_text()) if (folder / bundle.FAULTS).exists() else []
    except (OSError, ValueError):
        return Recorded(problem=problem)
    return Recorded(
        counts=tuple(document.get("counts", {}).items()),
        faults=tuple(map(_fault, rows)),
        versions=tuple(sorted(document.get("versions", {}).items())),
        command=document.get("command", ""),
        problem=problem,
    )


def of_history(history: History) -> Recorded:
    """The facts of one history."""
    description = history.description
    return Recorded(
        counts=_counts(history),
        faults=tuple(_fault(row) for row in history.faults.to_pylist()),
        series=_series(history),
        versions=tuple(sorted(description.versions.items())),
        command=description.command,
    )


def _counts(history: History) -> tuple[tuple[str, int], ...]:
    outcomes = history.operations["outcome"]
    return (
        ("row writes acknowledged", _count(outcomes, OK)),
        ("failed", _count(outcomes, FAILED)),
        ("unknown", _count(outcomes, UNKNOWN)),
        ("source transactions", int(pc.max(history.log["position"]).as_py() or 0)),
        ("delivered rows", history.deliveries.num_rows),
        ("target commits", history.commits.num_rows),
        ("target row changes", history.changes.num_rows),
        ("observed values", history.observations.num_rows),
    )


def _count(column: pa.ChunkedArray, value: str) -> int:
    return int(pc.sum(pc.equal(column, value)).as_py() or 0)


def _fault(row: dict[str, Any]) -> FaultFact:
    return FaultFact(
        row["name"],
        row["point"] or "",
        bool(row["fired"]),
        _seconds(row["fired_us"]),
        _seconds(row["healed_us"]),
        row["detail"] or "",
    )


def _seconds(moment_us: int | None) -> float | None:
    return None if moment_us is None else moment_us / 1e6


# -- throughput and lag -----------------------------------------------------------------------------------------


def _series(history: History) -> Series | None:
    written_s = _times(history.operations.filter(pc.equal(history.operations["outcome"], OK)), "ended_us")
    commit_s, rows, lag_ms = _commits(history)
    ends = [float(times.max()) for times in (written_s, commit_s) if times.size]
    if not ends:
        return None
    bin_s = max(_LEAST_BIN_S, max(ends) / _BINS)
    bins = int(max(ends) / bin_s) + 1
    edges = np.arange(bins + 1) * bin_s
    written = np.histogram(written_s, edges)[0] / bin_s
    applied = np.histogram(commit_s, edges, weights=rows)[0] / bin_s
    return Series(
        bin_s, tuple(written.tolist()), tuple(applied.tolist()), _longest(commit_s, lag_ms, bin_s, bins)
    )


def _times(table: pa.Table, column: str) -> Any:
    return table[column].drop_null().to_numpy() / 1e6


def _commits(history: History) -> tuple[Any, Any, Any]:
    """The second, the row changes and the lag (ms) of every target commit.

    The lag is the age of the *oldest* source commit that it brings, so that a stall shows as long as it was;
    NaN for a commit that brings none (heartbeats, chunks). MariaDB's log counts whole seconds, cut off: there
    it is up to a second too long.
    """
    commits = history.commits.filter(pc.is_valid(history.commits["committed_at_us"])).sort_by("commit")
    at_s = _times(commits, "committed_at_us")
    numbers = commits["commit"].to_numpy()
    last = int(numbers.max()) if numbers.size else 0
    changed = np.bincount(history.changes["commit"].to_numpy(), minlength=last + 1)
    log = history.log.filter(
        pc.and_(pc.is_valid(history.log["committed_at_us"]), pc.is_valid(history.log["order"]))
    ).sort_by("order")
    log = log.filter(pc.greater(log["position"], 0))
    orders = log["order"].to_numpy()
    held = np.searchsorted(orders, commits["order"].fill_null(-1).to_numpy(), side="right") - 1
    lag_ms = np.full(at_s.shape, np.nan)
    if orders.size:
        before = np.concatenate([[-1], np.maximum.accumulate(held)[:-1]])[: held.size]
        oldest = np.minimum(before + 1, orders.size - 1)
        lag_ms = np.where(held > before, (at_s - _times(log, "committed_at_us")[oldest]) * 1000, np.nan)
    return at_s, changed[numbers], lag_ms


def _longest(at_s: Any, lag_ms: Any, bin_s: float, bins: int) -> tuple[tuple[float, float], ...]:
    longest: dict[int, float] = {}
    for second, lag in zip(at_s.tolist(), lag_ms.tolist(), strict=True):
        if lag == lag:  # not NaN
            place = min(int(second / bin_s), bins - 1)
            longest[place] = max(longest.get(place, 0.0), lag)
    return tuple(((place + 0.5) * bin_s, lag) for place, lag in sorted(longest.items()))
