"""The clients of a run: a workload that keeps what each transaction was, how it ended, and what was acknowledged."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from scenarios.chaos.writes.changes import Kind
from scenarios.database import Database
from scenarios.row_writes import RowWrite
from scenarios.session import Session
from scenarios.workload import Action, Operation, Workload

NAME = "project"
"""The name of all their transactions in reports."""


class Written(Protocol):
    """A transaction that can be kept."""

    def line(self) -> str:
        """The transaction as one line of JSON."""


Changed = Counter[tuple[str, Kind]]
"""Numbers of row changes by table and kind."""
WrittenT = TypeVar("WrittenT", bound=Written)


class Clients(Workload, Generic[WrittenT]):
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
        self.acknowledged = Changed()
        self.done: list[tuple[int, WrittenT, str]] = []
        self._under_way: dict[int, tuple[WrittenT, Changed]] = {}

    @abstractmethod
    def _run(self, session: Session) -> None:
        """Writes a client's next transaction."""

    @abstractmethod
    def left_out(self) -> Mapping[str, str]:
        """Tables, or kinds of statements, that no client wrote, with the reason."""

    def counts(self) -> Mapping[str, int]:
        """Figures for the report beside those of all workloads."""
        return {}

    def _begun(self, session: Session, transaction: WrittenT) -> Changed:
        """Notes that a client writes a transaction now; what it changes is to be counted in what this returns."""
        changed = Changed()
        self._under_way[session.client - 1] = (transaction, changed)
        return changed

    @abstractmethod
    def _over(self, operation: Operation, transaction: WrittenT, changed: Changed) -> None:
        """Hears how a transaction ended, before that is kept."""

    def _note(self, operation: Operation, writes: Sequence[RowWrite] = (), bulk_changes: int = 0) -> None:
        super()._note(operation, writes, bulk_changes)
        found = self._under_way.pop(operation.thread, None) if operation.name == NAME else None
        if found is None:
            return
        transaction, changed = found
        self._over(operation, transaction, changed)
        with self._lock:
            self.done.append((operation.thread, transaction, operation.outcome))
            if operation.outcome == "ok":
                self.acknowledged += changed
