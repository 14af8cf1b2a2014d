"""The row changes of a segment, counted for those who watch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from migrator.columnar.operations import operations
from migrator.model.segment import FileKind
from migrator.ports.eventlog import TableData


def changes_by_table(data: Sequence[TableData]) -> Mapping[tuple[str, ...], int]:
    """Counts a segment's row changes by table and operation."""
    return {
        (str(table.schema.id), kind): number
        for table in data
        if table.kind is FileKind.LOG
        for kind, number in operations(table.rows).items()
    }
