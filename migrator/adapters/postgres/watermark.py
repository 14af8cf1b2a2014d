"""DBLog's watermark: one row of ``migrator.watermark``, updated before and after a chunk's SELECT."""

from __future__ import annotations

import psycopg

from migrator.adapters.postgres.connection import connect, query_failure
from migrator.adapters.postgres.settings import PostgresSource
from migrator.model.event import MarkKind

_WRITE = """
INSERT INTO migrator.watermark (migration, token, kind) VALUES ($1, $2, $3)
ON CONFLICT (migration) DO UPDATE SET token = excluded.token, kind = excluded.kind
"""


class PostgresWatermarkWriter:
    """Implements ``WatermarkWriter``: one committed row per watermark, of this migration only."""

    def __init__(self, source: PostgresSource):
        self._source = source
        self._connection: psycopg.Connection[object] | None = None

    def write(self, token: str, kind: MarkKind) -> None:
        """Commits the watermark. Raises ConnectionFailed, SourceError."""
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._source, "watermark")
        try:
            self._connection.execute(_WRITE, [self._source.migration, token, kind.value])
        except psycopg.Error as error:
            raise query_failure(self._source, "the watermark can't be written", error) from error

    def close(self) -> None:
        """Ends the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
