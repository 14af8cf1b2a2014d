"""Event log and ledger as one story: where capture goes on, and what is refused."""

from __future__ import annotations

import pytest

from migrator.errors import EventLogError, MappingError
from migrator.model.ledger import Ledger
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.segment import Manifest
from migrator.model.table import Column, TableId, TableSchema
from migrator.run.resume import refuse_new_tables, resume

APPLIED, CAPTURED = Checkpoint(Position(5, "5")), Checkpoint(Position(9, "9"))
LEDGER = Ledger("m", segment=5, epoch=1, checkpoint=APPLIED)


def manifest(number: int) -> Manifest:
    return Manifest(number, 1, CAPTURED, True, 0, 0, 0, ())


def test_capture_goes_on_behind_the_newest_segment_and_without_any_where_the_target_stands() -> None:
    assert resume(LEDGER, manifest(5)) == CAPTURED
    assert resume(LEDGER, manifest(6)) == CAPTURED
    assert resume(LEDGER, None) == APPLIED


def test_an_event_log_one_segment_older_than_the_target_is_refused() -> None:
    with pytest.raises(EventLogError, match="older than the target"):
        resume(LEDGER, manifest(4))


def test_a_table_that_was_not_captured_from_the_start_is_refused_by_name() -> None:
    known, new = (TableSchema(TableId("s", n), (Column("k", "string", False, "text"),), ("k",)) for n in "tu")
    checkpoint = Checkpoint(Position(1, "1"), dumps=(TableDump(known.id),))
    refuse_new_tables(checkpoint, [known])
    with pytest.raises(MappingError) as caught:
        refuse_new_tables(checkpoint, [known, new])
    assert caught.value.where == "s.u"
