"""What the live page is told: the hour that was kept meanwhile, the verdict, the leader's requests, the cut-over."""

from __future__ import annotations

from dataclasses import replace

from migrator.errors import ConnectionFailed
from migrator.model.cutover.record import Record
from migrator.model.observed.bounds import Bounds
from migrator.model.observed.observation import Judged, Room
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, Mapped, TableDump
from migrator.model.requests.request import WHOLE, RequestBook
from migrator.model.table import TableId
from migrator.run.observe.observer import Observer, Seen, Sights
from migrator.run.progress import Progress
from tests.unit.observers.full_pages import SWITCHING
from tests.unit.run.observe.test_observer import HELD, HINT, Clock

BOOK = RequestBook().start((TableId("s", "t"),), WHOLE)
OPEN = TableDump(TableId("s", "t"), rows=3, request=BOOK.requests[0].name())
WRITTEN = replace(
    HELD, checkpoint=Checkpoint(Position(7, "7"), mapped=(Mapped("person", "new", "", ("id",)),))
)


class World:
    def __init__(self) -> None:
        self.progress = Progress(clock=Clock())
        self.record: Record | None = SWITCHING
        self.failure: Exception | None = None
        hint = replace(
            HINT, checkpoint=replace(HINT.checkpoint or Checkpoint(Position(1, "1")), requests=(OPEN,))
        )
        seen = Seen("process 1", 0, hint, BOOK)
        sights = Sights(
            lambda: WRITTEN,
            lambda: seen,
            Judged,
            lambda: Room(None, 11, 12_000_000_000),
            tuple,
            self._cutover,
        )
        self.observer = Observer("shop", "bytes", self.progress, sights, bounds=Bounds(max_lag_s=5))

    def _cutover(self) -> Record | None:
        if self.failure is not None:
            raise self.failure
        return self.record

    def look(self) -> None:
        self.observer.look_at_target()
        self.observer.look_at_processes()
        self.observer.look_at_files()
        self.observer.look_at_cutover()


def test_a_standby_tells_the_leaders_requests_and_the_tables_that_the_ledger_knows() -> None:
    world = World()
    world.look()
    world.progress.set(standing_by=True)
    live = world.observer.live()
    assert (live.targets, live.book, live.requests, live.cutover) == (("person",), BOOK, (OPEN,), SWITCHING)
    assert live.verdict.what.startswith("the run before this one was ended by MappingError") is False, (
        "long ago"
    )
    assert live.verdict.level == "well"


def test_a_leader_tells_its_own_requests_and_its_verdict_by_its_bound_of_the_lag() -> None:
    world = World()
    world.look()
    going_on = replace(OPEN, rows=9)
    at = Position(9, "9")
    world.progress.set(epoch=5, applied=at, captured=at, requests=(going_on,), dumps=())
    assert world.observer.live().requests == (going_on,)
    world.progress.set(requests=())
    world.progress.answered(world.progress.clock(), at)
    assert world.observer.live().verdict.name == ""
    world.progress.clock.now_s += 9  # type: ignore[attr-defined]
    world.progress.answered(world.progress.clock(), Position(12, "12"))
    assert world.observer.live().verdict.name == "Lag"


def test_the_hour_is_kept_by_looks_of_its_own_and_not_by_those_who_ask() -> None:
    world = World()
    assert world.observer.live().hour.looks == ()
    world.observer.look_back()
    for _ in range(3):
        assert len(world.observer.live().hour.looks) == 1
    world.observer.look_back()
    assert len(world.observer.live().hour.looks) == 1, "not more often than every ten seconds"


def test_a_record_that_cannot_be_read_is_unknown_and_hides_nothing_else() -> None:
    world = World()
    world.look()
    for failure in (ConnectionFailed("the record of the cut-over can't be reached"), ValueError("no JSON")):
        world.failure = None
        world.look()
        assert world.observer.live().cutover == SWITCHING
        world.failure = failure
        world.look()
        live = world.observer.live()
        assert (live.cutover, live.targets) == (None, ("person",))
