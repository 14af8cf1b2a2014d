"""The test bed of every measurement of ``migrator bench``: two servers with a project, a table of results,
watches."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import click

from migrator.config import project as configuration
from migrator.run.caught_up import caught_up
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.run.parts import Parts
from migrator.run.progress import Snapshot
from migrator.wiring import parts as wiring
from scenarios.database import Database
from scenarios.project import make_project, servers
from scenarios.resources import tree_processor_s

_BUFFERS_MIB = 2048
"""A server that somebody looks after has a good part of the machine's memory for its tables. By default it
has 64 or 128 MiB, less than the tables measured here: much of a figure would be the reading of pages that the
kernel holds."""


@dataclass
class Report:
    """Rows of the result table, printed as they come."""

    engine: str
    lines: list[tuple[str, str, str]] = field(default_factory=list)

    def add(self, what: str, value: str, ratio: str = "") -> None:
        """One measured figure; ``ratio`` compares it within this run."""
        self.lines.append((what, value, ratio))
        click.echo(f"  {what:<58} {value:>22}  {ratio}")

    def markdown(self) -> str:
        """The table for docs/development/benchmarks.md."""
        rows = [f"| {what} | {value} | {ratio} |" for what, value, ratio in self.lines]
        return "\n".join(
            [f"### {self.engine}", "", "| what | measured | ratio |", "|---|---:|---|", *rows, ""]
        )


@dataclass(frozen=True)
class Bed:
    """Two servers, the filled old table, the project."""

    old: Database
    new: Database
    config: Path

    def parts(self) -> Parts:
        """The run's parts, as ``migrator run`` makes them."""
        return wiring.parts(configuration.load(self.config))


@contextmanager
def fresh(engine: str, project: Path, fill: Callable[[Database], None], postgres: int = 18) -> Iterator[Bed]:
    """Fresh servers, the old tables as ``fill`` makes them, the new schema of a project in ``scenarios``.

    ``postgres``: major version of every PostgreSQL.
    """
    with ExitStack() as stack:
        old, new = servers(stack, engine, buffers_mib=_BUFFERS_MIB, postgres=postgres)
        fill(old)
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="migrator-bench-")))
        config = make_project(folder / "project", old, new, project, "bench")
        wiring.upgrade_user_target(configuration.load(config))
        yield Bed(old, new, config)


class Watch:
    """Times a run from the moment capture works until a condition holds: wall time and processor time.

    Processor time is that of this process and everything below it: Python, JVM, both servers.
    """

    def __init__(self, goal: Callable[[Snapshot], bool]):
        self._goal = goal
        self._started: float | None = None
        self._used_s = 0.0
        self.elapsed_s = 0.0
        self.processor_s = 0.0

    def __call__(self, now: Snapshot) -> bool:
        """Returns whether the goal is reached; measures the time and the processor time until then."""
        if self._started is None and now.captured is not None:
            self._started, self._used_s = time.monotonic(), tree_processor_s(os.getpid())
        if self._started is None or not self._goal(now):
            return False
        self.elapsed_s = time.monotonic() - self._started
        self.processor_s = tree_processor_s(os.getpid()) - self._used_s
        return True


def dumped(bed: Bed) -> Watch:
    """Runs the migration until the whole dump is in the target, every joined target filled.

    The JVM's start is no part of the time.
    """
    parts = bed.parts()
    parts.spark()
    watch = Watch(lambda now: now.applied_dump_complete and not now.filling)
    Migration(parts).run(Stopping(), watch)
    return watch


def streamed(bed: Bed) -> Watch:
    """Runs the migration until all that the source holds now is in the target."""
    parts = bed.parts()
    watch = Watch(caught_up(parts.catalog.position))
    Migration(parts).run(Stopping(), watch)
    return watch


class Changed(Protocol):
    """The work that writers did."""

    @property
    def row_changes(self) -> int:
        """Committed row changes."""


class Writers(Protocol):
    """Whatever writes to the old database at a rate of its own."""

    def start(self) -> None:
        """Begin to write."""

    def report(self) -> Changed:
        """Reports the work done so far."""

    def stop(self) -> Changed:
        """End, and tell what was done."""


class Steady:
    """Starts writers once the run works, lets them warm up, then measures for some seconds."""

    _WARM_UP_S = 8.0

    def __init__(self, migration: Migration, writers: Writers, seconds: float):
        self._migration = migration
        self._writers = writers
        self._seconds = seconds
        self._started: float | None = None
        self._warm_changes: int | None = None
        self.row_changes = 0
        self.measured_s = seconds

    def __call__(self, now: Snapshot) -> bool:
        """Returns whether the writers have written for long enough behind the warm-up, so the migration can stop."""
        if self._started is None:
            if now.captured is not None:
                self._writers.start()
                self._started = time.monotonic()
            return False
        elapsed_s = time.monotonic() - self._started
        if self._warm_changes is None:
            if elapsed_s >= self._WARM_UP_S:
                self._warm_changes = self._writers.report().row_changes
                self._migration.progress.forget_lags()
            return False
        if elapsed_s < self._WARM_UP_S + self._seconds:
            return False
        self.measured_s = elapsed_s - self._WARM_UP_S
        self.row_changes = self._writers.stop().row_changes - self._warm_changes
        return True
