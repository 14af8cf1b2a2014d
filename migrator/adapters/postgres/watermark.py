"""DBLog's watermark: one row of ``migrator.watermark``, updated before and after a chunk's SELECT."""

from __future__ import annotations

from migrator.adapters.postgres.settings import PostgresSource
from migrator.adapters.postgres.watched import BriefConnection
from migrator.model.event import MarkKind

_WRITE = """
INSERT INTO migrator.watermark (migration, token, kind) VALUES ($1, $2, $3)
ON CONFLICT (migration) DO UPDATE SET token = excluded.token, kind = excluded.kind
"""


class PostgresWatermarkWriter:
    """Implements ``WatermarkWriter``: one committed row per watermark, of this migration only."""

    def __init__(self, source: PostgresSource):
        self._source = source
        self._connection = BriefConnection(source, "watermark")

    def write(self, token: str, kind: MarkKind) -> None:
        """Commits the watermark. Raises ConnectionFailed, SourceError."""
        row = [self._source.migration, token, kind.value]
        self._connection.call("the watermark can't be written", lambda open_: open_.execute(_WRITE, row))

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()
