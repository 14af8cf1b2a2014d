"""Row schemas of one table that changed within a range of the log: brings rows to the newest one."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from migrator.columnar.types import arrow_type
from migrator.model.table import Column, TableSchema


def extends(newer: TableSchema, older: TableSchema) -> bool:
    """Whether ``newer`` is ``older`` with nothing but columns appended: same key, same logical types, same order."""
    if newer.id != older.id or newer.key != older.key or len(newer.columns) < len(older.columns):
        return False
    pairs = zip(newer.columns, older.columns, strict=False)
    return all(new.name == old.name and new.type == old.type for new, old in pairs)


def unite_images(parts: Sequence[tuple[TableSchema, pa.Table]]) -> tuple[TableSchema, pa.Table]:
    """Log images of one table in log order, under their schemas, as one table in the newest schema.

    Columns that an older schema doesn't have are NULL. Each schema must extend the one before it
    (``extends``); ``ValueError`` otherwise.
    """
    newest = parts[-1][0]
    if not all(extends(newest, schema) for schema, _ in parts):
        raise ValueError(f"the row schemas of {newest.id} don't extend each other")
    return newest, pa.concat_tables(
        [with_nulls(rows, newest.columns[len(schema.columns) :]) for schema, rows in parts]
    )


def with_nulls(rows: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """The rows with these columns appended, all NULL."""
    for column in columns:
        rows = rows.append_column(column.name, pa.nulls(rows.num_rows, arrow_type(column)))
    return rows
