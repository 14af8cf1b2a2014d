"""The machine: kills at every point, sides that can't be reached, time limits, late writes. Servers are in memory."""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import replace

import pytest

from migrator.core import cutover as rules
from migrator.errors import ConnectionFailed, CutoverError, FencedError
from migrator.model.codecs.cutover_codec import record_from_json, record_to_json
from migrator.model.cutover.record import SWITCH, Effort, Phase, Record, Side, Verify, Wanted
from migrator.run.cutover.conductor import Conductor
from tests.unit.run.cutover.world import KilledError, World, plan_of

_LOOKS = 300


def begun(**values: object) -> tuple[World, Conductor]:
    """A world whose plan is accepted, the new side fenced, and its leader."""
    world = World()
    world.accept(plan_of(**values))
    leader = world.led()
    leader.look()
    assert world.sides[Side.NEW].fenced
    return world, leader


def record(world: World) -> Record:
    """The record that holds."""
    found = world.copies[Side.OLD]
    assert found is not None
    return found


def ask(world: World, wanted: Wanted) -> None:
    """An operator's word."""
    world.ask(rules.asked(record(world), wanted))


def conducted(world: World, leader: Conductor, writes: itertools.count[int]) -> None:
    """Looks until nothing is under way, clients writing in between; another leader follows one that is killed."""
    for _ in range(_LOOKS):
        world.clients_write(next(writes))
        try:
            leader.look()
        except KilledError:
            leader = world.led()
        except ConnectionFailed:
            world.now_s += 1
        if record(world).phase in (Phase.IDLE, Phase.FINISHED) and record(world).wanted is Wanted.NOTHING:
            return
    raise AssertionError(f"it comes to no end: {record(world)}")


def streamed(world: World) -> None:
    """Both streams come to their logs' ends."""
    for side in world.sides.values():
        for _ in side.log:
            side.reached(side.position())


def nothing_is_lost(world: World) -> None:
    """Every acknowledged write is in its side's log, once, and was carried across."""
    streamed(world)
    for name, side in world.sides.items():
        assert [n for at, n in world.acknowledged if at is name] == side.log
        assert world.sides[name.other].applied == len(side.log)


def test_there_and_back_and_there_again() -> None:
    world, leader = begun()
    writes = itertools.count()
    for wanted, side in ((Wanted.START, Side.NEW), (Wanted.BACK, Side.OLD), (Wanted.START, Side.NEW)):
        ask(world, wanted)
        conducted(world, leader, writes)
        assert (record(world).open_side, record(world).reason) == (side, "")
        assert world.pointed[-1] is side
        assert [one.phase for one in record(world).took] == list(SWITCH)
        assert not world.sides[side].fenced
        assert world.sides[side.other].fenced
    nothing_is_lost(world)
    assert {name for name, _ in world.acknowledged} == set(Side)


def test_killed_at_any_point_there_and_back_the_next_leader_brings_it_to_its_end() -> None:
    """Every point of a whole way there and back, those between the two copies of the record included."""
    world, leader = begun()
    for wanted in (Wanted.START, Wanted.BACK):
        ask(world, wanted)
        conducted(world, leader, itertools.count())
    points = len(world.points)
    assert points > 50, "the points are not reached any more"
    for kill_at in range(1, points + 1):
        world, leader = begun()
        world.kill_at = kill_at + 0
        writes = itertools.count()
        for wanted, side in ((Wanted.START, Side.NEW), (Wanted.BACK, Side.OLD)):
            ask(world, wanted)
            conducted(world, leader, writes)
            leader = world.led()
            assert record(world).open_side is side, kill_at
        world.check_one_open()
        nothing_is_lost(world)


