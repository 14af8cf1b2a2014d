"""An observation waits for nobody, and what gives no answer is told as such."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from migrator.adapters.observers.server import not_ready
from migrator.core.watched.verdict import troubles, verdict
from migrator.errors import ConnectionFailed, VerifyError
from migrator.model.hint import Hint
from migrator.model.ledger import Ledger
from migrator.model.observed.bounds import Bounds
from migrator.model.observed.hour import Hour
from migrator.model.observed.observation import (
    DUMPING,
    STANDING_BY,
    STARTING,
    STOPPED,
    STREAMING,
    Ended,
    Judged,
    Observation,
    Room,
    SetAside,
    VerifiedTable,
)
from migrator.model.position import Position
from migrator.model.progress import BadRow, Checkpoint, Mapped, TableDump
from migrator.model.table import TableId
from migrator.run.failure import Stopping
from migrator.run.observe.lag_watch import LagWatch
from migrator.run.observe.observer import HEAP_EVERY_S, Observer, Seen, Sights
from migrator.run.progress import SILENT_S, Progress

DUMP = TableDump(TableId("s", "t"), done=True)
BAD = BadRow("t", ("b.id",), ("1",), "7", 5, "no", "x", grain=True)
HELD = Ledger("", 3, 5, Checkpoint(Position(7, "7"), dumps=(DUMP,), bad_rows=(BAD,)))
HINT = Hint(4, 1, 9, 0, Checkpoint(Position(8, "8"), dumps=(DUMP,)), ended=Ended(5, "MappingError", "gone"))


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class World:
    """Questions with answers that a test changes, and a clock."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.progress = Progress(clock=self.clock)
        self.failure: Exception | None = None
        self.verdict_failure: Exception | None = None
        self.seen = Seen("process 1", 2, HINT)
        self.heap = (("used", 5),)
        self.judged = Judged()
        self.held = HELD
        sights = Sights(
            self._ledger,
            lambda: self.seen,
            self._judged,
            lambda: Room(None, 11, 12),
            tuple,
            heap=lambda: self.heap,
        )
        self.observer = Observer("shop", "bytes", self.progress, sights)

    def _ledger(self) -> Ledger:
        if self.failure is not None:
            raise self.failure
        return self.held

    def _judged(self) -> Judged:
        if self.verdict_failure is not None:
            raise self.verdict_failure
        return self.judged

    def look(self) -> None:
        self.observer.look_at_target()
        self.observer.look_at_processes()
        self.observer.look_at_files()


def test_a_standby_tells_of_the_leader_and_of_the_target() -> None:
    world = World()
    assert world.observer.observation().phase == STARTING
    world.look()
    assert world.observer.observation().phase == STARTING, (
        "somebody leads, but this process isn't a standby yet"
    )
    world.progress.set(standing_by=True)
    world.progress.answered(world.clock(), Position(9, "9"))
    seen = world.observer.observation()
    assert (seen.role, seen.phase, seen.leader, seen.standbys) == ("standby", STANDING_BY, "process 1", 2)
    assert (seen.applied, seen.captured, seen.lag.behind) == (Position(7, "7"), Position(8, "8"), 2)
    assert seen.room == Room(4, 11, 12)
    assert seen.ended == Ended(5, "MappingError", "gone"), "how the one before ended, by its hint"
    assert seen.dumps == (DUMP,)
    assert seen.aside == (SetAside("t", "grain", False, 1),)


def test_a_leader_tells_of_itself() -> None:
    world = World()
    world.look()
    under_way = replace(DUMP, done=False)
    world.progress.set(
        epoch=5, applied=Position(9, "9"), captured=Position(9, "9"), dumps=(under_way,),
        captured_segment=12, applied_segment=10,
    )  # fmt: skip
    world.progress.answered(world.clock(), Position(9, "9"))
    seen = world.observer.observation()
    assert (seen.role, seen.phase, seen.epoch, seen.lag.behind) == ("leader", DUMPING, 5, 0)
    assert seen.room.segments == 2
    world.progress.set(dumps=(DUMP,))
    assert world.observer.observation().phase == STREAMING
    assert seen.ended is None


def names(seen: Observation) -> list[str]:
    """Names of the troubles that are seen."""
    return [one.name for one in troubles(seen, Hour(), Bounds())]


def test_a_run_that_is_over_stands_by_for_nobody() -> None:
    """Its process lives on for a while: the hook is waited for, and Spark's end. The last look saw it lead."""
    world = World()
    world.look()
    world.progress.answered(world.clock(), Position(9, "9"))
    world.progress.set(epoch=5, led=5, applied=Position(9, "9"), captured=Position(9, "9"), dumps=(DUMP,))
    assert not not_ready(world.observer.observation())
    world.progress.set(epoch=0)
    assert world.observer.observation().phase == STARTING, "it may start again in this process"
    world.progress.set(ended=True)
    seen = world.observer.observation()
    assert (seen.phase, not_ready(seen)) == (STOPPED, "it is stopped")
    later = replace(seen, leader="", at_us=seen.started_us + 10**9)
    unled = {phase: "NobodyLeads" in names(replace(later, phase=phase)) for phase in (STOPPED, STARTING)}
    assert unled == {STOPPED: False, STARTING: True}
    assert verdict(seen, Hour(), ()).what == "the run has ended: this process is about to"


