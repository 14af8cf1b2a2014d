"""The part of ``migrator bench`` whose subject is the shape of a mapping: joins, many targets, a hot lookup row."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path

import click

from migrator.errors import MigratorError
from migrator.own_modules import python_m
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from scenarios.bench import shapes
from scenarios.bench.bed import Bed, Report, Steady, dumped, fresh, streamed
from scenarios.bench.shapes import old_schema
from scenarios.bench.shapes.gauge_writers import GaugeWriters
from scenarios.resources import PeakMemory

_MANY = Path(shapes.__file__).parent / "many"
_JOINED = Path(shapes.__file__).parent / "joined"
_ENGINE = "postgresql"


def measure(lines: int, rate: float, seconds: float) -> Report:
    """Joined mappings, twenty targets and a hot lookup row, from PostgreSQL to PostgreSQL.

    Args:
        lines: rows of the joined table at 1x, and target rows that the hot lookup row reaches.
        rate: row changes per second, over twenty tables.
        seconds: how long lag is measured.
    """
    report = Report("shapes of mappings (PostgreSQL to PostgreSQL)")
    click.echo(report.engine)
    _joined(lines, report)
    _hot_row(lines, report)
    _many(rate, seconds, report)
    return report


def _joined(lines: int, report: Report) -> None:
    """A backlog of the same changes to a joined table, and to one ten times as large; then a longer backlog."""
    costs: list[float] = []
    for times in (1, 10):
        cost = _joined_backlog(lines * times, lines // 2, report)
        costs.append(cost)
        report.add(
            "  processor time a change (all servers included)",
            f"{cost * 1e6:,.0f} us",
            f"{cost / costs[0]:.2f}x of 1x",
        )
    _joined_backlog(lines * 3, lines * 3, report)


def _joined_backlog(lines: int, changes: int, report: Report) -> float:
    """Reports what is streamed a second; returns the processor time a change."""
    with fresh(_ENGINE, _JOINED, partial(old_schema.create_joined, lines=lines)) as bed:
        dump = dumped(bed)
        watch = None
        for _ in range(2):  # the first brings compilers and caches up to speed
            old_schema.touch_lines(bed.old, changes, 1000)
            watch = streamed(bed)
    assert watch is not None
    rows = f"{lines / dump.elapsed_s:,.0f} rows/s"
    report.add(f"joined dump, 4 tables, {lines:,} target rows, to a committed target", rows, "")
    what = f"joined backlog, {changes:,} changes, 4 tables, {lines:,} target rows"
    report.add(what, f"{changes / watch.elapsed_s:,.0f} rows/s", "")
    return watch.processor_s / changes


def _hot_row(lines: int, report: Report) -> None:
    """Peak memory of a run that one change of a lookup row makes write so many target rows, and a tenth of them."""
    peaks = []
    fill = partial(old_schema.create_joined, lines=lines * 2, reached=(lines // 10, lines))
    with fresh(_ENGINE, _JOINED, fill) as bed:
        _memory(bed)
        for product, reached in ((1, lines // 10), (2, lines)):
            old_schema.touch_product(bed.old, product)
            peaks.append(_memory(bed))
            report.add(
                f"peak memory, a lookup row that reaches {reached:,} target rows",
                f"{peaks[-1] / 2**20:,.0f} MiB",
                f"{peaks[-1] / peaks[0]:.2f}x",
            )


def _many(rate: float, seconds: float, report: Report) -> None:
    rows = 5_000
    with fresh(_ENGINE, _MANY, partial(old_schema.create_many, rows=rows)) as bed:
        dumped(bed)
        migration = Migration(bed.parts())
        with GaugeWriters(bed.old, rows, rate_per_s=rate) as writers:
            steady = Steady(migration, writers, seconds)
            migration.run(Stopping(), steady)
        achieved = steady.row_changes / steady.measured_s
        for name, lag_s in zip(
            ("p50", "p99"), migration.progress.lag_quantiles_s() or (0.0, 0.0), strict=True
        ):
            what = f"{old_schema.TABLES} target tables, lag {name} at {achieved:,.0f} row changes/s"
            report.add(what, f"{lag_s * 1000:,.0f} ms", "source commit to target commit")


def _memory(bed: Bed) -> int:
    """Peak memory of ``migrator run`` until it has caught up, with everything below it."""
    command = [*python_m("migrator"), "run", "--plain", "--until", "caught-up"]
    process = subprocess.Popen([*command, "--config", str(bed.config)], stdout=subprocess.DEVNULL)
    with PeakMemory(process.pid) as memory:
        code = process.wait()
    if code:
        raise MigratorError("migrator run failed in the memory measurement", cause=f"exit code {code}")
    return memory.peak_bytes
