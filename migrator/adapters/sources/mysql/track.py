"""Follows the GTIDs of a MySQL log: a set that grows by one with every transaction."""

from __future__ import annotations

from migrator.adapters.sources.binlog.events import events
from migrator.adapters.sources.binlog.events.events import Event
from migrator.adapters.sources.binlog.place.proof import Proof, proof_text
from migrator.adapters.sources.binlog.place.track import Opening
from migrator.adapters.sources.binlog.place.undecided import NONE, Tokens, Undecided
from migrator.adapters.sources.mysql.gtid_set import GrowingSet, GtidSet, Origin, origin_name
from migrator.adapters.sources.mysql.position import LogPlace, place_text
from migrator.errors import SourceError
from migrator.model.event import TransactionId
from migrator.model.position import Position, position_at

_TYPE_AT = 4
_UUID = slice(events.HEADER_BYTES + 1, events.HEADER_BYTES + 17)
_GNO = slice(events.HEADER_BYTES + 17, events.HEADER_BYTES + 25)
_IMMEDIATE_AT = 42
_TIME_BYTES = 7
_TIMES_FOLLOW = 1 << 55
"""Flag in the time of the commit here: the time of the first commit elsewhere follows."""
_COMMIT_HERE, _FIRST_COMMIT = 6, 7
"""Fields of a tagged GTID event."""


class SetTrack:
    """A ``Track``. ``start`` are the transactions that were read before, ``undecided`` what that place
    remembers."""

    def __init__(self, start: GtidSet, undecided: Undecided = NONE, proof: Proof | None = None):
        self._start = start
        self._tokens = Tokens(undecided, proof)
        self._gtids = GrowingSet(start)
        self._file = ""
        self._offset = 0
        self._position = LogPlace(start, undecided=undecided, proof=proof).position()
        self._ending: Position | None = None
        self._open: tuple[Origin, int] | None = None
        self._origins: dict[bytes, Origin] = {}
        self._names: dict[Origin, str] = {}
        self._latest: tuple[bytes, Origin] = b"", (0, "")
        self.committed_us = 0

    def _plain(self, body: bytes) -> tuple[Origin, int]:
        """GTID event: flags, 16 bytes UUID, 8 bytes number."""
        uuid = body[1:17]
        origin = self._origins.get(uuid)
        if origin is None:
            origin = self._origins[uuid] = int.from_bytes(uuid, "big"), ""
        self._latest = uuid, origin
        return origin, int.from_bytes(body[17:25], "little")

    def _name(self, origin: Origin, number: int) -> str:
        name = self._names.get(origin)
        if name is None:
            name = self._names[origin] = origin_name(origin)
        return f"GTID {name}:{number}"

    def begin(self, event: Event) -> Opening:
        """A GTID event came; see ``Track``."""
        if event.type == events.MYSQL_ANONYMOUS_GTID:
            raise SourceError(
                "the log holds a transaction without a GTID",
                cause="gtid_mode was not ON when it was written",
                remedy="SET GLOBAL gtid_mode = ON (in its steps), then start the migration anew"
                " (docs/how-to/start-anew.md)",
            )
        tagged = event.type == events.MYSQL_TAGGED_GTID
        if tagged:
            origin, number, self.committed_us = _tagged(event.body)
        else:
            origin, number = self._plain(event.body)
            self.committed_us = _committed_us(event.body)
        self._open, self._ending = None, None
        if self._gtids.is_next(origin, number):  # so it is in neither set
            self._open = origin, number
            return Opening(self._name(origin, number), transaction_id(origin, number), begun=False)
        name, known = self._name(origin, number), (origin, number) in self._start
        if known:
            return Opening(name, transaction_id(origin, number), begun=False, known=True)
        if (origin, number) in self._gtids:
            raise SourceError(
                "a GTID came twice in the log",
                cause=name,
                remedy="RESET BINARY LOGS AND GTIDS or gtid_purged was misused on the source; "
                "start the migration anew (docs/how-to/start-anew.md)",
            )
        self._open = origin, number
        return Opening(name, transaction_id(origin, number), begun=False)

    def begin_next(self, raw: bytes) -> TransactionId | None:
        """See ``Track``."""
        uuid, origin = self._latest
        if raw[_TYPE_AT] != events.MYSQL_GTID or raw[_UUID] != uuid:
            return None
        number = int.from_bytes(raw[_GNO], "little")
        if not self._gtids.is_next(origin, number):
            return None
        self._open, self._ending = (origin, number), None
        self.committed_us = _committed_us(raw, events.HEADER_BYTES)
        return origin[0], 0, number

    def before(self) -> str:
        """The GTIDs before the open transaction, as the server writes them."""
        return str(self._gtids)

    def remember(self, undecided: Undecided) -> None:
        """Makes all later positions carry these undecided XA transactions."""
        self._tokens.remember(undecided)

    def served_by(self, server: str) -> None:
        """The log is that of the server with this mark."""
        self._tokens.served_by(server)

    def in_file(self, name: str) -> None:
        """The events that follow are in this file."""
        self._file = name
        self._tokens.in_file(name)

    def ending(self, offset: int) -> Position:
        """The position of the open transaction, which ends at ``offset`` of the file."""
        if self._open is not None:
            self._add(*self._open)
            self._open = None
        if self._ending is None:
            self._ending = Position(self._gtids.count, self._tokens.token(str(self._gtids), offset))
        return self._ending

    def _add(self, origin: Origin, number: int) -> None:
        self._gtids.add(origin, number)
        name = self._names.get(origin)
        if name is None:
            name = self._names[origin] = origin_name(origin)
        self._tokens.last(proof_text(f"{name}:{number}", self.committed_us))

    def end(self, offset: int) -> None:
        """The open transaction ended there."""
        self._position, self._offset = self.ending(offset), offset
        self._ending = None

    def ended(self, offset: int) -> Position:
        """See ``Track``."""
        gtids = self._gtids
        if self._open is not None:
            self._add(*self._open)
        self._open = self._ending = None
        self._position = position_at(gtids.count, self._tokens.token(str(gtids), offset))
        self._offset = offset
        return self._position

    def position(self) -> Position:
        """The end of the last finished transaction."""
        return self._position

    def place(self) -> str:
        """The same in words."""
        return place_text(str(self._gtids), self._file, self._offset)


