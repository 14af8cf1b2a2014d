"""Places in a MariaDB binary log.

A GTID is ``domain-server-sequence``. A GTID state holds the last GTID of every domain. Along one log each
transaction replaces exactly one of them by one of the same domain with a higher sequence number (the log reader
refuses anything else), so the SUM of the sequence numbers over all domains rises strictly from transaction to
transaction, and two places in one log compare as their sums do, even when several domains interleave or a new one
appears (from nothing to its first number). Sums of different logs mean nothing to each other; nobody compares them.

MariaDB: "Global Transaction ID", mariadb.com/kb/en/gtid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from migrator.adapters.sources.binlog.place.proof import Proof, proof_of
from migrator.adapters.sources.binlog.place.undecided import NONE, Undecided, token, undecided_of
from migrator.errors import SourceError
from migrator.model.position import Position

_GTID = re.compile(r"(\d+)-(\d+)-(\d+)")


class Gtid(NamedTuple):
    """A global transaction id."""

    domain: int
    server: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.domain}-{self.server}-{self.sequence}"


@dataclass(frozen=True, slots=True)
class LogPlace:
    """A parsed position: GTID state, and binlog file and offset of the transaction's end ("" and 0 if unknown).

    ``server``: mark of the server that has the file (``server_mark``); parsed places leave it out.
    """

    gtids: Mapping[int, Gtid]
    file: str
    offset: int
    undecided: Undecided = NONE
    proof: Proof | None = None
    server: str = ""

    def position(self) -> Position:
        """The place as the rest of the program sees it."""
        order = sum(gtid.sequence for gtid in self.gtids.values())
        text = gtid_text(self.gtids)
        return Position(order, token(text, self.file, self.offset, self.undecided, self.proof, self.server))

    def read_from(self) -> Mapping[int, Gtid]:
        """The GTID state to ask the server for."""
        text = self.undecided.read_from
        return self.gtids if text is None else parse_gtids(text)

    def __str__(self) -> str:
        place = f" ({self.file}:{self.offset})" if self.file else ""
        return f"GTID {gtid_text(self.gtids) or 'none'}{place}"


def gtid_text(gtids: Mapping[int, Gtid]) -> str:
    """A GTID state as the server writes it."""
    return ",".join(str(gtids[domain]) for domain in sorted(gtids))


def parse_gtids(text: str) -> dict[int, Gtid]:
    """A GTID state from the server's text. Raises ``SourceError`` for anything else."""
    gtids: dict[int, Gtid] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        found = _GTID.fullmatch(part)
        if found is None:
            raise SourceError(
                "a GTID state can't be read",
                where=text[:200],
                remedy="the event log belongs to another source; use another `state` directory",
            )
        gtid = Gtid(int(found[1]), int(found[2]), int(found[3]))
        gtids[gtid.domain] = gtid
    return gtids


def parse_position(position: Position) -> LogPlace:
    """The place a position's token holds. Raises ``SourceError`` for a token of another kind of source."""
    try:
        parts = json.loads(position.token)
        place = parse_gtids(parts["gtid"]), str(parts["file"]), int(parts["offset"])
        return LogPlace(*place, undecided_of(parts), proof_of(parts))
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(
            "a stored position is no MariaDB position",
            where=position.token[:200],
            cause=str(error),
            remedy="the event log belongs to another source; use another `state` directory",
        ) from error


def file_number(file: str) -> int:
    """The running number of a binlog file: ``binlog.000012`` -> 12. Raises ``SourceError``."""
    suffix = file.rpartition(".")[2]
    if not suffix.isdigit():
        raise SourceError("a binlog file has no running number", where=file, remedy="check log_bin_basename")
    return int(suffix)


def last_of(place: LogPlace) -> tuple[Gtid | None, Gtid | None]:
    """The last transaction before a place, and the one before it in its domain; None where there is none.

    A place that doesn't tell: the one with the highest number, if it is the next one of its server.
    """
    if place.proof is not None:
        (named,) = parse_gtids(place.proof.gtid).values()
        return named, next(iter(parse_gtids(place.proof.before).values()), None)
    last = max(place.gtids.values(), key=lambda gtid: gtid.sequence, default=None)
    if last is None or last.sequence < 2:
        return last, None
    return last, last._replace(sequence=last.sequence - 1)
