"""Row events to row changes."""

from __future__ import annotations

from migrator.adapters.sources.binlog.events import events
from migrator.adapters.sources.binlog.events.events import Event
from migrator.adapters.sources.binlog.rows.row_codec import RowCodec
from migrator.adapters.sources.binlog.rows.row_forms import OPERATIONS, POST_HEADER
from migrator.adapters.sources.binlog.tables.captured_tables import LoggedTable
from migrator.errors import SourceError
from migrator.model.event import RowChange


def items_of(event: Event, table: LoggedTable) -> tuple[RowCodec, list[bytes]]:
    """The changes of a row event in their order, and the codec that reads them: the table's, or one like it.

    MariaDB 11.8 leaves generated columns out of an update's images, and the hidden hash of a UNIQUE over texts.
    Raises ``SourceError`` unless every wanted column is present; ``IndexError`` or ``ValueError`` on damaged bytes.
    """
    kind, body = event.type, event.body
    codec = None if body.startswith(_whole(kind, table), _columns_at(kind, body)) else _lacking(event, table)
    at = whole_images_at(kind, body, table) if codec is None else images_at(kind, body)[0]
    codec = codec or table.codec
    return codec, codec.cut(body, at, OPERATIONS[kind])


def _lacking(event: Event, table: LoggedTable) -> RowCodec | None:
    """The codec for images that lack columns, an update's both the same ones; None where a missing one counts."""
    _, columns, bitmaps = images_at(event.type, event.body)
    width = (columns + 7) // 8
    images = {bitmaps[at : at + width] for at in range(0, len(bitmaps), max(1, width))}
    if columns != table.columns or len(images) != 1:
        return None
    return table.codec.lacking(int.from_bytes(images.pop(), "little"))


def changes_of(event: Event, table: LoggedTable) -> list[RowChange]:
    """The same as text. Raises ``struct.error``, too."""
    codec, items = items_of(event, table)
    return codec.changes(items)


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


def _whole(kind: int, table: LoggedTable) -> bytes:
    return table.whole_update if kind in events.UPDATE_ROWS else table.whole


def whole_images_at(kind: int, body: bytes, table: LoggedTable) -> int:
    """Finds where the rows of a row event begin. Raises ``SourceError`` unless every column is present."""
    at, whole = _columns_at(kind, body), _whole(kind, table)
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
