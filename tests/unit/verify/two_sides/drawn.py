"""Drawn true histories of two sides, and single false steps in them.

The model has a log of commits for each side, of which the other side has a prefix. A side is opened once that prefix
is the whole log.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from verify.two_sides.history import (
    CLOSED,
    FAILED,
    FENCED,
    NEW,
    OK,
    OLD,
    OPENED_BY_HAND,
    OPENS,
    REOPENS,
    UNKNOWN,
    Moment,
    State,
    TwoSides,
    Write,
    across,
)

_CLIENTS = 3


@dataclass
class Drawn:
    """A true history while it is drawn.

    Attributes:
        chance: decides everything.
        logs: keys that each side has committed itself, in order.
        carried: how many of them the other side has.
    """

    chance: random.Random
    now: int = 0
    open_side: str = OLD
    logs: dict[str, list[str]] = field(default_factory=lambda: {OLD: [], NEW: []})
    carried: dict[str, int] = field(default_factory=lambda: {OLD: 0, NEW: 0})
    numbers: dict[int, int] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)
    seen: list[State] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)

    def tick(self) -> int:
        """The next moment."""
        self.now += 1
        return self.now

    def write(self) -> None:
        """A client tries the open side."""
        client, side = self.chance.randrange(_CLIENTS), self.open_side
        number = self.numbers[client] = self.numbers.get(client, 0) + 1
        key, committing = f"{client}.{number}", self.tick()
        outcome = self.chance.choices((OK, FAILED, UNKNOWN), (8, 1, 1))[0]
        if outcome == OK or (outcome == UNKNOWN and self.chance.random() < 0.5):
            self.logs[side].append(key)
        self.writes.append(Write(client, number, side, key, committing, self.tick(), outcome))

    def carry(self, side: str, all_of_it: bool = False) -> None:
        """Some of a side's commits come to the other one."""
        left = len(self.logs[side]) - self.carried[side]
        self.carried[side] += left if all_of_it else self.chance.randint(0, left)

    def keys(self, side: str) -> tuple[str, ...]:
        """All that a side has."""
        other = across(side)
        return (*self.logs[side], *self.logs[other][: self.carried[other]])

    def look(self) -> None:
        """Somebody reads a side."""
        side = self.chance.choice((OLD, NEW))
        self.seen.append(State(side, self.tick(), self.keys(side)))

    def switch(self) -> None:
        """The other side is opened, or the same one again."""
        for what in (FENCED, CLOSED):
            self.moments.append(Moment(self.tick(), what))
        if self.chance.random() < 0.3:
            self.moments.append(Moment(self.tick(), REOPENS))
            return
        self.look()
        if self.chance.random() < 0.2:  # by hand, the side that was closed: more may be on its way there
            self.moments.append(Moment(self.tick(), OPENED_BY_HAND, self.open_side))
            return
        self.carry(self.open_side, all_of_it=True)
        self.carry(across(self.open_side), all_of_it=True)
        self.open_side = across(self.open_side)
        self.moments.append(Moment(self.tick(), OPENS))


def true_history(seed: int, steps: int = 40) -> TwoSides:
    """A true history to its end."""
    drawn = Drawn(random.Random(seed))
    for _ in range(steps):
        act = drawn.chance.choices(
            (drawn.write, lambda: drawn.carry(drawn.chance.choice((OLD, NEW))), drawn.look, drawn.switch),
            (6, 3, 4, 1),
        )[0]
        act()
    drawn.tick()
    for side in (OLD, NEW):
        drawn.carry(side, all_of_it=True)
    last = tuple(
        State(side, drawn.tick(), drawn.keys(side), rows=tuple(f"click {key}" for key in drawn.keys(side)))
        for side in (OLD, NEW)
    )
    return TwoSides(tuple(drawn.writes), tuple(drawn.seen), last, tuple(drawn.moments), looks=1)


@dataclass(frozen=True)
class FalseStep:
    """A false step.

    Attributes:
        history: with it.
        harmless: whether the history could have happened all the same.
    """

    history: TwoSides
    harmless: bool = False


def _last(true: TwoSides, side: int, keys: tuple[str, ...]) -> TwoSides:
    changed = replace(true.last[side], keys=keys, rows=tuple(f"click {key}" for key in keys))
    return replace(true, last=(changed, true.last[1]) if side == 0 else (true.last[0], changed))


def lose(true: TwoSides, chance: random.Random) -> FalseStep | None:
    """An acknowledged write isn't on one side in the end, or on either, and was never seen."""
    if not (known := [one.key for one in true.writes if one.outcome == OK]):
        return None
    key = chance.choice(known)
    history = true
    for side in chance.choice(((0,), (1,), (0, 1))):
        history = _last(history, side, tuple(k for k in history.last[side].keys if k != key))
    if chance.random() < 0.5:
        return FalseStep(history)
    seen = tuple(replace(one, keys=tuple(k for k in one.keys if k != key)) for one in history.seen)
    return FalseStep(replace(history, seen=seen))


