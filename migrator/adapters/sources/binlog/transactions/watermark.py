"""DBLog's watermark row: table ``migrator``.``watermark``, one row a migration.

The table belongs to the control schema (``migration`` varchar primary key, ``token``, ``kind``; InnoDB).
"""

from __future__ import annotations

from typing import Any

from migrator.adapters.sources.binlog.events import events
from migrator.adapters.sources.binlog.events.events import Event
from migrator.adapters.sources.binlog.events.table_map import parse_table_map, table_of
from migrator.adapters.sources.binlog.rows.charsets import Charsets
from migrator.adapters.sources.binlog.rows.dialect import Dialect
from migrator.adapters.sources.binlog.rows.row_decoder import DecodeRows, build_decoder
from migrator.connections.mysql.settings import BinlogSource, connect, named_errors
from migrator.errors import SourceError
from migrator.model.event import LogRecord, MarkKind, WatermarkSeen
from migrator.model.table import TableId

WATERMARK_TABLE = TableId("migrator", "watermark")
_COLUMNS = ("migration", "token", "kind")
WRITE = (
    "INSERT INTO `migrator`.`watermark` (`migration`, `token`, `kind`) VALUES (%s, %s, %s)"
    " ON DUPLICATE KEY UPDATE `token` = %s, `kind` = %s"
)


class WatermarkRowWriter:
    """Writes the row; each write is a transaction of its own."""

    def __init__(self, source: BinlogSource):
        self._source = source
        self._connection: Any = None

    def write(self, token: str, kind: MarkKind) -> None:
        """Commits the watermark. Raises ``SourceError``, ``ConnectionFailed``."""
        if self._connection is None:
            self._connection = connect(self._source, read_timeout_s=self._source.answer_timeout_s)
        with (
            named_errors(self._source, "the watermark can't be written"),
            self._connection.cursor() as cursor,
        ):
            # the token differs with every write, so the row changes and is logged
            cursor.execute(WRITE, (self._source.migration, token, kind.value, token, kind.value))

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        if self._connection is not None and self._connection.open:
            self._connection.close()
        self._connection = None


class WatermarkTable:
    """Recognises our watermark rows in the log."""

    def __init__(self, migration: str, charsets: Charsets, dialect: Dialect):
        self._migration = migration
        self._charsets = charsets
        self._dialect = dialect
        self._decoders: dict[bytes, tuple[DecodeRows, int]] = {}

    @staticmethod
    def is_mine(body: bytes) -> bool:
        """Returns whether a TABLE_MAP event is the watermark table's."""
        return table_of(body)[1] == WATERMARK_TABLE

    def seen(self, table_map: bytes, event: Event) -> list[LogRecord]:
        """The watermarks in a row event: after images of our migration's row."""
        decode, columns = self._decoder(table_map)
        if event.type in events.DELETE_ROWS:
            return []
        update = event.type in events.UPDATE_ROWS
        at = 9 + (2 if update else 1) * ((columns + 7) // 8)
        if event.type in events.ROWS_V2:
            at += int.from_bytes(event.body[8:10], "little")
        rows = decode(event.body, at, len(event.body))
        after = rows[1::2] if update else rows
        return [
            WatermarkSeen(str(token), MarkKind(kind))
            for migration, token, kind in after
            if migration == self._migration
        ]

    def _decoder(self, table_map: bytes) -> tuple[DecodeRows, int]:
        shape = table_map[6:]
        if shape not in self._decoders:
            layout = parse_table_map(table_map, self._dialect.character)
            names = tuple(column.name for column in layout.columns)
            if names[:3] != _COLUMNS:
                raise SourceError(
                    "the watermark table has other columns than expected",
                    where=str(WATERMARK_TABLE),
                    cause=", ".join(names),
                    remedy="upgrade the control schema",
                )
            wanted = ["" if name in _COLUMNS else None for name in names]
            self._decoders[shape] = (
                build_decoder(layout.columns, wanted, self._charsets, self._dialect),
                len(names),
            )
        return self._decoders[shape]
