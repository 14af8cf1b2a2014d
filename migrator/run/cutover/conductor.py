"""Carries a cut-over out: one step after another, each durable before it is done, each undone past the limit.

The record is on both sides before a step is taken, so whoever leads next finds the step, takes it again (each may be
taken twice), or undoes it. Nothing is opened but by OPENING and UNDOING, and each of them opens one side, whose
opposite is fenced and drained: there is no moment with two open sides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from migrator.core import cutover as rules
from migrator.errors import ConnectionFailed, CutoverError, MigratorError
from migrator.model.cutover.fence import Standing
from migrator.model.cutover.record import (
    UNDONE,
    Effort,
    Phase,
    Record,
    Side,
    Structure,
    Verify,
    Wanted,
    What,
)
from migrator.ports.cutover import CutoverBook, CutoverSide, Hook
from migrator.ports.fence import Fence
from migrator.run.cutover.memory import Underway, Watch
from migrator.run.steps import Step, no_step

_IDLE_S, _BUSY_S = 1.0, 0.02
_OLD_ALONE = (Phase.UNDOING, Phase.IDLE)
"""Phases that need the old side alone, where it is the one that was open."""
_AT_ONCE_S = 5.0
"""The longest that one try at a fence takes."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The two sides: their fences, and what they can do."""

    fences: Mapping[Side, Fence]
    sides: Mapping[Side, CutoverSide]


