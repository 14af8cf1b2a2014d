"""The steps of a reset over places in memory: killed between any two, no run goes on, and a second one finishes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from migrator.adapters.memory.leadership import MemoryElection, MemoryLeadership
from migrator.errors import FencedError, RequestError
from migrator.ports.remains import Found, Kind, Left
from migrator.run.commands.reset import Places, anything, inventory, order, reset
from migrator.run.steps import no_step

NEEDED = {"slot", "ledger at 5", "event log", "mirror"}
"""What a run goes on from, or is wrong without."""


class KilledError(Exception):
    """Stands for SIGKILL."""


@dataclass
class Place:
    """A place that holds things by name."""

    name: str
    things: dict[str, Kind]
    log: list[str]
    kept: tuple[str, ...] = ()

    def found(self) -> Found:
        left = [Left(kind, name, name) for name, kind in self.things.items()]
        return Found(self.name, tuple(left), self.kept)

    def remove(self, lefts: Sequence[Left]) -> None:
        for left in lefts:
            self.things.pop(left.name, None)
            if left.kind is Kind.LEDGER:
                self.things.pop("ledger at 5", None)
                self.things.pop("mark", None)
        self.log.append(" ".join(left.name for left in lefts))


@dataclass
class Target(Place):
    """One with a ledger."""

    epochs: list[int] = field(default_factory=list)

    def epoch(self) -> int:
        return 7

    def rows_of(self, target: str) -> Left | None:
        return None

    def forget(self, epoch: int, target: str, said: str) -> None:
        self.epochs.append(epoch)
        self.log.append(f"forget {target}")

    def mark(self, epoch: int, said: str) -> None:
        self.epochs.append(epoch)
        self.things.pop("ledger at 5", None)
        self.things["mark"] = Kind.LEDGER
        self.log.append("mark")


@dataclass
class State(Place):
    """One with a note, and folders that go one by one."""

    noted: str = ""

    def begun(self) -> str:
        return self.noted

    def found(self) -> Found:
        found = super().found()
        note = [Left(Kind.NOTE, "note", "note")] if self.noted else []
        return Found(self.name, (*found.left, *note))

    def note(self, said: str) -> None:
        self.noted = self.noted or said
        self.log.append("note")

    def finish(self) -> None:
        self.noted = ""
        self.log.append("finish")


class World:
    """Everything a migration has made."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.source = Place(
            "source", {"publication": Kind.PUBLICATION, "row": Kind.WATERMARK, "slot": Kind.SLOT}, self.log
        )
        self.target = Target(
            "target",
            {
                "ledger at 5": Kind.LEDGER,
                "key maps": Kind.KEY_MAPS,
                "mirror": Kind.MIRROR,
                "rows of a": Kind.ROWS,
                "rows of b": Kind.ROWS,
            },
            self.log,
        )
        self.shared = Place("shared", {"requests": Kind.ASKED}, self.log)
        self.state = State("state", {"event log": Kind.STATE, "damaged log": Kind.STATE}, self.log)
        self.election = MemoryElection()

    def places(self) -> Places:
        return Places(self.source, self.target, self.shared, self.state)

    def things(self) -> set[str]:
        return {
            name for place in (self.source, self.target, self.shared, self.state) for name in place.things
        }

    def reset(self, step: object = no_step) -> None:
        """One process."""
        leadership = MemoryLeadership(self.election, "reset")
        try:
            reset(self.places(), leadership, inventory(self.places()), "begun at noon", step)  # type: ignore[arg-type]
        except KilledError:
            self.election.expire()
            raise

    def run_refuses(self) -> bool:
        """Whether a run of this machine refuses by name."""
        return bool(self.state.noted) or "mark" in self.target.things

    def run_elsewhere_refuses(self) -> bool:
        """Whether one of another machine does."""
        return "mark" in self.target.things


def dying(after: int) -> Iterator[None]:
    for _ in range(after):
        yield
    raise KilledError


