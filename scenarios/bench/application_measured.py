"""The part of ``migrator bench`` that stands where users are: a whole application, and what its users change."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import click

from migrator.errors import MigratorError
from migrator.model.position import Position
from migrator.own_modules import python_m
from migrator.run.caught_up import caught_up
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.run.progress import Snapshot
from scenarios.bench import start_measured
from scenarios.bench.bed import Bed, Report, dumped, fresh
from scenarios.bench.shapes import application
from scenarios.bench.shapes.application.changes import THREE_TARGETS, Change, changes
from scenarios.bench.shapes.application.tables import TABLES, create
from scenarios.bench.shapes.application.writers import ApplicationWriters, write_backlog
from scenarios.resources import PeakMemory, tree

_PROJECT = Path(application.__file__).parent
_ENGINE = "postgresql"
TARGETS = 25
_LOOK_S = 0.05
_WARM_UP_S = 8.0
_LONGEST_WARM_UP_S = 180.0
_LONGEST_REST_S = 1800.0
"""A run that can't keep up is measured as it is; what it lags behind then is cut off here."""


def measure(rates: tuple[float, ...], seconds: float, backlog: int, scale: float, verify_s: float) -> Report:
    """25 joined targets over 36 tables, from PostgreSQL to PostgreSQL.

    Args:
        rates: row changes per second, one steady phase each.
        seconds: how long each phase is measured.
        backlog: changes of each of the two lines that tell what one costs.
        scale: rows, of the tables as they stand in ``tables.py``.
        verify_s: how long every target may be compared with the source at the end; 0 leaves it out.

    Raises:
        MigratorError: a target isn't equal in the end, or a run failed.
    """
    report = Report("an application (PostgreSQL to PostgreSQL)")
    click.echo(report.engine)
    with fresh(_ENGINE, _PROJECT, partial(create, scale=scale)) as bed:
        click.echo("  phase: dump")
        dump = dumped(bed)
        what = f"{TARGETS} joined targets over {len(TABLES)} tables, dumped and filled"
        report.add(what, f"{dump.elapsed_s:,.1f} s")
        read = tuple(one for one in changes(scale) if one.name in THREE_TARGETS)
        start_measured.measure(bed, report, lambda number: write_backlog(bed.old, read, 2, seed=number))
        for rate in rates:
            _steady(bed, report, rate, seconds, scale)
        for name, chosen in _kinds(scale).items():
            _cost(bed, report, name, chosen, backlog)
        if verify_s > 0:
            _verify(bed, report, verify_s)
    return report


def _kinds(scale: float) -> dict[str, tuple[Change, ...]]:
    every = changes(scale)
    return {
        "a change that nothing reads": tuple(one for one in every if one.kind == "unread"),
        "a change that three targets read": tuple(one for one in every if one.name in THREE_TARGETS),
    }


def _steady(bed: Bed, report: Report, rate: float, seconds: float, scale: float) -> None:
    click.echo(f"  phase: {rate:g} changes/s for {seconds:g} s")
    parts = bed.parts()
    migration = Migration(parts)
    with ApplicationWriters(bed.old, changes(scale), rate_per_s=rate) as writers:
        phase = _Phase(migration, writers, seconds, parts.catalog.position)
        with PeakMemory(os.getpid(), of=_is_ours) as memory:
            migration.run(Stopping(), phase)
    achieved = phase.row_changes / phase.measured_s
    for name, lag_s in zip(("p50", "p99"), phase.lags_s, strict=True):
        what = f"lag {name} at {achieved:,.0f} row changes/s"
        report.add(what, f"{lag_s * 1000:,.0f} ms", "source commit to target commit")
    phase.used.add(report, "processor time a change", max(phase.row_changes, 1))
    report.add("  peak memory (Python, JVM, workers)", f"{memory.peak_bytes / 2**20:,.0f} MiB")
    report.add(
        "  warm-up, and caught up after the last change", f"{phase.warm_s:,.1f} s, {phase.rest_s:,.1f} s"
    )


class Used:
    """Processor time of ours and of the servers, from one moment to another."""

    def __init__(self) -> None:
        self._begun = _processor_s()
        self._used_s = (0.0, 0.0)

    def end(self) -> None:
        """Measure until now."""
        ours_s, servers_s = _processor_s()
        self._used_s = ours_s - self._begun[0], servers_s - self._begun[1]

    def add(self, report: Report, what: str, changes: int) -> None:
        """Report it, for each of so many changes."""
        for whose, used_s in zip(("ours (Python, JVM)", "both servers"), self._used_s, strict=True):
            report.add(f"  {what}, {whose}", f"{used_s / changes * 1e6:,.0f} us")


