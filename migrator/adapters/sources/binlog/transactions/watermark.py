"""DBLog's watermark row: table ``migrator``.``watermark``, one row a migration.

The table belongs to the control schema (``migration`` varchar primary key, ``token``, ``kind``; InnoDB).
"""

from __future__ import annotations

from typing import Any

from migrator.connections.mysql.settings import BinlogSource, connect, named_errors
from migrator.model.event import MarkKind
from migrator.model.table import TableId

WATERMARK_TABLE = TableId("migrator", "watermark")
WATERMARK_COLUMNS = ("migration", "token", "kind")
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
