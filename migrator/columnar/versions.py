"""Row schemas of one table that changed within a range of the log: brings rows to one of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa

from migrator.columnar.types import arrow_type, image_schema
from migrator.errors import CORRECTED_MAPPING, SchemaError
from migrator.model.table import Column, TableId, TableSchema


def alike(newer: TableSchema, older: TableSchema) -> bool:
    """Tells whether rows of both schemas hold the same: same key, same columns of the same logical types, at any
    place."""
    types, before = ({column.name: column.type for column in one.columns} for one in (newer, older))
    return newer.id == older.id and newer.key == older.key and types == before


def same_key(newer: TableSchema, older: TableSchema) -> bool:
    """Tells whether rows of both schemas are told apart by the same values."""
    types = {column.name: column.type for column in newer.columns}
    keys = {column.name: column.type for column in older.columns if column.name in older.key}
    return newer.key == older.key and all(types.get(name) == type for name, type in keys.items())


def misfits(schema: TableSchema, found: TableSchema) -> list[str]:
    """The columns of a schema that rows of another one lack, or have under another type."""
    types = {column.name: column.type for column in found.columns}
    return [column.name for column in schema.columns if types.get(column.name) != column.type]


def unite_images(parts: Sequence[tuple[TableSchema, pa.Table]]) -> tuple[TableSchema, pa.Table]:
    """Log images of one table in log order, under their schemas, as one table in the newest schema.

    Where they aren't ``alike``, the newest one is taken without the columns that some rows lack or have under another
    type: whoever reads such a column has to notice. Nor is a column that was added NULL in rows of before: its
    default is in the source's rows, and not in the log. All must have the ``same_key``; ``ValueError`` otherwise.
    """
    newest = parts[-1][0]
    if not all(same_key(newest, schema) for schema, _ in parts):
        raise ValueError(f"the row schemas of {newest.id} have different keys")
    if not all(alike(newer, older) for (older, _), (newer, _) in pairwise(parts)):
        newest = newest.without({name for schema, _ in parts for name in misfits(newest, schema)})
    return newest, pa.concat_tables([_images_in(newest, schema, rows) for schema, rows in parts])


def _images_in(newest: TableSchema, schema: TableSchema, rows: pa.Table) -> pa.Table:
    known = {column.name for column in schema.columns}
    whole = with_nulls(rows, [column for column in newest.columns if column.name not in known])
    return whole.select(image_schema(newest).names)


def with_nulls(rows: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """The rows with these columns appended, all NULL."""
    for column in columns:
        rows = rows.append_column(column.name, pa.nulls(rows.num_rows, arrow_type(column)))
    return rows


def widened(rows: pa.Table, schema: TableSchema) -> pa.Table:
    """Rows laid out as the schema: with NULL in the columns that they lack, without those that it doesn't have."""
    if tuple(rows.column_names) == schema.names():
        return rows
    missing = [column for column in schema.columns if column.name not in rows.column_names]
    return with_nulls(rows, missing).select(list(schema.names()))


def not_captured(table: TableId, columns: Sequence[str]) -> SchemaError:
    """The error for changes that lack columns which a mapping reads: what rows hold in them isn't in the log."""
    return SchemaError(
        f"the mapping reads a column of {table} that captured changes don't have",
        where=f"column {', '.join(columns)}",
        cause="they were captured before the column was added to the source, or while it was kept from us, by a"
        " column list of the publication",
        remedy="if it was added: take it out of the mapping, let `migrator run --until caught-up` end, put it back,"
        " do as the next start says, and verify; else take the list away and start anew (docs/how-to/start-anew.md)"
        f"{CORRECTED_MAPPING}",
    )