@dataclass(slots=True)
class Conductor:
    """Takes the steps of a cut-over.

    Args:
        book: the record.
        both: the two sides.
        hook: points the application.
        epoch: of the leader.
        give_up: removes what the way back has made for itself; may be called again.
        ready: says why a switch that opens a side can't begin; empty where it can.
        step: hook at named points.
        clock: seconds since 1970.
    """

    book: CutoverBook
    both: Sides
    hook: Hook
    epoch: int
    give_up: Callable[[], None]
    ready: Callable[[Record], str] = lambda _: ""
    step: Step = no_step
    clock: Callable[[], float] = time.time
    _under_way: Underway = field(default_factory=Underway)
    _watch: Watch = field(default_factory=Watch)

    def look(self) -> float:
        """Does what is due; returns the seconds until the next look. Raises ``FencedError``, and what isn't
        retryable."""
        record = self.book.read()
        if record is None or record.phase is Phase.FINISHED:
            return _IDLE_S
        if why := rules.due_to_undo(record, self._now_s(record)):
            record = self._written(rules.undoing(record, why))
        if record.reads_wanted is not None and rules.reads_are_due(record):
            record = self._reads_pointed(record, record.reads_wanted)
        try:
            return self._idle(record) if record.phase is Phase.IDLE else self._taken(record)
        except CutoverError as error:
            if not error.retryable:
                self._failed(record, str(error))
            return _IDLE_S

    def let_go(self, why: str) -> None:
        """Undoes the switch under way, and forgets what an operator aborted; takes no other step.

        Raises ``FencedError`` where a later leader wrote, ``ConnectionFailed``, and ``CutoverError`` where the side
        that was open can't be opened.
        """
        record = self.book.read()
        if record is None:
            return
        if record.phase is Phase.IDLE and record.wanted is Wanted.ABORT:
            self._idle(record)
        if record.phase in UNDONE:
            record = self._written(rules.undoing(record, why))
        if record.phase is Phase.UNDOING:
            self._taken(record)

    def _idle(self, record: Record) -> float:
        """One side is open: the other one is fenced, and an operator may want something."""
        if record.wanted is Wanted.ABORT:
            self._written(rules.refused(record, "an operator aborted it before it began"))
            return _IDLE_S
        if record.wanted is Wanted.FINISH:
            self._written(record.changed(phase=Phase.FINISHING, wanted=Wanted.NOTHING))
            return 0.0
        # An undo may have had to do without the new side: streams go by that copy.
        self.book.bring_up(record, self.epoch)
        if not self._fenced(record):
            return _IDLE_S
        if record.wanted is not Wanted.NOTHING:
            if problem := self._late(record) or self.ready(record):
                self._written(rules.refused(record, problem))
                return _IDLE_S
            self.step("cutover.begun")
            structure = self._structure()  # takes time, which isn't the switch's: nothing is fenced yet
            self._written(rules.begun(record, self.clock(), structure))
            return 0.0
        return _IDLE_S

    def _fenced(self, record: Record) -> bool:
        """Has the side fenced that isn't open; false where somebody is in the way, whom the record then names."""
        fence, plan = self.both.fences[record.opens], record.plan.fence(record.opens)
        if fence.state(plan).standing is Standing.UP:
            return True
        try:
            fence.raise_fence(plan, _AT_ONCE_S, self.epoch)
        except CutoverError as error:
            if not error.retryable:
                raise
            self._waits_for(record, f"the {record.opens} side isn't fenced yet: {error}")
            return False
        return True

    def _late(self, record: Record) -> str:
        """Describes writes that passed the fence of the side to be opened, and the way out; empty: there are none."""
        passed = self.both.sides[record.opens].passed()
        if not passed:
            return ""
        # The open side's rows hold: a repair, which goes by the old side, would put a new one that is open back.
        way_out = (
            "Give the plan up (`migrator cutover finish`), have `migrator verify` and `migrator repair` put those"
            " rows right, then accept a new plan"
            if record.open_side is Side.OLD
            else "The new side's rows hold: write there again what must not be lost. The old side can't be opened any"
            " more; `migrator cutover finish` gives it up"
        )
        return f"writes passed the fence of the {record.opens} side: {passed}. {way_out}"

    def _reads_pointed(self, record: Record, side: Side) -> Record:
        """Points reads where an operator wants them, whatever step is under way."""
        # A side that lags would show everybody an old state; the old side always shows the state that holds, or had.
        asks = side is Side.NEW and record.open_side is Side.OLD
        self.step("cutover.reads")
        try:
            why_not = self.ready(record) if asks else ""
            if not why_not:
                key = record.key(f"reads-{record.reads_turn}-{side}")
                self.hook.call(side, key, record.plan.hook_s, What.READS)
        except MigratorError as error:
            why_not = str(error)
        self.step("cutover.reads_done")
        return self._written(rules.reads_pointed(record, why_not))

    def _taken(self, record: Record) -> float:
        now = time.monotonic()
        if (self._under_way.phase, self._under_way.turn) != (record.phase, record.turn):
            self._under_way = Underway(record.phase, record.turn, now)
            self.step(f"cutover.{record.phase}")
        if not _STEPS[record.phase](self, record):
            return _BUSY_S
        self.step(f"cutover.{record.phase}_done")
        if record.phase is Phase.UNDOING:
            self._written(rules.undone(record, self._under_way.hook_failed))
        elif record.phase is Phase.FINISHING:
            self._written(record.changed(phase=Phase.FINISHED))
        else:
            took = round(time.monotonic() - self._under_way.began_s, 3)
            self._written(rules.stepped(record, took, self._under_way.equal))
        return 0.0

    def _failed(self, record: Record, why: str) -> None:
        """A step can't be taken at all: what can be undone is; else it is tried again, and an operator is told."""
        if record.phase in UNDONE:
            self._written(rules.undoing(record, why))
        elif record.reason != why:
            self._written(record.changed(reason=why))

    def _written(self, record: Record) -> Record:
        try:
            self.book.write(record, self.epoch)
        except ConnectionFailed:
            if record.open_side is not Side.OLD or record.phase not in (*_OLD_ALONE, Phase.OPENING):
                raise
            # The side that an undo opens is enough for it. Nothing was opened yet where OPENING can't be written to
            # both: its step comes after that.
            if self.book.read() != record:
                self.book.write_old(record, self.epoch)
            if record.phase is Phase.OPENING:
                record = rules.undoing(record, "the new side couldn't be reached before it was opened")
                self.book.write_old(record, self.epoch)
        return record

    # -- steps: each tells whether it is done, and may be taken again

    def _fence(self, record: Record) -> bool:
        fence, plan = self.both.fences[record.open_side], record.plan.fence(record.open_side)
        if record.plan.end_transactions:
            # Where a fence waits for them it never comes up for those that wait for their users.
            fence.end(self._under_way.lasting(fence.in_the_way(plan), record.plan.grace_s))
        try:
            fence.raise_fence(plan, min(self._left_s(record), _AT_ONCE_S), self.epoch)
        except CutoverError as error:
            if not error.retryable:
                raise
            self._waits_for(record, str(error))
            return False
        return True

    def _wait(self, record: Record) -> bool:
        fence, plan = self.both.fences[record.open_side], record.plan.fence(record.open_side)
        found = fence.open_transactions(plan)
        if not found:
            return True
        if time.monotonic() - self._under_way.began_s > record.plan.grace_s and record.plan.end_transactions:
            fence.end(found)
        self._waits_for(
            record, f"{len(found)} transaction(s) are open: {'; '.join(one.words() for one in found[:3])}"
        )
        return False

    def _drain(self, record: Record) -> bool:
        return self._has_reached(record, record.open_side)

    def _verify(self, record: Record) -> bool:
        """Nobody writes and everything is applied: what differs now would differ for good."""
        plan, side = record.plan, record.open_side
        if plan.verify is not Verify.NOTHING:
            limit_s = min(plan.verify_s, self._left_s(record))
            effort = Effort(limit_s, all_of_it=plan.verify is not Verify.IN_TIME)
            self._under_way.equal = self.both.sides[side].compare(record.equal(side), effort)
        return True

    def _number(self, record: Record) -> bool:
        self.both.sides[record.opens].number()
        return True

    def _turn(self, record: Record) -> bool:
        return self._has_reached(record, record.opens)

    def _switch(self, record: Record) -> bool:
        self._hook(record, record.opens)
        if record.follows:
            self._reads_hook(record, record.opens)
        return True

    def _check(self, record: Record) -> bool:
        side = record.open_side
        state = self.both.fences[side].state(record.plan.fence(side))
        if state.standing is not Standing.UP:
            raise CutoverError(
                f"the fence of the {side} side isn't up any more",
                cause="; ".join(state.missing),
                remedy="find out who took it away, then start again",
            )
        if not self._has_reached(record, side):
            return False
        if changed := rules.changed_tables(record.structure, self._structure() if record.structure else ()):
            raise CutoverError(
                "tables were changed during the switch",
                cause=", ".join(changed),
                remedy="see that both ways fit them (`migrator cutover plan`), then start again",
            )
        return True

    def _open(self, record: Record) -> bool:
        self._refuse_second(record, record.open_side)
        self.both.fences[record.opens].open_fence(record.plan.fence(record.opens), _AT_ONCE_S, self.epoch)
        return True

    def _undo(self, record: Record) -> bool:
        """Opens the side first: whoever is pointed elsewhere is refused there, however long the hook takes."""
        side = record.open_side
        with suppress(ConnectionFailed):  # this side must open though the other one can't be reached
            self._refuse_second(record, side.other)
        remains: CutoverError | None = None
        try:
            self.both.fences[side].open_fence(record.plan.fence(side), _AT_ONCE_S, self.epoch)
        except CutoverError as error:
            if not error.retryable:
                raise
            remains = error  # a reader is in the way of them, maybe for hours, and writers pass
        if record.hooked and not self._under_way.pointed_back:
            self._under_way.pointed_back = True
            try:
                self._hook(record, side)
                self._reads_hook(record, rules.reads_after_undo(record))
            except CutoverError as error:
                self._under_way.hook_failed = error.what
        if remains is not None:
            raise remains
        return True

    def _finish(self, record: Record) -> bool:
        """The fenced side stays fenced if it is the old one; a new side that was never taken over is as it was."""
        self.give_up()
        if record.open_side is Side.OLD:
            self.both.fences[Side.NEW].open_fence(record.plan.new, _AT_ONCE_S, self.epoch)
        return True

    # -- what several steps do

    def _now_s(self, record: Record) -> float:
        return self._watch.now_s(record.turn, record.since_s, self.clock())

    def _left_s(self, record: Record) -> float:
        """Returns how long the switch may still take, and always a moment."""
        return max(0.1, record.plan.pause_s - (self._now_s(record) - record.since_s))

    def _structure(self) -> Structure:
        """Returns what both sides' tables are like now."""
        found = [(side, *one) for side in Side for one in sorted(self.both.sides[side].structure().items())]
        return tuple((f"{name} on the {side} side", digest) for side, name, digest in found)

    def _refuse_second(self, record: Record, fenced: Side) -> None:
        """Raises ``CutoverError`` where the side that must be fenced isn't: somebody has opened it by hand."""
        if self.both.fences[fenced].state(record.plan.fence(fenced)).standing is not Standing.UP:
            raise CutoverError(
                f"the {fenced.other} side can't be opened",
                cause=f"the fence of the {fenced} side isn't up: somebody opened it by hand",
                remedy=f"say so: `migrator cutover opened {fenced}`; or close it again, with what it takes",
            )

    def _has_reached(self, record: Record, side: Side) -> bool:
        """Tells whether the log of a side, up to its end as this step began, is applied across."""
        if self._under_way.goal is None:
            self._under_way.goal = self.both.sides[side].position()
        if self.both.sides[side].reached(self._under_way.goal):
            return True
        if passed := self.both.sides[side].passed():
            raise CutoverError(
                f"writes passed the fence of the {side} side",
                cause=passed,
                remedy="choose a fence that stops them (`migrator cutover plan`), then start again",
            )
        return False

    def _hook(self, record: Record, side: Side) -> None:
        if record.plan.hook:
            self.hook.call(side, record.key(f"{record.turn}-{side}"), record.plan.hook_s)

    def _reads_hook(self, record: Record, side: Side) -> None:
        if record.plan.reads_hook:
            key = record.key(f"{record.turn}-{side}-reads")
            self.hook.call(side, key, record.plan.hook_s, What.READS)

    def _waits_for(self, record: Record, reason: str) -> None:
        """Has onlookers know what a step waits for."""
        if record.reason != reason:
            try:
                self._written(record.changed(reason=reason))
            except MigratorError as error:
                if not error.retryable:
                    raise


_STEPS: Mapping[Phase, Callable[[Conductor, Record], bool]] = {
    Phase.FENCING: Conductor._fence,
    Phase.WAITING: Conductor._wait,
    Phase.DRAINING: Conductor._drain,
    Phase.VERIFYING: Conductor._verify,
    Phase.NUMBERING: Conductor._number,
    Phase.TURNING: Conductor._turn,
    Phase.SWITCHING: Conductor._switch,
    Phase.CHECKING: Conductor._check,
    Phase.OPENING: Conductor._open,
    Phase.UNDOING: Conductor._undo,
    Phase.FINISHING: Conductor._finish,
}