def test_a_target_that_fails_is_down_since_then_and_comes_back() -> None:
    world = World()
    world.look()
    up = world.observer.observation().target
    assert (up.problem, up.answer_s) == ("", 0.0)
    world.failure = ConnectionFailed("the target can't be reached")
    world.look()
    down = world.observer.observation().target
    assert (down.problem, down.answer_s) == ("the target can't be reached", None)
    world.look()
    assert world.observer.observation().target.since_us == down.since_us, "since it is down, not since asked"
    world.failure = None
    world.look()
    assert world.observer.observation().target.problem == ""


def test_the_heap_of_a_jvm_that_gives_no_answer_is_left_out() -> None:
    world = World()
    assert world.observer.observation().heap == ()
    world.observer.look_at_heap()
    world.clock.now_s += 2 * HEAP_EVERY_S
    assert world.observer.observation().heap == (("used", 5),), "the next answer may take as long"
    world.clock.now_s += 1
    assert world.observer.observation().heap == (), "never an old number"


def test_a_target_that_says_nothing_is_silent() -> None:
    world = World()
    world.look()
    world.clock.now_s += SILENT_S + 1
    assert world.observer.observation().target.problem == "no answer for 16 s"


def test_verdicts_that_cannot_be_read_hide_nothing_else() -> None:
    world = World()
    world.verdict_failure = VerifyError("what was verified can't be read")
    world.look()
    seen = world.observer.observation()
    assert seen.judged.problem == "what was verified can't be read"
    assert seen.room.disk_free_bytes == 12


def test_verdicts_of_targets_that_the_mapping_no_longer_has_are_left_out() -> None:
    world = World()
    verified = [VerifiedTable(name, "different", 5, 1.0, 1.0, 3) for name in ("item", "gone")]
    world.judged = Judged(tuple(verified), (("wrong", 1),))
    world.look()
    assert world.observer.observation().judged == world.judged, "this ledger doesn't say what is mapped"
    assert HELD.checkpoint is not None
    mapped = (Mapped("item", "public", "row-wise"),)
    world.held = replace(HELD, checkpoint=replace(HELD.checkpoint, mapped=mapped))
    world.look()
    assert world.observer.observation().judged == replace(world.judged, verified=(verified[0],))


@contextmanager
def started(observer: Observer) -> Iterator[Stopping]:
    stopping = Stopping()
    observer.start(stopping)
    try:
        yield stopping
    finally:
        stopping.request()


def test_questions_that_hang_keep_nobody() -> None:
    world, hang, asked = World(), threading.Event(), threading.Semaphore(0)

    def hanging() -> Ledger:
        asked.release()
        hang.wait(60)
        return HELD

    world.observer._sights = replace(world.observer._sights, ledger=hanging)
    with started(world.observer):
        assert asked.acquire(timeout=20)
        seen = world.observer.observation()
        assert seen.target.problem == "it wasn't asked yet"
        hang.set()


class Meter:
    """A source whose answers a test chooses."""

    def __init__(self) -> None:
        self.answers: list[Position | ConnectionFailed] = []
        self.closed = False

    def end(self) -> Position:
        answer = self.answers.pop(0)
        if isinstance(answer, ConnectionFailed):
            raise answer
        return answer

    def close(self) -> None:
        self.closed = True


def test_the_lag_follows_the_answers_of_the_source() -> None:
    clock, meter = Clock(), Meter()
    progress = Progress(clock=clock)
    watch = LagWatch(lambda: meter, progress)
    progress.set(applied=Position(5, "5"))
    meter.answers = [Position(5, "5"), Position(8, "8"), ConnectionFailed("the source can't be reached")]
    watch.look(meter)
    assert progress.lag().age_s == 0.0
    clock.now_s += 2
    watch.look(meter)
    clock.now_s += 1
    assert (progress.lag().behind, progress.lag().age_s) == (3, 3.0)
    clock.now_s += 10
    watch.look(meter)
    assert progress.lag().unknown == "the source can't be reached"
    assert progress.source()[0].problem == "the source can't be reached"
    meter.answers = [Position(8, "8")]
    watch.look(meter)
    assert progress.source()[0].problem == ""
    clock.now_s += SILENT_S + 1
    assert progress.source()[0].problem == "no answer for 16 s", "as of a frozen server"
    known = progress.known_applied()
    assert known is not None
    assert known.order == 5
