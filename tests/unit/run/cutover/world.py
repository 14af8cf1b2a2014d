"""Two sides in memory: logs, streams both ways, fences, and clients that write wherever they may."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from migrator.errors import ConnectionFailed, CutoverError, FencedError
from migrator.model.cutover.fence import (
    FenceKind,
    FencePlan,
    FenceState,
    LateWriters,
    OpenTransaction,
    Standing,
    Survey,
)
from migrator.model.cutover.record import CutoverPlan, Effort, Phase, Record, Side, What
from migrator.model.position import Position
from migrator.model.table import TableId
from migrator.run.cutover.conductor import Conductor, Sides


class KilledError(Exception):
    """The leader is killed here."""


def plan_of(**values: object) -> CutoverPlan:
    """A plan with a hook, and fences by triggers."""
    fences = [
        FencePlan(FenceKind.TRIGGERS, (TableId("s", f"{side}_t"),), "ours", "go elsewhere") for side in Side
    ]
    return CutoverPlan(*fences, **{"hook": "point", **values})  # type: ignore[arg-type]


@dataclass
class SideInMemory:
    """One database: its log of client writes, which of the other side's writes it has, its fence, and who is at work.

    ``pending``: writes of transactions that are open; they commit once they are waited for. ``read``: somebody reads,
    and keeps the remains of a fence from being removed.
    """

    name: Side
    world: World
    log: list[int] = field(default_factory=list)
    applied: int = 0
    pending: list[int] = field(default_factory=list)
    fenced: bool = False
    leaky: bool = False
    held: bool = False
    read: bool = False
    epoch: int = 0
    altered: int = 0

    # -- ports.cutover.CutoverSide

    def position(self) -> Position:
        """The end of its log."""
        self.world.check(self)
        return Position(len(self.log), "")

    def reached(self, position: Position) -> bool:
        """The stream across takes one write at a time."""
        across = self.world.sides[self.name.other]
        self.world.check(across)
        if across.applied < len(self.log) and not self.world.gate_closed(self.name):
            across.applied += 1
        return across.applied >= position.order

    def passed(self) -> str:
        """What waits before the gate."""
        across = self.world.sides[self.name.other]
        waits = self.world.gate_closed(self.name) and across.applied < len(self.log)
        return "late" if waits else ""

    def compare(self, since: int, effort: Effort) -> int:
        """All of it is equal, unless the world says otherwise."""
        self.world.check(self)
        self.world.check(self.world.sides[self.name.other])
        if self.world.differs is self.name:
            raise CutoverError("rows differ", cause="so it is", remedy="none")
        upto = self.world.sides[self.name.other].applied
        self.world.compared.append((self.name, since, effort, upto))
        return upto

    def structure(self) -> Mapping[str, str]:
        """One table, like the number of times that somebody changed it."""
        self.world.check(self)
        return {"t": str(self.altered)}

    def number(self) -> None:
        """Nothing is numbered here."""

    # -- ports.fence.Fence

    def survey(self, tables: Sequence[TableId], our_login: str) -> Survey:
        """Nobody asks."""
        raise AssertionError

    def raise_fence(self, plan: FencePlan, limit_s: float, epoch: int = 0) -> FenceState:
        """At once, unless somebody holds its tables."""
        self._touched_by(epoch)
        if self.held:
            raise CutoverError("somebody holds it", retryable=True)
        self.fenced = True
        return self.state(plan)

    def state(self, plan: FencePlan) -> FenceState:
        """Up or down."""
        self.world.check(self)
        return FenceState(Standing.UP if self.fenced else Standing.DOWN)

    def open_transactions(self, plan: FencePlan) -> tuple[OpenTransaction, ...]:
        """Those open commit while they are waited for, one by one."""
        found = tuple(OpenTransaction(str(one), "app", "now", "writes") for one in self.pending)
        if self.pending:
            self.commit(self.pending.pop(0))
        return found

    def in_the_way(self, plan: FencePlan) -> tuple[OpenTransaction, ...]:
        """Whoever holds it, in one transaction."""
        return (OpenTransaction("7", "app", "noon", "sleeps"),) if self.held else ()

    def end(self, transactions: Sequence[OpenTransaction]) -> None:
        """They are rolled back."""
        if transactions:
            self.held = False
            self.pending.clear()

    def late(self, plan: FencePlan) -> LateWriters:
        """Nobody asks."""
        raise AssertionError

    def open_fence(self, plan: FencePlan, limit_s: float, epoch: int = 0) -> FenceState:
        """At once."""
        self._touched_by(epoch)
        self.fenced = False
        self.world.check_one_open()
        if self.read:
            raise CutoverError("somebody reads", retryable=True)
        return self.state(plan)

    def _touched_by(self, epoch: int) -> None:
        """A leader that slept while another one touched the fence is refused."""
        self.world.check(self)
        if epoch < self.epoch:
            raise FencedError("a later leader has changed this fence")
        self.epoch = epoch

    def by_hand(self, plan: FencePlan) -> list[str]:
        """Nobody asks."""
        raise AssertionError

    # -- clients

    def write(self, number: int) -> bool:
        """A client writes; tells whether it was acknowledged."""
        if self.fenced and not self.leaky:
            return False
        self.commit(number)
        return True

    def commit(self, number: int) -> None:
        """A write is in the log."""
        self.log.append(number)
        self.world.acknowledged.append((self.name, number))


@dataclass
class World:
    """Both sides, the record's copies, and the hook.

    ``unreachable``: the side that nobody can reach now. ``told_at``: writes acknowledged before each point.
    """

    copies: dict[Side, Record | None] = field(default_factory=lambda: dict.fromkeys(Side))
    epoch: int = 0
    now_s: float = 1000.0
    unreachable: Side | None = None
    hook_fails: bool = False
    pointed: list[Side] = field(default_factory=list)
    read_at: Side = Side.OLD
    keys: list[str] = field(default_factory=list)
    not_ready: str = ""
    acknowledged: list[tuple[Side, int]] = field(default_factory=list)
    sides: dict[Side, SideInMemory] = field(default_factory=dict)
    points: list[str] = field(default_factory=list)
    told_at: list[int] = field(default_factory=list)
    kill_at: int = -1
    given_up: list[int] = field(default_factory=list)
    lost_at: tuple[str, Side | None] = ("", None)
    differs: Side | None = None
    called: Callable[[], None] = lambda: None
    meanwhile: Callable[[], None] = lambda: None
    compared: list[tuple[Side, int, Effort, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sides = {side: SideInMemory(side, self) for side in Side}

    def accept(self, plan: CutoverPlan) -> None:
        """A plan is accepted."""
        self.copies = dict.fromkeys(Side, Record(plan))

    def led(self) -> Conductor:
        """A new leader."""
        self.epoch += 1
        return Conductor(
            self,
            Sides(self.sides, self.sides),
            self,
            self.epoch,
            lambda: self.given_up.append(self.epoch),
            lambda _: self.not_ready,
            step=self.step,
            clock=lambda: self.now_s,
        )

    def step(self, point: str) -> None:
        """A named point; the leader may be killed at it."""
        self.points.append(point)
        self.told_at.append(len(self.acknowledged))
        self.meanwhile()
        if point == self.lost_at[0]:
            self.unreachable = self.lost_at[1]
        if len(self.points) == self.kill_at:
            raise KilledError

    def gate_closed(self, side: Side) -> bool:
        """See ``Record.closed``."""
        record = self.copies[Side.OLD]
        return record is not None and record.closed(side)

    def check(self, side: SideInMemory) -> None:
        """Raises where a side can't be reached."""
        if side.name is self.unreachable:
            raise ConnectionFailed(f"the {side.name} side can't be reached", retryable=True)

    def check_one_open(self) -> None:
        """From the first fence on there are never two open sides."""
        record = self.copies[Side.OLD]
        given_up = record is not None and record.phase is Phase.FINISHING
        assert given_up or any(one.fenced for one in self.sides.values()), "both sides are open"

    def clients_write(self, number: int) -> None:
        """Every client tries both sides."""
        for side in self.sides.values():
            if side.write(number):
                return

    # -- ports.cutover.Hook

    def call(self, side: Side, key: str, limit_s: float, what: What = What.WRITES) -> None:
        """Points the application."""
        self.called()
        if what is What.READS:
            self.keys.append(key)
        if self.hook_fails:
            raise CutoverError("the hook failed", cause="so it is", remedy="none")
        if what is What.READS:
            self.read_at = side
        else:
            self.pointed.append(side)

    # -- ports.cutover.CutoverBook

    def read(self) -> Record | None:
        """The old side's copy."""
        self.check(self.sides[Side.OLD])
        return self.copies[Side.OLD]

    def write(self, record: Record, epoch: int) -> None:
        """The old side's copy, then the new one's."""
        self.write_old(record, epoch)
        self.step("copied")
        self.check(self.sides[Side.NEW])
        self.copies[Side.NEW] = record

    def write_old(self, record: Record, epoch: int) -> None:
        """Only a leader's of now, and only the next version."""
        self.check(self.sides[Side.OLD])
        if epoch < self.epoch:
            raise FencedError("another leads")
        known = self.copies[Side.OLD]
        assert known is not None
        if record.number != known.number + 1:
            raise CutoverError("changed meanwhile", retryable=True)
        self.copies[Side.OLD] = record

    def bring_up(self, record: Record, epoch: int) -> None:
        """The new side's copy, where it is older."""
        self.check(self.sides[Side.NEW])
        self.copies[Side.NEW] = record

    def last_epoch(self) -> int:
        """Of the leader of now."""
        return self.epoch

    def close(self) -> None:
        """Nothing is held."""

    def ask(self, record: Record) -> None:
        """An operator's word."""
        self.copies[Side.OLD] = record
