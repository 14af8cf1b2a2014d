"""The state of a cut-over, as it stands in the control tables of both sides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from migrator.model.cutover.fence import FencePlan


class Side(StrEnum):
    """One of the two databases."""

    OLD = "old"
    NEW = "new"

    @property
    def other(self) -> Side:
        """The one across."""
        return Side.NEW if self is Side.OLD else Side.OLD


class Phase(StrEnum):
    """A step of the machine, in the order in which a switch takes them."""

    IDLE = "idle"
    """One side is open, the other one is fenced; nothing is under way."""
    FENCING = "fencing"
    WAITING = "waiting"
    """Transactions that were open when the fence was raised end, or are ended."""
    DRAINING = "draining"
    """Everything that the fenced side's log has is applied on the side across."""
    VERIFYING = "verifying"
    """Rows that were carried across since the last verdict are compared."""
    NUMBERING = "numbering"
    """Sequences of the side to be opened are moved beyond what is in use."""
    TURNING = "turning"
    """The stream the other way has read its log to the present end: it works, and begins before anybody writes."""
    SWITCHING = "switching"
    """The hook points the application at the side to be opened."""
    CHECKING = "checking"
    """The fence is still up, and nothing passed it."""
    OPENING = "opening"
    """The other side's fence is opened. From here there is no undo: rows may be written there already."""
    UNDOING = "undoing"
    """The side that was fenced is opened again."""
    FINISHING = "finishing"
    """The way back is given up."""
    FINISHED = "finished"


SWITCH = (
    Phase.FENCING,
    Phase.WAITING,
    Phase.DRAINING,
    Phase.VERIFYING,
    Phase.NUMBERING,
    Phase.TURNING,
    Phase.SWITCHING,
    Phase.CHECKING,
    Phase.OPENING,
)
"""The steps of a switch in their order."""
UNDONE = SWITCH[:-1]
"""The steps that can be undone."""
_DRAINED = SWITCH[3:]


class Verify(StrEnum):
    """The share of what changed since the last verdict that must be equal before the other side is opened."""

    CHANGED = "changed"
    """All of it."""
    IN_TIME = "in_time"
    """Whatever can be compared in the time for it; the rest is named, and passed over."""
    NOTHING = "nothing"


class What(StrEnum):
    """The part of an application's queries that a hook points."""

    WRITES = "writes"
    """Writes, and reads with them where no hook points reads alone."""
    READS = "reads"


@dataclass(frozen=True, slots=True)
class Effort:
    """The effort that a comparison of changed rows may make.

    Attributes:
        limit_s: seconds that it may take.
        at_rest: whether nobody can write, and everything is applied: what differs then differs for good.
        all_of_it: whether a row that can't be settled in that time is a failure as well.
    """

    limit_s: float
    at_rest: bool = True
    all_of_it: bool = True


class Wanted(StrEnum):
    """The word of an operator that the machine hasn't acted on yet."""

    NOTHING = ""
    START = "start"
    BACK = "back"
    ABORT = "abort"
    FINISH = "finish"


@dataclass(frozen=True, slots=True)
class CutoverPlan:
    """A plan that an operator has accepted.

    Attributes:
        old, new: the fences of both sides.
        hook: command or URL that points the application elsewhere; empty: it finds its way by itself.
        hook_s: seconds that it may take.
        pause_s: seconds from the fence to the opening of the other side, after which a switch is undone.
        grace_s: seconds that open transactions are waited for.
        end_transactions: whether those that are still open then are ended; else the switch is undone.
        verify: which changes must be equal before the other side is opened.
        verify_s: seconds that their comparison may take while nobody can write.
        reads_hook: command or URL that points reads alone; empty: they go with the writes.
    """

    old: FencePlan
    new: FencePlan
    hook: str = ""
    hook_s: float = 30.0
    pause_s: float = 30.0
    grace_s: float = 5.0
    end_transactions: bool = False
    verify: Verify = Verify.CHANGED
    verify_s: float = 10.0
    reads_hook: str = ""

    def fence(self, side: Side) -> FencePlan:
        """Returns the fence of a side."""
        return self.old if side is Side.OLD else self.new


@dataclass(frozen=True, slots=True)
class Took:
    """One step of the latest switch, and the seconds that it took."""

    phase: Phase
    seconds: float


Structure = tuple[tuple[str, str], ...]
"""Tables of both sides, each with a digest of its columns and its key."""


@dataclass(frozen=True, slots=True)
class Record:
    """The state of a cut-over.

    Attributes:
        plan: as accepted.
        number: counts changes of the record. The old side's copy is written first, and holds.
        turn: counts switches that began.
        open_side: the side that is open, or was the last to be.
        phase: the step under way.
        wanted: what an operator wants.
        since_s: when the switch under way began, seconds since 1970 by the leader's clock.
        hooked: whether the hook was called in this switch, so that an undo has to call it, too.
        reason: why the last switch was refused or undone, or what is being waited for; empty where all went well.
        took: the steps of the switch under way, or of the last one.
        equal_old: the segment of the way there up to which everything that changed on the old side was found equal
            by a switch; 0: none has found anything.
        equal_new: the same of the way back, and of the new side.
        reads: where reads go.
        reads_wanted: where an operator wants them; None: nobody has said anything since they were pointed last.
        reads_turn: counts what was said about reads.
        reads_said: why they couldn't be pointed there.
        follows: whether the switch under way takes reads along, so that an undo has to take them back.
        structure: both sides' tables as the latest switch began; empty: an older version began it.
        token: tells calls of the hook for this record from those for any other one, of another project or of before
            a reset; empty: an older version made it.
    """

    plan: CutoverPlan
    number: int = 1
    turn: int = 0
    open_side: Side = Side.OLD
    phase: Phase = Phase.IDLE
    wanted: Wanted = Wanted.NOTHING
    since_s: float = 0.0
    hooked: bool = False
    reason: str = ""
    took: tuple[Took, ...] = ()
    equal_old: int = 0
    equal_new: int = 0
    reads: Side = Side.OLD
    reads_wanted: Side | None = None
    reads_turn: int = 0
    reads_said: str = ""
    follows: bool = False
    structure: Structure = ()
    token: str = ""

    def key(self, call: str) -> str:
        """Returns the name for ever of a call of the hook, by its name in this record."""
        return "-".join(filter(None, (self.token, call)))

    @property
    def opens(self) -> Side:
        """The side that a switch under way, or the next one, opens."""
        return self.open_side.other

    def equal(self, side: Side) -> int:
        """Returns the segment up to which a side's changes were found equal by a switch."""
        return self.equal_old if side is Side.OLD else self.equal_new

    @property
    def under_way(self) -> bool:
        """True while a switch, or its undoing, is under way."""
        return self.phase in (*SWITCH, Phase.UNDOING)

    def closed(self, side: Side) -> bool:
        """Tells whether no change of a side but ours may be carried across: nobody else can have made one."""
        if side is self.open_side:
            return self.phase in _DRAINED
        return self.phase is not Phase.OPENING

    def changed(self, **values: object) -> Record:
        """Returns the record's next version."""
        return replace(self, number=self.number + 1, **values)  # type: ignore[arg-type]
