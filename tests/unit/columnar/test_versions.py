"""Rows of an older row schema in a newer one."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from migrator.columnar.types import image_schema
from migrator.columnar.versions import alike, not_captured, unite_images, with_nulls
from migrator.model.table import Column, TableId, TableSchema

K, V, W = (Column(name, "int32", name != "k", "int") for name in "kvw")
OLDER = TableSchema(TableId("public", "t"), (K, V, W), ("k",))
LARGER = replace(OLDER, columns=(K, replace(V, type="int64"), W))
MOVED = replace(OLDER, columns=(W, K, V))


def test_rows_are_alike_by_the_names_and_types_of_their_columns() -> None:
    assert alike(MOVED, OLDER)
    assert not alike(LARGER, OLDER)
    assert not alike(OLDER, LARGER)
    assert not alike(replace(OLDER, columns=(K, V)), OLDER)


def test_a_column_whose_type_was_changed_is_in_no_united_rows() -> None:
    def united(newest: TableSchema) -> tuple[str, ...]:
        parts = [(one, image_schema(one).empty_table()) for one in (OLDER, newest)]
        schema, _ = unite_images(parts)
        return schema.names()

    assert united(LARGER) == ("k", "w")
    assert united(MOVED) == ("w", "k", "v")


def test_added_columns_are_null_and_typed() -> None:
    rows = with_nulls(pa.table({"k": [1, 2]}), [Column("n", "decimal(5,2)", True, "numeric")])
    assert rows["n"].to_pylist() == [None, None]
    assert rows.schema.field("n").type == pa.decimal128(5, 2)
    assert with_nulls(rows, []) is rows


def test_a_column_that_changes_lack_may_be_new_or_kept_from_us() -> None:
    """A publication that gets a column list is met here, if a change comes before the next look at it."""
    error = not_captured(TableId("public", "t"), ["v", "w"])
    assert error.where == "column v, w"
    assert "before the column was added" in error.cause
    assert "a column list of the publication" in error.cause
    assert "if it was added: " in error.remedy
    assert "take the list away and start anew" in error.remedy
