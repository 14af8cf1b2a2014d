"""Proves that the log at a place is the log that was read up to there.

A server that is put back to a copy of its disk has the same system identifier and timeline. Written to again,
it soon reaches the place where reading stopped, which then lies in the middle of other transactions. So a
position names the last transaction with captured changes (xid, start of its commit record, time of the
commit), and reading begins with it once more: the slot is acknowledged up to its commit record only, until
the log has gone on behind it.

Once it has, that transaction can't be asked for. Then the slot itself is the proof, as it lies on the same disk: a
copy made before the slot was acknowledged says so, because its slot goes back further. Everything behind the slot's
place is read again; up to the place to go on from there must be the named transaction if it lies there, and
no other.
"""

from __future__ import annotations

from dataclasses import dataclass

from migrator.adapters.sources.postgres.log.server_log import History, ServerLog
from migrator.adapters.sources.postgres.lsn import format_lsn, parse_lsn, token_parts
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.errors import GapError, SourceError
from migrator.model.position import Position

_MARK = "#"


@dataclass(frozen=True, slots=True)
class LastChange:
    """The last transaction with captured changes: xid, start of its commit record, commit time (us since 1970)."""

    xid: int
    lsn: int
    committed_us: int

    def __str__(self) -> str:
        return f"{self.xid},{format_lsn(self.lsn)},{self.committed_us}"


def named(position: Position) -> tuple[bool, LastChange | None]:
    """Returns whether a position has a mark of the last transaction, and that transaction.

    Positions of earlier versions have neither. Raises ``SourceError``.
    """
    _, mark, text = position.token.partition(_MARK)
    if not text:
        return bool(mark), None
    try:
        xid, lsn, committed_us = text.split(",")
        return True, LastChange(int(xid), parse_lsn(lsn), int(committed_us))
    except ValueError as error:
        raise SourceError(f"{position.token!r} is no position of ours", cause=str(error)) from error


def durable_lsn(position: Position) -> int:
    """Returns up to where the server may forget its log once this position is durable: not the transaction that it
    names."""
    lsn, _ = token_parts(position)
    _, last = named(position)
    return last.lsn if last is not None and last.lsn == position.order else lsn


def checked_start(
    source: PostgresSource, start: Position, confirmed: int, log: ServerLog, history: History
) -> int:
    """The LSN of a position, if the server's log holds it. Raises ``GapError``.

    The server would silently skip to ``confirmed`` if asked for less: a gap.
    """
    lsn, label = token_parts(start)
    problem, place = log.misses(label, lsn, history), f"the position is {format_lsn(lsn)}, but"
    if not problem and lsn < confirmed:
        problem = f"{place} the slot only goes back to {format_lsn(confirmed)}"
    elif not problem and lsn > log.flushed and start.order >= log.flushed:
        problem = f"{place} the server's log ends at {format_lsn(log.flushed)}"
    if problem:
        raise GapError(
            "the source log doesn't hold the position that is needed",
            where=f"slot {source.slot} at {source.server.address}",
            cause=problem,
            remedy="check that this is the same server as before, and that no event log which leads on was moved away"
            " or is on another machine; else start the migration anew (docs/how-to/start-anew.md)",
        )
    return lsn


class LogProof:
    """Watches the transactions that were read before go by once more, and names the last one in positions.

    Args:
        source: for messages.
        after: the place to go on from; None where reading begins at the slot's place.
        confirmed: where the slot goes back to.

    Attributes:
        begin: the LSN to read from.
        open: whether the proof is still to come; nothing that was read may be handed out meanwhile.
    """

    def __init__(self, source: PostgresSource, after: Position | None, confirmed: int):
        self._source = source
        self._tells, self._last = (True, None) if after is None else named(after)
        lsn = confirmed if after is None else token_parts(after)[0]
        last = self._last.lsn if self._last is not None else 0
        self._order = -1 if after is None else after.order
        self._expected = self._last if last >= confirmed else None
        self.begin = max(confirmed, last) if self._tells else lsn
        self.open = self._tells and (self._expected is not None or confirmed < lsn)

    def naming(self, position: Position) -> Position:
        """The position, telling of the last transaction with captured changes, or that there was none as yet."""
        if not self._tells:  # an earlier version's place told nothing, and nothing has come since
            return position
        return Position(position.order, f"{position.token}{_MARK}{self._last or ''}")

    def changed(self, change: LastChange) -> None:
        """A transaction with captured changes was read for the first time."""
        self._tells, self._last = True, change

    def known(self, found: LastChange, captured: bool) -> None:
        """A transaction at or before the place came; ``captured``: with captured changes. Raises ``GapError``."""
        if not self.open:
            return
        if found == self._expected:
            self._expected = None
        elif captured:
            self._refuse(f"there is transaction {found.xid} at {format_lsn(found.lsn)}")

    def reached(self, order: int) -> None:
        """The log was read up to here. Raises ``GapError`` when what had to come has not."""
        if self.open and order >= self._order:
            if self._expected is not None:
                self._refuse("it isn't there")
            self.open = False

    def _refuse(self, found: str) -> None:
        last = self._last
        known = "no change of ours"
        if last is not None:
            known = f"transaction {last.xid} at {format_lsn(last.lsn)} as the last one with changes of ours"
        raise GapError(
            "the source's log isn't the log that was read",
            where=f"slot {self._source.slot} at {self._source.server.address}",
            cause=f"up to this place it had {known}, but {found}: the source was put back to an earlier state and"
            " written to since, or this is a copy of it",
            remedy="connect to the server read before, else start the migration anew"
            " (docs/how-to/start-anew.md): the target may have what the restore took back",
        )
