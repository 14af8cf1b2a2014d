"""Random histories of the machine, seeded: leaders are killed or sleep, sides and hooks fail, operators say anything.

Checked all the time: never two writable sides. In the end, once everything is mended and nothing is under way: one
side is writable, every acknowledged write was carried across once, and each client's writes are in its order.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import pytest

from migrator.core import cutover as rules
from migrator.errors import ConnectionFailed, CutoverError, FencedError
from migrator.model.cutover.record import Phase, Side, Wanted
from migrator.run.cutover.conductor import Conductor
from tests.unit.run.cutover.test_conductor import begun, nothing_is_lost, record, streamed
from tests.unit.run.cutover.world import KilledError, SideInMemory, World
from verify.history.result import Outcome
from verify.two_sides.checks import judge
from verify.two_sides.history import MOMENTS, OK, OLD, OPENS, Moment, State, TwoSides, Write

_WORDS = (Wanted.START, Wanted.BACK, Wanted.ABORT)


class History:
    """One history.

    Attributes:
        written: number of the latest write; those of transactions that stay open for a while are negative.
        slept: leaders that slept at a named point, and woke up behind another one's steps.
    """

    def __init__(self, seed: int):
        self.chance = random.Random(seed)
        self.world, self.leader = begun(pause_s=self.chance.choice((3.0, 30.0, 300.0)))
        self.world.meanwhile = self.meanwhile
        self.written = self.slept = 0
        self.switched: set[Side] = set()
        self.seen: list[State] = []
        self.glances = random.Random(seed)
        self.sleeps = False

    def step(self) -> None:
        """Anything that may happen."""
        world, chance = self.world, self.chance
        match chance.randrange(13):
            case 0:
                world.unreachable = chance.choice((None, *Side))
            case 1:
                world.hook_fails = chance.random() < 0.3
            case 2:
                world.now_s += chance.choice((0.1, 1.0, 10.0))
            case 3:
                with suppress(CutoverError, ConnectionFailed):
                    world.check(world.sides[Side.OLD])
                    world.ask(rules.asked(record(world), chance.choice(_WORDS)))
            case 4:
                self.sleeps = chance.random() < 0.3
            case 5:
                world.kill_at = len(world.points) + chance.randrange(1, 8) if chance.random() < 0.2 else -1
            case 12 if chance.random() < 0.2:
                self.leader = world.led()  # whose own attempt to lead fails at once
                self.look(self.leader, letting_go=True)
            case 6 if not self.open_side().fenced:
                self.open_side().pending.append(-self.next_write())
            case _:
                self.write()
                self.look(self.leader)
        self.one_writable()
        if self.glances.random() < 0.3:
            self.seen.append(shown(self.world, self.glances.choice((*Side,))))

    def look(self, leader: Conductor, letting_go: bool = False) -> None:
        """A leader looks, or lets go; one that is killed is followed by another."""
        try:
            if letting_go:
                with suppress(CutoverError):
                    leader.let_go("its run ended")
            else:
                leader.look()
        except KilledError:
            self.world.kill_at = -1
            self.leader = self.world.led()
        except FencedError:
            assert leader is not self.leader, "who leads was refused"
        except ConnectionFailed:
            self.world.now_s += 0.5
        self.switched.add(record(self.world).open_side)

    def meanwhile(self) -> None:
        """At a named point the leader may fall asleep; another one leads for a while, then it wakes up."""
        if not self.sleeps or self.chance.random() < 0.7:
            return
        self.sleeps = False
        self.slept += 1
        self.leader = self.world.led()
        for _ in range(self.chance.randrange(1, 30)):
            self.write()
            self.look(self.leader)
            self.one_writable()

    def next_write(self) -> int:
        """The number of a new write."""
        self.written += 1
        return self.written

    def write(self) -> None:
        """A client tries both sides, as a client does that fails over."""
        self.world.clients_write(self.next_write())

    def open_side(self) -> SideInMemory:
        """The side that is open by the record."""
        return self.world.sides[record(self.world).open_side]

    def one_writable(self) -> None:
        """Never two."""
        writable = [side.name for side in self.world.sides.values() if not side.fenced]
        assert len(writable) < 2, (writable, record(self.world))

    def mended(self) -> None:
        """Everything works again; what was wanted comes to an end."""
        world = self.world
        world.unreachable, world.hook_fails, world.kill_at, self.sleeps = None, False, -1, False
        for _ in range(400):
            self.look(self.leader)
            self.one_writable()
            streamed(world)
            if record(world).phase is Phase.IDLE and record(world).wanted is Wanted.NOTHING:
                return
        raise AssertionError(f"it comes to no end: {record(world)}")


def ended(seed: int, steps: int = 250) -> History:
    """A history to its end."""
    history = History(seed)
    for _ in range(steps):
        history.step()
    history.mended()
    return history


@pytest.mark.parametrize("block", range(10))
def test_whatever_happens_one_side_is_writable_and_nothing_is_lost(block: int) -> None:
    for seed in range(block * 100, block * 100 + 100):
        history = ended(seed)
        world: World = history.world
        for side in world.sides.values():
            assert not (side.fenced and side.pending), f"a transaction is open on the closed side: {seed}"
            while side.pending:
                side.commit(side.pending.pop(0))
        writable = [side.name for side in world.sides.values() if not side.fenced]
        assert writable == [record(world).open_side], seed
        assert world.copies[Side.NEW] == record(world), seed
        nothing_is_lost(world)
        wrong = {
            check.code for check in judge(two_sides(world, history.seen)) if check.outcome is Outcome.VIOLATED
        }
        assert wrong == set(), seed
        for side in world.sides.values():
            short = [number for number in side.log if number > 0]
            assert short == sorted(short), f"a session's writes are out of their order: {seed}"


def shown(world: World, name: Side, later: int = 0) -> State:
    """What a side shows now, or so many moments later."""
    side = world.sides[name]
    keys = tuple(map(str, (*side.log, *world.sides[name.other].log[: side.applied])))
    return State(name.value, 2 * len(world.acknowledged) + later, keys)


def two_sides(world: World, seen: Sequence[State] = ()) -> TwoSides:
    """The history for the judge of runs on servers: its clock counts writes, a moment lies before the next one."""
    writes = tuple(
        Write(max(-number, 0), number, side.value, str(number), 2 * at + 1, 2 * at + 1, OK)
        for at, (side, number) in enumerate(world.acknowledged)
    )
    moments = [
        Moment(2 * at, MOMENTS[point])
        for at, point in zip(world.told_at, world.points, strict=True)
        if point in MOMENTS
    ]
    last = []
    for side in world.sides.values():
        state = shown(world, side.name, later=2)
        last.append(replace(state, rows=tuple(sorted(state.keys))))
    return TwoSides(writes, tuple(seen), tuple(last), tuple(moments))


def test_the_judge_sees_what_is_wrong_with_a_history() -> None:
    """Of a true one, what each wrong step of the machine would make."""
    world = next(history.world for history in map(ended, range(60)) if history.switched == set(Side))
    streamed(world)
    true = two_sides(world)
    opened = next(moment.at for moment in true.moments if moment.what == OPENS)
    side, first = true.last[0], true.writes[0]
    assert first.side == OLD
    late = replace(first, committing=opened + 1, ended=opened + 1)
    for wrong, code in (
        (replace(true, last=(replace(side, keys=side.keys[1:]), true.last[1])), "S1"),
        (replace(true, seen=(replace(side, keys=side.keys[1:]),)), "S1"),
        (replace(true, last=(replace(side, keys=(*side.keys, side.keys[0])), true.last[1])), "S2"),
        (replace(true, writes=(*true.writes, late)), "S3"),
        (replace(true, last=(replace(side, rows=side.rows[1:]), true.last[1])), "S6"),
    ):
        assert code in {check.code for check in judge(wrong) if check.outcome is Outcome.VIOLATED}


def test_histories_switch_there_and_back_and_are_undone() -> None:
    """A history in which nothing ever happens would prove nothing."""
    histories = [ended(seed) for seed in range(60)]
    assert sum(history.switched == set(Side) for history in histories) > 20
    assert sum(history.slept for history in histories) > 20
    assert len({point for history in histories for point in history.world.points}) > 20
