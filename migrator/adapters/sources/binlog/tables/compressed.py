"""MariaDB's events compressed one by one (log_bin_compress): each to the plain event that it stands for.

Format: MariaDB ``binlog_buf_compress``: one byte (highest bit set, three bits of algorithm, the number of length
bytes), the plain length, then zlib. Of a row event everything behind the bitmaps is compressed, of a statement its
text.
"""

from __future__ import annotations

import zlib

from migrator.adapters.sources.binlog.events import events
from migrator.adapters.sources.binlog.events.events import Event
from migrator.adapters.sources.binlog.tables.row_events import images_at

QUERY = 165
PLAIN = {
    QUERY: events.QUERY,
    166: events.WRITE_ROWS_V1,
    167: events.UPDATE_ROWS_V1,
    168: events.DELETE_ROWS_V1,
    169: events.WRITE_ROWS_V2,
    170: events.UPDATE_ROWS_V2,
    171: events.DELETE_ROWS_V2,
}
"""Compressed type -> plain type."""


def plain(event: Event) -> Event:
    """The plain event. Raises ``ValueError`` for damaged bytes or another algorithm than zlib."""
    same = event._replace(type=PLAIN[event.type])
    at = events.query_text_at(same) if same.type == events.QUERY else images_at(same.type, same.body)[0]
    return same._replace(body=event.body[:at] + _expanded(event.body[at:]))


def _expanded(data: bytes) -> bytes:
    head = data[0]
    if not head & 0x80 or head & 0x70:
        raise ValueError(f"the compression {head:#04x} is not known")
    start = 1 + (head & 0x07)
    size = int.from_bytes(data[1:start], "big")
    try:
        found = zlib.decompress(data[start:])
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if len(found) != size:
        raise ValueError(f"the compressed data have {len(found)} bytes instead of {size}")
    return found
