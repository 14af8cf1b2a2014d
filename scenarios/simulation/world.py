"""Servers, clients and processes of one run, and whose step comes next: a list of decisions.

A decision is (actor, number): the actor makes one step, and whatever it has to choose comes from the number. Drawn
from a seed all at once, so that a run is a function of its decisions and stays one when some of them are dropped. An
actor that can do nothing does nothing. After the last decision no client writes and no fault begins; the
actors take turns until the target holds everything; kills that a test has placed still wait for their points.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from migrator.adapters.memory.eventlog import MemoryEventLog
from migrator.adapters.memory.leadership import MemoryElection
from migrator.adapters.memory.requests import MemoryRequests
from migrator.adapters.memory.target import MemoryDatabase
from migrator.errors import MappingError, MigratorError, TargetError
from migrator.model.requests.request import WHOLE
from migrator.model.table import TableId
from scenarios.simulation.clients import Client, initial_rows
from scenarios.simulation.dice import Dice
from scenarios.simulation.operator import Operator
from scenarios.simulation.process import (
    ALL_POINTS,
    CRASH_POINTS,
    LOST,
    STARTING,
    UNKNOWN,
    Crash,
    Fault,
    Process,
    Shared,
)
from scenarios.simulation.record import Recorder
from scenarios.simulation.setup import Setup
from scenarios.simulation.source import Source
from scenarios.simulation.tables import AS_ALWAYS, TARGETS, analysed
from verify.history.history import Description, History

Decision = tuple[str, int]

CLIENTS = 4
_STEPS: Mapping[str, Callable[[Process, Dice], None]] = {
    "log": Process.read_log,
    "chunk": Process.read_chunk,
    "witness": Process.poll,
    "take": Process.take,
    "segment": Process.write,
    "map": Process.map,
    "apply": Process.commit,
    "watch": Process.watch,
    "requests": Process.look,
}
_WEIGHTS = {
    "lead": 8,
    "log": 10,
    "chunk": 12,
    "witness": 6,
    "take": 14,
    "segment": 7,
    "map": 7,
    "apply": 7,
    "watch": 1,
    "reveal": 9,
    "observe": 2,
    "crash": 1,
    "expire": 1,
    "cut": 2,
    **{f"client {session}": 4 for session in range(1, CLIENTS + 1)},
}
FAULTS = ("crash", "expire", "cut")
_ROUND = (
    ("log", "log", "take", "chunk", "take", "witness"),
    ("log", "log", "take", "chunk", "take", "witness"),
    ("log", "chunk", "take", "witness", "requests", "segment", "map", "apply", "watch"),
)
_LONGEST_DRAIN = 500
"""Rounds of all actors; a run that isn't done by then is stuck."""
_TICK_US = 100
_OF_TARGET = re.compile(r"target tables? (.+)")
_MADE_AGAIN = 2
"""Starts with edited mappings for each that finds a target table dropped and made again."""
_SETTINGS = 1000
"""The number of different settings that a start may have, where somebody edits them."""


def decisions(seed: int, setup: Setup) -> tuple[Decision, ...]:
    """The decisions of a seed. Which actors are busy differs from seed to seed, so that rare mixtures occur."""
    rng = random.Random(seed)
    weights = {actor: weight * rng.choice((0.4, 1, 1, 2.5)) for actor, weight in _WEIGHTS.items()}
    for fault in FAULTS:
        weights[fault] *= rng.choice((0, 1, 3)) if setup.faults else 0
    if setup.requests:
        weights |= {"operator": 4, "requests": 6}
    actors = rng.choices(list(weights), list(weights.values()), k=setup.steps)
    return (("lead", 0),) * 6 + tuple((actor, rng.getrandbits(48)) for actor in actors)


