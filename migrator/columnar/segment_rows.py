"""The layout of a segment's rows."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from migrator.columnar.types import arrow_schema, image_schema
from migrator.errors import EventLogError
from migrator.model.segment import FileKind
from migrator.model.table import TableSchema


def file_schema(schema: TableSchema, kind: FileKind) -> pa.Schema:
    """Layout of a data file of that kind."""
    return image_schema(schema) if kind is FileKind.LOG else arrow_schema(schema)


def check_layout(schema: TableSchema, kind: FileKind, rows: pa.Table) -> None:
    """Raises ``EventLogError`` for rows of another layout."""
    expected = file_schema(schema, kind)
    if not rows.schema.equals(expected):
        raise EventLogError(
            f"rows of {schema.id} don't have the layout of a {kind.value} file",
            where=str(schema.id),
            cause=f"{rows.schema.to_string()!r} instead of {expected.to_string()!r}",
            remedy="this is a defect of the migrator: please report it with this message",
        )


def row_groups(*paths: str) -> Iterator[pa.Table]:
    """The rows of Parquet files, a row group at a time."""
    for path in paths:
        file = pq.ParquetFile(path)
        for number in range(file.num_row_groups):
            yield file.read_row_group(number)