def double(true: TwoSides, chance: random.Random) -> FalseStep | None:
    """A write is applied twice: as a key, or as a row alone."""
    side = chance.randrange(2)
    state = true.last[side]
    if not state.keys:
        return None
    key = chance.choice(state.keys)
    if chance.random() < 0.5:
        return FalseStep(_last(true, side, (*state.keys, key)))
    changed = replace(state, rows=(*state.rows, f"click {key}"))
    return FalseStep(replace(true, last=(changed, true.last[1]) if side == 0 else (true.last[0], changed)))


def reorder(true: TwoSides, chance: random.Random) -> FalseStep | None:
    """A state shows a client's write without one that was acknowledged to it before."""
    places = []
    for place, state in enumerate(true.seen):
        there = [one for one in true.writes if one.key in state.keys and one.outcome == OK]
        places += [
            (place, early.key)
            for early in there
            if any(one.client == early.client and one.number > early.number for one in there)
        ]
    if not places:
        return None
    place, key = chance.choice(places)
    state = true.seen[place]
    changed = replace(state, keys=tuple(k for k in state.keys if k != key))
    return FalseStep(replace(true, seen=(*true.seen[:place], changed, *true.seen[place + 1 :])))


def overlap(true: TwoSides, chance: random.Random) -> FalseStep | None:
    """A side acknowledges a write while the other one is open, or neither is; the write is carried all the same."""
    closed = [one.at for one in true.moments if one.what == CLOSED]
    opens = [one.at for one in true.moments if one.what == OPENS]
    if not opens:
        return None
    opened = chance.choice(opens)
    before = max(at for at in closed if at < opened)
    sides = (OLD, NEW)
    side = OLD
    for one in sorted(true.moments, key=lambda one: one.at):
        if one.at > opened:
            break
        side = across(side) if one.what == OPENS else one.side if one.what == OPENED_BY_HAND else side
    late = Write(99, 1, across(side), "99.1", opened + 0, opened + 0, OK)
    if chance.random() < 0.5:
        late = replace(late, side=chance.choice(sides), committing=before + 1, ended=opened - 1)
        if late.committing > late.ended:
            return None
    history = replace(true, writes=(*true.writes, late))
    for place in (0, 1):
        history = _last(history, place, (*history.last[place].keys, late.key))
    return FalseStep(history)


def stale(true: TwoSides, chance: random.Random) -> FalseStep | None:
    """A state is read as one of that side from before. Harmless where a follower may lag as much."""
    places = [
        (place, before)
        for place, state in enumerate(true.seen)
        for before in true.seen[:place]
        if before.side == state.side and set(before.keys) != set(state.keys)
    ]
    if not places:
        return None
    place, before = chance.choice(places)
    state = true.seen[place]
    changed = replace(state, keys=before.keys)
    history = replace(true, seen=(*true.seen[:place], changed, *true.seen[place + 1 :]))
    shown = {key for one in true.seen[:place] if one.side == state.side for key in one.keys}
    return FalseStep(history, shown <= set(before.keys) and not _must_have(true, state) - set(before.keys))


def _must_have(true: TwoSides, state: State) -> set[str]:
    """What a side can't lack at that moment: its own answers, and by a regular opening what came before."""
    own = {w.key for w in true.writes if w.outcome == OK and w.side == state.side and w.ended < state.at}
    side, closed_at, opened = OLD, -1, -1
    for one in true.moments:
        if one.at >= state.at:
            break
        if one.what == CLOSED:
            closed_at = one.at
        elif one.what == OPENS:
            side = across(side)
            opened = closed_at if side == state.side else opened
        elif one.what == OPENED_BY_HAND:
            side = one.side
    others = {w.key for w in true.writes if w.outcome == OK and w.side != state.side and w.ended <= opened}
    return own | others


def neither(true: TwoSides, chance: random.Random) -> FalseStep | None:
    """A state has a row that nobody wrote, or one that was refused."""
    if not true.seen:
        return None
    place = chance.randrange(len(true.seen))
    refused = [one.key for one in true.writes if one.outcome == FAILED]
    key = chance.choice([*refused, "7.7"])
    changed = replace(true.seen[place], keys=(*true.seen[place].keys, key))
    return FalseStep(replace(true, seen=(*true.seen[:place], changed, *true.seen[place + 1 :])))


def differ(true: TwoSides, chance: random.Random) -> FalseStep | None:
    """A row ends otherwise on one side."""
    side = chance.randrange(2)
    state = true.last[side]
    if not state.rows:
        return None
    rows = list(state.rows)
    rows[chance.randrange(len(rows))] += ", another value"
    changed = replace(state, rows=tuple(rows))
    return FalseStep(replace(true, last=(changed, true.last[1]) if side == 0 else (true.last[0], changed)))


STEPS: tuple[Callable[[TwoSides, random.Random], FalseStep | None], ...] = (
    lose,
    double,
    reorder,
    overlap,
    stale,
    neither,
    differ,
)
