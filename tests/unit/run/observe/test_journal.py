"""What happened goes to the log, and some of it to a hook, which may be slow or fail."""

from __future__ import annotations

import threading

from migrator.errors import ConnectionFailed
from migrator.model.observed.happening import EVENTS, HOOKED, Happening
from migrator.model.observed.observation import Ended, Judged, VerifiedTable
from migrator.model.position import Position
from migrator.run.failure import Stopping
from migrator.run.observe.journal import Journal
from migrator.run.progress import Progress


class World:
    """A run whose events are kept, and a hook that answers as a test says."""

    def __init__(self) -> None:
        self.progress = Progress()
        self.judged = Judged()
        self.kept: list[Happening] = []
        self.calls: list[str] = []
        self.failure = ""
        self.journal = Journal(
            self.progress, lambda: self.judged, 60.0, lambda _, one: self.kept.append(one), self._hook
        )

    def _hook(self, at_us: int, one: Happening) -> str:
        self.calls.append(one.event)
        return self.failure

    def ids(self) -> list[str]:
        found = [one.event for one in self.kept]
        self.kept.clear()
        return found

    def served(self) -> list[str]:
        """Calls of the hook for what waits."""
        stopping = Stopping()
        stopping.request()
        self.journal.serve(stopping)
        found, self.calls = self.calls, []
        return found


def test_a_run_is_told_from_its_beginning_to_its_end() -> None:
    world = World()
    world.progress.set(epoch=3, applied=Position(7, "7"), captured=Position(7, "7"))
    world.progress.answered(world.progress.clock(), Position(7, "7"))
    world.journal.look()
    assert world.ids() == ["run.led", "run.phase"]
    world.progress.met(ConnectionFailed("it is gone"))
    world.progress.warn("disk", "full")
    world.journal.look()
    world.journal.look()
    assert world.ids() == ["run.error", "run.warning"]
    world.judged = Judged((VerifiedTable("person", "different", 1, 1.0, 1.0, 2),))
    world.journal.look()
    world.journal.ended(Ended(1, "MappingError", "a column is gone"))
    ended = world.kept[-1]
    assert (ended.level, ended.about, ended.words) == ("error", "MappingError", "a column is gone")
    assert world.ids() == ["rows.different", "run.ended"]
    assert world.served() == ["rows.different", "run.ended"]


def test_a_run_that_another_one_keeps_from_leading_wakes_nobody() -> None:
    refused = Ended(1, "FencedError", "this migration is already being run")
    second = World()
    second.journal.ended(refused)
    assert (second.ids(), second.served()) == (["run.ended"], [])
    replaced = World()
    replaced.progress.set(epoch=0, led=3)
    replaced.journal.ended(refused)
    assert replaced.served() == ["run.ended"], "it led: whoever leads now is to be looked at"


def test_a_takeover_is_told_as_one() -> None:
    world = World()
    world.progress.set(note="standby: process 1 leads", standing_by=True)
    world.journal.look()
    world.progress.set(note="", standing_by=False)
    world.journal.look()  # between the lead's end and the own one
    world.progress.set(epoch=4)
    world.journal.look()
    assert "run.took-over" in world.ids()
    assert world.served() == ["run.took-over"]


def test_a_run_that_ends_begins_no_other_phase() -> None:
    world = World()
    world.progress.set(epoch=4)
    world.journal.look()
    world.progress.set(epoch=0, ended=True)
    world.journal.ended(Ended(1))
    told = [one.words for one in world.kept if one.event == "run.phase"]
    assert told[-1] == "stopped"
    assert "starting" not in told


def test_a_hook_that_fails_is_an_event_and_one_that_hangs_keeps_nobody() -> None:
    world = World()
    world.failure = "it ended with exit code 1"
    world.journal.ended(Ended(1))
    world.served()
    assert world.ids()[-2:] == ["run.ended", "hook.failed"]
    hang = threading.Event()
    hanging = Journal(
        world.progress, Judged, 60.0, lambda _, one: world.kept.append(one), lambda *_: str(hang.wait(60))
    )
    stopping = Stopping()
    stopping.thread("hook", lambda: hanging.serve(stopping))
    for _ in range(200):
        hanging.note(Happening("run.ended", "again"))
    assert len(world.kept) == 200, "the log waits for no hook"
    hang.set()
    stopping.request()


def test_the_hook_is_told_of_events_that_there_are() -> None:
    assert EVENTS.keys() > HOOKED
