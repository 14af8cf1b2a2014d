"""Follows the GTIDs of a MariaDB log: one state, in which each transaction replaces the last GTID of its domain."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from migrator.adapters.mariadb.position import Gtid, LogPlace, file_number
from migrator.binlog.events import Event
from migrator.binlog.track import Opening
from migrator.errors import SourceError
from migrator.model.position import Position

_STANDALONE, _PREPARED_XA, _COMPLETED_XA = 1, 64, 128


class DomainTrack:
    """A ``Track``. ``start`` is the GTID state to begin after."""

    def __init__(self, start: Mapping[int, Gtid]):
        self._start = dict(start)
        self._gtids = dict(start)
        self._file = ""
        self._offset = 0
        self._open: Gtid | None = None

    def begin(self, event: Event) -> Opening | None:
        """A GTID event came; see ``Track``."""
        sequence, domain, flags = struct.unpack_from("<QIB", event.body)
        gtid = Gtid(domain, event.server, sequence)
        began, last = self._start.get(domain), self._gtids.get(domain)
        if began is not None and sequence <= began.sequence:
            return None
        if last is not None and sequence <= last.sequence:
            raise SourceError(
                "the log's GTIDs are out of order",
                cause=f"{gtid} follows {last}",
                remedy="SET GLOBAL gtid_strict_mode = ON on the source, then start a new dump",
            )
        self._open = gtid
        return Opening(
            name=f"GTID {gtid}",
            id=(file_number(self._file), event.end),
            begun=not flags & _STANDALONE,
            prepared=bool(flags & _PREPARED_XA),
            completed=bool(flags & _COMPLETED_XA),
        )

    def in_file(self, name: str) -> None:
        """The events that follow are in this file."""
        self._file = name

    def ending(self, offset: int) -> Position:
        """The position of the open transaction, which ends at ``offset`` of the file."""
        gtids = {**self._gtids, self._open.domain: self._open} if self._open is not None else self._gtids
        return LogPlace(gtids, self._file, offset).position()

    def end(self, offset: int) -> None:
        """The open transaction ended there."""
        if self._open is not None:
            self._gtids[self._open.domain] = self._open
        self._open, self._offset = None, offset

    def position(self) -> Position:
        """The end of the last finished transaction."""
        return LogPlace(self._gtids, self._file, self._offset).position()

    def place(self) -> str:
        """The same in words."""
        return str(LogPlace(self._gtids, self._file, self._offset))
