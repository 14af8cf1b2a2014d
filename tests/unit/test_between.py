"""What was changed between two runs, as far as a checkpoint shows it."""

from __future__ import annotations

import pytest

from migrator.errors import MappingError
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.table import Column, TableId, TableSchema
from migrator.run.lead.between import refuse_changes

T, U = (TableSchema(TableId("s", name), (Column("k", "string", False, "text"),), ("k",)) for name in "tu")
DUMPS = (TableDump(T.id, done=True), TableDump(U.id, done=True))
WHOLE = Checkpoint(Position(7, "0/7"), dumps=DUMPS)
HALF = Checkpoint(Position(7, "0/7"), partial_order=9, partial_index=60_000, dumps=DUMPS)


def test_between_transactions_a_table_may_be_taken_out() -> None:
    refuse_changes(WHOLE, [T, U])
    refuse_changes(WHOLE, [T])


def test_within_a_transaction_the_tables_stay_as_they_were() -> None:
    """1. 60,000 changes of u are stored; 2. without u, the log has 60,000 of t in their place: all would be
    lost."""
    refuse_changes(HALF, [T, U])
    with pytest.raises(MappingError) as caught:
        refuse_changes(HALF, [T])
    assert caught.value.where == "s.u"
    assert "60,000 changes" in str(caught.value.cause)
    assert "put the table back" in caught.value.remedy


def test_a_new_table_is_refused_wherever_the_checkpoint_stands() -> None:
    for checkpoint in (WHOLE, HALF):
        with pytest.raises(MappingError, match="didn't capture from its start"):
            refuse_changes(checkpoint, [T, U, TableSchema(TableId("s", "new"), T.columns, T.key)])
