"""A switch that nobody goes on with: whoever finds that out undoes it, and does nothing else."""

from __future__ import annotations

import itertools
from contextlib import suppress

import pytest

from migrator.core import cutover as rules
from migrator.errors import ConnectionFailed, CutoverError, FencedError
from migrator.model.cutover.record import SWITCH, UNDONE, Phase, Side, Wanted
from tests.unit.run.cutover.test_conductor import ask, begun, conducted, nothing_is_lost, record
from tests.unit.run.cutover.world import World

_WHY = "the run ended: a column is missing"


def left_at(phase: Phase) -> World:
    """A world whose leader ended in a step."""
    world, leader = begun()
    ask(world, Wanted.START)
    while record(world).phase is not phase:
        leader.look()
    return world


@pytest.mark.parametrize("phase", UNDONE)
def test_the_side_that_was_open_opens_again_whatever_step_was_under_way(phase: Phase) -> None:
    world = left_at(phase)
    world.led().let_go(_WHY)
    assert (record(world).phase, record(world).open_side, record(world).reason) == (
        Phase.IDLE,
        Side.OLD,
        _WHY,
    )
    assert not world.sides[Side.OLD].fenced
    assert world.sides[Side.NEW].fenced
    if record(world).hooked:
        assert world.pointed[-1] is Side.OLD
    conducted(world, world.led(), itertools.count())
    nothing_is_lost(world)


def test_it_needs_the_side_that_was_open_alone() -> None:
    for phase in UNDONE:
        world = left_at(phase)
        world.unreachable = Side.NEW
        world.led().let_go(_WHY)
        assert not world.sides[Side.OLD].fenced, phase
        world.unreachable = Side.OLD
        world = left_at(phase)
        world.unreachable = Side.OLD
        with pytest.raises(ConnectionFailed):
            world.led().let_go(_WHY)


def test_what_is_being_opened_stays_for_the_next_leader() -> None:
    world = left_at(SWITCH[-1])
    before = record(world)
    world.led().let_go(_WHY)
    assert record(world) == before
    conducted(world, world.led(), itertools.count())
    assert record(world).open_side is Side.NEW


def test_a_word_that_was_aborted_before_anything_began_is_forgotten_and_no_other_one() -> None:
    world, _ = begun()
    ask(world, Wanted.START)
    world.led().let_go(_WHY)
    assert record(world).wanted is Wanted.START, "what was asked for stays asked for"
    ask(world, Wanted.ABORT)
    world.led().let_go(_WHY)
    assert record(world).wanted is Wanted.NOTHING
    assert not world.sides[Side.OLD].fenced


def test_a_side_opened_by_hand_is_not_joined() -> None:
    world = left_at(Phase.CHECKING)
    world.sides[Side.NEW].fenced = False
    with pytest.raises(CutoverError, match="somebody opened it by hand"):
        world.led().let_go(_WHY)
    assert world.sides[Side.OLD].fenced


def test_nobody_undoes_what_a_later_leader_has() -> None:
    world = left_at(Phase.DRAINING)
    late = world.led()
    world.led()
    with pytest.raises(FencedError):
        late.let_go(_WHY)
    assert record(world).phase is Phase.DRAINING


def test_a_leader_that_sleeps_through_an_undo_opens_nothing() -> None:
    """It woke up behind it: the record's epoch, and the fences', are those of whoever undid the switch."""
    world, leader = begun()
    ask(world, Wanted.START)
    while record(world).phase is not Phase.CHECKING:
        leader.look()
    world.led().let_go(_WHY)
    with suppress(FencedError):
        leader.look()
    assert [side for side in Side if not world.sides[side].fenced] == [Side.OLD]


def test_due_to_undo_is_what_an_onlooker_can_tell() -> None:
    """Between two attempts nobody leads: only what is past its limit, or aborted, is undone then."""
    world = left_at(Phase.DRAINING)
    now = record(world)
    assert rules.due_to_undo(now, now.since_s + now.plan.pause_s - 1) == ""
    assert "it took more than" in rules.due_to_undo(now, now.since_s + now.plan.pause_s + 1)
