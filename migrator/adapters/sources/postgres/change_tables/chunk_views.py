"""Chunks beside change tables: a chunk's snapshot is itself a place in the order of polls, so nothing is in
doubt."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from migrator.adapters.sources.postgres.change_tables.place import PollWitness
from migrator.adapters.sources.postgres.change_tables.view import (
    FLUSH_S,
    VIEW,
    View,
    not_on_disk,
    on_disk,
)
from migrator.adapters.sources.postgres.chunks.chunk_reader import PostgresChunkReader
from migrator.adapters.sources.postgres.chunks.read_view import ReadView, Views
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.connections.same_server import SameServer


def chunk_reader(
    source: PostgresSource,
    step: Callable[[str], None] = lambda name: None,
    same: SameServer | None = None,
) -> PostgresChunkReader:
    """A chunk reader for use beside ``ChangeTableLogReader``."""

    def take(cursor: Any, before: object) -> ReadView:
        cursor.execute(VIEW)
        view = View.of(cursor.fetchone())
        high = view.place().position()

        def settled(cursor: Any) -> None:
            """A chunk with rows of a transaction that a crash forgets would keep them for good."""

            def first(statement: str) -> Any:
                cursor.execute(statement)
                return cursor.fetchone()[0]

            if not on_disk(first, view, time.monotonic() + FLUSH_S):
                raise not_on_disk(source.server.address)

        return ReadView(PollWitness(high.order), high, settled)

    return PostgresChunkReader(source, step, Views(lambda cursor: None, take, beside_wal=False), same)
