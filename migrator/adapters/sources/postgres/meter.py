"""The end of the source's log, asked for again and again over one session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg

from migrator.adapters.sources.postgres.chunks.read_view import present_position
from migrator.adapters.sources.postgres.connection import connect, query_failure
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.model.position import Position


def end_of_log(connection: psycopg.Connection[Any]) -> Position:
    """The place behind everything that is visible now."""
    return present_position(connection.cursor())


class PostgresMeter:
    """Implements ``SourceMeter`` on one connection, made when first needed and again after a failure.

    Args:
        source: the server.
        ask: what is asked.
    """

    def __init__(
        self,
        source: PostgresSource,
        ask: Callable[[psycopg.Connection[Any]], Position] = end_of_log,
    ):
        self._source = source
        self._ask = ask
        self._connection: psycopg.Connection[Any] | None = None

    def end(self) -> Position:
        """See ``SourceMeter.end``."""
        try:
            if self._connection is None:
                self._connection = connect(self._source, "meter")
                self._connection.execute("SET statement_timeout = '4s'")
            return self._ask(self._connection)
        except psycopg.Error as error:
            self.close()
            raise query_failure(self._source, "the source's log position can't be read", error) from error

    def close(self) -> None:
        """See ``SourceMeter.close``."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
