"""What was changed between two runs: carried over, or refused by name before anything is read.

A checkpoint's counters each count something: ``partial_index`` counts the changes of one transaction to the tables
that were captured then. With a table less, the same number would pass over changes of the tables that are left.
"""

from __future__ import annotations

from collections.abc import Sequence

from migrator.errors import MappingError
from migrator.model.progress import Checkpoint
from migrator.model.table import TableSchema
from migrator.run.lead.resume import refuse_new_tables


def refuse_changes(checkpoint: Checkpoint, schemas: Sequence[TableSchema]) -> None:
    """Raises ``MappingError`` where the checkpoint can't be gone on from with these tables."""
    refuse_new_tables(checkpoint, list(schemas))
    _refuse_half_transaction(checkpoint, schemas)


def _refuse_half_transaction(checkpoint: Checkpoint, schemas: Sequence[TableSchema]) -> None:
    """Of a transaction that is stored by half the rest is found by counting the changes of the captured tables."""
    now = {schema.id for schema in schemas}
    gone = sorted(str(dump.table) for dump in checkpoint.dumps if dump.table not in now)
    if checkpoint.partial_order is None or not gone:
        return
    raise MappingError(
        "a source table was taken out of the mapping while a transaction is captured by half",
        where=", ".join(gone),
        cause=f"{checkpoint.partial_index:,} changes of the transaction after {checkpoint.position.token} are stored,"
        " those of this table among them; without it, what is left couldn't be told from what is stored",
        remedy="put the table back into the mapping, let `migrator run --until caught-up` end, then take it out",
    )