def test_each_thing_has_its_place_in_the_order() -> None:
    world = World()
    world.reset()
    assert world.log == [
        "note", "mark", "slot", "publication", "row", "rows of a rows of b", "mirror", "key maps", "requests",
        "ledger at 5", "event log", "damaged log", "finish",
    ]  # fmt: skip
    assert world.things() == set()
    assert world.target.epochs == [8], "above the ledger's: whoever slept is refused"
    assert world.election.lease is None


@pytest.mark.parametrize("after", range(13))
def test_killed_between_any_two_steps_no_run_goes_on_with_a_half_and_another_reset_finishes(
    after: int,
) -> None:
    world, whole = World(), World().things()
    steps = dying(after)
    try:
        world.reset(lambda name: next(steps))
    except KilledError:
        things = world.things()
        assert world.run_refuses()
        if not world.run_elsewhere_refuses():
            assert things == whole or not things - {"event log", "damaged log"}, "nothing is gone, or all is"
    else:
        assert after == 12, "every point is passed before"
    world.reset()
    assert world.things() == set()
    assert not world.run_refuses()


def test_killed_again_and_again_it_comes_to_its_end() -> None:
    world, killed = World(), 0
    while world.things() or world.run_refuses():
        passed: list[str] = []

        def step(name: str, passed: list[str] = passed) -> None:
            passed.append(name)
            if name == "reset.removed":
                raise KilledError

        try:
            world.reset(step)
        except KilledError:
            killed += 1
        assert killed < 20
    assert killed > 9


def test_nothing_is_removed_while_a_run_leads() -> None:
    world, whole = World(), World().things()
    MemoryLeadership(world.election, "run").acquire(0)
    with pytest.raises(FencedError, match="already being run"):
        world.reset()
    assert world.things() == whole
    assert world.log == []


def test_what_came_since_it_was_shown_is_not_removed_unseen() -> None:
    world = World()
    shown = inventory(world.places())
    world.source.things["another slot"] = Kind.SLOT
    with pytest.raises(RequestError, match="more to remove by now") as caught:
        reset(world.places(), MemoryLeadership(world.election, "reset"), shown, "now", no_step)
    assert caught.value.where == "source: another slot"
    assert world.log == []
    assert world.election.lease is None


def test_rows_count_only_where_something_shows_that_a_migration_wrote_them() -> None:
    world = World()
    world.target.things = {"rows of a": Kind.ROWS}
    assert "rows of a" in {left.name for one in inventory(world.places()) for left in one.left}
    for place in (world.source, world.state):
        place.things = {}
    found = inventory(world.places())
    assert [left.name for one in found for left in one.left] == ["requests"]
    assert found[1].kept[0].startswith("rows of a: nothing shows")
    world.shared.things = {}
    assert not anything(inventory(world.places()))


def test_trifles_are_no_reason_for_a_reset() -> None:
    assert not anything([Found("state", (Left(Kind.STATE, "log", "log", trifle=True),))])
    assert anything([Found("state", (Left(Kind.STATE, "log", "log"),))])


def test_the_rows_of_all_tables_are_one_step_and_all_else_goes_thing_by_thing() -> None:
    kinds = {"a": Kind.ROWS, "x": Kind.STATE, "b": Kind.ROWS, "y": Kind.STATE}
    lefts = tuple(Left(kind, name, name) for name, kind in kinds.items())
    steps = [(place, [left.name for left in those]) for place, those in order([Found("p", lefts)])]
    assert steps == [(0, ["a", "b"]), (0, ["x"]), (0, ["y"])]


def test_the_row_that_the_mark_makes_goes_as_well() -> None:
    world = World()
    del world.target.things["ledger at 5"]
    world.reset()
    assert world.things() == set()


def test_where_only_the_folder_is_left_the_ledger_is_let_alone() -> None:
    world = World()
    for place in (world.source, world.target, world.shared):
        place.things = {}
    world.reset()
    assert world.log == ["note", "event log", "damaged log", "finish"]
