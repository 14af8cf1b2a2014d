"""The clients of a run: a workload that keeps what each transaction was, how it ended, and what was acknowledged."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from scenarios.chaos.writes.changes import Kind
from scenarios.database import Database
from scenarios.session import Session
from scenarios.workload import Action, Workload

NAME = "project"
"""The name of all their transactions in reports."""


class Written(Protocol):
    """A transaction that can be kept."""

    def line(self) -> str:
        """The transaction as one line of JSON."""


class Clients(Workload):
    """Some clients, each with a thread of its own.

    Args:
        database: the old side, with the application's login.
        clients: how many.
        seed: kept for the report.
        rate_per_s: row changes per second over all clients.

    Attributes:
        acknowledged: row changes of committed transactions, by table and kind.
        done: every transaction with its client and its end (``ok``, ``failed``, ...), in the order of their ends.
    """

    def __init__(self, database: Database, clients: int, seed: int, rate_per_s: float):
        super().__init__(
            database, [Action(NAME, 1, self._run)], seed=seed, rate_per_s=rate_per_s, threads=clients
        )
        self.acknowledged = Counter[tuple[str, Kind]]()
        self.done: list[tuple[int, Written, str]] = []

    @abstractmethod
    def _run(self, session: Session) -> None:
        """Writes a client's next transaction."""

    @abstractmethod
    def left_out(self) -> Mapping[str, str]:
        """Tables, or kinds of statements, that no client wrote, with the reason."""

    def counts(self) -> Mapping[str, int]:
        """Figures for the report beside those of all workloads."""
        return {}

    def _keep(
        self, client: int, transaction: Written, outcome: str, changed: Counter[tuple[str, Kind]]
    ) -> None:
        """Notes how a transaction ended; its changes count if they were acknowledged."""
        with self._lock:
            self.done.append((client, transaction, outcome))
            if outcome == "ok":
                self.acknowledged += changed
