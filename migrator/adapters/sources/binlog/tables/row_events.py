"""Row events to row changes."""

from __future__ import annotations

from migrator.adapters.sources.binlog.events import events
from migrator.adapters.sources.binlog.events.events import Event
from migrator.adapters.sources.binlog.rows.row_forms import OPERATIONS, POST_HEADER
from migrator.adapters.sources.binlog.tables.captured_tables import LoggedTable
from migrator.errors import SourceError
from migrator.model.event import RowChange


def items_of(event: Event, table: LoggedTable) -> list[bytes]:
    """The changes of a row event in their order, as the table's codec reads them.

    Raises ``SourceError`` unless every column is present; ``IndexError`` or ``ValueError`` on damaged bytes.
    """
    at = whole_images_at(event.type, event.body, table)
    return table.codec.cut(event.body, at, OPERATIONS[event.type])


def changes_of(event: Event, table: LoggedTable) -> list[RowChange]:
    """The same as text. Raises ``struct.error``, too."""
    return table.codec.changes(items_of(event, table))


def images_at(kind: int, body: bytes) -> tuple[int, int, bytes]:
    """Finds where the rows begin, the number of columns, and the bitmaps of the columns present. Raises
    ``IndexError``."""
    at = _columns_at(kind, body)
    columns = body[at]
    at += 1
    if columns >= 251:
        columns, at = int.from_bytes(body[at : at + 2], "little"), at + 2
    size = (columns + 7) // 8 * (2 if kind in events.UPDATE_ROWS else 1)
    return at + size, columns, body[at : at + size]


def _columns_at(kind: int, body: bytes) -> int:
    if kind in events.ROWS_V2:
        return POST_HEADER + int.from_bytes(body[8:10], "little")
    return POST_HEADER


def whole_images_at(kind: int, body: bytes, table: LoggedTable) -> int:
    """Finds where the rows of a row event begin. Raises ``SourceError`` unless every column is present."""
    at = _columns_at(kind, body)
    whole = table.whole_update if kind in events.UPDATE_ROWS else table.whole
    if body.startswith(whole, at):
        return at + len(whole)
    at, columns, bitmaps = images_at(kind, body)
    width, every = (columns + 7) // 8, (1 << columns) - 1
    for image in range(0, len(bitmaps), max(1, width)):
        present = int.from_bytes(bitmaps[image : image + width], "little")
        if present & every != every or columns != table.columns:
            raise SourceError(
                "a row image in the log is not complete",
                where=str(table.schema.id),
                cause="the session wrote with binlog_row_image other than FULL",
                remedy="SET GLOBAL binlog_row_image = 'FULL', reconnect the writers, then "
                "start the migration anew (docs/how-to/start-anew.md)",
            )
    return at
