"""Event log and ledger are brought to one story before a leader begins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from migrator.columnar.emptied import emptied_run
from migrator.errors import DamageError, EventLogError, SchemaError
from migrator.model.event import TransactionPart
from migrator.model.ledger import Ledger
from migrator.model.lineage import continues
from migrator.model.progress import Checkpoint
from migrator.model.requests.request import WHOLE, RequestBook
from migrator.model.segment import Manifest
from migrator.model.table import TableId, TableSchema
from migrator.ports.eventlog import BatchReader as Segments
from migrator.ports.log_notes import LogNotes

_AWAY = "move the state folder's eventlog away: capture then goes on from the ledger's position"


def resume(ledger: Ledger, last: Manifest | None, segments: Segments) -> Checkpoint | None:
    """Returns where capture goes on: at the event log's end, or where the target stands if the event log is empty.

    The event log may be ahead of the ledger (applied later), but it must lead on from the very segment that the
    ledger has applied (see ``migrator.model.lineage``). Else it is another one, or an old copy, and going on
    would skip what lies between.

    Raises ``EventLogError``, also where segments that the ledger lacks were released.
    """
    if last is None:
        return ledger.checkpoint
    other = continues(ledger, last, _sound(segments, ledger.segment), segments.manifest(ledger.segment + 1))
    if other:
        raise EventLogError(
            "the event log isn't the one that the target goes on from",
            where=other,
            cause="another machine has gone on from the target meanwhile, the state folder was copied or restored, or"
            " the target was",
            remedy="start on the machine that moved the target last, whose event log leads on; or see that no other"
            f" process runs this migration, then {_AWAY}, if the source still holds its log from there",
        )
    if last.number > ledger.segment and segments.manifest(ledger.segment + 1) is None:
        segments.read(ledger.segment, 1, 0.0)  # says that it was released, or lost
    return last.checkpoint


def _sound(segments: Segments, number: int) -> Manifest | None:
    """The ledger's segment, if it can be read. What is damaged of it doesn't matter: nobody reads it again."""
    try:
        return segments.manifest(number) if number else None
    except DamageError:
        return None


def joining(checkpoint: Checkpoint | None, schemas: Iterable[TableSchema]) -> frozenset[TableId]:
    """Returns the tables that join a begun migration: captured from now on, and dumped.

    A table that was taken out of the mapping and put back is one of them: what was done to it meanwhile went by.
    """
    if checkpoint is None:
        return frozenset()
    return frozenset(schema.id for schema in schemas if checkpoint.dump_of(schema.id) is None)


def asked_again(checkpoint: Checkpoint, book: RequestBook, *, whole: bool = False) -> frozenset[TableId]:
    """The tables whose rows somebody has asked for since the checkpoint; ``whole``: for all of them.

    The log reader's note of a table may be why it refuses to go on; another dump of the table is then the way out.
    A request that the run before had heard of isn't: it may have been made for something else, of other rows, or be
    half read.
    """
    before = {(dump.request, dump.table) for dump in checkpoint.requests}
    return frozenset(
        table
        for request in book.requests
        if request.is_open() and not request.doubts  # a repair of some keys doesn't mean it
        if request.scope == WHOLE or not whole
        for table in request.tables
        if (request.name(), table) not in before
    )


def begin_notes(
    notes: LogNotes,
    checkpoint: Checkpoint | None,
    book: RequestBook,
    replaced: frozenset[TableId] = frozenset(),
    new: frozenset[TableId] = frozenset(),
) -> None:
    """The log reader's notes as the checkpoint has them, if a run goes on from one.

    Args:
        notes: begin.
        checkpoint: has those of the run before.
        book: the dump requests.
        replaced: names that other tables are known to have by now.
        new: tables that join. What is noted of one is of the time when it was captured before: of no interest.
    """
    if checkpoint is None:
        notes.begin(())
    else:
        notes.begin(
            [(table, text) for table, text in checkpoint.notes if table not in new],
            asked_again(checkpoint, book),
            asked_again(checkpoint, book, whole=True),
            replaced | new,
        )


_BEHIND_ALL_CHANGES = 1 << 30
"""Index in a transaction, behind that of each of its changes."""


def emptying(begin: Checkpoint, replaced: Sequence[TableSchema]) -> Iterator[TransactionPart]:
    """Yields the part that empties replaced tables before their rows are read again, behind all that was delivered.

    Raises ``SchemaError`` where the checkpoint stands inside a transaction: the rest of it has changes of the
    tables that were there before.
    """
    if not replaced:
        return
    if begin.partial_order is not None:
        raise SchemaError(
            f"{', '.join(str(schema.id) for schema in replaced)} can't be read anew inside a transaction",
            where=begin.position.token,
            cause="a transaction was stored by half, and the rest of it has changes of the table that was replaced",
            remedy="start the migration anew (docs/how-to/start-anew.md)",
        )
    runs = tuple(emptied_run(schema) for schema in replaced)
    yield TransactionPart((begin.position.order,), begin.position, 0, _BEHIND_ALL_CHANGES, runs, last=False)