@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize("phase", SWITCH)
def test_a_side_that_cannot_be_reached_at_a_step_leaves_one_side_open(side: Side, phase: Phase) -> None:
    """For a while: before the limit it goes on, past it it is undone; but what was being opened is opened."""
    for lasts in (2, 200):
        world, leader = begun(pause_s=20.0)
        ask(world, Wanted.START)
        writes = itertools.count()
        looks = 0
        while record(world).phase is not phase:
            world.clients_write(next(writes))
            leader.look()
            looks += 1
            assert looks < _LOOKS
        world.unreachable = side
        for _ in range(lasts):
            world.clients_write(next(writes))
            try:
                leader.look()
            except ConnectionFailed:
                world.now_s += 1
            world.check_one_open()
        if side is Side.NEW and lasts == 200 and phase is not Phase.OPENING:
            assert not world.sides[Side.OLD].fenced, "the old side needs nobody to be open again"
        world.unreachable = None
        conducted(world, leader, writes)
        opened = record(world).open_side
        assert not world.sides[opened].fenced
        assert world.sides[opened.other].fenced
        nothing_is_lost(world)


def test_transactions_that_were_open_are_waited_for_and_carried_across() -> None:
    world, leader = begun()
    world.sides[Side.OLD].pending = [901, 902, 903]
    ask(world, Wanted.START)
    conducted(world, leader, itertools.count())
    assert record(world).open_side is Side.NEW
    assert {901, 902, 903} <= set(world.sides[Side.OLD].log)
    nothing_is_lost(world)


def test_past_its_limit_a_switch_is_undone_and_the_hook_points_back() -> None:
    world, leader = begun(pause_s=5.0)
    ask(world, Wanted.START)
    while record(world).phase is not Phase.CHECKING:
        leader.look()
    world.now_s += 6
    conducted(world, leader, itertools.count())
    assert record(world).open_side is Side.OLD
    assert "more than 5 s, in step checking" in record(world).reason
    assert world.pointed == [Side.NEW, Side.OLD]
    assert world.sides[Side.NEW].fenced


def test_a_hook_that_fails_both_ways_leaves_the_old_side_open() -> None:
    world, leader = begun()
    world.hook_fails = True
    ask(world, Wanted.START)
    conducted(world, leader, itertools.count())
    assert record(world).open_side is Side.OLD
    assert "the hook failed as well" in record(world).reason
    assert not world.sides[Side.OLD].fenced


def test_an_abort_is_heard_at_every_step_but_the_last() -> None:
    for phase in SWITCH:
        world, leader = begun()
        ask(world, Wanted.START)
        while record(world).phase is not phase:
            leader.look()
        if phase is Phase.OPENING:
            with pytest.raises(CutoverError, match="it opens the other side already"):
                ask(world, Wanted.ABORT)
            continue
        ask(world, Wanted.ABORT)
        conducted(world, leader, itertools.count())
        assert (record(world).open_side, record(world).reason) == (Side.OLD, "an operator aborted it")


def test_a_write_that_passes_the_fence_stops_the_switch_and_is_carried_across_afterwards() -> None:
    world, leader = begun()
    old = world.sides[Side.OLD]
    ask(world, Wanted.START)
    while record(world).phase is not Phase.TURNING:
        leader.look()
    old.leaky = True
    assert old.write(77)
    old.leaky = False
    conducted(world, leader, itertools.count(100))
    assert record(world).open_side is Side.OLD
    assert "passed the fence" in record(world).reason or "late" in record(world).reason
    nothing_is_lost(world)


def test_a_leader_that_was_replaced_writes_nothing() -> None:
    world, before = begun()
    world.led()
    ask(world, Wanted.START)
    known = record(world)
    with pytest.raises(FencedError):
        before.look()
    assert record(world) == known


