"""Changes of the mapping between two runs: carried over, or refused by name before anything is read.

A checkpoint's counters each count something: ``partial_index`` counts the changes of one transaction to the tables
that were captured then. With a table less, the same number would pass over changes of the tables that are left.
"""

from __future__ import annotations

from collections.abc import Sequence

from migrator.errors import MappingError, RequestError
from migrator.model.progress import Checkpoint
from migrator.model.requests.request import WHOLE, RequestBook
from migrator.model.table import TableId, TableSchema
from migrator.run.lead.resume import joining


def refuse_changes(checkpoint: Checkpoint, schemas: Sequence[TableSchema], book: RequestBook) -> None:
    """Raises ``MappingError`` where the checkpoint can't be gone on from with these tables, ``RequestError`` where
    not with these dump requests."""
    _refuse_half_transaction(checkpoint, schemas)
    _refuse_lost_requests(checkpoint, {schema.id for schema in schemas}, book)


def _refuse_lost_requests(checkpoint: Checkpoint, captured: set[TableId], book: RequestBook) -> None:
    """A request that was under way and stands in no book any more would be given up without a word."""
    known = {request.id for request in book.requests}
    asked = {
        t for request in book.requests if request.is_open() and request.scope == WHOLE for t in request.tables
    }
    lost = [
        dump
        for dump in checkpoint.requests
        if not dump.done and dump.request.partition(".")[0] not in known
        if dump.table in captured - asked
    ]
    if lost:
        asking = " ".join(f"--table {table.name}" for table in sorted({dump.table for dump in lost}))
        raise RequestError(
            "dump requests that were under way are known to nobody any more",
            where=", ".join(sorted({f"{dump.request.partition('.')[0]} of {dump.table}" for dump in lost})),
            cause="the state folder, or ZooKeeper's nodes, were put away or restored; rows that were asked for would"
            " not come",
            remedy=f"ask for the rows: migrator dump start {asking}; then start again. What"
            " a repair was about to mend, migrator verify shows again",
        )


def _refuse_half_transaction(checkpoint: Checkpoint, schemas: Sequence[TableSchema]) -> None:
    """Refuses tables that go or join while a transaction is stored by half: its rest is found by counting the changes
    of the captured tables."""
    now = {schema.id for schema in schemas}
    gone = {dump.table for dump in checkpoint.dumps if dump.table not in now}
    new = joining(checkpoint, schemas)
    if checkpoint.partial_order is None or not gone | new:
        return
    undone = [f"put {', '.join(map(str, sorted(gone)))} back into it"] if gone else []
    undone += [f"take {', '.join(map(str, sorted(new)))} out of it"] if new else []
    raise MappingError(
        "the mapping reads other source tables now, while a transaction is captured by half",
        where=", ".join(map(str, sorted(gone | new))),
        cause=f"{checkpoint.partial_index:,} changes of the transaction after {checkpoint.position.token} are stored,"
        " counted over the tables of that time; with others, what is left couldn't be told from what is stored",
        remedy=f"give the mapping the tables it had ({' and '.join(undone)}), let `migrator run --until caught-up`"
        " end, then change it again",
    )
