"""Event log and ledger are brought to one story before a leader begins."""

from __future__ import annotations

from migrator.errors import EventLogError, MappingError
from migrator.model.ledger import Ledger
from migrator.model.progress import Checkpoint
from migrator.model.request import RequestBook
from migrator.model.segment import Manifest
from migrator.model.table import TableId, TableSchema


def resume(ledger: Ledger, last: Manifest | None) -> Checkpoint | None:
    """Where capture goes on: at the event log's end, or where the target stands when the event log is empty.

    The event log may be ahead of the ledger (applied later) but never behind: then it is another one, or an old
    copy, and going on would skip what lies between.
    """
    if last is None:
        return ledger.checkpoint
    if last.number < ledger.segment:
        raise EventLogError(
            "the event log is older than the target",
            where=f"event log ends at segment {last.number}, the ledger has applied segment {ledger.segment}",
            cause="the state folder was restored from a copy, or belongs to another run",
            remedy="move the state folder's eventlog away: capture then goes on from the ledger's position",
        )
    return last.checkpoint


def refuse_new_tables(checkpoint: Checkpoint, schemas: list[TableSchema]) -> None:
    """A table can't join a migration that has begun: a transaction open at that moment would be captured by half.

    Raises ``MappingError``.
    """
    new = [str(schema.id) for schema in schemas if checkpoint.dump_of(schema.id) is None]
    if new:
        raise MappingError(
            "the mapping reads a source table that this migration didn't capture from its start",
            where=", ".join(new),
            cause="changes of transactions that were open when it joined would be missing from the log",
            remedy="start a migration of another name with an empty target, or take the table out of the mapping",
        )


def asked_again(given: Checkpoint, book: RequestBook) -> frozenset[TableId]:
    """The tables whose rows somebody has asked for since the checkpoint.

    The log reader's note of a table may be why it refuses to go on; another dump of the table is then the way out.
    A request that the run before had heard of isn't: it may have been made for something else, of other rows, or be
    half read.
    """
    before = {(dump.request, dump.table) for dump in given.requests}
    return frozenset(
        table
        for request in book.requests
        if request.is_open() and not request.doubts  # a repair of some keys doesn't mean it
        for table in request.tables
        if (request.name(), table) not in before
    )
