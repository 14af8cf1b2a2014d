"""XA transactions of the log between their XA PREPARE and their outcome.

Why this exists: both engines log the rows at XA PREPARE, when nobody can say whether they will ever be
committed. To deliver them there would be a phantom, and for good if XA ROLLBACK follows. So the raw events
are held until the outcome comes by: at XA COMMIT they are replayed, as changes of the transaction that the XA
COMMIT is in the log; at XA ROLLBACK they are dropped.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator

from migrator.adapters.sources.binlog.events.events import Event
from migrator.adapters.sources.binlog.place.undecided import Undecided, Xid, xid_text

SPOOL_BYTES = 1 << 20
"""Bytes of one transaction that are held in memory; what is larger lies in a temporary file."""
_HEAD = struct.Struct("<BIIHQ")


class HeldTransaction:
    """The raw events of a transaction, in their order.

    Args:
        before: the GTIDs before it, as the server writes them.
    """

    def __init__(self, before: str):
        self.before = before
        self.has_rows = False
        self._captured: dict[int, bool] = {}
        self._events = tempfile.SpooledTemporaryFile(SPOOL_BYTES, prefix="migrator-xa-")  # noqa: SIM115

    def table(self, event: Event, captured: bool) -> None:
        """A TABLE_MAP event, and whether its table is captured: only then it is held, and its rows are."""
        self._captured[_table_number(event)] = captured
        if captured:
            self._add(event)

    def rows(self, event: Event) -> None:
        """A row event. Raises ``KeyError`` when no TABLE_MAP announced its table."""
        if self._captured[_table_number(event)]:
            self.has_rows = True
            self._add(event)

    def statement(self, event: Event, refused: bool) -> None:
        """A statement: one that can't be carried on counts as captured rows, and stops the reader once it
        counts."""
        self.has_rows |= refused
        self._add(event)

    def _add(self, event: Event) -> None:
        head = _HEAD.pack(event.type, event.timestamp_s, event.server, event.flags, len(event.body))
        self._events.write(head + event.body)

    def replay(self, outcome: Event) -> Iterator[Event]:
        """The events, ending where the event of their outcome ends; afterwards nothing is held any longer."""
        self._events.seek(0)
        while head := self._events.read(_HEAD.size):
            kind, _, server, flags, size = _HEAD.unpack(head)
            yield Event(kind, outcome.timestamp_s, server, outcome.end, flags, self._events.read(size))
        self.forget()

    def forget(self) -> None:
        """Releases memory and file."""
        self._events.close()


def _table_number(event: Event) -> int:
    return int.from_bytes(event.body[:6], "little")


class PreparedTransactions:
    """The XA transactions whose outcome hasn't come by.

    Args:
        known: what the place that reading begins at remembers of them.

    Attributes:
        again: whether what comes by again may be one of them; else it is only passed over.
    """

    def __init__(self, known: Undecided):
        self._looking_back = known.read_from
        self.again = known.read_from is not None
        self._foreign = dict.fromkeys(known.foreign)
        self._held: dict[str, HeldTransaction] = {}

    def begin(self, before: str) -> HeldTransaction:
        """A transaction begins that might be prepared; ``before``: the GTIDs before it."""
        return HeldTransaction(before if self._looking_back is None else self._looking_back)

    def looked_back(self) -> bool:
        """Everything up to the start came by (again). Whether that is news."""
        news, self._looking_back = self._looking_back is not None, None
        return news

    def prepared(self, xid: Xid, held: HeldTransaction) -> None:
        """XA PREPARE. One of the same id whose outcome never came was lost in a crash of the server."""
        lost = self.take(xid)
        if lost is not None:
            lost.forget()
        if held.has_rows:
            self._held[xid_text(xid)] = held
        else:
            held.forget()
            self._foreign[xid_text(xid)] = None

    def take(self, xid: Xid) -> HeldTransaction | None:
        """The outcome came by: gives the rows up; None when there are none. See ``knows``."""
        name = xid_text(xid)
        self._foreign.pop(name, None)
        return self._held.pop(name, None)

    def knows(self, xid: Xid) -> bool:
        """Returns whether the XA PREPARE of this transaction came by."""
        return xid_text(xid) in self._held or xid_text(xid) in self._foreign

    def undecided(self) -> Undecided:
        """Returns what a place to resume from has to remember."""
        first = next((held.before for held in self._held.values()), None)
        return Undecided(first if self._looking_back is None else self._looking_back, tuple(self._foreign))

    def close(self) -> None:
        """Releases everything held."""
        for held in self._held.values():
            held.forget()
        self._held.clear()