def test_finish_gives_the_way_back_up_or_the_whole_plan() -> None:
    for wanted, side, fenced in ((Wanted.START, Side.NEW, Side.OLD), (None, Side.OLD, None)):
        world, leader = begun()
        if wanted is not None:
            ask(world, wanted)
            conducted(world, leader, itertools.count())
        ask(world, Wanted.FINISH)
        for _ in range(5):
            leader.look()
        assert (record(world).phase, record(world).open_side) == (Phase.FINISHED, side)
        assert world.given_up
        assert {name for name, one in world.sides.items() if one.fenced} == ({fenced} if fenced else set())
        with pytest.raises(CutoverError, match="it was finished"):
            ask(world, Wanted.START)


def test_the_new_side_is_lost_just_before_it_is_opened_and_the_old_one_opens_again() -> None:
    world, leader = begun()
    ask(world, Wanted.START)
    while record(world).phase is not Phase.CHECKING:
        leader.look()
    world.lost_at = ("cutover.checking_done", Side.NEW)
    for _ in range(20):
        try:
            leader.look()
        except ConnectionFailed:
            world.now_s += 1
    assert not world.sides[Side.OLD].fenced
    assert world.sides[Side.NEW].fenced
    assert "couldn't be reached before it was opened" in record(world).reason


def test_rows_that_differ_undo_a_switch_and_nothing_else_was_opened() -> None:
    world, leader = begun()
    world.differs = Side.OLD
    ask(world, Wanted.START)
    conducted(world, leader, itertools.count())
    assert (record(world).open_side, record(world).phase) == (Side.OLD, Phase.IDLE)
    assert "rows differ" in record(world).reason
    assert world.pointed == [], "nobody was sent to a side whose rows differ"
    assert not world.sides[Side.OLD].fenced


def test_a_comparison_that_was_given_up_by_name_is_left_out() -> None:
    world, leader = begun(verify=Verify.NOTHING)
    world.differs = Side.OLD
    ask(world, Wanted.START)
    conducted(world, leader, itertools.count())
    assert record(world).open_side is Side.NEW
    assert world.compared == []


def test_a_comparison_goes_on_where_the_last_one_of_that_side_ended() -> None:
    """Changes of one side are listed by its own stream: the two places have nothing to do with each other."""
    world, leader = begun(verify_s=3.0)
    for wanted in (Wanted.START, Wanted.BACK, Wanted.START, Wanted.BACK):
        ask(world, wanted)
        conducted(world, leader, itertools.count())
    assert [side for side, *_ in world.compared] == [Side.OLD, Side.NEW, Side.OLD, Side.NEW]
    ends: dict[Side, int] = dict.fromkeys(Side, 0)
    for side, since, effort, upto in world.compared:
        assert (since, effort) == (ends[side], Effort(3.0))
        ends[side] = upto
    assert (record(world).equal_old, record(world).equal_new) == (ends[Side.OLD], ends[Side.NEW])
    assert min(ends.values()) > 0
    assert record_from_json(record_to_json(record(world))) == record(world)


def test_a_record_of_a_version_without_comparisons_is_read() -> None:
    world, _ = begun()
    document = record_to_json(record(world))
    for name in ("equal_old", "equal_new"):
        del document[name]
    for name in ("verify", "verify_s"):
        del document["plan"][name]
    assert record_from_json({**document, "format": 1}) == record(world)


def test_a_side_opened_by_hand_is_never_joined_by_a_second_one() -> None:
    """Killed at any step, either side opened with the printed SQL: the next leader opens nothing, and says why."""
    for phase, by_hand in itertools.product((Phase.SWITCHING, Phase.OPENING, Phase.DRAINING), Side):
        world, leader = begun(pause_s=20.0)
        ask(world, Wanted.START)
        while record(world).phase is not phase:
            leader.look()
        world.sides[by_hand].fenced = False
        leader = world.led()
        world.now_s += 100
        for _ in range(20):
            leader.look()
            world.check_one_open()
        if record(world).under_way:
            assert f"migrator cutover opened {by_hand}" in record(world).reason
            world.ask(rules.opened(record(world), by_hand))
        conducted(world, leader, itertools.count())
        assert (record(world).open_side, record(world).phase) == (by_hand, Phase.IDLE)
        assert world.sides[by_hand.other].fenced
        assert not world.sides[by_hand].fenced


