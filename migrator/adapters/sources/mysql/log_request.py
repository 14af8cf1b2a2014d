"""Asks MySQL for its log from a set of GTIDs on (COM_BINLOG_DUMP_GTID).

mysql-replication is not used here: it can't ask for sets with tags, and its own reconnect replays from the start.
"""

from __future__ import annotations

import struct
import uuid
from typing import Any

from pymysql.constants.COMMAND import COM_BINLOG_DUMP_GTID

from migrator.adapters.sources.binlog.wire.packet_stream import (
    HANDSHAKE_TIMEOUT_S,
    PacketStream,
    heartbeat_s,
)
from migrator.adapters.sources.mysql.gtid_set import GtidSet
from migrator.connections.mysql.packet_buffer import BufferedConnection
from migrator.connections.mysql.settings import BinlogSource, connect, named_errors

_THROUGH_GTID = 0x04
_FIRST_OFFSET = 4
_NAMESPACE = uuid.UUID("5b3a2a5e-2d4f-4f0c-8a51-7f6e3f1c9d10")


def open_stream(source: BinlogSource, gtids: GtidSet) -> PacketStream:
    """The log without the transactions of a set. Raises ``GapError``, ``ConnectionFailed``."""

    def ask(connections: list[Any]) -> BufferedConnection:
        connection: BufferedConnection = connect(
            source, read_timeout_s=HANDSHAKE_TIMEOUT_S, connection_class=BufferedConnection
        )
        connections.append(connection)
        with named_errors(source, "the source log can't be opened"):
            with connection.cursor() as cursor:
                cursor.execute(f"SET {_session(source)}")
            encoded = gtids.encoded()
            head = struct.pack("<HIIQI", _THROUGH_GTID, source.server_id, 0, _FIRST_OFFSET, len(encoded))
            connection._execute_command(COM_BINLOG_DUMP_GTID, head + encoded)
        return connection

    return PacketStream(source, ask)


def _session(source: BinlogSource) -> str:
    """The variables by which a replica says what it wants, in their old and their new spelling.

    CRC32 even where the server writes none: events are then checked on their way. net_write_timeout: a slow
    batch on our side must not look like a dead replica. The UUID lets the server end our own dead connection
    when we return.
    """
    heartbeat_ns = int(heartbeat_s(source) * 1e9)
    name = uuid.uuid5(_NAMESPACE, f"{source.migration} {source.server_id}")
    asked = [f"@{side}_binlog_checksum = 'CRC32'" for side in ("source", "master")]
    asked += [f"@{side}_heartbeat_period = {heartbeat_ns}" for side in ("source", "master")]
    asked += [f"@{side}_uuid = '{name}'" for side in ("replica", "slave")]
    return ", ".join([*asked, "SESSION net_write_timeout = 3600"])
