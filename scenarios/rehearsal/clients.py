"""Clients of the application that find the open side by themselves, and know what was acknowledged to them."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType

import psycopg
import pymysql

from migrator.errors import ConnectionFailed, MigratorError
from scenarios.database import Connection, Cursor, Database
from scenarios.rehearsal.ladder import Ladder, RowGone, Rows, SideRows

_NAP_S = 0.03
_REFUSED_NAP_S = 0.05
_STUCK_S = 90.0
_ERRORS = (psycopg.Error, pymysql.err.MySQLError, ConnectionFailed, RowGone)


@dataclass(frozen=True)
class Side:
    """One side as a client sees it: the address with the application's login, and its rows."""

    database: Database
    rows: SideRows


@dataclass
class Log:
    """The sum of all that clients met.

    Attributes:
        commits: by side, the number of acknowledged transactions.
        rows: by side, the number of rows that these wrote.
        pause_s: the longest time in which a client that wanted to write couldn't.
        lost: acknowledged writes that weren't there later, in words.
        refused: the last words of a server, by side.
    """

    commits: dict[str, int] = field(default_factory=lambda: {"old": 0, "new": 0})
    rows: dict[str, int] = field(default_factory=lambda: {"old": 0, "new": 0})
    pause_s: float = 0.0
    lost: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


class Client:
    """One client on its ladder: up rung by rung, down again, one transaction each.

    Args:
        ladder: its own.
        sides: by name (``old``, ``new``).
        log: shared by all clients.
        lock: of the log.
    """

    def __init__(self, ladder: Ladder, sides: Mapping[str, Side], log: Log, lock: threading.Lock):
        self._ladder, self._sides, self._log, self._lock = ladder, sides, log, lock
        self._side, self._rung, self._up = "old", len(ladder) - 1, False
        self._unknown: int | None = None
        self._connection: Connection | None = None
        self._since = time.monotonic()
        self.resting = True

    def write(self, going: threading.Event, over: threading.Event) -> None:
        """Writes while it may; returns when all is over, or it can't write anywhere for long."""
        while not over.is_set():
            if not going.is_set():
                self.resting = True
                self._since = time.monotonic()
                time.sleep(_NAP_S)
                continue
            self.resting = False
            try:
                self._step()
            except _ERRORS as error:
                self._refused(str(error))
            time.sleep(_NAP_S)
        self._close()

    def differing(self) -> list[str]:
        """The rows that aren't what they have to be at its rung, on either side, in words."""
        found = []
        for name, side in self._sides.items():
            connection = side.database.connect()
            try:
                actual = self._read(connection.cursor(), name)
            finally:
                connection.close()
            found += self._unlike(name, actual, self._rung)
        return found

    def _step(self) -> None:
        """Takes the next rung on the side that it takes for open. Raises a driver's error where that is refused."""
        if len(self._ladder) < 2:
            return
        if self._rung == len(self._ladder) - 1 or self._rung == 0:
            self._up = self._rung == 0
        wanted = self._rung + (1 if self._up else -1)
        side = self._sides[self._side]
        if self._connection is None:
            self._connection = side.database.connect()
        cursor = self._connection.cursor()
        before = self._agreed(cursor)
        rows = self._moved(cursor, before, self._ladder.rungs[self._side][wanted])
        self._unknown = wanted
        self._connection.commit()
        self._unknown = None
        now = time.monotonic()
        with self._lock:
            self._log.commits[self._side] += bool(rows)
            self._log.rows[self._side] += rows
            self._log.pause_s = max(self._log.pause_s, now - self._since)
        self._since, self._rung = now, wanted

    def _moved(self, cursor: Cursor, before: Rows, after: Rows) -> int:
        side = self._sides[self._side]
        known = self._ladder.rungs[self._side][self._rung]
        # What this step leaves alone stays as it is: columns that nothing carries across may have another value.
        goal = {
            place: tuple(
                now if place in known and known[place][number] == new else new
                for number, (new, now) in enumerate(zip(row, before.get(place, row), strict=True))
            )
            for place, row in after.items()
        }
        return side.rows.moved(cursor, before, goal) or side.rows.touched(cursor, before)

    def _agreed(self, cursor: Cursor) -> Rows:
        """The client's rows as they are here. What was acknowledged and isn't there is lost, if the side is open:
        one that isn't yet may show an old state."""
        actual = self._read(cursor, self._side)
        if not self._unlike(self._side, actual, self._rung):
            return actual
        self._tried(cursor, actual)
        actual = self._read(cursor, self._side)
        lost = self._unlike(self._side, actual, self._rung)
        if lost and self._unknown is not None and not self._unlike(self._side, actual, self._unknown):
            self._rung, self._unknown = self._unknown, None
        elif lost:
            with self._lock:
                self._log.lost += [f"{one}, as the client went on there" for one in lost]
        return actual

    def _tried(self, cursor: Cursor, actual: Rows) -> None:
        """Writes something, and takes it back. Raises a driver's error where the side isn't open."""
        assert self._connection is not None
        self._moved(cursor, actual, max(self._ladder.rungs[self._side], key=len))
        self._connection.rollback()

    def _read(self, cursor: Cursor, side: str) -> Rows:
        actual: Rows = {}
        for table, keys in self._ladder.places(side).items():
            actual |= self._sides[side].rows.read(cursor, table, keys)
        return actual

    def _unlike(self, side: str, actual: Rows, rung: int) -> list[str]:
        expected, rows = self._ladder.rungs[side][rung], self._sides[side].rows
        return [
            f"{side} side, {table} {'/'.join(map(str, key))}: it must be {_shown(expected.get((table, key)))},"
            f" it is {_shown(actual.get((table, key)))}"
            for table, key in sorted({*expected, *actual}, key=str)
            if not rows.same((table, key), expected.get((table, key)), actual.get((table, key)))
        ]

    def _refused(self, said: str) -> None:
        with self._lock:
            self._log.refused[self._side] = said.strip().split("\n")[0]
        self._close()
        self._side = "new" if self._side == "old" else "old"
        time.sleep(_REFUSED_NAP_S)

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except _ERRORS:
                return  # it is gone already


