"""A dump that begins once more: nothing of it counts, and its rows come in a batch of their own."""

from __future__ import annotations

from dataclasses import replace

from migrator.core.dump import DumpPlan
from migrator.core.passes import FIRST, Passes
from migrator.model.chunk import Chunk
from migrator.model.limits import CaptureLimits
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump, dump_key
from migrator.model.table import Column, TableId, TableSchema
from migrator.run.capture.attempt import Anew, Attempt

T, U = TableId("s", "t"), TableId("s", "u")
SCHEMAS = {table: TableSchema(table, (Column("k", "int64", False, "int"),), ("k",)) for table in (T, U)}
DUMPED = Checkpoint(
    Position(3, "3"),
    dumps=(TableDump(T, ("9",), True, 9, chunks=2), TableDump(U, ("9",), True, 9, chunks=2)),
    requests=(TableDump(T, ("5",), request="r1.1"),),
)


def test_nothing_of_it_counts_any_more_by_requests_neither() -> None:
    attempt = Attempt(SCHEMAS, DUMPED, CaptureLimits(), "", {T: 7})
    found = attempt.with_dumps(DUMPED, frozenset((T,)))
    assert found.dumps == (TableDump(T, estimated_rows=7), DUMPED.dumps[1])
    assert found.requests == (TableDump(T, request="r1.1"),)
    assert attempt.with_dumps(DUMPED, frozenset()) == DUMPED


def test_where_the_rows_are_there_already_only_mirrors_are_dumped() -> None:
    begun = Checkpoint(Position(3, "3"))
    anew = Anew(mirrored=frozenset((U,)))
    attempt = Attempt(SCHEMAS, None, CaptureLimits(), "", {T: 7, U: 8}, anew=anew, changes_only=True)
    assert attempt.with_dumps(begun, frozenset()).dumps == (
        TableDump(T, done=True),
        TableDump(U, estimated_rows=8),
    )


def test_its_rows_begin_a_batch_and_those_of_other_tables_do_not() -> None:
    """1. a run dumps t once more, and is killed before that is applied; 2. the next one begins that dump again."""
    for passes in (None, ((T, FIRST), (U, "r1.1"))):
        attempt = Attempt(SCHEMAS, None, CaptureLimits(), "")
        known = Checkpoint(Position(3, "3"), dumps=DUMPED.dumps, passes=passes)
        batches = Passes(attempt.with_dumps(known, frozenset((T,))).passes)
        assert not batches.admits(T, FIRST)
        assert not batches.admits(T, "r1.1")
        assert batches.admits(U, FIRST) == (passes is None)
        assert batches.admits(U, "r1.1") == (passes is not None)


def test_a_dump_that_read_by_another_key_begins_again() -> None:
    """Rows below the last key that was read would never come: it is a value of another column."""
    attempt = Attempt(SCHEMAS, DUMPED, CaptureLimits(), "", {T: 7})
    (present,) = dump_key(SCHEMAS[T])
    for key, again in (("k int", False), ("code int", True), ("k text", True)):
        first, asked = (
            TableDump(T, ("9",), rows=9, chunks=2, request=name, key=(key,)) for name in ("", "r1.1")
        )
        known = replace(DUMPED, dumps=(first, DUMPED.dumps[1]), requests=(asked,))
        found = attempt.with_dumps(known, frozenset())
        assert (key != present) == again
        assert found.dumps[0] == (TableDump(T, estimated_rows=7) if again else first)
        assert found.requests == ((TableDump(T, request="r1.1"),) if again else (asked,))
        assert found.dumps[1] == DUMPED.dumps[1]
        assert Passes(found.passes).admits(T, FIRST) != again


def test_a_dump_begins_again_where_texts_sort_by_another_version_of_their_collation() -> None:
    """A server was replaced by one with another library, or a collation by another one of its name."""
    before, after = (replace(SCHEMAS[T], order=(order,)) for order in ("c en_US 2.27", "c en_US 2.28"))
    assert before == after
    first = TableDump(T, ("9",), rows=9, chunks=2, key=dump_key(before))
    known = replace(DUMPED, dumps=(first, DUMPED.dumps[1]))
    for schema, begun in ((before, first), (after, TableDump(T))):
        attempt = Attempt({**SCHEMAS, T: schema}, DUMPED, CaptureLimits(), "")
        assert attempt.with_dumps(known, frozenset()).dumps[0] == begun


def test_a_dump_that_is_done_or_of_an_earlier_version_goes_on() -> None:
    attempt = Attempt(SCHEMAS, DUMPED, CaptureLimits(), "")
    done = replace(DUMPED.dumps[0], key=("code int",))
    for first in (done, TableDump(T, ("9",), rows=9, chunks=2)):
        known = replace(DUMPED, dumps=(first, DUMPED.dumps[1]))
        assert attempt.with_dumps(known, frozenset()) == known


def test_each_chunk_says_by_which_key_it_was_read() -> None:
    plan = DumpPlan([TableDump(T)], 10, key=lambda table: dump_key(SCHEMAS[table]))
    request = plan.next_request()
    assert request is not None
    chunk = Chunk(request, None, 3, ("9",), False, None, Position(3, "3"), "")
    plan.arrived(chunk)
    assert plan.emitted(chunk, 0).key == ("k int",)
