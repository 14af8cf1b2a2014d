"""LOAD DATA LOCAL from memory: the rows never touch a disk, and the server is never given a file.

By the protocol the server names the file that it wants, and PyMySQL would send whichever that is. Here it gets what
is pending, and nothing where nothing is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pymysql import err
from pymysql.connections import MySQLResult
from pymysql.constants import CR

from migrator.connections.mysql.packet_buffer import BufferedConnection

_PACKET_BYTES = 1 << 18


class LoadingConnection(BufferedConnection):
    """A connection that answers LOAD DATA LOCAL with ``pending``."""

    pending: Iterator[memoryview] | None = None

    def _read_query_result(self, unbuffered: bool = False) -> Any:
        self._result = None
        result = _LoadingResult(self)
        if unbuffered:
            result.init_unbuffered_query()
        else:
            result.read()
        self._result = result
        if result.server_status is not None:
            self.server_status = result.server_status
        return result.affected_rows


class _LoadingResult(MySQLResult):  # type: ignore[misc]
    def _read_load_local_packet(self, first_packet: Any) -> None:
        connection = self.connection
        pending, connection.pending = connection.pending, None
        try:
            for part in pending or ():
                for start in range(0, len(part), _PACKET_BYTES):
                    connection.write_packet(bytes(part[start : start + _PACKET_BYTES]))
        finally:
            connection.write_packet(b"")  # says that this was all
            answer = connection._read_packet()
        if pending is None:
            raise err.InterfaceError(0, "the server asked for a file that nobody offered")
        if not answer.is_ok_packet():
            raise err.OperationalError(CR.CR_COMMANDS_OUT_OF_SYNC, "Commands Out of Sync")
        self._read_ok_packet(answer)
