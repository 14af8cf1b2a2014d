"""External readers of the new schema: totals and single rows with the ledger's position, each from one snapshot."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from typing import Any

import psycopg
import pyarrow as pa

from migrator.run.failure import Stopping
from scenarios.database import Database
from scenarios.recording.clock import RunClock
from scenarios.recording.growing import GrowingTable
from scenarios.recording.row_version import RowShape
from scenarios.recording.states import quoted, select
from scenarios.workloads.base import Tracked
from verify.history.history import PUT

_PAUSE_S = 0.05
_ROWS_A_READ = 40
_LEDGER = "SELECT position_order FROM migrator.ledger WHERE migration = %s"


class Observers:
    """Threads that read until ``stop``. Connections that break are made again; nothing is read in between.

    Args:
        database: the new side, reached directly.
        migration: whose ledger row.
        tracked: tables to read.
        clock: of the run.
        seed: decides which rows are read.
        threads: how many readers.
    """

    def __init__(
        self,
        database: Database,
        migration: str,
        tracked: Sequence[Tracked],
        clock: RunClock,
        *,
        seed: int,
        threads: int = 2,
    ):
        self._database = database
        self._migration = migration
        self._clock = clock
        self._seed = seed
        self._names = [f"observer-{number}" for number in range(1, threads + 1)]
        self._totals = _totals(tracked)
        self._rows = [(sides.table.name, sides.new.keys, *select(sides.new)) for sides in tracked]
        self._seen = GrowingTable("observations")
        self._lock = threading.Lock()
        self._snapshots = 0
        self._stopping = Stopping()

    @property
    def snapshots(self) -> int:
        """The number of snapshots that were read."""
        return self._snapshots

    def start(self) -> None:
        """Starts the threads. The target's tables and the ledger's must exist."""
        self._threads = [
            self._stopping.thread(name, lambda name=name: self._observe(name))  # type: ignore[misc]
            for name in self._names
        ]

    def stop(self) -> None:
        """Ends the threads after their present snapshot. Raises an error that wasn't the server's."""
        self._stopping.request()
        for thread in self._threads:
            thread.join()
        self._stopping.raise_failure()

    def table(self) -> pa.Table:
        """The history's table, in the order in which snapshots ended."""
        return self._seen.table()

    def _observe(self, name: str) -> None:
        rng = random.Random(f"{self._seed}/{name}")
        connection: psycopg.Connection[tuple[Any, ...]] | None = None
        try:
            while not self._stopping.wait(_PAUSE_S):
                try:
                    if connection is None:
                        connection = self._database.postgres()
                        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                        connection.read_only = True
                    self._keep(name, self._read(connection, rng))
                except psycopg.OperationalError:  # a server that a fault has stopped
                    if connection is not None:
                        connection.close()
                    connection = None
        finally:
            if connection is not None:
                connection.close()

    def _read(
        self, connection: psycopg.Connection[tuple[Any, ...]], rng: random.Random
    ) -> list[tuple[Any, ...]]:
        """One snapshot: ``order``, ``name``, then a row's columns."""
        found: list[tuple[Any, ...]] = []
        with connection.transaction():
            ledger = connection.execute(_LEDGER, [self._migration]).fetchone()
            order = None if ledger is None or ledger[0] is None else int(ledger[0])
            if order is None:
                return []  # nothing was applied yet: whatever stands there shows in the recorded commits
            for group, statement in self._totals:
                total = connection.execute(statement).fetchone()
                value = None if total is None or total[0] is None else int(total[0])
                found.append((order, f"total {group}", None, None, None, None, PUT, value))
            for table, keys, statement, shape in self._rows:
                rows = self._sample(connection, statement, keys, shape, rng)
                found += [(order, f"row {table}", table, row.key, *row[1:3], PUT, row.value) for row in rows]
        return found

    @staticmethod
    def _sample(
        connection: psycopg.Connection[tuple[Any, ...]],
        statement: str,
        keys: tuple[str, ...],
        shape: RowShape,
        rng: random.Random,
    ) -> list[Any]:
        """Reads a few rows that are neighbours by key, from a place that the seed chooses."""
        table = statement.rpartition(" FROM ")[2]
        count = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        start = rng.randrange(max(int(count[0]) if count else 0, 1))
        ordered = ", ".join(map(quoted, keys))
        sample = f"{statement} ORDER BY {ordered} LIMIT {_ROWS_A_READ} OFFSET {start}"
        return [shape.version(row) for row in connection.execute(sample)]

    def _keep(self, name: str, found: list[tuple[Any, ...]]) -> None:
        if not found:
            return
        at_us = self._clock.now_us()
        with self._lock:
            self._snapshots += 1
            for order, what, *row in found:
                self._seen.add((at_us, name, self._snapshots, order, what, *row))
            self._seen.settle()


def _totals(tracked: Sequence[Tracked]) -> list[tuple[str, str]]:
    """Per group of tables with a constant total: its name and the SELECT of the sum over all of them."""
    groups: dict[str, list[str]] = {}
    for sides in tracked:
        if sides.table.total and sides.new.value:
            part = (
                f"SELECT coalesce(sum({quoted(sides.new.value)}), 0) AS part FROM {quoted(sides.new.table)}"
            )
            groups.setdefault(sides.table.total, []).append(part)
    return [
        (group, f"SELECT sum(part)::bigint FROM ({' UNION ALL '.join(parts)}) AS parts")
        for group, parts in groups.items()
    ]
