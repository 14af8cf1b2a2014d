"""Places in the order of commits without a log: snapshots.

``pg_current_snapshot()`` says which transactions are visible. Two snapshots of one primary always contain one
another: transactions enter and leave the set of running ones under one lock (``ProcArrayEndTransaction``). So the
number of transaction ids that ended,

    f(S) = xmax - number of running ones below xmax,

orders them: f(S) <= f(T) says that T shows whatever S shows, and f(S) = f(T) that they show the same. (Ids of
subtransactions are never listed as running: they count as ended from the moment they lie below xmax, in every
snapshot.)

Orders of positions are even numbers 2 f(S): everything that S shows was delivered, nothing else. The odd
number after it says the same, and names in its token the snapshot that comes next: a poll that is delivered
in parts must be the same poll when it is read again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from migrator.adapters.sources.postgres.change_tables.same_changes import LastChange
from migrator.adapters.sources.postgres.chunks.witness import SnapshotWitness
from migrator.errors import SourceError
from migrator.model.event import TransactionId
from migrator.model.position import Position


def ended(snapshot: SnapshotWitness) -> int:
    """Counts the transaction ids that ended, as of a snapshot."""
    return snapshot.xmax - len(snapshot.xip)


def text(snapshot: SnapshotWitness) -> str:
    """The snapshot as the server prints it."""
    return f"{snapshot.xmin}:{snapshot.xmax}:{','.join(map(str, sorted(snapshot.xip)))}"


@dataclass(frozen=True, slots=True)
class Server:
    """A server and its life: a promoted standby has the same identifier and another timeline."""

    system: str
    timeline: int


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the order of commits.

    Attributes:
        server: whose snapshots these are.
        at: everything that it shows was delivered.
        to: the poll that is being delivered in parts, if there is one.
        capture: digest of what captures each table (see ``capture_facts``), by the table's name.
        last: the last change that was delivered, or is being delivered (see ``same_changes``); None: the
            place of an
            earlier version, which doesn't tell.
    """

    server: Server
    at: SnapshotWitness
    to: SnapshotWitness | None = None
    capture: Mapping[str, str] = field(default_factory=dict)
    last: LastChange | None = None

    def position(self) -> Position:
        """The place as the core knows it."""
        token: dict[str, object] = {"at": text(self.at)}
        if self.to is not None:
            token["to"] = text(self.to)
        token.update(system=self.server.system, timeline=self.server.timeline)
        if self.capture:
            token["capture"] = dict(self.capture)
        if self.last is not None:
            token["last"] = self.last.parts()
        return Position(2 * ended(self.at) + (self.to is not None), json.dumps(token, separators=(",", ":")))

    def shows(self) -> SnapshotWitness:
        """All that this shows was delivered, or is being delivered."""
        return self.at if self.to is None else self.to

    def forgettable(self) -> int:
        """Changes of transactions below were delivered, and prove nothing any more."""
        if self.last is None or not self.last.table:
            return self.at.xmin
        return min(self.at.xmin, self.last.transaction)

    def reached(self) -> Place:
        """The place once the poll was delivered as a whole."""
        return self if self.to is None else replace(self, at=self.to, to=None)

    @classmethod
    def parse(cls, position: Position) -> Place:
        """Reads a position's token. Raises SourceError if it isn't one of ours."""
        try:
            token = json.loads(position.token)
            server = Server(str(token["system"]), int(token["timeline"]))
            to = SnapshotWitness.parse(token["to"]) if "to" in token else None
            last = LastChange.of(token["last"]) if "last" in token else None
            return cls(server, SnapshotWitness.parse(token["at"]), to, dict(token.get("capture", {})), last)
        except (ValueError, KeyError, TypeError) as error:
            raise SourceError(
                "the position isn't one of change tables",
                where=position.token[:80],
                cause=str(error),
                remedy="source.log can't be changed during a migration: set it back, or start the"
                " migration anew (docs/how-to/start-anew.md)",
            ) from error


@dataclass(frozen=True, slots=True)
class PollWitness:
    """The polls that a read view contains, each of which counts as one transaction with its order as id."""

    order: int

    def contains(self, transaction: TransactionId) -> bool:
        """Tells whether the view shows all of that poll; False also where it shows a part of it."""
        return transaction[0] <= self.order
