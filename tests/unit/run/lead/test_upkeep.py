"""When the target is made to look at which table, and what is said of those that it can't look at."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from migrator.errors import ConnectionFailed
from migrator.model.progress import Filling, TableDump
from migrator.model.table import TableId
from migrator.run.failure import Stopping
from migrator.run.lead.upkeep import TablesFilled
from migrator.run.progress import Progress

A, B, MIRRORED = TableId("new", "a"), TableId("new", "b"), TableId("mirror", "one")
TABLES = {A: ("one",), B: ("one", "two")}


class Server:
    """Knows the tables that it has looked at."""

    def __init__(self) -> None:
        self.looked: list[TableId] = []
        self.refused = ""
        self.lost = False

    def mirror(self) -> list[TableId]:
        if self.lost:
            raise ConnectionFailed("the target can't be reached")
        return [MIRRORED]

    def lacking(self, table: TableId) -> bool:
        return table not in self.looked

    def refresh(self, table: TableId, stopped: Callable[[], bool]) -> str:
        if self.lost:
            raise ConnectionFailed("the target can't be reached")
        if not self.refused:
            self.looked.append(table)
        return self.refused


def dumped(progress: Progress, *names: str) -> None:
    dumps = tuple(TableDump(TableId("old", name), done=name in names) for name in ("one", "two"))
    progress.set(applied_dumps=dumps)


def test_each_table_is_looked_at_once_when_the_target_holds_all_its_dumps() -> None:
    server, progress, stopping = Server(), Progress(), Stopping()
    filled = TablesFilled(server, TABLES, ("one",), progress)
    filled.step(stopping)
    assert server.looked == []
    dumped(progress, "one")
    filled.step(stopping)
    assert server.looked == [A, MIRRORED]
    dumped(progress, "one", "two")
    filled.step(stopping)
    filled.step(stopping)
    assert server.looked == [A, MIRRORED, B]


def test_a_table_that_is_filled_piece_by_piece_is_looked_at_with_the_last_one() -> None:
    server, progress, stopping = Server(), Progress(), Stopping()
    filled = TablesFilled(server, TABLES, ("one",), progress)
    dumped(progress, "one", "two")
    progress.set(filling=(Filling("b", 2),))
    filled.step(stopping)
    assert server.looked == [A, MIRRORED]
    progress.set(filling=())
    filled.step(stopping)
    assert server.looked == [A, MIRRORED, B]


def test_of_what_was_complete_before_only_what_the_server_lacks_is_looked_at() -> None:
    server, progress = Server(), Progress()
    server.looked = [A]
    dumped(progress, "one", "two")
    TablesFilled(server, TABLES, (), progress).step(Stopping())
    assert server.looked == [A, B]


@pytest.mark.parametrize("lost", [True, False])
def test_a_failure_is_named_and_forgotten_when_the_server_has_looked_by_itself(lost: bool) -> None:
    server, progress, stopping = Server(), Progress(), Stopping()
    server.lost, server.refused = lost, "you may not"
    filled = TablesFilled(server, {A: ("one",)}, (), progress, ask_again_s=0.01)
    dumped(progress, "one")
    thread = threading.Thread(target=lambda: filled.run(stopping))
    thread.start()
    said = wait_for(progress, lambda warnings: bool(warnings))
    assert ("you may not" in said[0]) != lost
    assert str(A) in said[0]
    server.looked.append(A)
    assert wait_for(progress, lambda warnings: not warnings) == ()
    thread.join(10)
    assert not thread.is_alive()
    assert progress.snapshot().kept_up


def test_a_mirror_that_can_t_be_asked_for_is_named() -> None:
    server, progress = Server(), Progress()
    server.lost = True
    filled = TablesFilled(server, {}, ("one",), progress)
    dumped(progress, "one")
    filled.step(Stopping())
    (said,) = progress.snapshot().warnings
    assert "mirror" in said
    assert "can't be reached" in said


def test_a_run_that_stops_begins_nothing_more() -> None:
    server, progress, stopping = Server(), Progress(), Stopping()
    filled = TablesFilled(server, TABLES, (), progress)
    dumped(progress, "one", "two")
    stopping.request()
    filled.step(stopping)
    assert server.looked == []


def wait_for(progress: Progress, holds: Callable[[tuple[str, ...]], bool]) -> tuple[str, ...]:
    waited = Stopping()
    for _ in range(3000):
        found = progress.snapshot().warnings
        if holds(found):
            return found
        waited.wait(0.01)
    raise AssertionError(progress.snapshot())
