"""TRUNCATE on its way through capture: which chunks have missed it, and where it stands in a segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from migrator.columnar.emptied import emptied_run
from migrator.columnar.events import order_events
from migrator.columnar.types import POSITION, SIGN
from migrator.core.capture import Capture, EmitChunk, EmitPart, EmitSchema
from migrator.core.dump import DumpPlan
from migrator.model.event import MarkKind, Operation, TransactionPart, WatermarkSeen
from migrator.model.progress import Checkpoint
from migrator.model.segment import FileKind
from migrator.model.table import TableId, TableSchema
from migrator.run.capture.segment_builder import SegmentBuilder
from scenarios.simulation.source import SeenSet
from tests.contract.event_log.eventlog_content import dump_rows
from tests.unit.core.test_core import OTHER, SCHEMA, TABLE, asked, capture, chunk, drop_keys, position, update
from tests.unit.run.capture.test_segment_builder import NEW, OLD, insert
from tests.unit.run.capture.test_segment_builder import TABLE as BUILT


def truncate(order: int, table: TableId = TABLE) -> TransactionPart:
    schema = TableSchema(table, SCHEMA.columns, SCHEMA.key)
    return TransactionPart((order,), position(order), 0, 0, (emptied_run(schema),), True)


def kept(outputs: Sequence[object]) -> list[int]:
    return [out.kept_rows for out in outputs if isinstance(out, EmitChunk)]


def test_it_is_a_change_without_images() -> None:
    (change,) = truncate(1).changes
    assert (change.table, change.operation, change.before, change.after) == (
        TABLE,
        Operation.TRUNCATE,
        None,
        None,
    )
    assert truncate(1).size() == 1


def test_a_chunk_that_has_missed_it_is_read_again_and_one_that_has_seen_it_is_kept() -> None:
    core, _ = capture()
    core.on_record(truncate(1))
    assert kept(core.on_chunk(chunk(asked(core), "a", "b", high=1, final=True))) == []
    assert core.next_request() is None, "not before it is visible"
    core.on_witness(SeenSet(frozenset({(1,)})))
    assert kept(core.on_chunk(chunk(asked(core), "c", high=1, seen=(1,), final=True))) == [1]


def test_one_of_another_table_is_no_reason_to_read_again() -> None:
    core, _ = capture()
    core.on_record(truncate(1, OTHER))
    assert kept(core.on_chunk(chunk(asked(core), "a", high=1, final=True))) == [1]


def test_it_is_missed_though_changes_of_the_same_transaction_are_remembered() -> None:
    core, _ = capture()
    part = truncate(1)
    core.on_record(part._replace(runs=(*update(1, "x").runs, *part.runs, *update(1, "y").runs)))
    assert kept(core.on_chunk(chunk(asked(core), "a", "x", high=1, final=True))) == []


def test_a_chunk_without_witness_is_read_again_if_it_came_by_in_its_window() -> None:
    begin = capture()[0].checkpoint()
    plan = DumpPlan(begin.dumps, 10, token_prefix="t-")
    core = Capture(begin, {TABLE: SCHEMA}, plan, drop_keys, has_witness=False)
    request = asked(core)
    for record in (
        WatermarkSeen(request.token, MarkKind.LOW),
        truncate(1),
        WatermarkSeen(request.token, MarkKind.HIGH),
    ):
        core.on_record(record)
    blind = replace(chunk(request, "a", high=1, final=True), witness=None)
    assert kept(core.on_chunk(blind)) == []


def test_after_a_restart_it_is_not_forgotten() -> None:
    core, _ = capture()
    core.on_record(truncate(1))
    known = core.checkpoint()
    plan = DumpPlan(known.dumps, 10)
    again = Capture(known, {TABLE: SCHEMA}, plan, drop_keys)
    assert kept(again.on_chunk(chunk(asked(again), "a", high=1, final=True))) == []


def built(*outputs: EmitPart | EmitSchema | EmitChunk) -> list[tuple[TableSchema, FileKind, list[object]]]:
    builder = SegmentBuilder({BUILT: OLD})
    for output in outputs:
        builder.add(output)
    content = builder.content(Checkpoint(position(9)), ends_transaction=True)
    return [
        (
            data.schema,
            data.kind,
            [(row[POSITION], row[SIGN], row["k"]) for row in data.rows.to_pylist()],
        )
        for data in content.data
    ]


def emptied(order: int) -> EmitPart:
    return EmitPart(TransactionPart((order,), position(order), 0, 0, (emptied_run(NEW),), True))


def test_it_stands_among_the_images_of_its_segment_in_log_order() -> None:
    assert built(insert(1, "a"), emptied(2), insert(3, "b"), emptied(4)) == [
        (OLD, FileKind.LOG, [(1, 1, "a"), (2, 0, None), (3, 1, "b"), (4, 0, None)])
    ]
    assert built(emptied(2)) == [(OLD, FileKind.LOG, [(2, 0, None)])]


def test_it_is_told_under_the_row_schema_of_what_follows() -> None:
    """The reader may have taken the schema from a catalog that is ahead of the log."""
    assert built(emptied(1), insert(2, "a"), EmitSchema(NEW), insert(3, "b", "x")) == [
        (OLD, FileKind.LOG, [(1, 0, None), (2, 1, "a")]),
        (NEW, FileKind.LOG, [(3, 1, "b")]),
    ]
    assert built(insert(1, "a"), emptied(2), EmitSchema(NEW), insert(3, "b", "x")) == [
        (OLD, FileKind.LOG, [(1, 1, "a")]),
        (NEW, FileKind.LOG, [(2, 0, None), (3, 1, "b")]),
    ]


def test_a_segment_holds_no_dump_rows_of_a_table_that_is_emptied_in_it() -> None:
    rows = dump_rows((1, "a"))
    builder = SegmentBuilder({BUILT: OLD, TABLE: SCHEMA})
    core, _ = capture()
    (dumped,) = core.on_chunk(chunk(asked(core), "a", final=True))
    assert isinstance(dumped, EmitChunk)
    dumped = EmitChunk(dumped.chunk, rows.rows, 1, dumped.dump)
    builder.add(dumped)
    builder.add(EmitPart(truncate(1, OTHER)._replace(runs=(emptied_run(SCHEMA),))))
    assert [data.kind for data in builder.content(Checkpoint(position(1)), True).data] == [FileKind.LOG]
    builder.add(dumped)
    assert [data.kind for data in builder.content(Checkpoint(position(2)), True).data] == [FileKind.CHUNK]


def test_its_event_stands_in_its_place() -> None:
    builder = SegmentBuilder({BUILT: OLD})
    for output in (insert(1, "a"), emptied(2), insert(3, "b")):
        builder.add(output)
    data = builder.content(Checkpoint(position(3)), True).data
    ((_, events),) = order_events([(one.schema, one.kind, one.rows) for one in data])
    told = [(row["op"], row["before"], row["after"]) for row in events.to_pylist()]
    assert told == [("c", None, {"k": "a"}), ("t", None, None), ("c", None, {"k": "b"})]


@pytest.mark.parametrize("seen", [(), (1,)])
def test_what_a_witness_shows_already_needs_no_memory(seen: tuple[int, ...]) -> None:
    core, _ = capture()
    core.on_witness(SeenSet(frozenset({(number,) for number in seen})))
    core.on_record(truncate(1))
    assert bool(core.checkpoint().unconfirmed) is (seen == ())
