"""Words of operators, a clock and readers that come in the middle of a switch: none keeps a side closed."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from migrator.core import cutover as rules
from migrator.errors import ConnectionFailed, CutoverError
from migrator.model.cutover.fence import OpenTransaction
from migrator.model.cutover.record import SWITCH, UNDONE, Phase, Side, Wanted
from migrator.run.cutover import memory
from migrator.run.cutover.conductor import Conductor
from migrator.run.cutover.memory import Watch
from tests.unit.run.cutover.test_conductor import ask, begun, conducted, nothing_is_lost, record
from tests.unit.run.cutover.world import World, plan_of

HOOKED = {"reads_hook": "point reads"}


def at(phase: Phase, **values: object) -> tuple[World, Conductor]:
    """A world whose switch to the new side is in a step, and its leader."""
    world, leader = begun(**values)
    ask(world, Wanted.START)
    while record(world).phase is not phase:
        leader.look()
    return world, leader


def asks_for_reads(world: World, side: Side) -> None:
    """An operator's word about reads."""
    world.ask(rules.asked_reads(record(world), side, ""))


@pytest.mark.parametrize("phase", UNDONE)
def test_reads_on_their_way_to_a_lost_side_keep_no_switch_from_being_undone(phase: Phase) -> None:
    """Whether they may go there is asked of both sides: in a switch that would come before its undoing."""
    world, leader = at(phase, pause_s=20.0, **HOOKED)

    def asked_of_both(_: object) -> str:
        world.check(world.sides[Side.NEW])
        return ""

    leader = replace(leader, ready=asked_of_both)
    asks_for_reads(world, Side.NEW)
    world.unreachable = Side.NEW
    for _ in range(100):
        world.now_s += 1
        try:
            leader.look()
        except ConnectionFailed:
            continue
    assert not world.sides[Side.OLD].fenced
    world.unreachable = None
    conducted(world, leader, itertools.count())
    assert (record(world).open_side, record(world).reads_wanted) == (Side.OLD, None)
    assert "can't be reached" in record(world).reads_said
    assert record(world).reads is world.read_at
    nothing_is_lost(world)


@pytest.mark.parametrize("phase", SWITCH)
def test_reads_asked_to_follow_in_a_switch_call_no_hook_of_their_own_before_its_end(phase: Phase) -> None:
    world, leader = at(phase, **HOOKED)
    before = len(world.keys)
    asks_for_reads(world, Side.NEW)
    while record(world).phase is not Phase.IDLE:
        leader.look()
        assert all(not key.startswith("reads-") for key in world.keys[before:])
    leader.look()
    assert (record(world).reads, record(world).reads_wanted, world.read_at) == (Side.NEW, None, Side.NEW)


def test_what_is_asked_before_reads_go_may_fail_and_other_words_are_heard() -> None:
    world, leader = begun(**HOOKED)

    def lost(_: object) -> str:
        raise ConnectionFailed("the new side can't be reached", retryable=True)

    asks_for_reads(world, Side.NEW)
    replace(leader, ready=lost).look()
    assert record(world).reads_wanted is None
    assert "the new side can't be reached" in record(world).reads_said


def test_the_hook_points_back_though_a_reader_keeps_the_fences_remains_from_being_removed() -> None:
    """Writers pass from the first try on; a dump that reads for hours mustn't leave them pointed elsewhere."""
    world, leader = at(Phase.CHECKING)
    world.sides[Side.OLD].read = True
    ask(world, Wanted.ABORT)
    for _ in range(5):
        leader.look()
    assert record(world).phase is Phase.UNDOING
    assert not world.sides[Side.OLD].fenced
    assert world.pointed == [Side.NEW, Side.OLD], "once"
    world.sides[Side.OLD].read = False
    conducted(world, leader, itertools.count())
    assert world.pointed == [Side.NEW, Side.OLD]
    assert (record(world).phase, record(world).open_side) == (Phase.IDLE, Side.OLD)
    nothing_is_lost(world)


def test_a_clock_that_is_set_back_keeps_no_side_closed() -> None:
    world, leader = at(Phase.WAITING, pause_s=20.0)
    passed_s = [0.0]
    leader._watch = Watch(lambda: passed_s[0])
    world.sides[Side.OLD].held = True
    world.sides[Side.OLD].pending = list(range(10_000, 10_500))
    world.now_s -= 3_600
    leader.look()
    passed_s[0] = 19.0
    leader.look()
    assert record(world).phase is Phase.WAITING
    passed_s[0] = 21.0
    leader.look()
    assert (record(world).phase, record(world).open_side) == (Phase.IDLE, Side.OLD)
    assert "took more than 20 s" in record(world).reason


def test_each_switch_is_watched_from_its_own_beginning() -> None:
    now = [100.0]
    watch = Watch(lambda: now[0])
    assert watch.now_s(1, 1_000.0, 1_000.0) == 1_000.0
    now[0] = 130.0
    assert watch.now_s(1, 1_000.0, 1_005.0) == 1_030.0, "the clock was set back"
    assert watch.now_s(1, 1_000.0, 1_900.0) == 1_900.0, "it was set forward"
    assert watch.now_s(2, 2_000.0, 2_000.0) == 2_000.0