class _Phase:
    """Writers that warm the run up, then write for some seconds, then the way to caught up.

    The warm-up ends once what was written in its first seconds is applied: by then every target has been planned and
    compiled. Lags and processor time are those of all that was written afterwards: they count until it is applied,
    so a run that falls behind can't look better than it is.
    """

    def __init__(
        self,
        migration: Migration,
        writers: ApplicationWriters,
        seconds: float,
        position: Callable[[], Position],
    ):
        self.used = Used()
        self.lags_s = (float("nan"), float("nan"))
        self.row_changes = 0
        self.warm_s = self.measured_s = self.rest_s = 0.0
        self._migration = migration
        self._writers = writers
        self._seconds = seconds
        self._position = position
        self._steps = self._run()
        self._now = Snapshot()

    def __call__(self, now: Snapshot) -> bool:
        """Returns whether all that was written is applied."""
        self._now = now
        return next(self._steps, None) is None

    def _run(self) -> Iterator[bool]:
        """Goes on whenever the run asks; ends when all is done."""
        while self._now.captured is None:
            yield True
        self._writers.start()
        begun = time.monotonic()
        while time.monotonic() < begun + _WARM_UP_S:
            yield True
        yield from self._until_applied(begun + _LONGEST_WARM_UP_S)
        warm = self._writers.report().row_changes
        self._migration.progress.forget_lags()
        self.used, started = Used(), time.monotonic()
        self.warm_s = started - begun
        while time.monotonic() < started + self._seconds:
            yield True
        self.row_changes = self._writers.stop().row_changes - warm
        ended = time.monotonic()
        self.measured_s = ended - started
        yield from self._until_applied(ended + _LONGEST_REST_S)
        self.rest_s = time.monotonic() - ended
        self.used.end()
        self.lags_s = self._migration.progress.lag_quantiles_s() or self.lags_s

    def _until_applied(self, deadline: float) -> Iterator[bool]:
        reached = caught_up(self._position)
        while not reached(self._now) and time.monotonic() < deadline:
            yield True


class _Backlog:
    """The cost of applying all that was written before."""

    def __init__(self, goal: Callable[[Snapshot], bool]):
        self._goal = goal
        self.used: Used | None = None

    def __call__(self, now: Snapshot) -> bool:
        """Returns whether it is applied."""
        if self.used is None and now.captured is not None:
            self.used = Used()
        if self.used is None or not self._goal(now):
            return False
        self.used.end()
        return True


def _cost(bed: Bed, report: Report, name: str, chosen: tuple[Change, ...], number: int) -> None:
    """Two backlogs, of which the second counts: the first brings compilers and caches up to speed."""
    click.echo(f"  phase: {number:,} times {name}")
    watch = None
    for seed in (1, 2):
        write_backlog(bed.old, chosen, number, seed)
        parts = bed.parts()
        watch = _Backlog(caught_up(parts.catalog.position))
        Migration(parts).run(Stopping(), watch)
    if watch is not None and watch.used is not None:
        watch.used.add(report, name, number)


def _verify(bed: Bed, report: Report, limit_s: float) -> None:
    """Compares every target with the source. Raises ``MigratorError`` unless all are equal."""
    click.echo(f"  phase: verify, for {limit_s:g} s at most")
    command = [*python_m("migrator"), "verify", "--config", str(bed.config)]
    started = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        report.add(f"{TARGETS} targets verified", "not done", f"stopped after {limit_s:g} s")
        return
    if done.returncode:
        raise MigratorError("not all targets are equal", cause=(done.stdout + done.stderr)[-2000:])
    report.add(f"{TARGETS} targets verified, equal", f"{time.monotonic() - started:,.1f} s")


def _processor_s() -> tuple[float, float]:
    """Processor time of ours and of the servers, in seconds; that of the writers is left out.

    That of ended children counts, except this process's own: the writers are among them.
    """
    ours = servers = 0
    for process, fields in tree(os.getpid()).items():
        used = sum(map(int, fields[11:13] if process == os.getpid() else fields[11:15]))
        name = _name(process)
        ours += used if name not in _OTHERS else 0
        servers += used if name == "postgres" else 0
    tick = os.sysconf("SC_CLK_TCK")
    return ours / tick, servers / tick


_OTHERS = ("postgres", "pgbench", "")


def _is_ours(process: int) -> bool:
    return _name(process) not in _OTHERS


def _name(process: int) -> str:
    """Name of a process's program; "" once it has ended."""
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""
