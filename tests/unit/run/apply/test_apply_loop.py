"""The apply loop on its own: in which order batches, damage and the end of a run come to the target."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from migrator.errors import ConnectionFailed, DamageError, TargetError
from migrator.model.ledger import Ledger
from migrator.model.limits import ApplyLimits
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, Filling
from migrator.ports.eventlog import Batch
from migrator.ports.target import TargetBatch
from migrator.run.apply.loop import ApplyLoop, OpenedTarget
from migrator.run.caught_up import caught_up
from migrator.run.failure import Stopping
from migrator.run.progress import Progress

DEADLINE_S = 30.0


def batch(number: int) -> Batch:
    checkpoint = Checkpoint(Position(number, str(number)))
    return Batch(number, number, checkpoint, 0, 1, 1, 0, (), (), ())


class Batches:
    """An event log of some batches, and what comes behind them."""

    def __init__(self, count: int, behind: Exception | None = None):
        self.count, self.behind = count, behind
        self.released: list[int] = []
        self.at_the_end = threading.Event()

    def read(self, after: int, max_rows: int, timeout_s: float) -> Batch | None:
        if after < self.count:
            return batch(after + 1)
        self.at_the_end.set()
        if self.behind is not None:
            raise self.behind
        return None

    def release(self, up_to: int) -> None:
        self.released.append(up_to)


class Target:
    """Notes what is applied; ``before`` is called with each batch's segment first."""

    def __init__(self, before: Callable[[int], None] = lambda segment: None):
        self.applied: list[int] = []
        self.opened = 0
        self.before = before

    def open(self, epoch: int) -> Ledger:
        self.opened += 1
        return Ledger("m", segment=self.applied[-1] if self.applied else 0, epoch=epoch, checkpoint=None)

    def apply(self, given: TargetBatch) -> None:
        self.before(given.segment)
        self.applied.append(given.segment)


def mapped(given: Batch, known: Checkpoint | None) -> TargetBatch:
    return TargetBatch(segment=given.last, checkpoint=given.checkpoint, rows=())


def loop(batches: Batches, target: Target, progress: Progress | None = None) -> ApplyLoop:
    ledger = Ledger("m", segment=0, epoch=1, checkpoint=None)
    opened = OpenedTarget(target, ledger, 1)  # type: ignore[arg-type]
    return ApplyLoop(batches, mapped, opened, progress or Progress(), ApplyLimits(interval_s=0))  # type: ignore[arg-type]


def test_what_was_mapped_is_applied_before_damage_ends_the_run() -> None:
    """1. one batch is in the target's hands, one is mapped; 2. the next is damaged. Neither is captured again."""
    batches = Batches(2, DamageError("a file is torn"))
    target = Target(before=lambda segment: wait(batches.at_the_end))
    stopping = Stopping()
    loop(batches, target).run(stopping)
    with pytest.raises(DamageError):
        stopping.raise_failure()
    assert target.applied == [1, 2]


def test_the_end_of_a_run_applies_what_capture_has_stored() -> None:
    batches, target = Batches(3), Target()
    loop(batches, target).finish()
    assert (target.applied, batches.released) == ([1, 2, 3], [1, 2, 3])


def test_the_end_of_a_run_leaves_the_rest_where_the_target_does_not_answer() -> None:
    def broken(segment: int) -> None:
        if segment == 2:
            raise ConnectionFailed("cut", retryable=True)

    batches, target = Batches(3), Target(before=broken)
    loop(batches, target).finish()
    assert (target.applied, batches.released) == ([1], [1])


def test_a_commit_whose_answer_was_lost_is_not_made_twice() -> None:
    target = Target()
    apply = loop(Batches(1), target)
    only = apply.map_next()
    assert only is not None

    def lost(given: TargetBatch) -> None:
        target.applied.append(given.segment)
        raise ConnectionFailed("cut behind the commit", retryable=True)

    whole, target.apply = target.apply, lost  # type: ignore[method-assign]
    assert not apply.apply(only)
    target.apply = whole  # type: ignore[method-assign]
    assert apply.apply(only)
    assert (target.applied, target.opened) == ([1], 1)