def test_what_tables_are_like_is_asked_before_a_switchs_time_begins() -> None:
    world, leader = begun(pause_s=20.0)

    def slow() -> dict[str, str]:
        world.now_s += 60
        return {"t": "0"}

    ask(world, Wanted.START)
    for side in world.sides.values():
        side.structure = slow  # type: ignore[method-assign]
    leader.look()
    assert record(world).phase is SWITCH[0]
    assert rules.due_to_undo(record(world), world.now_s) == ""


def test_an_abort_says_what_is_under_way() -> None:
    world, leader = at(Phase.WAITING)
    ask(world, Wanted.ABORT)
    world.sides[Side.OLD].read = True
    leader.look()
    with pytest.raises(CutoverError, match="can't take 'abort' now") as refused:
        ask(world, Wanted.ABORT)
    assert refused.value.cause == "it is being undone already"
    world, _ = at(Phase.OPENING)
    with pytest.raises(CutoverError) as refused:
        ask(world, Wanted.ABORT)
    assert refused.value.cause == "it opens the other side already"


def test_a_plan_accepted_behind_one_that_was_given_up_counts_on() -> None:
    """Else the hook would be called with keys that it knows: "nothing more to do", while clients wait elsewhere."""
    world, leader = begun(**HOOKED)
    asks_for_reads(world, Side.OLD)
    leader.look()
    ask(world, Wanted.START)
    conducted(world, leader, itertools.count())
    ask(world, Wanted.BACK)
    conducted(world, leader, itertools.count())
    ask(world, Wanted.FINISH)
    conducted(world, leader, itertools.count())
    before = record(world)
    after = rules.accepted(before, before.plan)
    assert (after.phase, after.open_side, after.reads) == (Phase.IDLE, Side.OLD, Side.OLD)
    assert (after.number, after.turn, after.reads_turn) == (before.number + 1, 2, 1)
    assert rules.begun(after, 0.0).turn == 3
    assert (after.equal_old, after.equal_new) == (0, 0), "what was given up proves nothing"


def test_no_two_records_have_one_key_for_their_calls() -> None:
    """A second one comes after a reset, or is another project's: its first switch is turn 1 as well."""
    calls = []
    for token in ("5eed", "f00d"):
        world, leader = begun(**HOOKED)
        world.copies = dict.fromkeys(Side, rules.accepted(None, record(world).plan, token))
        ask(world, Wanted.START)
        asks_for_reads(world, Side.OLD)
        conducted(world, leader, itertools.count())
        assert all(key.startswith(f"{token}-") for key in world.keys), world.keys
        assert {key.removeprefix(f"{token}-") for key in world.keys} >= {"1-new-reads", "reads-1-old"}
        calls += world.keys
    assert len({*calls}) == len(calls)
    assert rules.accepted(replace(record(world), phase=Phase.FINISHED, open_side=Side.OLD), plan_of()).token


def test_a_transaction_in_the_way_of_the_fence_is_ended_where_the_plan_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fence of triggers waits for it, so the step that ends open transactions would never come."""
    now = [100.0]
    monkeypatch.setattr("migrator.run.cutover.memory.time.monotonic", lambda: now[0])
    for ends in (True, False):
        world, leader = at(Phase.FENCING, end_transactions=ends, grace_s=5.0, pause_s=30.0)
        world.sides[Side.OLD].held = True
        for _ in range(2):
            leader.look()
            now[0] += 5.0
        assert world.sides[Side.OLD].held, "it is waited for as long as the plan says"
        now[0] += 0.1
        leader.look()
        leader.look()
        assert world.sides[Side.OLD].held is not ends
        assert (record(world).phase is Phase.FENCING) is not ends


def test_whoever_begins_anew_is_in_nobodys_way(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("migrator.run.cutover.memory.time.monotonic", lambda: now[0])
    seen = memory.Underway()
    sleeper = OpenTransaction("7", "app", "noon", "sleeps")
    for minute in range(3):
        busy = OpenTransaction("8", "app", f"minute {minute}", "works")
        found = seen.lasting((sleeper, busy), 5.0)
        assert found == ([sleeper] if minute else [])
        now[0] += 60.0
    assert seen.lasting((), 5.0) == []
    assert seen.lasting((sleeper,), 5.0) == [], "it was away"


@pytest.mark.parametrize("hooks", [("", "point reads"), ("point", ""), ("an older one", "point reads")])
def test_a_leader_that_began_with_other_hooks_begins_no_switch(hooks: tuple[str, str]) -> None:
    """Its settings were read as it started: it would call what nobody accepted, or nothing."""
    world, leader = begun(**HOOKED)
    leader = replace(leader, ready=lambda found: rules.other_hooks(found, *hooks))
    ask(world, Wanted.START)
    leader.look()
    assert (record(world).phase, record(world).wanted) == (Phase.IDLE, Wanted.NOTHING)
    assert "isn't what `migrator run` has read" in record(world).reason
    accepted = replace(leader, ready=lambda found: rules.other_hooks(found, "point", "point reads"))
    ask(world, Wanted.START)
    conducted(world, accepted, itertools.count())
    assert record(world).open_side is Side.NEW
    ask(world, Wanted.BACK)
    conducted(world, leader, itertools.count())
    assert record(world).open_side is Side.OLD, "nobody is kept from going back"
