"""XA transactions whose outcome isn't known: their ids, and what a place in the log must remember of them.

XA PREPARE writes a transaction's rows to the log; XA COMMIT or XA ROLLBACK decides about them later, maybe much
later. So a place to resume from has two sides: ``gtid`` says what was delivered, ``from`` where reading must begin
again so that the rows of every undecided transaction come by once more.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pymysql

from migrator.adapters.sources.binlog.place.proof import Proof, proof_of
from migrator.connections.mysql.sql import query
from migrator.model.position import Position

Xid = tuple[int, bytes, bytes]
"""Format id, global transaction id, branch qualifier."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """The undecided XA transactions that a place in the log remembers.

    Attributes:
        read_from: the GTIDs before the first undecided transaction with captured rows, as the server writes them;
            None where reading may begin at the place itself.
        foreign: ids of undecided transactions without captured rows, as ``xid_text`` gives them.
        cascades: the digest of what ``cascade_guard`` watches there; None where that isn't known.
    """

    read_from: str | None = None
    foreign: tuple[str, ...] = ()
    cascades: str | None = None


NONE = Undecided()
_MAY_NOT_RECOVER = 1401


def server_mark(name: str) -> str:
    """A short mark of a server, by its name: file and offset of a place mean nothing on another one."""
    return hashlib.blake2b(name.encode(), digest_size=4).hexdigest()


def token(
    gtids: str,
    file: str,
    offset: int,
    undecided: Undecided = NONE,
    proof: Proof | None = None,
    server: str = "",
) -> str:
    """The token of a position; ``server``: the mark of the one whose log has the file, empty if unknown."""
    parts: dict[str, Any] = {"gtid": gtids, "file": file, "offset": offset}
    parts |= {"server": server} if server else {}
    if proof is not None:
        parts |= {"last": proof.gtid, "at": proof.at}
        parts |= {"before": proof.before} if proof.before else {}
    if undecided.read_from is not None:
        parts["from"] = undecided.read_from
    if undecided.foreign:
        parts["foreign"] = list(undecided.foreign)
    if undecided.cascades is not None:
        parts["cascades"] = undecided.cascades
    return json.dumps(parts)


class Tokens:
    """Makes the tokens of one place after the other: what stays the same between them is written once."""

    def __init__(self, undecided: Undecided, proof: Proof | None = None):
        self._last = "" if proof is None else proof.text()
        self._server = ""
        self.in_file("")
        self.remember(undecided)

    def served_by(self, server: str) -> None:
        """The files that follow are of the server with this mark."""
        self._server = f', "server": "{server}"'

    def in_file(self, file: str) -> None:
        """The places that follow are in this file."""
        self._file = f', "file": {json.dumps(file)}{self._server if file else ""}, "offset": '

    def remember(self, undecided: Undecided) -> None:
        """The places that follow remember this."""
        self._more = token("", "", 0, undecided).removeprefix('{"gtid": "", "file": "", "offset": 0')

    def last(self, text: str) -> None:
        """The places that follow tell of this transaction (``proof_text``)."""
        self._last = text

    def token(self, gtids: str, offset: int) -> str:
        """Returns what the function of this name does; GTIDs have no character that JSON escapes."""
        return f'{{"gtid": "{gtids}"{self._file}{offset}{self._last}{self._more}'


def undecided_of(parts: Mapping[str, Any]) -> Undecided:
    """Reads the undecided transactions from a token's document. Raises ``TypeError``."""
    read_from = parts.get("from")
    foreign = tuple(parts.get("foreign", ()))
    return Undecided(None if read_from is None else str(read_from), foreign, parts.get("cascades"))


def looking_back(begin: Position, before: Position) -> Position:
    """``begin``, with reading to begin at ``before`` for the sake of undecided transactions."""
    earlier = json.loads(before.token)["gtid"]
    same = json.loads(begin.token)["gtid"] == earlier
    return begin if same else remembering(begin, Undecided(earlier))


def remembering(place: Position, undecided: Undecided) -> Position:
    """The place, remembering this."""
    parts = json.loads(place.token)
    at = parts["gtid"], parts["file"], parts["offset"]
    return Position(place.order, token(*at, undecided, proof_of(parts), parts.get("server", "")))


def prepared_now(connection: Any) -> frozenset[str] | None:
    """The XA transactions that are prepared now; None where the user may not know (MySQL: XA_RECOVER_ADMIN)."""
    try:
        rows = query(connection, "XA RECOVER")
    except pymysql.err.MySQLError as error:
        if error.args and error.args[0] == _MAY_NOT_RECOVER:
            return None
        raise
    return frozenset(xid_text(_xid_of_row(*row)) for row in rows)


def _xid_of_row(format_id: int, gtrid: int, bqual: int, data: bytes | str) -> Xid:
    # the driver takes MySQL's column for text; what no text has comes as bytes
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape")
    return format_id, raw[:gtrid], raw[gtrid : gtrid + bqual]


def xid_of_event(body: bytes) -> Xid:
    """The id in an XA_PREPARE event. Raises ``struct.error``."""
    format_id, gtrid, bqual = struct.unpack_from("<Iii", body, 1)
    data = body[13 : 13 + gtrid + bqual]
    return format_id, data[:gtrid], data[gtrid:]


def xid_of_statement(words: str) -> Xid:
    """The id as the log's XA statements spell it: ``X'6162',X'',1``. Raises ``ValueError``."""
    gtrid, bqual, format_id = words.replace(" ", "").split(",")
    return int(format_id), bytes.fromhex(gtrid[2:-1]), bytes.fromhex(bqual[2:-1])


def xid_text(xid: Xid) -> str:
    """The id as XA COMMIT takes it."""
    format_id, gtrid, bqual = xid
    return f"X'{gtrid.hex()}',X'{bqual.hex()}',{format_id}"


def xid_number(xid: str) -> int:
    """A number for an id of ``xid_text``; two ids may share one."""
    digest = hashlib.blake2b(xid.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")
