"""Clients that write what their streams draw, and say how each transaction ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from scenarios.chaos.writes.changes import Kind, Transaction
from scenarios.chaos.writes.clients import NAME, Clients
from scenarios.chaos.writes.stream import CannotDraw, Stream
from scenarios.database import Database
from scenarios.row_writes import RowWrite
from scenarios.session import RollBack, Session
from scenarios.workload import Operation


class Writers(Clients):
    """A workload of streams, one for each client.

    Args:
        database: the old side, with the application's login.
        streams: of the clients.
        seed: kept for the report.
        rate_per_s: row changes per second over all clients.
    """

    def __init__(self, database: Database, streams: Sequence[Stream], seed: int, rate_per_s: float):
        super().__init__(database, len(streams), seed, rate_per_s)
        self._streams = streams
        self._under_way: dict[int, tuple[Transaction, Counter[tuple[str, Kind]]]] = {}

    def left_out(self) -> Mapping[str, str]:
        """Tables whose rows were refused, or can't be made up, with the reason."""
        return {name: why for stream in self._streams for name, why in stream.why.items()}

    def _run(self, session: Session) -> None:
        client = session.client - 1
        try:
            transaction = self._streams[client].next()
        except CannotDraw as error:
            self._halt.set()  # nobody writes any more; the verdict says which tables were given up
            raise RollBack from error
        changed = Counter[tuple[str, Kind]]()
        self._under_way[client] = (transaction, changed)
        for change in transaction.changes:
            statement, parameters = change.statement(session.database.kind)
            changed[change.table, change.kind] += session.change(statement, *parameters)
        if transaction.undone:
            raise RollBack

    def _note(self, operation: Operation, writes: Sequence[RowWrite] = (), bulk_changes: int = 0) -> None:
        super()._note(operation, writes, bulk_changes)
        found = self._under_way.pop(operation.thread, None) if operation.name == NAME else None
        if found is None:
            return
        transaction, changed = found
        stream = self._streams[operation.thread]
        if operation.outcome == "unknown":
            stream.lost()
        else:
            stream.settled(operation.outcome != "failed", operation.cause)
        self._keep(operation.thread, transaction, operation.outcome, changed)
