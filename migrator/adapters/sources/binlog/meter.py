"""The end of the source's log, asked for again and again over one session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from migrator.connections.mysql.settings import BinlogSource, connect, named_errors
from migrator.errors import MigratorError
from migrator.model.position import Position

_ANSWER_TIMEOUT_S = 4.0


class BinlogMeter:
    """Implements ``SourceMeter`` on one connection, made when first needed and again after a failure.

    Args:
        source: the server.
        ask: the engine's way to ask a connection.
    """

    def __init__(self, source: BinlogSource, ask: Callable[[Any], Position]):
        self._source = source
        self._ask = ask
        self._connection: Any = None

    def end(self) -> Position:
        """See ``SourceMeter.end``."""
        try:
            with named_errors(self._source, "the source's log position can't be read"):
                if self._connection is None:
                    self._connection = connect(self._source, read_timeout_s=_ANSWER_TIMEOUT_S)
                return self._ask(self._connection)
        except MigratorError:
            self.close()
            raise

    def close(self) -> None:
        """See ``SourceMeter.close``."""
        connection, self._connection = self._connection, None
        if connection is not None and connection.open:
            connection.close()
