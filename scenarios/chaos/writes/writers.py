"""Clients that write what their streams draw, and say how each transaction ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scenarios.chaos.writes.changes import Transaction
from scenarios.chaos.writes.clients import Changed, Clients
from scenarios.chaos.writes.stream import CannotDraw, Stream
from scenarios.database import Database
from scenarios.session import RollBack, Session
from scenarios.workload import Operation


class Writers(Clients[Transaction]):
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
        changed = self._begun(session, transaction)
        for change in transaction.changes:
            statement, parameters = change.statement(session.database.kind)
            changed[change.table, change.kind] += session.change(statement, *parameters)
        if transaction.undone:
            raise RollBack

    def _over(self, operation: Operation, transaction: Transaction, changed: Changed) -> None:
        stream = self._streams[operation.thread]
        if operation.outcome == "unknown":
            stream.lost()
        else:
            stream.settled(operation.outcome != "failed", operation.cause)
