"""The state of a migration at one moment, as one value: what `status`, metrics and health are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from migrator.model.position import Position
from migrator.model.progress import BadRow, Filling, TableDump
from migrator.model.retention import Retention

LEADER, STANDBY = "leader", "standby"
NOT_BEGUN, STARTING, STANDING_BY, DUMPING = "not begun", "starting", "standing by", "dumping"
FILLING, STREAMING, STOPPED = "filling", "streaming", "stopped"
PHASES = (NOT_BEGUN, STARTING, STANDING_BY, DUMPING, FILLING, STREAMING, STOPPED)


@dataclass(frozen=True, slots=True)
class Lag:
    """The distance of the target from the source.

    Attributes:
        behind: difference of the orders of both positions, in the unit of the source's positions (PostgreSQL: bytes
            of log, MySQL and MariaDB: transactions); 0: all that the source told of is applied; None: unknown.
        age_s: at most how old, in seconds, the oldest change is that isn't applied; 0: caught up; None: unknown.
        at_most_s: how long ago the target was last known to have everything, also while the source says nothing;
            None: that was never known.
        unknown: why nothing is known; empty where it is.
    """

    behind: int | None = None
    age_s: float | None = None
    at_most_s: float | None = None
    unknown: str = "the source wasn't asked yet"

    @property
    def known(self) -> bool:
        """Tells whether both numbers are."""
        return not self.unknown


@dataclass(frozen=True, slots=True)
class Applied:
    """Everything that was committed at the source before a moment is in the target.

    Attributes:
        until_us: that moment by this machine's clock, microseconds since 1970.
        order: ``Position.order`` that the target had reached by then. A target that is before it was put back.
    """

    until_us: int
    order: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of the last run.

    Attributes:
        at_us: when, by its machine's clock, microseconds since 1970.
        error: name of the error's class; empty where it was stopped, or had caught up.
        words: the error in words; empty without one.
    """

    at_us: int
    error: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class VerifiedTable:
    """The last verification of a target table: its verdict, when it ended, and shares from 0 to 1."""

    table: str
    verdict: str
    at_us: int
    key_share: float
    column_share: float
    differing: int = 0


@dataclass(frozen=True, slots=True)
class Server:
    """A server as it answered last.

    Attributes:
        answer_s: how many seconds its last answer took; None: it gave none.
        problem: why not; empty where it did.
        since_us: since when it answers, or doesn't; 0: it wasn't asked yet.
    """

    answer_s: float | None = None
    problem: str = "it wasn't asked yet"
    since_us: int = 0

    def answered(self, answer_s: float, now_us: int) -> Server:
        """The server after an answer."""
        return Server(answer_s, "", now_us if self.problem or not self.since_us else self.since_us)

    def refused(self, problem: str, now_us: int) -> Server:
        """The server after a question without one."""
        return Server(None, problem, self.since_us if self.problem and self.since_us else now_us)


Counts = tuple[tuple[tuple[str, ...], float], ...]
"""Amounts, each with the names of what was counted."""


@dataclass(frozen=True, slots=True)
class Work:
    """Counts since this process started.

    Attributes:
        batches: target transactions by phase (``dump``, ``stream``, ``fill``).
        batch_seconds: seconds by step (``map``, ``commit``).
        changes: captured row changes by table and operation (``insert``, ``update``, ``delete``).
        errors: errors met by name, those that were got over included.
        captured_changes, applied_changes, applied_chunk_rows, applied_transactions, reconnects: what they say.
    """

    batches: Counts = ()
    batch_seconds: Counts = ()
    changes: Counts = ()
    errors: Counts = ()
    captured_changes: int = 0
    applied_changes: int = 0
    applied_chunk_rows: int = 0
    applied_transactions: int = 0
    reconnects: int = 0


MAP, COMMIT = "map", "commit"
"""The steps of a batch: mapped on Spark, committed in the target."""


@dataclass(frozen=True, slots=True)
class StepTaken:
    """One step of a batch, as it was.

    Attributes:
        name: ``map`` or ``commit``.
        segment: number of the batch's last segment; 0: a piece of a joined target that is being filled.
        began_us, ended_us: moments, microseconds since 1970.
        error: name of the error that ended the step; empty: it was done.
    """

    name: str
    segment: int
    began_us: int
    ended_us: int
    error: str = ""