def transaction_id(origin: Origin, number: int) -> TransactionId:
    """Returns the transaction's id as a witness takes it."""
    return (origin[0], int.from_bytes(origin[1].encode(), "big"), number)


def proof_of(event: Event) -> Proof | None:
    """Returns what a GTID event tells of its transaction, wherever the event stands; None without a GTID."""
    if event.type == events.MYSQL_TAGGED_GTID:
        origin, number, committed_us = _tagged(event.body)
    elif event.type == events.MYSQL_GTID:
        origin, number = (
            (int.from_bytes(event.body[1:17], "big"), ""),
            int.from_bytes(event.body[17:25], "little"),
        )
        committed_us = _committed_us(event.body)
    else:
        return None
    return Proof(f"{origin_name(origin)}:{number}", committed_us)


def _committed_us(event: bytes, body_at: int = 0) -> int:
    """Reads from a GTID event when its transaction was committed first (mysql::binlog::event::Gtid_event).

    Behind the number: a type, two logical times of 8 bytes, the time of the commit in this log, of 7 bytes,
    and on a replica the one on the first server, which is what the headers' seconds are of, too; 0: that
    server didn't know.
    """
    at = body_at + _IMMEDIATE_AT
    here_us = int.from_bytes(event[at : at + _TIME_BYTES], "little")
    if here_us < _TIMES_FOLLOW:
        return here_us
    at += _TIME_BYTES
    return int.from_bytes(event[at : at + _TIME_BYTES], "little")


def _tagged(body: bytes) -> tuple[Origin, int, int]:
    """Tagged GTID event: numbered fields in MySQL's serialization format (mysql/serialization); and its time.

    Times as in ``_committed_us``: field 6 here, then 7 where another server was the first.
    """
    reader = _Fields(body)
    reader.number()  # version of the format
    reader.number()  # size
    reader.number()  # last field that may not be skipped
    for wanted in range(4):
        if reader.number() != wanted:
            raise ValueError(f"field {wanted} of a tagged GTID event is missing")
        if wanted == 0:
            reader.number()  # flags
        elif wanted == 1:
            uuid = bytes(reader.number() for _ in range(16))
        elif wanted == 2:
            number = reader.number() >> 1  # the lowest bit is the sign
        else:
            tag = reader.take(reader.number()).decode()
    committed_us = 0
    while reader.more() and (name := reader.number()) <= _FIRST_COMMIT:
        value = reader.number()
        if name >= _COMMIT_HERE:
            committed_us = value
    return (int.from_bytes(uuid, "big"), tag), number, committed_us


class _Fields:
    """Numbers of one to nine bytes: as many ones at the end of the first byte as bytes follow it."""

    def __init__(self, data: bytes):
        self._data = data
        self._at = 0

    def number(self) -> int:
        first = self._data[self._at]
        more = (~first & (first + 1)).bit_length() - 1 if first != 0xFF else 8
        value = int.from_bytes(self.take(more + 1), "little")
        return value >> more + 1 if more < 8 else value >> 8

    def more(self) -> bool:
        return self._at < len(self._data)

    def take(self, size: int) -> bytes:
        piece = self._data[self._at : self._at + size]
        if len(piece) != size:
            raise IndexError("the event ends too early")
        self._at += size
        return piece
