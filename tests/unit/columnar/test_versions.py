"""Rows of an older row schema in a newer one."""

from __future__ import annotations

import pyarrow as pa

from migrator.columnar.versions import not_captured, with_nulls
from migrator.model.table import Column, TableId


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
