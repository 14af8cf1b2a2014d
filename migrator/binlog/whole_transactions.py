"""Transactions that are nothing but rows, taken in one go when all their events are at hand.

Most of a log is GTID, BEGIN, TABLE_MAP, rows, XID. The state machine of ``transactions`` goes through that event by
event, ready for anything; here the events are looked at where they lie. What is not exactly of this form is left to
the state machine, from its GTID event on, and so is everything that is damaged: this module refuses nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Sequence
from zlib import crc32

from migrator.binlog import events
from migrator.binlog.captured_tables import CapturedTables, LoggedTable
from migrator.binlog.events import CRC_OF_WHOLE, HEADER_BYTES, EventParser
from migrator.binlog.row_events import OPERATIONS, whole_images_at
from migrator.binlog.track import Track
from migrator.model.event import ChangeRun, TransactionPart

_TYPE_AT = 4
_NUMBER = slice(HEADER_BYTES, HEADER_BYTES + 6)
_SHAPE = slice(HEADER_BYTES + 6, -4)
_BODY = slice(HEADER_BYTES, -4)
_BEGIN = slice(-10, -4)
_TIME_AND_END = struct.Struct("<I9xI")
"""Of an event: its time, and where in its file it ends."""
_MOST_ROWS = 100
"""Of a transaction. In a larger one the events are not what costs, and its end may not have arrived."""
_OTHER_FORM = (IndexError, ValueError, struct.error)
"""It goes on in what hasn't arrived yet, or has bytes that make no sense."""
_new = tuple.__new__
"""Half the time of calling the class."""


class WholeTransactions:
    """Takes them out of raw events.

    Args:
        parser: of the stream; knows whether events have checksums.
        track: follows the GTIDs.
        tables: the captured tables.
    """

    def __init__(self, parser: EventParser, track: Track, tables: CapturedTables):
        self._parser = parser
        self._track = track
        self._tables = tables

    def taken(
        self, raw: Sequence[bytes], at: int, announced: Container[int]
    ) -> tuple[int, TransactionPart] | None:
        """The place behind the transaction that begins at ``at``, and the transaction; None if it isn't of that form.

        ``announced``: ids of the layouts that are the latest of their tables; any other is news, and not for here.
        Raises what ``Track.begin`` raises.
        """
        if not self._parser.checksums:
            return None
        try:
            first = at + 1
            if raw[first][_TYPE_AT] == events.QUERY:
                if not _is_begin(raw[first]):
                    return None
                first += 1
            last, runs = self._runs(raw, first, announced)
            if not runs:
                return None
            opening = self._track.begin(self._parser.parse(raw[at]))
        except _OTHER_FORM:
            return None
        if opening.known or opening.prepared:
            return None
        timestamp_s, end = _TIME_AND_END.unpack_from(raw[last])
        position = self._track.ending(end)
        self._track.end(end)
        return last + 1, _new(
            TransactionPart, (opening.id, position, timestamp_s * 1_000_000, 0, tuple(runs), True)
        )

    def _runs(self, raw: Sequence[bytes], at: int, announced: Container[int]) -> tuple[int, list[ChangeRun]]:
        """Where XID stands, and the changes before it; no changes if something is in the way."""
        runs: list[ChangeRun] = []
        table: LoggedTable | None = None
        number = b""
        rows = 0
        while crc32(event := raw[at]) == CRC_OF_WHOLE and rows < _MOST_ROWS:
            kind = event[_TYPE_AT]
            if kind == events.TABLE_MAP:
                number, table = event[_NUMBER], self._tables.known(event[_SHAPE])
                if id(table) not in announced:
                    break
            elif kind in events.ROWS:
                if table is None or event[_NUMBER] != number:
                    break
                body = event[_BODY]
                items, size = (
                    table.codec.cut(body, whole_images_at(kind, body, table), OPERATIONS[kind]),
                    len(body),
                )
                rows += len(items)
                if runs and runs[-1][0] is table.codec:
                    _, before, more = runs.pop()
                    items, size = [*before, *items], size + more
                runs.append(_new(ChangeRun, (table.codec, items, size)))
            else:
                return (at, runs) if kind == events.XID and rows else (at, [])
            at += 1
        return at, []


def _is_begin(query: bytes) -> bool:
    """See ``events.is_begin``; of the event with its header and checksum."""
    text_at = HEADER_BYTES + 13 + int.from_bytes(query[30:32], "little") + query[27] + 1
    return query[_BEGIN] == b"\0BEGIN" and text_at == len(query) - 9
