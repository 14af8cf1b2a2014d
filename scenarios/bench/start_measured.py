"""Starts of ``migrator run`` on a migration whose dump is done, with a change to apply: medians of several."""

from __future__ import annotations

import resource
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import psycopg

from migrator.errors import MigratorError
from migrator.own_modules import python_m
from scenarios.bench import orders
from scenarios.bench.bed import Bed, Report, dumped, fresh
from scenarios.bench.orders.old_schema import create, touch
from scenarios.resources import PeakMemory

STARTS = 3
_LOOK_S = 0.05


@dataclass(frozen=True)
class Start:
    """One start: seconds to the first applied change and to the end of the process, its processor time in seconds,
    its peak memory in bytes."""

    applied_s: float
    ended_s: float
    used_s: float
    peak_bytes: int


def one_target(engine: str, rows: int) -> Report:
    """The starts of a migration of one table to one target."""
    report = Report(f"starts with one target ({engine} to PostgreSQL)")
    click.echo(report.engine)
    with fresh(engine, Path(orders.__file__).parent, partial(create, rows=rows)) as bed:
        dumped(bed)
        measure(bed, report, lambda number: touch(bed.old, number, number, 1))
    return report


def measure(bed: Bed, report: Report, write: Callable[[int], None]) -> None:
    """Reports the medians of several starts; ``write`` commits what start number 1, 2, ... has to apply.

    ``migrator check`` went before, as it does at users'. Raises ``MigratorError`` if a command fails, or a run ends
    without a new position in the target.
    """
    click.echo("  phase: starts")
    checked = [*python_m("migrator"), "check", "--value-seconds", "0", "--config", str(bed.config)]
    if subprocess.run(checked, stdout=subprocess.DEVNULL, check=False).returncode:
        raise MigratorError("migrator check failed")
    starts = []
    for number in range(1, STARTS + 1):
        write(number)
        starts.append(_start(bed))
    report.add(
        "start of a run to its first applied change",
        _median(starts, lambda one: one.applied_s, "s"),
        "median",
    )
    report.add("  to caught up, and ended", _median(starts, lambda one: one.ended_s, "s"))
    report.add("  processor time of that run (Python, JVM)", _median(starts, lambda one: one.used_s, "s"))
    peak = _median(starts, lambda one: one.peak_bytes / 2**20, "MiB")
    report.add("  its peak memory (Python, JVM, workers)", peak)


def _median(starts: list[Start], figure: Callable[[Start], float], unit: str) -> str:
    """The median, with the lowest and the highest."""
    found = sorted(map(figure, starts))
    return f"{statistics.median(found):,.1f} {unit} ({found[0]:,.1f} to {found[-1]:,.1f})"


def _start(bed: Bed) -> Start:
    """Times count from the start of its process."""
    command = [*python_m("migrator"), "run", "--plain", "--until", "caught-up", "--config", str(bed.config)]
    applied_s = None
    with bed.new.postgres(autocommit=True) as target:
        before = _segment(target)
        used_s, started = _children_s(), time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        with PeakMemory(process.pid) as memory:
            while process.poll() is None:
                time.sleep(_LOOK_S)
                if applied_s is None and _segment(target) > before:
                    applied_s = time.monotonic() - started
        ended_s, used_s = time.monotonic() - started, _children_s() - used_s
        if process.returncode or (applied_s is None and _segment(target) == before):
            cause = f"exit code {process.returncode}, segment {before} in the ledger before and after"
            raise MigratorError("migrator run failed, or applied nothing", cause=cause)
    return Start(applied_s or ended_s, ended_s, used_s, memory.peak_bytes)


def _children_s() -> float:
    """Processor time, in seconds, of processes that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _segment(target: psycopg.Connection[tuple[Any, ...]]) -> int:
    """The number of the segment that the target's ledger is behind."""
    row = target.execute("SELECT segment FROM migrator.ledger").fetchone()
    if row is None:
        raise AssertionError("the dump is done, so there is a ledger")
    return int(row[0])
