"""Asks MariaDB for its log.

mysql-replication's ``BinLogStreamReader`` logs in, announces itself and asks for the log from a GTID state; from
the first event on the packets are read by us. Its own reading would block without bound, would answer a cut
connection by replaying the log from the first place it ever started at, and would filter unknown events away.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pymysql.constants.COMMAND import COM_BINLOG_DUMP
from pymysql.cursors import DictCursor
from pymysqlreplication import BinLogStreamReader

from migrator.adapters.sources.binlog.wire.packet_stream import (
    HANDSHAKE_TIMEOUT_S,
    PacketStream,
    heartbeat_s,
)
from migrator.adapters.sources.mariadb.position import Gtid, gtid_text
from migrator.connections.mysql.packet_buffer import BufferedConnection
from migrator.connections.mysql.settings import BinlogSource, connect, named_errors
from migrator.errors import ConnectionFailed


class _StreamOpenedError(Exception):
    """The library has asked for the log and wants to read: from here on the packets are ours."""


class _StreamConnection(BufferedConnection):
    """Lets the library ask for the log, and takes the stream over before it reads its first event."""

    _asked = False

    def _write_bytes(self, data: bytes) -> None:
        super()._write_bytes(data)
        self._asked = data[4] == COM_BINLOG_DUMP

    def _read_packet(self, *arguments: Any) -> Any:
        if self._asked:
            raise _StreamOpenedError
        return super()._read_packet(*arguments)


def open_stream(source: BinlogSource, gtids: Mapping[int, Gtid]) -> PacketStream:
    """The log after a GTID state. Raises ``GapError``, ``ConnectionFailed``."""

    def ask(connections: list[Any]) -> BufferedConnection:
        library = BinLogStreamReader(
            {"read_timeout": HANDSHAKE_TIMEOUT_S},
            server_id=source.server_id,
            pymysql_wrapper=lambda **_options: _connect(source, connections),
            auto_position=gtid_text(gtids),
            is_mariadb=True,
            blocking=True,
            slave_heartbeat=heartbeat_s(source),
            enable_logging=False,
        )
        with named_errors(source, "the source log can't be opened"), suppress(_StreamOpenedError):
            library.fetchone()
        opened: BufferedConnection = connections[0]
        return opened

    return PacketStream(source, ask)


def _connect(source: BinlogSource, connections: list[Any]) -> Any:
    """Connects for the library, called twice: first for the stream, then for its look at a server variable."""
    if not connections:
        connection = connect(source, read_timeout_s=HANDSHAKE_TIMEOUT_S, connection_class=_StreamConnection)
        connections.append(connection)
        with connection.cursor() as cursor:
            # CRC32 even where the server writes none: events are then checked on their way;
            # net_write_timeout: a slow batch on our side must not look like a dead replica
            cursor.execute("SET @master_binlog_checksum = 'CRC32', SESSION net_write_timeout = 3600")
    elif len(connections) == 1:
        connection = connect(source, cursorclass=DictCursor)
        connections.append(connection)
    else:
        raise ConnectionFailed(
            "the connection to the source log was lost",
            where=source.server.address,
            cause="cut while the stream was being opened",
            remedy="reading goes on from the last stored position once the server can be reached again",
            retryable=True,
        )
    return connection
