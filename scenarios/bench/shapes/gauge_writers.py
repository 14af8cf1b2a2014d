"""Writers of the twenty tables, in a process of their own: what they do costs the measured one no time of its
own."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from migrator.embedded.process import plain_environment
from migrator.errors import MigratorError
from scenarios.bench.shapes.old_schema import TABLES, gauge_changes
from scenarios.database import Database
from scenarios.workloads.program import as_environment, as_options, find

_SCRIPT = r"""
\set gauge random(1, {tables})
\set id random(1, {rows})
UPDATE gauge_:gauge SET n = n + 1 WHERE id = :id;
"""
_LONGEST_S = 86_400


@dataclass(frozen=True, slots=True)
class Changed:
    """The work that the writers did.

    Attributes:
        row_changes: committed, as the tables themselves tell.
    """

    row_changes: int


class GaugeWriters:
    """Single-row updates by two sessions of pgbench, each of a table drawn anew; they end with the block.

    Args:
        database: filled by :func:`~scenarios.bench.shapes.old_schema.create_many`.
        rows: of each table.
        rate_per_s: row changes per second over all tables; pgbench draws the moment of each by chance.
        seed: decides what is drawn.
    """

    def __init__(self, database: Database, rows: int, *, rate_per_s: float, seed: int = 1):
        self._database = database
        self._rows = rows
        self._rate_per_s = rate_per_s
        self._seed = seed
        self._process: subprocess.Popen[str] | None = None
        self._stack = ExitStack()

    def __enter__(self) -> GaugeWriters:
        """Returns the writers, not started yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends what runs."""
        self._stack.close()

    def start(self) -> None:
        """Begin to write."""
        folder = self._stack.enter_context(TemporaryDirectory(prefix="migrator-gauges-"))
        script = Path(folder) / "update.sql"
        script.write_text(_SCRIPT.format(tables=TABLES, rows=self._rows))
        self._process = subprocess.Popen(
            self._command(script),
            env={**plain_environment(), **as_environment(self._database)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._stack.callback(_end, self._process)

    def report(self) -> Changed:
        """Reports the work done so far. Raises ``MigratorError`` with the writers' last words if they ended by
        themselves."""
        ended = None if self._process is None else self._process.poll()
        if self._process is not None and ended is not None:
            words = self._process.communicate()[1].strip()
            raise MigratorError("pgbench ended by itself", cause=words or f"exit code {ended}")
        return Changed(gauge_changes(self._database))

    def stop(self) -> Changed:
        """Tell what was done, then end. Raises as :meth:`report` does."""
        done = self.report()
        self._stack.close()
        return done

    def _command(self, script: Path) -> list[str]:
        return [
            find("pgbench", "pip install 'dbmigrator[embedded]'"),
            "--no-vacuum",
            "--client=2",
            f"--time={_LONGEST_S}",
            f"--rate={self._rate_per_s:g}",
            f"--random-seed={self._seed}",
            f"--file={script}",
            *as_options(self._database),
        ]


def _end(process: subprocess.Popen[str]) -> None:
    with process:  # which waits for it and closes the pipe
        process.kill()