def test_a_commit_that_never_arrived_is_made_and_the_next_asks_nothing() -> None:
    cut = [True]

    def broken(segment: int) -> None:
        if cut.pop() if cut else False:
            raise ConnectionFailed("cut before the commit", retryable=True)

    target = Target(before=broken)
    apply = loop(Batches(2), target)
    first, second = apply.map_next(), apply.map_next()
    assert first is not None
    assert second is not None
    assert not apply.apply(first)
    assert apply.apply(first)
    assert target.opened == 1
    apply.finish()
    assert (target.applied, target.opened) == ([1, 2], 1)


def test_what_the_target_refuses_for_good_ends_the_run() -> None:
    def refused(segment: int) -> None:
        raise TargetError("a row doesn't fit")

    apply = loop(Batches(1), Target(before=refused))
    with pytest.raises(TargetError):
        apply.finish()


def test_changes_wait_for_one_transaction_and_not_for_batches_read_long_before() -> None:
    """The third batch isn't read while the first one is in the target's hands: it would lack what comes meanwhile."""
    now_s = [0.0]
    read: list[int] = []

    class Growing(Batches):
        def read(self, after: int, max_rows: int, timeout_s: float) -> Batch | None:
            found = super().read(after, max_rows, timeout_s)
            read.extend([] if found is None else [found.last])
            return found

    batches, stopping = Growing(6), Stopping()
    ahead: dict[int, int] = {}

    def applied(segment: int) -> None:
        if segment > 3:
            batches.at_the_end.wait(0.1)  # time enough to read all there is
            ahead[segment] = read[-1] - segment
        now_s[0] += 10.0
        if segment == 6:
            stopping.request()

    target = Target(before=applied)
    progress = Progress()
    progress.clock = lambda: now_s[0]
    loop(batches, target, progress).run(stopping)
    assert target.applied == [1, 2, 3, 4, 5, 6]
    assert max(ahead.values()) <= 1


def wait(event: threading.Event) -> None:
    assert event.wait(DEADLINE_S)


class Fill:
    """A joined target that needs some pieces; a batch may begin it anew."""

    def __init__(self, target: Target, pieces: int):
        self.left, self.filling = pieces, (Filling("t"),) if pieces else ()
        target.fill = self.fill  # type: ignore[attr-defined]
        self.target = target
        self.lost = 0

    def piece(self, mirror: object) -> Iterator[object]:
        raise AssertionError("the target takes it, and there is none")

    def fill(self, piece: object) -> None:
        if self.lost:
            self.lost -= 1
            raise ConnectionFailed("cut", retryable=True)
        self.left -= 1
        self.target.applied.append(-self.left)
        self.filling = (Filling("t"),) if self.left else ()


def filling_loop(batches: Batches, target: Target, fill: Fill, begun: bool = True) -> ApplyLoop:
    checkpoint = Checkpoint(Position(0, "0"), filling=(Filling("t"),)) if begun else None
    opened = OpenedTarget(target, Ledger("m", 1, 0, checkpoint), 1)  # type: ignore[arg-type]
    return ApplyLoop(batches, mapped, opened, Progress(), ApplyLimits(), fills=fill)  # type: ignore[arg-type]


def test_a_fill_goes_on_between_batches_and_alone() -> None:
    """A restart begins with it; a batch that waits comes first; a lost piece is made again."""
    target = Target()
    fill = Fill(target, 4)
    fill.lost = 1
    apply = filling_loop(Batches(2), target, fill)
    stopping = Stopping()
    stopping.thread("end", lambda: ended(fill, target, stopping))
    apply.run(stopping)
    stopping.raise_failure()
    assert sorted(target.applied) == sorted([-3, -2, -1, 0, 1, 2])
    assert [one for one in target.applied if one > 0] == [1, 2]
    assert [one for one in target.applied if one <= 0] == [-3, -2, -1, 0]


def test_a_run_isnt_caught_up_while_a_target_is_being_filled() -> None:
    target = Target()
    fill = Fill(target, 2)
    apply = filling_loop(Batches(1), target, fill)
    assert apply._progress.snapshot().filling
    reached = caught_up(lambda: Position(0, "0"))
    apply._progress.set(captured=Position(1, "1"), applied_dump_complete=True, requests_left=0)
    only = apply.map_next()
    assert only is not None
    assert apply.apply(only)
    assert apply.fill()
    assert not reached(apply._progress.snapshot())
    assert apply.fill()
    assert reached(apply._progress.snapshot())
    assert not apply.filling()


def ended(fill: Fill, target: Target, stopping: Stopping) -> None:
    while not stopping.wait(0.01):
        if not fill.filling and {1, 2} <= set(target.applied):
            stopping.request()
