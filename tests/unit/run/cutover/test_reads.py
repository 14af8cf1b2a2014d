"""Reads alone: pointed at any time, taken along by a switch, taken back by an undo, and true after any kill."""

from __future__ import annotations

import itertools

import pytest

from migrator.core import cutover as rules
from migrator.errors import ConnectionFailed, CutoverError
from migrator.model.codecs.cutover_codec import record_from_json, record_to_json
from migrator.model.cutover.record import SWITCH, Phase, Record, Side, Wanted
from migrator.run.cutover.conductor import Conductor
from tests.unit.run.cutover.test_conductor import ask, begun, conducted, nothing_is_lost, record
from tests.unit.run.cutover.world import KilledError, World

HOOKED = {"reads_hook": "point reads"}


def read_at(world: World, leader: Conductor, side: Side, gate: str = "") -> None:
    """An operator's word about reads, and the leader's look."""
    world.ask(rules.asked_reads(record(world), side, gate))
    leader.look()


def agrees(world: World) -> None:
    """The record says where reads go."""
    assert record(world).reads is world.read_at
    assert record(world).reads_wanted is None


def test_reads_go_first_and_come_back_alone() -> None:
    world, leader = begun(**HOOKED)
    for side in (Side.NEW, Side.OLD, Side.NEW):
        read_at(world, leader, side)
        assert world.read_at is side
        agrees(world)
    assert world.pointed == [], "writes stay where they are"
    assert record(world).open_side is Side.OLD
    assert len(set(world.keys)) == 3, "a key names one call"


def test_reads_follow_writes_unless_they_are_there_and_come_back_while_writes_are_new() -> None:
    world, leader = begun(**HOOKED)
    writes = itertools.count()
    read_at(world, leader, Side.NEW)
    calls = len(world.keys)
    ask(world, Wanted.START)
    conducted(world, leader, writes)
    assert len(world.keys) == calls, "they were there"
    read_at(world, leader, Side.OLD)
    assert (record(world).open_side, world.read_at) == (Side.NEW, Side.OLD)
    read_at(world, leader, Side.NEW, "the gate isn't met, but writes are there")
    for wanted, side in ((Wanted.BACK, Side.OLD), (Wanted.START, Side.NEW)):
        ask(world, wanted)
        conducted(world, leader, writes)
        assert (record(world).open_side, world.read_at) == (side, side)
        agrees(world)
    nothing_is_lost(world)


@pytest.mark.parametrize("before", list(Side))
def test_an_undo_takes_back_only_what_followed(before: Side) -> None:
    world, leader = begun(**HOOKED)
    read_at(world, leader, before)
    ask(world, Wanted.START)
    while record(world).phase is not Phase.CHECKING:
        leader.look()
    assert world.read_at is Side.NEW
    ask(world, Wanted.ABORT)
    conducted(world, leader, itertools.count())
    assert (record(world).open_side, world.read_at) == (Side.OLD, before)
    agrees(world)


@pytest.mark.parametrize("phase", [*SWITCH, Phase.UNDOING])
def test_reads_go_back_to_the_old_side_at_any_step(phase: Phase) -> None:
    """The switch goes on; before SWITCHING it takes them along once more, after it they stay at the old side."""
    world, leader = begun(**HOOKED)
    read_at(world, leader, Side.NEW)
    ask(world, Wanted.START)
    while record(world).phase is not (phase if phase in SWITCH else Phase.WAITING):
        leader.look()
    if phase is Phase.UNDOING:
        ask(world, Wanted.ABORT)
    world.ask(rules.asked_reads(record(world), Side.OLD, "the gate is shut"))
    conducted(world, leader, itertools.count())
    leader.look()
    late = phase not in SWITCH[: SWITCH.index(Phase.SWITCHING)]
    assert world.read_at is (Side.OLD if late else Side.NEW)
    agrees(world)


