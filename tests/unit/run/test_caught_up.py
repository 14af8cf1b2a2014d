"""When a run that was started with ``--until caught-up`` may end."""

from __future__ import annotations

from dataclasses import replace

from migrator.model.position import Position
from migrator.model.progress import TableDump
from migrator.model.table import TableId
from migrator.run.caught_up import caught_up
from migrator.run.progress import Snapshot

HERE = Position(5, "5")
DONE = TableDump(TableId("s", "t"), done=True)
STANDING = Snapshot(
    dumps=(DONE,),
    requests_left=0,
    captured=HERE,
    applied=HERE,
    applied_dump_complete=True,
    captured_segment=3,
)


def test_it_waits_for_a_dump_that_begins_once_more_and_for_its_last_segment() -> None:
    """On a server on which nothing is written the place in the log stays where it is meanwhile."""
    reached = caught_up(lambda: HERE)
    assert not reached(replace(STANDING, dumps=(replace(DONE, done=False),)))
    assert not reached(replace(STANDING, applied_segment=2))
    assert reached(replace(STANDING, applied_segment=3))


def test_a_paused_request_keeps_nobody() -> None:
    asked = replace(DONE, done=False, request="r1.1")
    assert caught_up(lambda: HERE)(replace(STANDING, requests=(asked,), applied_segment=3))
