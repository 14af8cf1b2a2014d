"""A client of a rehearsal on a side that may show an old state believes nothing of it, as long as it isn't open."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest

from scenarios.rehearsal.clients import Client, Log, Side
from scenarios.rehearsal.ladder import Ladder, Rows

FIRST: Rows = {("t", (1,)): (1, "a")}
SECOND: Rows = {("t", (1,)): (1, "b")}


@dataclass
class Stand:
    """A side in memory: its database, connection, cursor and rows in one.

    Attributes:
        now: its rows.
        is_open: whether somebody may write.
        then: the rows that it shows behind the first look; None: those that it has.
    """

    now: Rows
    is_open: bool
    then: Rows | None = None
    _written: Rows | None = field(default=None)

    def connect(self) -> Stand:
        return self

    def cursor(self) -> Stand:
        return self

    def rollback(self) -> None:
        self.now, self.then = self.now if self.then is None else self.then, None

    def commit(self) -> None:
        self.now = self.now if self._written is None else self._written

    def read(self, cursor: object, table: str, keys: object) -> Rows:
        return dict(self.now)

    def same(self, place: object, one: object, other: object) -> bool:
        return one == other

    def moved(self, cursor: object, before: Rows, after: Rows) -> int:
        return self.touched(cursor, before | after if before != after else {}, after)

    def touched(self, cursor: object, rows: Rows, after: Rows | None = None) -> int:
        if rows and not self.is_open:
            raise psycopg.Error("handed over")
        self._written = after if rows and after is not None else self._written
        return len(rows)


def client(stand: Any, rung: int, up: bool, unknown: int | None = None) -> tuple[Client, Log]:
    """A client that stands at a rung, and asks the old side."""
    ladder, log = Ladder(), Log()
    for rows in (FIRST, SECOND):
        ladder.add(rows, rows)
    made = Client(ladder, {"old": Side(stand, stand)}, log, threading.Lock())
    made._rung, made._up, made._unknown = rung, up, unknown
    return made, log


def test_a_closed_side_that_shows_nothing_has_lost_nothing() -> None:
    """Taking the last row away would write nothing there, which no fence refuses."""
    one, log = client(Stand({}, is_open=False), rung=1, up=False)
    with pytest.raises(psycopg.Error, match="handed over"):
        one._step()
    assert (one._rung, log.lost) == (1, [])
    one, log = client(Stand({}, is_open=True), rung=1, up=False)
    one._step()
    assert log.lost == ["old side, t 1: it must be (1, a), it is absent, as the client went on there"]


def test_a_closed_side_says_nothing_about_a_commit_without_an_answer() -> None:
    one, log = client(Stand(FIRST, is_open=False), rung=2, up=False, unknown=1)
    with pytest.raises(psycopg.Error, match="handed over"):
        one._step()
    assert (one._rung, one._unknown, log.lost) == (2, 1, [])
    one, log = client(Stand(FIRST, is_open=True), rung=2, up=False, unknown=1)
    one._step()
    assert (one._rung, one._unknown, log.lost) == (1, None, [])


def test_what_came_before_the_side_was_opened_is_seen_by_a_second_look() -> None:
    one, log = client(Stand({}, is_open=True, then=FIRST), rung=1, up=True)
    one._step()
    assert (one._rung, log.lost) == (2, [])