def test_the_new_sides_copy_is_brought_up_once_it_can_be_reached() -> None:
    """An undo that had to do without it leaves an old copy there, by which the way there would hold back changes."""
    world, leader = begun(pause_s=5.0)
    ask(world, Wanted.START)
    while record(world).phase is not Phase.SWITCHING:
        leader.look()
    world.unreachable = Side.NEW
    for _ in range(20):
        world.now_s += 1
        with suppress(ConnectionFailed):
            leader.look()
    assert not world.sides[Side.OLD].fenced
    assert world.copies[Side.NEW] != record(world)
    world.unreachable = None
    leader.look()
    assert world.copies[Side.NEW] == record(world)


def test_a_hook_that_fails_in_an_undo_is_called_once_after_the_side_is_open() -> None:
    world, leader = begun(pause_s=5.0)
    ask(world, Wanted.START)
    while record(world).phase is not Phase.CHECKING:
        leader.look()
    world.now_s += 10
    world.hook_fails = True
    calls: list[bool] = []
    world.called = lambda: calls.append(world.sides[Side.OLD].fenced)
    conducted(world, leader, itertools.count())
    assert calls == [False], "it was called while the side was closed, or again"
    assert "the hook failed as well" in record(world).reason


def test_a_word_is_taken_while_the_idle_side_cannot_be_fenced() -> None:
    world, leader = begun()
    world.sides[Side.NEW].fenced, world.sides[Side.NEW].held = False, True
    ask(world, Wanted.START)
    leader.look()
    assert "the new side isn't fenced yet: somebody holds it" in record(world).reason
    ask(world, Wanted.ABORT)
    leader.look()
    assert record(world).wanted is Wanted.NOTHING


def test_writes_past_the_idle_sides_fence_are_named_before_anything_lags() -> None:
    world, leader = begun()
    world.sides[Side.NEW].commit(1)
    world.not_ready = "it lags"
    ask(world, Wanted.START)
    leader.look()
    assert "writes passed the fence of the new side" in record(world).reason
    assert "`migrator repair` put those rows right" in record(world).reason


def test_behind_a_switch_no_repair_is_advised_for_writes_past_the_old_sides_fence() -> None:
    """It goes by the old side, and would put rows of the new one back, which is open."""
    world, leader = begun()
    ask(world, Wanted.START)
    conducted(world, leader, itertools.count())
    assert record(world).open_side is Side.NEW
    world.sides[Side.OLD].commit(1)
    ask(world, Wanted.BACK)
    leader.look()
    assert "writes passed the fence of the old side" in record(world).reason
    assert "repair" not in record(world).reason


def test_a_plan_takes_anothers_place_only_where_its_fence_can_be_raised() -> None:
    world, leader = begun()
    plan = record(world).plan
    rules.may_accept(None, plan)
    rules.may_accept(record(world), replace(plan, pause_s=3.0, hook=""))
    with pytest.raises(CutoverError, match="the fences of an accepted plan can't be changed"):
        rules.may_accept(record(world), replace(plan, new=replace(plan.new, message="another")))
    ask(world, Wanted.FINISH)
    conducted(world, leader, itertools.count())
    rules.may_accept(record(world), replace(plan, new=replace(plan.new, message="another")))


def test_a_plan_cannot_be_accepted_once_the_old_side_was_given_up() -> None:
    """Its record would say that the old side is open, whose rows are stale."""
    world, leader = begun()
    for wanted in (Wanted.START, Wanted.FINISH):
        ask(world, wanted)
        conducted(world, leader, itertools.count())
    with pytest.raises(CutoverError, match="the old side was given up for good"):
        rules.may_accept(record(world), record(world).plan)
    with pytest.raises(CutoverError, match="no side has to be opened by hand"):
        rules.opened(record(world), Side.OLD)