def test_reads_come_back_while_the_new_side_cannot_be_reached() -> None:
    world, leader = begun(**HOOKED)
    read_at(world, leader, Side.NEW)
    world.unreachable = Side.NEW
    world.ask(rules.asked_reads(record(world), Side.OLD, ""))
    with pytest.raises(ConnectionFailed):
        leader.look()  # the new side's copy of the record
    assert world.read_at is Side.OLD
    agrees(world)


def test_killed_at_any_point_the_record_says_in_the_end_where_reads_go() -> None:
    def play(world: World, leader: Conductor) -> None:
        writes = itertools.count()
        for word, side in ((Side.NEW, Side.NEW), (Wanted.START, Side.NEW), (Side.OLD, Side.OLD)):
            if isinstance(word, Wanted):
                ask(world, word)
            else:
                world.ask(rules.asked_reads(record(world), word, ""))
            for _ in range(3):
                try:
                    leader.look()
                except KilledError:
                    leader = world.led()
            conducted(world, leader, writes)
            leader = world.led()
            agrees(world)
            assert world.read_at is side
        for wanted, side in ((Wanted.BACK, Side.OLD), (Wanted.START, Side.NEW)):
            ask(world, wanted)
            conducted(world, leader, writes)
            leader = world.led()
            agrees(world)
            assert world.read_at is side

    world, leader = begun(**HOOKED)
    play(world, leader)
    points = len(world.points)
    assert {"cutover.reads", "cutover.reads_done"} <= set(world.points)
    for kill_at in range(1, points + 1):
        world, leader = begun(**HOOKED)
        world.kill_at = kill_at
        play(world, leader)
        nothing_is_lost(world)


def test_reads_stay_where_they_are_while_the_way_there_lags_or_the_hook_fails() -> None:
    world, leader = begun(**HOOKED)
    world.not_ready = "the way there lags"
    read_at(world, leader, Side.NEW)
    assert (record(world).reads, record(world).reads_said) == (Side.OLD, "the way there lags")
    assert world.keys == []
    read_at(world, leader, Side.OLD)
    assert world.keys != [], "back to the old side nothing holds them"
    world.not_ready, world.hook_fails = "", True
    read_at(world, leader, Side.NEW)
    assert record(world).reads is Side.OLD
    assert "the hook failed" in record(world).reads_said
    assert record(world).reads_wanted is None


def test_the_gate_holds_for_the_new_side_while_the_old_one_is_open_and_never_for_the_old_one() -> None:
    world, _ = begun(**HOOKED)
    with pytest.raises(CutoverError, match="reads can't go to the new side yet"):
        rules.asked_reads(record(world), Side.NEW, "totals: 3 wrong")
    assert rules.asked_reads(record(world), Side.OLD, "totals: 3 wrong").reads_wanted is Side.OLD


def test_without_a_hook_of_their_own_reads_go_with_the_writes() -> None:
    world, leader = begun()
    for side in Side:
        with pytest.raises(CutoverError, match="reads can't be pointed alone"):
            rules.asked_reads(record(world), side, "")
    ask(world, Wanted.START)
    conducted(world, leader, itertools.count())
    assert record(world).reads is Side.NEW
    assert world.keys == []


def test_finish_waits_for_reads() -> None:
    world, leader = begun(**HOOKED)
    read_at(world, leader, Side.NEW)
    with pytest.raises(CutoverError, match=r"reads go to the other side: .*--to old"):
        ask(world, Wanted.FINISH)
    read_at(world, leader, Side.OLD)
    ask(world, Wanted.FINISH)
    conducted(world, leader, itertools.count())
    with pytest.raises(CutoverError, match="reads can't be pointed any more"):
        rules.asked_reads(record(world), Side.OLD, "")


def test_a_record_of_format_1_reads_where_it_writes() -> None:
    world, leader = begun()
    ask(world, Wanted.START)
    conducted(world, leader, itertools.count())
    document = record_to_json(record(world))
    assert record_from_json(document) == record(world)
    for name in ("reads", "reads_wanted", "reads_turn", "reads_said", "follows"):
        del document[name]
    del document["plan"]["reads_hook"]
    found: Record = record_from_json({**document, "format": 1})
    assert found.reads is found.open_side is Side.NEW
