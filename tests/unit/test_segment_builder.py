"""Outputs of the core become the content of a segment, one data file per table, kind and row schema."""

from __future__ import annotations

import pytest

from migrator.columnar.text_codec import TextCodec
from migrator.columnar.types import INDEX, SIGN
from migrator.core.capture import EmitPart, EmitSchema
from migrator.model.event import ChangeRun, Operation, RowChange, TransactionPart
from migrator.model.position import Position
from migrator.model.progress import Checkpoint
from migrator.model.segment import FileKind
from migrator.model.table import Column, TableId, TableSchema
from migrator.run.segment_builder import SegmentBuilder

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
    made = []
    monkeypatch.setattr(TableSchema, "version", lambda self: made.append(self) or "v")
    builder = SegmentBuilder({TABLE: OLD})
    for order in range(1, 50):
        builder.add(insert(order, str(order)))
    assert len(made) <= 2
