"""Rows of an older row schema in a newer one."""

from __future__ import annotations

import pyarrow as pa

from migrator.columnar.versions import with_nulls
from migrator.model.table import Column


def test_added_columns_are_null_and_typed() -> None:
    rows = with_nulls(pa.table({"k": [1, 2]}), [Column("n", "decimal(5,2)", True, "numeric")])
    assert rows["n"].to_pylist() == [None, None]
    assert rows.schema.field("n").type == pa.decimal128(5, 2)
    assert with_nulls(rows, []) is rows
