"""Row events to row changes."""

from __future__ import annotations

from migrator.binlog import events
from migrator.binlog.captured_tables import LoggedTable
from migrator.binlog.events import Event
from migrator.errors import SourceError
from migrator.model.event import Operation, Row, RowChange

_POST_HEADER = 8
"""Table number and flags."""


def changes_of(event: Event, table: LoggedTable) -> list[RowChange]:
    """The changes of a row event, in their order.

    Raises ``SourceError`` unless every column is present; ``IndexError``, ``ValueError`` or ``struct.error`` on
    damaged bytes.
    """
    body = event.body
    rows = table.decode(body, _whole_images_at(event, table), len(body))
    name = table.schema.id
    if event.type in events.UPDATE_ROWS:
        return _updates(table, rows)
    if event.type in events.WRITE_ROWS:
        return [RowChange(name, Operation.INSERT, None, row) for row in rows]
    return [RowChange(name, Operation.DELETE, row, None) for row in rows]


def _updates(table: LoggedTable, rows: list[Row]) -> list[RowChange]:
    if len(rows) % 2:
        raise ValueError("an update has a before image without an after image")
    name, pairs = table.schema.id, iter(rows)
    return [
        RowChange(name, Operation.UPDATE, before, after) for before, after in zip(pairs, pairs, strict=True)
    ]


def images_at(event: Event) -> tuple[int, int, bytes]:
    """Where the rows begin, the number of columns, and the bitmaps of the columns present. Raises ``IndexError``."""
    body, at = event.body, _POST_HEADER
    if event.type in events.ROWS_V2:
        at += int.from_bytes(body[8:10], "little")
    columns = body[at]
    at += 1
    if columns >= 251:
        columns, at = int.from_bytes(body[at : at + 2], "little"), at + 2
    size = (columns + 7) // 8 * (2 if event.type in events.UPDATE_ROWS else 1)
    return at + size, columns, body[at : at + size]


def _whole_images_at(event: Event, table: LoggedTable) -> int:
    """Where the rows begin. Raises ``SourceError`` unless every column is present."""
    at, columns, bitmaps = images_at(event)
    width, every = (columns + 7) // 8, (1 << columns) - 1
    for image in range(0, len(bitmaps), max(1, width)):
        present = int.from_bytes(bitmaps[image : image + width], "little")
        if present & every != every or columns != table.columns:
            raise SourceError(
                "a row image in the log is not complete",
                where=str(table.schema.id),
                cause="the session wrote with binlog_row_image other than FULL",
                remedy="SET GLOBAL binlog_row_image = 'FULL', reconnect the writers, then start a new dump",
            )
    return at
