"""Tables that somebody changes while a switch is under way: the side that would be opened isn't what was planned."""

from __future__ import annotations

import itertools

import pytest

from migrator.core.cutover import changed_tables
from migrator.model.codecs.cutover_codec import record_from_json, record_to_json
from migrator.model.cutover.record import SWITCH, Phase, Side, Wanted
from tests.unit.run.cutover.test_conductor import ask, begun, conducted, nothing_is_lost, record


@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize("phase", SWITCH[: SWITCH.index(Phase.CHECKING) + 1])
def test_a_table_changed_at_any_step_undoes_the_switch_by_name(phase: Phase, side: Side) -> None:
    for wanted, stays in ((Wanted.START, Side.OLD), (Wanted.BACK, Side.NEW)):
        world, leader = begun()
        if wanted is Wanted.BACK:
            ask(world, Wanted.START)
            conducted(world, leader, itertools.count())
        ask(world, wanted)
        while record(world).phase is not phase:
            leader.look()
        world.sides[side].altered += 1
        conducted(world, leader, itertools.count(100))
        assert record(world).open_side is stays
        assert f"t on the {side} side" in record(world).reason
        nothing_is_lost(world)
        ask(world, wanted)
        conducted(world, leader, itertools.count(200))
        assert (record(world).open_side, record(world).reason) == (stays.other, ""), (
            "it is as it was from now on"
        )


def test_a_leader_that_follows_knows_what_tables_were_like_and_one_of_an_older_version_does_not() -> None:
    for older, opened in ((False, Side.OLD), (True, Side.NEW)):
        world, leader = begun()
        ask(world, Wanted.START)
        while record(world).phase is not Phase.TURNING:
            leader.look()
        document = record_to_json(record(world))
        if older:
            del document["structure"]
        world.copies = dict.fromkeys(Side, record_from_json(document))
        world.sides[Side.OLD].altered += 1
        conducted(world, world.led(), itertools.count())
        assert record(world).open_side is opened


def test_tables_that_went_came_or_changed_are_named() -> None:
    before = (("a", "1"), ("b", "1"), ("c", "1"))
    assert changed_tables(before, (("a", "1"), ("b", "2"), ("d", "1"))) == ["b", "c", "d"]
    assert changed_tables(before, before) == []
    assert changed_tables((), before) == []
