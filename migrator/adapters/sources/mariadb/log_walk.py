"""The GTID state at a place of the log, found by reading the file up to there.

The server's own ``BINLOG_GTID_POS`` gives up behind an event larger than ``max_allowed_packet`` (an UPDATE of a row
of 9 MB, with the server's defaults), and says nothing of any later place in that file.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from typing import Any

from pymysql.constants.COMMAND import COM_BINLOG_DUMP

from migrator.adapters.sources.binlog.events import events
from migrator.adapters.sources.binlog.events.events import Event, EventParser
from migrator.adapters.sources.binlog.wire.packet_stream import HANDSHAKE_TIMEOUT_S, PacketStream
from migrator.adapters.sources.mariadb.position import Gtid
from migrator.adapters.sources.mariadb.witness import Snapshot
from migrator.connections.mysql.packet_buffer import BufferedConnection
from migrator.connections.mysql.settings import BinlogSource, connect, named_errors
from migrator.errors import ConnectionFailed

_FIRST_OFFSET = 4
_COUNT = 0x0FFFFFFF
"""The rest of the number are flags."""
_LISTED = struct.Struct("<IIQ")
_GTID = struct.Struct("<QI")


def gtids_at(source: BinlogSource, place: Snapshot) -> dict[int, Gtid]:
    """The last GTID of every domain at or before a place that the log has. Raises ``SourceError``."""
    gtids: dict[int, Gtid] = {}
    for event in _events(source, place.file):
        if event.end > place.position:
            break
        if event.type == events.GTID_LIST:
            (count,) = struct.unpack_from("<I", event.body)
            listed = _LISTED.iter_unpack(event.body[4 : 4 + (count & _COUNT) * _LISTED.size])
            gtids = {domain: Gtid(domain, server, sequence) for domain, server, sequence in listed}
        elif event.type == events.MARIADB_GTID:
            sequence, domain = _GTID.unpack_from(event.body)
            gtids[domain] = Gtid(domain, event.server, sequence)
        if event.end == place.position:
            break
    return gtids


def _events(source: BinlogSource, file: str) -> Iterator[Event]:
    def ask(connections: list[Any]) -> BufferedConnection:
        connection: BufferedConnection = connect(
            source, read_timeout_s=HANDSHAKE_TIMEOUT_S, connection_class=BufferedConnection
        )
        connections.append(connection)
        with named_errors(source, "the source log can't be opened"):
            with connection.cursor() as cursor:
                # without the capability GTIDs are left out
                cursor.execute("SET @master_binlog_checksum = 'CRC32', @mariadb_slave_capability = 4")
            head = struct.pack("<IHI", _FIRST_OFFSET, 0, source.server_id)
            connection._execute_command(COM_BINLOG_DUMP, head + file.encode())
        return connection

    stream, parser = PacketStream(source, ask), EventParser()
    try:
        raw, heard_at = stream.take_first(), time.monotonic()
        while True:
            for packet in raw:
                yield parser.parse(packet)
            raw = stream.events(source.server.silence_s)
            if raw:
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at >= source.server.silence_s:
                raise ConnectionFailed(
                    "the source log can't be read",
                    where=source.server.address,
                    cause="nothing came",
                    retryable=True,
                )
    finally:
        stream.close()
