"""Row schemas of one table that changed within a range of the log: brings rows to the newest one."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from migrator.columnar.types import arrow_type
from migrator.model.table import TableSchema


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
        [_with_columns(newest, len(schema.columns), rows) for schema, rows in parts]
    )


def _with_columns(newest: TableSchema, present: int, images: pa.Table) -> pa.Table:
    for column in newest.columns[present:]:
        images = images.append_column(column.name, pa.nulls(images.num_rows, arrow_type(column)))
    return images
