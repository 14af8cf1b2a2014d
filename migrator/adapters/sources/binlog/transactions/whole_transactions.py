"""Transactions that are nothing but rows, taken in one go when all their events are at hand.

Most of a log is GTID, BEGIN, TABLE_MAP, rows, XID. The state machine of ``transactions`` goes through that event by
event, ready for anything; here the events are looked at where they lie, and rows of tables that nobody captures
aren't looked at beyond their checksum. What is not exactly of this form is left to the state machine, from its GTID
event on, and so is everything that is damaged: this module refuses nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Sequence
from zlib import crc32

from migrator.adapters.sources.binlog.events import events
from migrator.adapters.sources.binlog.events.events import (
    CHECKSUM_BYTES,
    CRC_OF_WHOLE,
    HEADER_BYTES,
    Event,
    EventParser,
)
from migrator.adapters.sources.binlog.place.track import Track
from migrator.adapters.sources.binlog.rows.row_forms import HEAD_AT
from migrator.adapters.sources.binlog.tables.captured_tables import CapturedTables, LoggedTable
from migrator.adapters.sources.binlog.tables.row_events import items_of
from migrator.adapters.sources.binlog.transactions.own_rows import OwnRows
from migrator.model.event import ChangeRun, TransactionPart

_TYPE_AT = 4
_NUMBER = slice(HEADER_BYTES, HEADER_BYTES + 6)
_SHAPE = slice(HEADER_BYTES + 6, -4)
_BODY = slice(HEADER_BYTES, -4)
_AROUND_BODY = HEADER_BYTES + CHECKSUM_BYTES
_BEGIN = slice(-10, -4)
_TEXT_OF_QUERY = slice(HEADER_BYTES + 8, -4)
"""The text and the lengths before it: what stands in front of them is the session's number and a time."""
_TIME_AND_END = struct.Struct("<I9xI")
"""The time of an event, and where in its file it ends."""
_MOST_ROWS = 100
"""Rows of a transaction; an event of a table that nobody captures counts as one.
In a larger transaction the events are not what costs, and its end may not have arrived."""
_OTHER_FORM = (IndexError, ValueError, struct.error)
"""Errors of a transaction that goes on in what hasn't arrived yet, or has bytes that make no sense."""
_new = tuple.__new__
"""Half the time of calling the class."""


class WholeTransactions:
    """Takes them out of raw events.

    Args:
        parser: of the stream; knows whether events have checksums.
        track: follows the GTIDs.
        tables: the captured tables.
        own: our own tables, whose rows are the state machine's.
    """

    def __init__(self, parser: EventParser, track: Track, tables: CapturedTables, own: OwnRows):
        self._parser = parser
        self._track = track
        self._tables = tables
        self._own = own
        self._begin = b""

    def taken(
        self, raw: Sequence[bytes], at: int, announced: Container[int], most_rows: int
    ) -> tuple[int, list[TransactionPart], int, bool]:
        """Transactions from ``at`` on, as long as they are of that form and have fewer than ``most_rows`` changes.

        Gives the place behind them, those with changes, how many changes, and whether the last transaction
        had none.
        ``announced``: ids of the layouts that are the latest of their tables; any other is news, and not for here.
        Raises what ``Track.begin`` raises.
        """
        parts: list[TransactionPart] = []
        rows, nothing = 0, False
        if not self._parser.checksums:
            return at, parts, rows, nothing
        while rows < most_rows:
            try:
                found = self._one(raw, at, announced)
            except _OTHER_FORM:
                break
            if found is None:
                break
            at, part, size = found
            nothing = part is None
            if part is not None:
                parts.append(part)
                rows += size
        return at, parts, rows, nothing

    def _one(
        self, raw: Sequence[bytes], at: int, announced: Container[int]
    ) -> tuple[int, TransactionPart | None, int] | None:
        """The place behind the transaction at ``at``, the transaction if it has changes, and how many."""
        first = at + 1
        begin = raw[first]
        if begin[_TYPE_AT] == events.QUERY:
            text = begin[_TEXT_OF_QUERY]  # the same in all transactions of a session, mostly in all of a log
            if text != self._begin:
                if not _is_begin(begin):
                    return None
                self._begin = text
            if crc32(begin) != CRC_OF_WHOLE:
                return None
            first += 1
        found = self._runs(raw, first, announced)
        gtid = raw[at]
        if found is None or crc32(gtid) != CRC_OF_WHOLE:
            return None
        last, runs, rows = found
        transaction = self._track.begin_next(gtid)
        if transaction is None:
            opening = self._track.begin(self._parser.parse(gtid))
            if opening.known or opening.prepared:
                return None
            transaction = opening.id
        timestamp_s, end = _TIME_AND_END.unpack_from(raw[last])
        if not runs:
            self._track.ended(end)
            return last + 1, None, 0
        at_us = self._track.committed_us or timestamp_s * 1_000_000
        part = (transaction, self._track.ended(end), at_us, 0, tuple(runs), True, False)
        return last + 1, _new(TransactionPart, part), rows

    def _runs(
        self, raw: Sequence[bytes], at: int, announced: Container[int]
    ) -> tuple[int, list[ChangeRun], int] | None:
        """Returns where XID stands, the changes before it, and their number; None if something is in the way."""
        runs: list[ChangeRun] = []
        table: LoggedTable | None = None
        number = b""
        rows = passed = 0
        while crc32(event := raw[at]) == CRC_OF_WHOLE and rows + passed < _MOST_ROWS:
            kind = event[_TYPE_AT]
            if kind == events.TABLE_MAP:
                number, table = event[_NUMBER], self._tables.known(event[_SHAPE])
                if not self._passes(event) if table is None else id(table) not in announced:
                    break
            elif kind == events.XID:
                return at, runs, rows
            elif kind not in events.ROWS or event[_NUMBER] != number:
                break
            elif table is None:
                passed += 1
            else:
                items, size = self._items(event, kind, table), len(event) - _AROUND_BODY
                rows += len(items)
                if runs and runs[-1][0] is table.codec:
                    _, before, more = runs.pop()
                    items, size = [*before, *items], size + more
                runs.append(_new(ChangeRun, (table.codec, items, size)))
            at += 1
        return None

    def _passes(self, table_map: bytes) -> bool:
        """Returns whether it is of a table that came by before, with neither rows nor marks that are wanted."""
        return self._tables.is_nobodys(table_map[_SHAPE]) and not self._own.has(table_map[_BODY])

    @staticmethod
    def _items(event: bytes, kind: int, table: LoggedTable) -> list[bytes]:
        form = table.forms[kind]
        if event.startswith(form.head, HEAD_AT):
            only = table.codec.only(event, len(event) - CHECKSUM_BYTES, form)
            if only is not None:
                return [only]
        codec, items = items_of(Event(kind, 0, 0, 0, 0, event[_BODY]), table)
        if codec is not table.codec:
            raise ValueError("images without columns that nobody wants are another form")
        return items


def _is_begin(query: bytes) -> bool:
    """See ``events.is_begin``; of the event with its header and checksum."""
    text_at = HEADER_BYTES + 13 + int.from_bytes(query[30:32], "little") + query[27] + 1
    return query[_BEGIN] == b"\0BEGIN" and text_at == len(query) - 9
