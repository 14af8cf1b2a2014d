"""The application's users: pgbench, in a process of its own, so that what they do costs the measured one nothing."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from migrator.embedded.process import plain_environment
from migrator.errors import MigratorError
from scenarios.bench.shapes.application.changes import Change, per_transaction, rows_a_transaction
from scenarios.bench.shapes.pgbench import RunningPgbench, pgbench
from scenarios.database import Database
from scenarios.workloads.program import as_environment, as_options

_WEIGHT = 1_000_000
_WRITTEN = "SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::bigint FROM pg_stat_user_tables"


@dataclass(frozen=True, slots=True)
class Changed:
    """The work that the writers did.

    Attributes:
        row_changes: as the server's statistics tell, which are up to a second old while they write.
    """

    row_changes: int


class ApplicationWriters:
    """Two sessions of pgbench that draw one transaction after the other; they end with the block.

    Args:
        database: filled by :func:`~scenarios.bench.shapes.application.tables.create`.
        chosen: what they draw from.
        rate_per_s: row changes per second; pgbench draws the moment of each transaction by chance.
        seed: decides what is drawn.
    """

    def __init__(self, database: Database, chosen: tuple[Change, ...], *, rate_per_s: float, seed: int = 1):
        self._database = database
        self._chosen = chosen
        self._rate_per_s = rate_per_s
        self._seed = seed
        self._pgbench = RunningPgbench(database)
        self._before = 0

    def __enter__(self) -> ApplicationWriters:
        """Returns the writers, not started yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends what runs."""
        self._pgbench.close()

    def start(self) -> None:
        """Begin to write."""
        self._before = _written(self._database)
        rate = self._rate_per_s / rows_a_transaction(self._chosen)
        command = _command(self._pgbench.folder(), self._chosen, self._seed)
        self._pgbench.start(command, rate)

    def report(self) -> Changed:
        """Reports the work done so far. Raises ``MigratorError`` with the writers' last words if they ended by
        themselves."""
        self._pgbench.check()
        return Changed(_written(self._database) - self._before)

    def stop(self) -> Changed:
        """Tell what was done, then end. Raises as :meth:`report` does."""
        done = self.report()
        self._pgbench.close()
        return done


def write_backlog(database: Database, chosen: tuple[Change, ...], transactions: int, seed: int = 1) -> None:
    """Writes an even number of transactions as fast as they go. Raises ``MigratorError`` with pgbench's first
    words."""
    with TemporaryDirectory(prefix="migrator-users-") as folder:
        command = _command(Path(folder), chosen, seed)
        done = subprocess.run(
            [*command, f"--transactions={transactions // 2}", *as_options(database)],
            env={**plain_environment(), **as_environment(database)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    if done.returncode:
        raise MigratorError("pgbench failed", cause=done.stderr.strip()[:300])


def _command(folder: Path, chosen: tuple[Change, ...], seed: int) -> list[str]:
    drawn = per_transaction(chosen)
    files = []
    for change in chosen:
        script = folder / f"{change.name}.sql"
        script.write_text(change.script)
        files.append(f"--file={script}@{max(round(drawn[change.name] * _WEIGHT), 1)}")
    return pgbench("--protocol=prepared", "--max-tries=10", f"--random-seed={seed}", *files)


def _written(database: Database) -> int:
    with database.postgres(autocommit=True) as connection:
        row = connection.execute(_WRITTEN.encode()).fetchone()
    if row is None:
        raise AssertionError("a sum is one row")
    return int(row[0])
