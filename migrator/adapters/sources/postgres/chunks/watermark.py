"""DBLog's watermarks, written before and after a chunk's SELECT: as a row, or as a logical message without a table.

Either is an ordinary transaction of its own: its mark stands in the log where its commit does. Neither closes
the gap between a commit's place in the log and its becoming visible (see ``migrator.core.touched``), so
chunks bring their witness all the same.
"""

from __future__ import annotations

from collections.abc import Callable

from migrator.adapters.sources.postgres.settings import MESSAGE, WATERMARK, PostgresSource
from migrator.adapters.sources.postgres.watched import BriefConnection
from migrator.model.event import MarkKind
from migrator.ports.source import WatermarkWriter

_WRITE = """
INSERT INTO migrator.watermark (migration, token, kind) VALUES ($1, $2, $3)
ON CONFLICT (migration) DO UPDATE SET token = excluded.token, kind = excluded.kind
"""


_EMIT = "SELECT pg_catalog.pg_logical_emit_message(true, $1::text, $2::text)"


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


class PostgresMessageWriter:
    """Implements ``WatermarkWriter``: one transactional logical message per watermark, ``<kind> <token>``."""

    def __init__(self, source: PostgresSource):
        self._source = source
        self._connection = BriefConnection(source, "watermark")

    def write(self, token: str, kind: MarkKind) -> None:
        """Commits the watermark. Raises ConnectionFailed, SourceError."""
        mark = [self._source.slot, f"{kind.value} {token}"]
        self._connection.call("the watermark can't be written", lambda open_: open_.execute(_EMIT, mark))

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()


def mark_writer(source: PostgresSource) -> Callable[[], WatermarkWriter] | None:
    """Returns what makes the writer of the configured placement; None where nothing is written."""
    if source.placement == WATERMARK:
        return lambda: PostgresWatermarkWriter(source)
    if source.placement == MESSAGE:
        return lambda: PostgresMessageWriter(source)
    return None
