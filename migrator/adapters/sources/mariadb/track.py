"""Follows the GTIDs of a MariaDB log: one state, in which each transaction replaces the last GTID of its domain."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from migrator.adapters.sources.binlog.events import events
from migrator.adapters.sources.binlog.events.events import Event
from migrator.adapters.sources.binlog.place.proof import Proof, proof_text
from migrator.adapters.sources.binlog.place.track import Opening
from migrator.adapters.sources.binlog.place.undecided import (
    NONE,
    Tokens,
    Undecided,
    xid_number,
    xid_text,
)
from migrator.adapters.sources.mariadb.position import Gtid, LogPlace, file_number, gtid_text
from migrator.errors import SourceError
from migrator.model.event import TransactionId
from migrator.model.position import Position, position_at

_STANDALONE, _GROUP_COMMIT, _PREPARED_XA, _COMPLETED_XA = 1, 2, 64, 128
_XID_AT, _XID_AT_AFTER_GROUP = 13, 21
_NOT_PLAIN = _STANDALONE | _PREPARED_XA | _COMPLETED_XA
_HEAD = struct.Struct("<QIB")
_SERVER_AND_END = struct.Struct("<5xI4xI")
_TYPE_AT = 4
_new = tuple.__new__


class DomainTrack:
    """A ``Track``. ``start`` is the GTID state to begin after, ``undecided`` what that place remembers.

    Whoever sets ``gtid_seq_no`` where ``gtid_strict_mode`` is off gives a transaction a number below those
    before it. It isn't one that was read before, and is refused: behind a restart the server couldn't find
    our place.

    MariaDB's GTID event has no time but its header's (seen on 10.11).
    """

    def __init__(self, start: Mapping[int, Gtid], undecided: Undecided = NONE, proof: Proof | None = None):
        self._start = dict(start)
        self._gtids = dict(start)
        self._undecided = undecided
        again = LogPlace(self._start, "", 0, undecided).read_from()
        self._again = {domain for domain, gtid in start.items() if again.get(domain) != gtid}
        self._proof = proof
        self._tokens = Tokens(undecided, proof)
        self._at_s = 0
        self._order = sum(gtid.sequence for gtid in start.values())
        self._others: tuple[int, str, str] | None = None
        self._file = self._server = ""
        self._number: int | None = None
        self._offset = 0
        self._open: Gtid | None = None
        self._ended: tuple[Gtid, int, Gtid | None] | None = None
        self.committed_us = 0

    def begin(self, event: Event) -> Opening:
        """A GTID event came; see ``Track``."""
        sequence, domain, flags = _HEAD.unpack_from(event.body)
        gtid = Gtid(domain, event.server, sequence)
        last = self._gtids.get(domain)
        known = self._is_known(gtid)
        if not known and last is not None and sequence <= last.sequence:
            raise SourceError(
                "the log's GTIDs are out of order",
                cause=f"{gtid} follows {last}",
                remedy="SET GLOBAL gtid_strict_mode = ON on the source, then "
                "start the migration anew (docs/how-to/start-anew.md)",
            )
        self._open, self._at_s = None if known else gtid, event.timestamp_s
        if self._number is None:
            self._number = file_number(self._file)
        place = (self._number, event.end)
        return Opening(
            f"GTID {gtid}",
            (*place, *_xa_number(event.body, flags)) if flags & _COMPLETED_XA else place,
            not flags & _STANDALONE,
            bool(flags & _PREPARED_XA),
            known,
        )

    def _is_known(self, gtid: Gtid) -> bool:
        """Tells whether it was read before: only where the log is read from an earlier place, and up to ours."""
        if gtid.domain not in self._again:
            return False
        began = self._start[gtid.domain]
        if gtid.sequence >= began.sequence:
            self._again.discard(gtid.domain)
        return gtid.sequence <= began.sequence

    def begin_next(self, raw: bytes) -> TransactionId | None:
        """See ``Track``."""
        if raw[_TYPE_AT] != events.MARIADB_GTID:
            return None
        sequence, domain, flags = _HEAD.unpack_from(raw, events.HEADER_BYTES)
        last = self._gtids.get(domain)
        if last is None or sequence <= last.sequence or flags & _NOT_PLAIN:
            return None
        server, end = _SERVER_AND_END.unpack_from(raw)
        self._open, self._at_s = _new(Gtid, (domain, server, sequence)), int.from_bytes(raw[:4], "little")
        if self._number is None:
            self._number = file_number(self._file)
        return self._number, end

    def before(self) -> str:
        """The GTIDs before the open transaction, as the server writes them."""
        return gtid_text(self._gtids)

    def remember(self, undecided: Undecided) -> None:
        """Makes all later positions carry these undecided XA transactions."""
        self._undecided = undecided
        self._tokens.remember(undecided)

    def served_by(self, server: str) -> None:
        """The log is that of the server with this mark."""
        self._server = server
        self._tokens.served_by(server)

    def in_file(self, name: str) -> None:
        """The events that follow are in this file."""
        self._file, self._number = name, None
        self._tokens.in_file(name)

    def ending(self, offset: int) -> Position:
        """The position of the open transaction, which ends at ``offset`` of the file."""
        gtid = self._open
        if gtid is None:
            return position_at(self._order, self._tokens.token(gtid_text(self._gtids), offset))
        if self._others is None or self._others[0] != gtid.domain:
            self._others = _others(self._gtids, gtid.domain)
        last = self._gtids.get(gtid.domain)
        order = self._order + gtid.sequence - (last.sequence if last is not None else 0)
        self._tokens.last(proof_text(str(gtid), self._at_s, "" if last is None else str(last)))
        return position_at(order, self._tokens.token(f"{self._others[1]}{gtid}{self._others[2]}", offset))

    def end(self, offset: int) -> None:
        """The open transaction ended there."""
        gtid = self._open
        if gtid is not None:
            last = self._gtids.get(gtid.domain)
            self._order += gtid.sequence - (last.sequence if last is not None else 0)
            self._gtids[gtid.domain] = gtid
            self._ended = gtid, self._at_s, last
        self._open, self._offset = None, offset

    def ended(self, offset: int) -> Position:
        """See ``Track``."""
        position = self.ending(offset)
        self.end(offset)
        return position

    def position(self) -> Position:
        """The end of the last finished transaction."""
        proof = self._proof
        if self._ended is not None:
            gtid, at_s, before = self._ended
            proof = Proof(str(gtid), at_s, "" if before is None else str(before))
        server = self._server if self._file else ""
        return LogPlace(self._gtids, self._file, self._offset, self._undecided, proof, server).position()

    def place(self) -> str:
        """The same in words."""
        return str(LogPlace(self._gtids, self._file, self._offset))


def proof_of(event: Event) -> Proof | None:
    """Returns what a GTID event tells of its transaction, wherever the event stands; None of other events."""
    if event.type != events.MARIADB_GTID:
        return None
    sequence, domain, _ = _HEAD.unpack_from(event.body)
    return Proof(str(Gtid(domain, event.server, sequence)), event.timestamp_s)


def _others(gtids: Mapping[int, Gtid], domain: int) -> tuple[int, str, str]:
    """A domain, and what stands before and behind its GTID in a state's text: it stays while no other changes."""
    before = "".join(f"{gtids[other]}," for other in sorted(gtids) if other < domain)
    return domain, before, "".join(f",{gtids[other]}" for other in sorted(gtids) if other > domain)


def _xa_number(body: bytes, flags: int) -> tuple[int, ...]:
    """The number of the XA transaction that an XA COMMIT or XA ROLLBACK decides about; nothing for all others."""
    if not flags & _COMPLETED_XA:
        return ()
    at = _XID_AT_AFTER_GROUP if flags & _GROUP_COMMIT else _XID_AT
    format_id, gtrid, bqual = struct.unpack_from("<iBB", body, at)
    data = body[at + 6 : at + 6 + gtrid + bqual]
    return (xid_number(xid_text((format_id, data[:gtrid], data[gtrid:]))),)
