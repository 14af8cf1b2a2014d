"""Outputs of the core become the content of a segment, one data file per table, kind and row schema."""

from __future__ import annotations

import pytest

from migrator.columnar.emptied import emptied_run
from migrator.columnar.text import rows_to_table
from migrator.columnar.text_codec import TextCodec
from migrator.columnar.types import INDEX, POSITION, SIGN
from migrator.core.capture import EmitChunk, EmitPart, EmitSchema
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.event import ChangeRun, Operation, RowChange, TransactionPart
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.requests.request import Doubt
from migrator.model.segment import FileKind
from migrator.model.table import Column, TableId, TableSchema
from migrator.run.capture.segment_builder import SegmentBuilder

TABLE = TableId("s", "t")
OLD = TableSchema(TABLE, (Column("k", "string", False, "text"),), ("k",))
NEW = TableSchema(TABLE, (*OLD.columns, Column("v", "string", True, "text")), ("k",))
CODECS = TextCodec(OLD), TextCodec(NEW)


def insert(order: int, *row: str) -> EmitPart:
    change = RowChange(TABLE, Operation.INSERT, None, row)
    codec = next(each for each in CODECS if len(each.schema.columns) == len(row))
    return EmitPart(
        TransactionPart((order,), Position(order, ""), 0, 0, (ChangeRun(codec, [change], 1),), True)
    )


def test_images_go_to_the_schema_they_were_written_under() -> None:
    builder = SegmentBuilder({TABLE: OLD})
    for output in (insert(1, "a"), insert(2, "b"), EmitSchema(NEW), insert(3, "c", "x")):
        builder.add(output)
    content = builder.content(Checkpoint(Position(3, "")), ends_transaction=True)
    assert [(data.schema, data.kind, data.rows["k"].to_pylist()) for data in content.data] == [
        (OLD, FileKind.LOG, ["a", "b"]),
        (NEW, FileKind.LOG, ["c"]),
    ]
    builder.add(insert(4, "d", "y"))
    assert [data.rows["k"].to_pylist() for data in builder.content(content.checkpoint, True).data] == [["d"]]


def test_a_change_of_the_key_is_two_images_of_one_index() -> None:
    builder = SegmentBuilder({TABLE: OLD})
    change = RowChange(TABLE, Operation.UPDATE, ("a",), ("b",))
    run = ChangeRun(CODECS[0], [change], 2)
    builder.add(EmitPart(TransactionPart((1,), Position(1, ""), 0, 4, (run,), True)))
    (data,) = builder.content(Checkpoint(Position(1, "")), ends_transaction=True).data
    assert data.rows.select([INDEX, SIGN, "k"]).to_pylist() == [
        {INDEX: 4, SIGN: -1, "k": "a"},
        {INDEX: 4, SIGN: 1, "k": "b"},
    ]


def test_digests_of_schemas_are_not_made_for_every_change(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[TableSchema] = []

    def version(self: TableSchema) -> str:
        made.append(self)
        return "v"

    monkeypatch.setattr(TableSchema, "version", version)
    builder = SegmentBuilder({TABLE: OLD})
    for order in range(1, 50):
        builder.add(insert(order, str(order)))
    assert len(made) <= 2


def part(order: int, first_index: int, last: bool, *runs: ChangeRun) -> EmitPart:
    return EmitPart(TransactionPart((order,), Position(order, ""), 90 + order, first_index, runs, last))


def inserts(*keys: str) -> ChangeRun:
    changes = [RowChange(TABLE, Operation.INSERT, None, (key,)) for key in keys]
    return ChangeRun(CODECS[0], changes, len(keys))


def test_every_change_has_its_own_place_also_in_later_runs_and_behind_a_truncate() -> None:
    builder = SegmentBuilder({TABLE: OLD})
    builder.add(part(1, 5, True, inserts("a", "b")))
    builder.add(part(2, 0, True, inserts("c"), emptied_run(OLD), inserts("d", "e")))
    (data,) = builder.content(Checkpoint(Position(2, "")), ends_transaction=True).data
    assert [(row[POSITION], row[INDEX], row["k"]) for row in data.rows.to_pylist()] == [
        (1, 5, "a"), (1, 6, "b"), (2, 0, "c"), (2, 1, None), (2, 2, "d"), (2, 3, "e"),
    ]  # fmt: skip


def test_counts_are_of_whole_transactions_and_of_all_that_is_held() -> None:
    builder = SegmentBuilder({TABLE: OLD})
    builder.add(part(1, 0, True, inserts("a")))
    builder.add(part(2, 0, False, inserts("b", "c")))
    assert (builder.rows, builder.bytes, builder.row_changes) == (3, 3, 3)
    assert (builder.transactions, builder.committed_at_us) == (1, 91), "the second has not ended"
    content = builder.content(Checkpoint(Position(1, "")), ends_transaction=False)
    assert (content.transactions, content.row_changes, content.committed_at_us) == (1, 3, 91)
    assert (builder.rows, builder.bytes, builder.transactions) == (0, 0, 0)


def test_doubts_go_with_the_segment_that_settles_them() -> None:
    doubts = (Doubt("made", (("5",),)),)
    content = SegmentBuilder({TABLE: OLD}).content(Checkpoint(Position(1, "")), True, doubts=doubts)
    assert content.doubts == doubts


def test_a_chunk_whose_rows_were_all_dropped_makes_no_file() -> None:
    builder = SegmentBuilder({TABLE: OLD})
    request = ChunkRequest(1, TABLE, None, 10)
    chunk = Chunk(request, None, 1, ("a",), True, None, Position(1, ""), OLD.version())
    builder.add(EmitChunk(chunk, rows_to_table(OLD, []), 0, TableDump(TABLE)))
    assert builder.content(Checkpoint(Position(1, "")), ends_transaction=True).data == ()
