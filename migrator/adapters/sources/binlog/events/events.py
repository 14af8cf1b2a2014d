"""Events of the binary log: header, checksum, and the bodies that delimit transactions.

Formats: MySQL "Binlog Event" (dev.mysql.com/doc/dev/mysql-server, mysql::binlog::event), MariaDB "Replication
Protocol" (mariadb.com/kb/en/2-binlog-event-header and its siblings). Numbers up to 42 are
MySQL's, from 160 on MariaDB's.
"""

from __future__ import annotations

import struct
from typing import NamedTuple
from zlib import crc32

from migrator.errors import SourceError

QUERY, STOP, ROTATE, INTVAR, LOAD, SLAVE = 2, 3, 4, 5, 6, 7
RAND, USER_VAR, FORMAT_DESCRIPTION, XID = 13, 14, 15, 16
BEGIN_LOAD_QUERY, EXECUTE_LOAD_QUERY, TABLE_MAP = 17, 18, 19
WRITE_ROWS_V1, UPDATE_ROWS_V1, DELETE_ROWS_V1, INCIDENT, HEARTBEAT = 23, 24, 25, 26, 27
IGNORABLE, ROWS_QUERY, WRITE_ROWS_V2, UPDATE_ROWS_V2, DELETE_ROWS_V2 = 28, 29, 30, 31, 32
MYSQL_GTID, MYSQL_ANONYMOUS_GTID, PREVIOUS_GTIDS, TRANSACTION_CONTEXT, VIEW_CHANGE = 33, 34, 35, 36, 37
XA_PREPARE, PARTIAL_UPDATE_ROWS, TRANSACTION_PAYLOAD, HEARTBEAT_V2, MYSQL_TAGGED_GTID = 38, 39, 40, 41, 42
ANNOTATE_ROWS, BINLOG_CHECKPOINT, MARIADB_GTID, GTID_LIST, START_ENCRYPTION = 160, 161, 162, 163, 164

GTIDS = frozenset((MYSQL_GTID, MYSQL_ANONYMOUS_GTID, MYSQL_TAGGED_GTID, MARIADB_GTID))
HEARTBEATS = frozenset((HEARTBEAT, HEARTBEAT_V2))

WRITE_ROWS = frozenset((WRITE_ROWS_V1, WRITE_ROWS_V2))
UPDATE_ROWS = frozenset((UPDATE_ROWS_V1, UPDATE_ROWS_V2))
DELETE_ROWS = frozenset((DELETE_ROWS_V1, DELETE_ROWS_V2))
ROWS = WRITE_ROWS | UPDATE_ROWS | DELETE_ROWS
ROWS_V2 = frozenset((WRITE_ROWS_V2, UPDATE_ROWS_V2, DELETE_ROWS_V2))

CARRY_NOTHING = frozenset(
    (
        STOP,
        INTVAR,
        RAND,
        USER_VAR,
        BEGIN_LOAD_QUERY,
        IGNORABLE,
        ROWS_QUERY,
        PREVIOUS_GTIDS,
        TRANSACTION_CONTEXT,
        VIEW_CHANGE,
        ANNOTATE_ROWS,
        BINLOG_CHECKPOINT,
        GTID_LIST,
        START_ENCRYPTION,
    )
)
"""Events that hold no row and end no transaction. Some prepare a statement; that statement is judged."""

REFUSED_NAMES = {
    26: "INCIDENT (the server lost events)",
    39: "PARTIAL_UPDATE_ROWS (binlog_row_value_options=PARTIAL_JSON)",
}
FLAG_IGNORABLE = 0x80
_FLAG_THREAD_SPECIFIC = 0x04

_HEADER = struct.Struct("<IBIIIH")
HEADER_BYTES = _HEADER.size
CHECKSUM_BYTES = 4
_CRC32 = 1
CRC_OF_WHOLE = 0x2144DF1C
"""CRC-32 of anything that ends with its own CRC-32, as an undamaged event does."""


class Event(NamedTuple):
    """One event: ``body`` lacks header and checksum, ``end`` is the offset in its file after it (0: artificial)."""

    type: int
    timestamp_s: int
    server: int
    end: int
    flags: int
    body: bytes


_new_event = tuple.__new__
"""Half the time of calling ``Event``, and there are five events to a small transaction."""


class EventParser:
    """Splits headers from bodies and checks the checksum each file's format description announces."""

    def __init__(self) -> None:
        self._checksum: bool | None = None

    @property
    def checksums(self) -> bool:
        """Tells whether the present file's events are known to have checksums."""
        return self._checksum is True

    def parse(self, raw: bytes) -> Event:
        """One event from the payload of one packet (its leading OK byte taken off).

        Raises ``SourceError`` when its bytes don't fit its header or its checksum.
        """
        length = len(raw)
        if length < HEADER_BYTES:
            raise _corrupt("an event is shorter than its header", raw)
        timestamp, kind, server, size, end, flags = _HEADER.unpack_from(raw)
        if size != length:
            raise _corrupt(f"an event of type {kind} says {size} bytes and has {length}", raw)
        checksummed = self._announced(raw) if kind == FORMAT_DESCRIPTION else self._checksum
        if checksummed is None:  # the artificial event in front of the first format description
            checksummed = crc32(raw) == CRC_OF_WHOLE
        elif checksummed and crc32(raw) != CRC_OF_WHOLE:
            raise _corrupt(f"the checksum of an event of type {kind} before offset {end} is wrong", raw)
        body = raw[HEADER_BYTES:-CHECKSUM_BYTES] if checksummed else raw[HEADER_BYTES:]
        return _new_event(Event, (kind, timestamp, server, end, flags, body))

    def _announced(self, raw: bytes) -> bool:
        # the last byte before the checksum names the algorithm; a format description always carries a checksum
        if raw[-CHECKSUM_BYTES - 1] not in (0, _CRC32) or crc32(raw) != CRC_OF_WHOLE:
            raise _corrupt("the format description of a binlog file is damaged", raw)
        self._checksum = raw[-CHECKSUM_BYTES - 1] == _CRC32
        return True


def parse_header(raw: bytes) -> tuple[int, int, int, int, int]:
    """Type, time, server, size and flags of an event. Raises ``struct.error``."""
    timestamp, kind, server, size, _, flags = _HEADER.unpack_from(raw)
    return kind, timestamp, server, size, flags


def _corrupt(what: str, raw: bytes) -> SourceError:
    return SourceError(
        "the source log arrived damaged",
        where=what,
        cause=f"first bytes {raw[:32].hex()}",
        remedy="check network and disk of the source (mysqlbinlog --verify-binlog-checksum); then start again",
    )


def parse_rotate(event: Event) -> tuple[str, int]:
    """Name and start offset of the file that follows."""
    return event.body[8:].decode(), int.from_bytes(event.body[:8], "little")


def of_its_thread(event: Event) -> bool:
    """Tells whether a statement depends on its session: its tables may be temporary ones, whatever they are named
    like."""
    return bool(event.flags & _FLAG_THREAD_SPECIFIC)


def is_begin(event: Event) -> bool:
    """Tells whether a statement is just ``BEGIN``. Asked before all others, and so without taking it apart."""
    return event.body.endswith(b"\0BEGIN") and query_text_at(event) == len(event.body) - len(b"BEGIN")


def query_text_at(event: Event) -> int:
    """Finds where the text of a QUERY or EXECUTE_LOAD_QUERY event begins: behind its status and its database."""
    fixed = 13 if event.type == QUERY else 26
    return fixed + int.from_bytes(event.body[11:13], "little") + event.body[8] + 1
