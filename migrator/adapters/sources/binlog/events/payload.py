"""Compressed transactions (binlog_transaction_compression): one event that holds all others, as zstd.

Format: MySQL ``Transaction_payload_event``: type, length and value of each field, then the payload; the
    events inside have no checksum and count no offsets of the file.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from migrator.adapters.sources.binlog.events.events import HEADER_BYTES, Event, parse_header
from migrator.adapters.sources.binlog.events.lengths import read_length
from migrator.errors import SourceError

_END_OF_HEADER, _SIZE, _COMPRESSION = 0, 1, 2
_ZSTD, _NONE = 0, 255


def payload_events(event: Event) -> Iterator[Event]:
    """The events inside, one by one, each ending where the whole event ends. Memory: the largest of them.

    Raises ``SourceError`` for another compression or a damaged payload.
    """
    fields, at = _fields(event.body)
    data = pa.py_buffer(memoryview(event.body)[at : at + fields.get(_SIZE, len(event.body) - at)])
    compression = fields.get(_COMPRESSION, _NONE)
    if compression not in (_ZSTD, _NONE):
        raise _damaged(f"compression {compression} is not known")
    plain = pa.BufferReader(data)
    stream = pa.CompressedInputStream(plain, "zstd") if compression == _ZSTD else plain
    try:
        while header := stream.read(HEADER_BYTES):
            kind, timestamp, server, size, flags = parse_header(header)
            body = stream.read(size - HEADER_BYTES)
            if len(body) != size - HEADER_BYTES:
                raise _damaged("the last event is cut")
            yield Event(kind, timestamp, server, event.end, flags, body)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(str(error)) from error


def _fields(body: bytes) -> tuple[dict[int, int], int]:
    """Numbers by field type, and where the payload begins."""
    fields: dict[int, int] = {}
    at = 0
    while True:
        kind, at = read_length(body, at)
        if kind == _END_OF_HEADER:
            return fields, at
        length, at = read_length(body, at)
        fields[kind], _ = read_length(body, at)
        at += length


def _damaged(cause: str) -> SourceError:
    return SourceError(
        "a compressed transaction can't be read",
        cause=cause,
        remedy="SET GLOBAL binlog_transaction_compression = OFF, reconnect the writers, then "
        "start the migration anew (docs/how-to/start-anew.md)",
    )
