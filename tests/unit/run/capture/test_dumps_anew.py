"""A dump that begins once more: nothing of it counts, and its rows come in a batch of their own."""

from __future__ import annotations

from migrator.core.passes import FIRST, Passes
from migrator.model.limits import CaptureLimits
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.table import Column, TableId, TableSchema
from migrator.run.capture.attempt import Anew, Attempt
from migrator.run.capture.steps import _with_dumps

T, U = TableId("s", "t"), TableId("s", "u")
SCHEMAS = {table: TableSchema(table, (Column("k", "int64", False, "int"),), ("k",)) for table in (T, U)}
DUMPED = Checkpoint(
    Position(3, "3"),
    dumps=(TableDump(T, ("9",), True, 9, chunks=2), TableDump(U, ("9",), True, 9, chunks=2)),
    requests=(TableDump(T, ("5",), request="r1.1"),),
)


def test_nothing_of_it_counts_any_more_by_requests_neither() -> None:
    attempt = Attempt(SCHEMAS, DUMPED, CaptureLimits(), "", {T: 7})
    found = _with_dumps(DUMPED, attempt, frozenset((T,)))
    assert found.dumps == (TableDump(T, estimated_rows=7), DUMPED.dumps[1])
    assert found.requests == (TableDump(T, request="r1.1"),)
    assert _with_dumps(DUMPED, attempt, frozenset()) == DUMPED


def test_where_the_rows_are_there_already_only_mirrors_are_dumped() -> None:
    begun = Checkpoint(Position(3, "3"))
    anew = Anew(mirrored=frozenset((U,)))
    attempt = Attempt(SCHEMAS, None, CaptureLimits(), "", {T: 7, U: 8}, anew=anew, changes_only=True)
    assert _with_dumps(begun, attempt, frozenset()).dumps == (
        TableDump(T, done=True),
        TableDump(U, estimated_rows=8),
    )


def test_its_rows_begin_a_batch_and_those_of_other_tables_do_not() -> None:
    """1. a run dumps t once more, and is killed before that is applied; 2. the next one begins that dump again."""
    for passes in (None, ((T, FIRST), (U, "r1.1"))):
        attempt = Attempt(SCHEMAS, None, CaptureLimits(), "")
        known = Checkpoint(Position(3, "3"), dumps=DUMPED.dumps, passes=passes)
        batches = Passes(_with_dumps(known, attempt, frozenset((T,))).passes)
        assert not batches.admits(T, FIRST)
        assert not batches.admits(T, "r1.1")
        assert batches.admits(U, FIRST) == (passes is None)
        assert batches.admits(U, "r1.1") == (passes is not None)
