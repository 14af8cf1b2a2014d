"""Event log and ledger as one story: where capture goes on, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrator.errors import EventLogError
from migrator.model.ledger import Ledger
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.segment import Manifest
from migrator.model.table import Column, TableId, TableSchema
from migrator.ports.eventlog import Batch
from migrator.run.lead.resume import joining, resume

APPLIED, CAPTURED = Checkpoint(Position(5, "5")), Checkpoint(Position(9, "9"))
LEDGER = Ledger("m", segment=5, epoch=1, checkpoint=APPLIED, segment_id="id 5")


def manifest(number: int) -> Manifest:
    at = APPLIED if number <= LEDGER.segment else CAPTURED
    return Manifest(number, 1, at, True, 0, 0, 0, (), previous=f"id {number - 1}", id=f"id {number}")


class Segments:
    """An event log of some segments."""

    def __init__(self, *numbers: int):
        self._numbers = numbers

    def manifest(self, number: int) -> Manifest | None:
        return manifest(number) if number in self._numbers else None

    def read(self, after: int, max_rows: int, timeout_s: float) -> Batch | None:
        raise EventLogError(f"segment {after + 1} was released")

    def release(self, up_to: int) -> None:
        raise AssertionError("nothing is released before it is applied")


def test_capture_goes_on_behind_the_newest_segment_and_without_any_where_the_target_stands() -> None:
    assert resume(LEDGER, manifest(5), Segments(4, 5)) == APPLIED
    assert resume(LEDGER, manifest(6), Segments(5, 6)) == CAPTURED
    assert resume(LEDGER, None, Segments()) == APPLIED


def test_an_event_log_one_segment_older_than_the_target_is_refused() -> None:
    with pytest.raises(EventLogError, match="isn't the one that the target goes on from"):
        resume(LEDGER, manifest(4), Segments(3, 4))


def test_an_event_log_that_another_story_wrote_is_refused_though_its_numbers_fit() -> None:
    with pytest.raises(EventLogError, match="isn't the one that the target goes on from"):
        resume(replace(LEDGER, segment_id="id of another"), manifest(6), Segments(5, 6))


def test_segments_that_the_target_lacks_and_that_were_released_are_told_of() -> None:
    with pytest.raises(EventLogError, match="segment 6 was released"):
        resume(LEDGER, manifest(7), Segments(7))


def test_tables_without_a_dump_join_and_none_does_before_the_first_start() -> None:
    known, new = (TableSchema(TableId("s", n), (Column("k", "string", False, "text"),), ("k",)) for n in "tu")
    checkpoint = Checkpoint(Position(1, "1"), dumps=(TableDump(known.id),))
    assert joining(checkpoint, [known, new]) == {new.id}
    assert joining(checkpoint, [known]) == frozenset()
    assert joining(None, [known, new]) == frozenset()
