"""Writers of the twenty tables, in a process of their own: what they do costs the measured one no time of its
own."""

from __future__ import annotations

from dataclasses import dataclass

from scenarios.bench.shapes.old_schema import TABLES, gauge_changes
from scenarios.bench.shapes.pgbench import RunningPgbench, pgbench
from scenarios.database import Database

_SCRIPT = r"""
\set gauge random(1, {tables})
\set id random(1, {rows})
UPDATE gauge_:gauge SET n = n + 1 WHERE id = :id;
"""


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
        self._pgbench = RunningPgbench(database)

    def __enter__(self) -> GaugeWriters:
        """Returns the writers, not started yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends what runs."""
        self._pgbench.close()

    def start(self) -> None:
        """Begin to write."""
        script = self._pgbench.folder() / "update.sql"
        script.write_text(_SCRIPT.format(tables=TABLES, rows=self._rows))
        command = pgbench(f"--random-seed={self._seed}", f"--file={script}")
        self._pgbench.start(command, self._rate_per_s)

    def report(self) -> Changed:
        """Reports the work done so far. Raises ``MigratorError`` with the writers' last words if they ended by
        themselves."""
        self._pgbench.check()
        return Changed(gauge_changes(self._database))

    def stop(self) -> Changed:
        """Tell what was done, then end. Raises as :meth:`report` does."""
        done = self.report()
        self._pgbench.close()
        return done