class World:
    """One run.

    Args:
        setup: what is simulated.
        tell: called with every step that did something, in words.

    Attributes:
        halted: what ended the leader, or "".
        refusals: what starts with an edited mapping were refused for.
        requests: what the operator asked for.
    """

    def __init__(self, setup: Setup, tell: Callable[[str], None] = lambda line: None):
        self._tell = tell
        self._source = Source(setup.ordered, initial_rows())
        self.requests = MemoryRequests()
        self._shared = Shared(
            self._source, MemoryElection(), MemoryEventLog(), MemoryDatabase(TARGETS), self.requests
        )
        self._operator = Operator(self.requests) if setup.requests else None
        self._clients = [
            Client(session, self._source, setup.truncates, setup.most_puts)
            for session in range(1, CLIENTS + 1)
        ]
        self._processes = [Process(name, self._shared, setup) for name in ("a", "b")]
        self._recorder = Recorder(self._shared)
        self._actions: dict[str, Callable[[Dice], None]] = {
            **{name: self._stepping(step) for name, step in _STEPS.items()},
            **{f"client {client.session}": client.act for client in self._clients},
            "reveal": lambda dice: self._source.reveal(dice.below(16)),
            "observe": lambda _: self._recorder.observe(),
            "operator": self._operate,
            "lead": self._lead,
            "crash": self._crash,
            "kill": self._kill,
            "expire": self._expire,
            "cut": self._cut,
        }
        self.halted = ""
        self.refusals: list[str] = []
        self._placed: list[Fault] = []
        self._edits, self._draining, self._doing = setup.mappings, False, Dice(0)

    def run(self, taken: Sequence[Decision], description: Callable[[bool, str], Description]) -> History:
        """Makes the steps, then lets the pipeline catch up. ``description`` gets (drained, halted)."""
        for actor, number in taken:
            self._make(actor, self._actions[actor], Dice(number))
            if self.halted:
                break
        drained = not self.halted and self._drain()
        for client in self._clients:
            client.finish()
        return self._recorder.history(description(drained, self.halted), self._clients)

    def target_rows(self) -> Mapping[TableId, Mapping[Any, Mapping[str, Any]]]:
        """The rows of each target table as they are."""
        return self._shared.target.rows

    # -- one step -----------------------------------------------------------------------------------------------

    def _make(self, name: str, action: Callable[[Dice], None], dice: Dice) -> None:
        self._source.clock_us += _TICK_US
        action(dice)
        if self._source.notes:
            self._tell(f"{name:9} {'; '.join(self._source.notes)}")
            self._source.notes.clear()

    def _stepping(self, step: Callable[[Process, Dice], None]) -> Callable[[Dice], None]:
        def action(dice: Dice) -> None:
            leading = [process for process in self._processes if process.leads]
            if leading:
                process = leading[dice.below(len(leading))]
                self._guarded(process, lambda: step(process, dice))

        return action

    def _guarded(self, process: Process, step: Callable[[], None]) -> None:
        try:
            step()
        except Crash:
            self._source.notes.append(f"{process.name}: gone")
            process.stop()
        except (MappingError, TargetError) as error:
            self._refused(process, error)
        except MigratorError as error:
            # The holder of the lease must never be refused anything; a zombie may, by name.
            if process.leadership.held():
                self.halted = f"{type(error).__name__}: {error}"
            self._source.notes.append(f"{process.name}: ended by {type(error).__name__}: {error.what}")
            process.stop()
        self._recorder.look()

    def _refused(self, process: Process, error: MigratorError) -> None:
        """A start that an edited mapping, or another table, ended: its operator asks for the rows, empties the tables
        then, or does neither.

        The next start finds what the operator left undone. In the drain the operator does both, for the mapping is
        the original one again.
        """
        refused = _OF_TARGET.fullmatch(error.where)
        if not self._edits or refused is None:
            self.halted = f"{type(error).__name__}: {error}"
            process.stop()
            return
        names = refused[1].split(", ")
        self.refusals.append(error.what)
        asked = self._draining or self._doing.below(2) == 0
        emptied = asked and (self._draining or self._doing.below(2) == 0)
        if asked:
            plans = [analysed(AS_ALWAYS)[name] for name in names]
            tables = tuple(dict.fromkeys(schema.id for plan in plans for schema in plan.schemas.values()))
            self.requests.update(lambda book: book.start(tables, WHOLE))
        for name in names if emptied else ():
            self._shared.empty(name)
        self._source.notes.append(
            f"{process.name}: refused {refused[1]}; emptied {emptied}, asked for {asked}"
        )
        process.stop()

    def _lead(self, dice: Dice) -> None:
        idle = [process for process in self._processes if not process.leads]
        if idle:
            process, times_out = idle[dice.below(len(idle))], dice.below(3) == 0
            self._doing = dice
            number = dice.below(_SETTINGS)
            if self._edits and dice.below(_MADE_AGAIN) == 0:
                self._make_again(dice.one_of(TARGETS).id.name)
            self._start(process, times_out, number)

    def _make_again(self, name: str) -> None:
        """Drops a target table and makes it again. While somebody leads or begins to, its locks are in the way."""
        if not any(process.alive for process in self._processes):
            self._source.notes.append(f"somebody makes {name} again")
            self._shared.make_again(name)

    def _start(self, process: Process, times_out: bool, number: int) -> None:
        if times_out and not self._holder():
            self._shared.election.expire()  # the lease of a process that is gone
        self._guarded(process, partial(process.lead, number))

    def _holder(self) -> Process | None:
        return next(
            (process for process in self._processes if process.alive and process.leadership.held()), None
        )

    def _operate(self, dice: Dice) -> None:
        if self._operator is not None:
            self._source.notes.append(f"operator: {self._operator.act(dice)}")

    # -- faults -------------------------------------------------------------------------------------------------

    def _crash(self, dice: Dice) -> None:
        self._fault(dice, "crash", ("", "", *CRASH_POINTS))

    def _kill(self, dice: Dice) -> None:
        """A kill that a test places: the number is that of its point among ``ALL_POINTS``. It waits for its point
        while everything catches up, too: dumps that were asked for often come to theirs only then."""
        point = ALL_POINTS[dice.below(len(ALL_POINTS))]
        leading = point not in STARTING
        for process in self._processes:
            if process.leads is leading and not process.awaited:
                fault = Fault("crash", point)
                self._recorder.planned(fault)
                process.awaited.append(fault)
                self._placed.append(fault)

    def _cut(self, dice: Dice) -> None:
        self._fault(dice, "cut", ("log", "chunk", LOST, UNKNOWN, LOST, UNKNOWN))

    def _fault(self, dice: Dice, name: str, points: Sequence[str]) -> None:
        leading = [process for process in self._processes if process.leads]
        if not leading:
            return
        process, point = leading[dice.below(len(leading))], points[dice.below(len(points))]
        fault = Fault(name, point)
        self._recorder.planned(fault)
        if point in ("log", "chunk"):
            process.link.cut.add(point)
            fault.fired_us = self._source.clock_us
        elif point:
            process.awaited.append(fault)
        else:
            fault.fired_us = self._source.clock_us
            process.stop()
        self._source.notes.append(f"{process.name}: {name} {f'at {point}' if point else 'now'}")

    def _expire(self, _: Dice) -> None:
        holder = self._holder()
        if holder is not None:
            self._recorder.planned(Fault("lease lost", holder.name, self._source.clock_us))
            self._source.notes.append(f"{holder.name} loses its lease and doesn't know")
            self._shared.election.expire()

    # -- the end ------------------------------------------------------------------------------------------------

    def _drain(self) -> bool:
        """Lets everything catch up; returns whether the target came to hold everything, and every request is
        closed."""
        if self._operator is not None:
            self._operator.finish()
        self._draining = True
        for process in self._processes:
            process.awaited = [fault for fault in process.awaited if fault in self._placed]
            if self._edits:
                process.stop()  # it may lead with a mapping that lacks a target
        for turn in range(_LONGEST_DRAIN):
            while self._source.hidden:
                self._source.reveal(0)
            if self._caught_up():
                self._recorder.observe()
                return True
            for process in self._processes:
                for name in _ROUND[turn % len(_ROUND)]:
                    self._make(name, partial(self._turn, process, _STEPS[name]), Dice(2))
            if self.halted:
                return False
            starting = self._holder() or self._processes[turn % 2]
            if not starting.leads:
                self._make("lead", partial(self._begin, starting), Dice(0))
        return False

    def _turn(self, process: Process, step: Callable[[Process, Dice], None], dice: Dice) -> None:
        if process.leads:
            self._guarded(process, lambda: step(process, dice))

    def _begin(self, process: Process, _: Dice) -> None:
        self._start(process, times_out=True, number=0)

    def _caught_up(self) -> bool:
        checkpoint = self._shared.target.ledger.checkpoint
        if checkpoint is None or not checkpoint.dump_complete() or self.requests.read().running():
            return False
        last = max((entry.number for entry in self._source.log if entry.writes), default=0)
        return int(checkpoint.position.token) >= last
