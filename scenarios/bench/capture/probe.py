"""Commits whose moment the client knows: for a log that has only whole seconds of its own (MariaDB's)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from migrator.run.failure import Stopping
from scenarios.database import Database

_EVERY_S = 0.02
_FIRST_ID = 2 * 10**12
"""Beyond the orders that others insert."""
_INSERT = "INSERT INTO orders VALUES (%s, 1, 2, 'NEW', 'probe', 1, 0.5, '2024-02-29 12:00:00', 0, 'web')"


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: when its statement was sent (Unix time), and its place in the order of positions."""

    at_s: float
    order: int


@contextmanager
def probing(old: Database) -> Iterator[list[Commit]]:
    """Inserts an order fifty times a second into a MariaDB of one replication domain; yields the commits so far.

    There a position's order is the number in the last GTID. Raises what ended it.
    """
    commits: list[Commit] = []
    stopping = Stopping()

    def probe() -> None:
        with closing(old.connect(autocommit=True)) as connection:
            cursor = connection.cursor()
            while not stopping.wait(_EVERY_S):
                at_s = time.time()
                cursor.execute(_INSERT, (_FIRST_ID + len(commits),))
                cursor.execute("SELECT @@last_gtid")
                ((gtid,),) = cursor.fetchall()
                commits.append(Commit(at_s, int(gtid.split("-")[2])))

    thread = stopping.thread("probe", probe)
    try:
        yield commits
    finally:
        stopping.request()
        thread.join(30)
    stopping.raise_failure()