@dataclass(frozen=True, slots=True)
class Fallen:
    """A table that gets far fewer new rows than it did in the hour before.

    Attributes:
        table: its name.
        since_us: when the first minute with few of them began.
        usual: inserts a minute that it had at least in four fifths of the hour before.
        now: inserts a minute in the last five minutes.
    """

    table: str
    since_us: int
    usual: float
    now: float


@dataclass(frozen=True, slots=True)
class SetAside:
    """Rows or grains of one target table that are set aside, so that the target lacks them.

    Attributes:
        target: its name.
        kind: ``row`` or ``grain``.
        dropped: whether an operator accepted that they aren't migrated.
        number: how many.
    """

    target: str
    kind: str
    dropped: bool
    number: int


def counted_aside(rows: Iterable[BadRow]) -> tuple[SetAside, ...]:
    """The numbers of rows and grains that a ledger names as set aside."""
    found = Counter((one.target, "grain" if one.grain else "row", bool(one.dropped)) for one in rows)
    return tuple(SetAside(*of, number) for of, number in sorted(found.items()))


@dataclass(frozen=True, slots=True)
class Room:
    """Room for what waits.

    Attributes:
        segments: of the event log that the target hasn't applied; None: unknown.
        event_log_bytes: what the event log holds; None: unknown.
        disk_free_bytes: free on the disk of the state folder; None: unknown.
    """

    segments: int | None = None
    event_log_bytes: int | None = None
    disk_free_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """Verdicts: of verifications by table, and of dual reads by kind, summed over all queries.

    ``wrong_us``: when the oldest dual read with a wrong answer was done.
    """

    verified: tuple[VerifiedTable, ...] = ()
    reads: tuple[tuple[str, int], ...] = ()
    problem: str = ""
    wrong_us: int | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """A migration at one moment, seen by one of its processes. Nothing in it waits for a server.

    Attributes:
        migration: its name.
        at_us: when, by this machine's clock, microseconds since 1970.
        started_us: when this process began.
        role: ``leader`` or ``standby``.
        phase: one of ``PHASES``.
        note: what it waits for or retries; empty: nothing.
        epoch: of the leader; 0: unknown.
        leader: who leads, in words; empty: nobody.
        standbys: how many processes stand by; None: unknown.
        capture_lag: the same distance for what is captured; the rest of the lag waits to be applied.
        end: where the source's log ended at its last answer.
        unit: of positions' orders: ``bytes`` or ``transactions``.
        warned_us: since when it warns of each thing.
        memory: resident bytes by process (``python``, ``jvm``).
        heap: bytes of the JVM's heap: ``used``, ``committed``, and its ``limit``; none: nobody answers.
        fallen: tables whose inserts fell off, as of the last whole minute.
        aside: what the target's ledger names as set aside.
    """

    migration: str
    at_us: int
    started_us: int
    role: str
    phase: str
    note: str = ""
    warnings: tuple[tuple[str, str], ...] = ()
    warned_us: tuple[tuple[str, int], ...] = ()
    epoch: int = 0
    leader: str = ""
    standbys: int | None = None
    captured: Position | None = None
    applied: Position | None = None
    end: Position | None = None
    unit: str = "bytes"
    lag: Lag = field(default_factory=Lag)
    capture_lag: Lag = field(default_factory=Lag)
    source: Server = field(default_factory=Server)
    target: Server = field(default_factory=Server)
    retention: Retention | None = None
    room: Room = field(default_factory=Room)
    dumps: tuple[TableDump, ...] = ()
    filling: tuple[Filling, ...] = ()
    requests_left: int | None = None
    work: Work = field(default_factory=Work)
    judged: Judged = field(default_factory=Judged)
    memory: tuple[tuple[str, int], ...] = ()
    heap: tuple[tuple[str, int], ...] = ()
    ended: Ended | None = None
    fallen: tuple[Fallen, ...] = ()
    aside: tuple[SetAside, ...] = ()

    def uncaptured_s(self) -> float | None:
        """Seconds since everything was captured, at most: older log isn't needed. None: that was never known."""
        known = (self.capture_lag.at_most_s, self.lag.at_most_s)
        return min((one for one in known if one is not None), default=None)
