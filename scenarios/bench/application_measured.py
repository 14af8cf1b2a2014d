"""The part of ``migrator bench`` that stands where users are: a whole application, and what its users change."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from migrator.cli.verify import sides
from migrator.config import project as configuration
from migrator.errors import MigratorError
from migrator.model.position import Position
from migrator.run.caught_up import caught_up
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.run.progress import Snapshot
from scenarios.bench.bed import Bed, Report, Steady, dumped, fresh
from scenarios.bench.shapes import application
from scenarios.bench.shapes.application.changes import THREE_TARGETS, Change, changes
from scenarios.bench.shapes.application.tables import TABLES, create
from scenarios.bench.shapes.application.writers import ApplicationWriters, write_backlog
from scenarios.resources import PeakMemory, tree
from verify.tables.run import verify
from verify.verdict import Verdict

_PROJECT = Path(application.__file__).parent
_ENGINE = "postgresql"
_TARGETS = 25


def measure(
    rates: tuple[float, ...], seconds: float, backlog: int, scale: float = 1.0, verified: bool = True
) -> Report:
    """25 joined targets over 36 tables, from PostgreSQL to PostgreSQL.

    Args:
        rates: row changes per second, one steady phase each.
        seconds: how long each phase is measured.
        backlog: changes of each of the two lines that tell what one costs.
        scale: rows, of the tables as they stand in ``tables.py``.
        verified: whether every target is compared with the source at the end.

    Raises:
        MigratorError: a target isn't equal in the end, or a run failed.
    """
    report = Report("an application (PostgreSQL to PostgreSQL)")
    click.echo(report.engine)
    with fresh(_ENGINE, _PROJECT, partial(create, scale=scale)) as bed:
        click.echo("  phase: dump")
        dump = dumped(bed)
        what = f"{_TARGETS} joined targets over {len(TABLES)} tables, dumped and filled"
        report.add(what, f"{dump.elapsed_s:,.1f} s")
        _restart(bed, report)
        for rate in rates:
            _steady(bed, report, rate, seconds, scale)
        for name, chosen in _kinds(scale).items():
            _cost(bed, report, name, chosen, backlog)
        if verified:
            _verify(bed, report)
    return report


def _kinds(scale: float) -> dict[str, tuple[Change, ...]]:
    every = changes(scale)
    return {
        "a change that nothing reads": tuple(one for one in every if one.kind == "unread"),
        "a change that three targets read": tuple(one for one in every if one.name in THREE_TARGETS),
    }


def _restart(bed: Bed, report: Report) -> None:
    """``migrator run`` on a migration that has nothing to do."""
    click.echo("  phase: restart")
    command = [sys.executable, "-m", "migrator", "run", "--plain", "--until", "caught-up"]
    started = time.monotonic()
    process = subprocess.Popen([*command, "--config", str(bed.config)], stdout=subprocess.DEVNULL)
    with PeakMemory(process.pid) as memory:
        code = process.wait()
    if code:
        raise MigratorError("migrator run failed", cause=f"exit code {code}")
    report.add("start to caught up, nothing to do", f"{time.monotonic() - started:,.1f} s")
    report.add("  peak memory (Python, JVM, workers)", f"{memory.peak_bytes / 2**20:,.0f} MiB")


def _steady(bed: Bed, report: Report, rate: float, seconds: float, scale: float) -> None:
    click.echo(f"  phase: {rate:g} changes/s for {seconds:g} s")
    parts = bed.parts()
    migration = Migration(parts)
    with ApplicationWriters(bed.old, changes(scale), rate_per_s=rate) as writers:
        phase = _Phase(migration, Steady(migration, writers, seconds), parts.catalog.position)
        migration.run(Stopping(), phase)
    achieved = phase.steady.row_changes / phase.steady.measured_s
    for name, lag_s in zip(("p50", "p99"), phase.lags_s, strict=True):
        what = f"lag {name} at {achieved:,.0f} row changes/s"
        report.add(what, f"{lag_s * 1000:,.0f} ms", "source commit to target commit")
    phase.used.add(report, "processor time a change", max(phase.steady.row_changes, 1))
    report.add("  caught up after the last of them", f"{phase.rest_s:,.1f} s")


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
    """A steady phase, the processor time of its measured part, then the way to caught up."""

    def __init__(self, migration: Migration, steady: Steady, position: Callable[[], Position]):
        self.steady = steady
        self.used = Used()
        self.lags_s = (0.0, 0.0)
        self.rest_s = 0.0
        self._migration = migration
        self._position = position
        self._warm = False
        self._rest: Callable[[Snapshot], bool] | None = None
        self._ended = 0.0

    def __call__(self, now: Snapshot) -> bool:
        """Returns whether all that was written is applied."""
        if self._rest is not None:
            self.rest_s = time.monotonic() - self._ended
            return self._rest(now)
        done = self.steady(now)
        if self.steady.warm and not self._warm:
            self._warm, self.used = True, Used()
        if done:
            self.used.end()
            self.lags_s = self._migration.progress.lag_quantiles_s() or (0.0, 0.0)
            self._ended = time.monotonic()
            self._rest = caught_up(self._position)
        return False


class _Backlog:
    """What it costs to apply all that was written before."""

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


def _verify(bed: Bed, report: Report) -> None:
    click.echo("  phase: verify")
    settings = configuration.load(bed.config)
    started = time.monotonic()
    spark = bed.parts().spark
    result = verify(*sides(settings), settings.name, settings.mapping, None, spark, settings.reports())
    if result.verdict is not Verdict.EQUAL:
        unequal = [f"{table.table}: {table.verdict.value}" for table in result.tables]
        raise MigratorError("a target isn't equal", cause=", ".join(unequal))
    report.add(f"{len(result.tables)} targets verified, equal", f"{time.monotonic() - started:,.1f} s")


def _processor_s() -> tuple[float, float]:
    """Processor time of ours and of the servers, in seconds; that of the writers is left out.

    That of ended children counts, except this process's own: the writers are among them.
    """
    sums = {"postgres": 0, "pgbench": 0, "": 0}
    for process, fields in tree(os.getpid()).items():
        try:
            name = Path(f"/proc/{process}/comm").read_text().strip()
        except OSError:
            continue  # ended meanwhile
        used = fields[11:13] if process == os.getpid() else fields[11:15]
        sums[name if name in sums else ""] += sum(map(int, used))
    tick = os.sysconf("SC_CLK_TCK")
    return sums[""] / tick, sums["postgres"] / tick
