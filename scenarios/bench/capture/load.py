"""A real load (pgbench on PostgreSQL, sysbench on MariaDB and MySQL), second by second."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from statistics import fmean

from migrator.embedded.process import plain_environment
from migrator.errors import MigratorError
from scenarios.database import Database
from scenarios.workloads.program import as_environment, as_options, find, run_to_set_up
from scenarios.workloads.sysbench.writers import settings

_CLIENTS = 2
_LONGEST_S = 600
_PGBENCH = re.compile(r"progress: [\d.]+ s, ([\d.]+) tps, lat ([\d.]+) ms")
_SYSBENCH = re.compile(r"\[ \d+s \] .*?tps: ([\d.]+) .*?lat \(ms,95%\): ([\d.]+)")
_USER = "loader"
_SCRIPT = "oltp_read_write"
_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Second:
    """The program's figures of one second: when it printed them, transactions a second, latency (ms)."""

    at: float
    tps: float
    latency_ms: float


@dataclass
class Load:
    """The program's tables in the source, and runs of it.

    ``latency`` says which figure the program gives every second: pgbench the mean, sysbench the 95th percentile.
    """

    old: Database
    name: str = field(init=False)
    latency: str = field(init=False)

    def __post_init__(self) -> None:
        postgres = self.old.kind == "postgresql"
        self.name, self.latency = ("pgbench", "mean") if postgres else ("sysbench " + _SCRIPT, "p95")

    def create(self) -> None:
        """Creates the load's tables, by the program itself."""
        if self.old.kind == "postgresql":
            program = find("pgbench", "pip install 'dbmigrator[embedded]'")
            run_to_set_up(
                [program, "--initialize", "--scale=5", *as_options(self.old)], as_environment(self.old)
            )
            return
        # an account of its own: a dump gives way to others, and tells them from us by their names
        connection = self.old.connect(autocommit=True)
        cursor = connection.cursor()
        cursor.execute(f"CREATE USER {_USER}@'%'")
        cursor.execute(f"GRANT ALL ON `{self.old.database}`.* TO {_USER}@'%'")
        connection.close()
        self.old = replace(self.old, user=_USER, password="")
        with settings(self.old, [f"table-size={_ROWS}"]) as file:
            run_to_set_up([_sysbench(), f"--config-file={file}", _SCRIPT, "prepare"], {})

    @contextmanager
    def running(self, rate: float | None = None) -> Iterator[list[Second]]:
        """The program at work, with what it says of each second; ``rate``: transactions a second at most."""
        seconds: list[Second] = []
        with settings(self.old, _lines(rate)) as file:
            process = subprocess.Popen(
                self._command(rate, file),
                env={**plain_environment(), **as_environment(self.old)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            reader = threading.Thread(target=_listen, args=(process, seconds), daemon=True)
            reader.start()
            try:
                yield seconds
                if process.poll() is not None:
                    raise MigratorError(f"{self.name} ended by itself", cause=f"exit code {process.poll()}")
            finally:
                process.kill()
                process.wait()
                reader.join(5)

    def _command(self, rate: float | None, file: str) -> list[str]:
        if self.old.kind != "postgresql":
            return [_sysbench(), f"--config-file={file}", _SCRIPT, "run"]
        program = find("pgbench", "pip install 'dbmigrator[embedded]'")
        limited = [] if rate is None else [f"--rate={rate:.0f}"]
        how = [f"--client={_CLIENTS}", f"--time={_LONGEST_S}", "--progress=1", "--no-vacuum"]
        return [program, *how, *limited, *as_options(self.old)]


def within(seconds: Sequence[Second], span: tuple[float, float]) -> tuple[float, float]:
    """Means over the whole seconds within a span of time (monotonic): transactions a second, latency (ms)."""
    begin, end = span
    chosen = [second for second in seconds if begin + 1 <= second.at <= end]
    if not chosen:
        raise MigratorError("the load said nothing", cause=f"no whole second within {end - begin:.1f} s")
    return fmean(second.tps for second in chosen), fmean(second.latency_ms for second in chosen)


def _listen(process: subprocess.Popen[str], seconds: list[Second]) -> None:
    if process.stdout is None:
        raise AssertionError("a pipe was asked for")
    for line in process.stdout:
        found = _PGBENCH.search(line) or _SYSBENCH.search(line)
        if found is not None:
            seconds.append(Second(time.monotonic(), float(found[1]), float(found[2])))


def _lines(rate: float | None) -> list[str]:
    lines = [f"table-size={_ROWS}", f"threads={_CLIENTS}", f"time={_LONGEST_S}", "report-interval=1"]
    return lines if rate is None else [*lines, f"rate={rate:.0f}"]


def _sysbench() -> str:
    return find("sysbench", "install sysbench 1.0 (Debian and Ubuntu: apt-get install sysbench)")