def _shown(row: Sequence[object] | None) -> str:
    return (
        "absent" if row is None else "(" + ", ".join("NULL" if one is None else str(one) for one in row) + ")"
    )


class Clients:
    """All clients, each in a thread; a context manager that ends them.

    Args:
        ladders: one a client.
        sides: by name.
    """

    def __init__(self, ladders: Sequence[Ladder], sides: Mapping[str, Side]):
        self.log = Log()
        lock = threading.Lock()
        self._going, self._over = threading.Event(), threading.Event()
        self._clients = [Client(one, sides, self.log, lock) for one in ladders]
        self._threads = [
            threading.Thread(target=one.write, args=(self._going, self._over), daemon=True)
            for one in self._clients
        ]

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._threads:  # after an interruption the servers end soon, and whoever waits for them
            thread.join(timeout=30 if kind is None else 0.5)

    def go(self) -> None:
        """Lets them write from now on."""
        self._going.set()

    def rest(self) -> None:
        """Has them end the transaction under way, and wait."""
        self._going.clear()
        until = time.monotonic() + 30
        while not all(one.resting for one in self._clients) and time.monotonic() < until:
            time.sleep(_NAP_S)

    def write_for(self, seconds: float, side: str) -> None:
        """Lets them write on; some writes on that side must be acknowledged. Raises ``MigratorError``."""
        before = self.log.commits[side]
        self.go()
        time.sleep(seconds)
        until = time.monotonic() + _STUCK_S
        while self.log.commits[side] - before < 2 * len(self._clients):
            if time.monotonic() > until:
                said = "; ".join(f"{name}: {words}" for name, words in self.log.refused.items())
                raise MigratorError(
                    f"nobody could write to the {side} side",
                    where=f"{self.log.commits[side] - before} transactions",
                    cause=said or "nothing was refused",
                    remedy="look at `migrator cutover status`, and at what the servers said",
                )
            time.sleep(_NAP_S)

    def differing(self) -> list[str]:
        """The rows that aren't what was acknowledged last, on either side; the clients rest."""
        return [line for one in self._clients for line in one.differing()]
