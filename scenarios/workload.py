"""Seeded concurrent writers: what an application does to its old database while it is being migrated.

A :class:`Workload` runs several threads, each with its own connection and its own seeded randomness. A thread
draws an :class:`Action` by weight, runs it as one transaction, and notes how that ended. The rate is in row
changes per second over all threads. The end of a COMMIT whose connection broke is *unknown*: it may or may not
have happened.

Actions that give their rows a provenance also note every row write (:class:`~scenarios.row_writes.RowWrite`). A
client stays the same one when its connection is made anew: its numbers go on rising.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal

import psycopg
import pymysql

from migrator.errors import ConnectionFailed, MigratorError
from scenarios.database import Connection, Database
from scenarios.row_writes import Notes, RowWrite
from scenarios.session import ClientFailed, RollBack, Session
from verify.history.history import FAILED

__all__ = [
    "Action", "ClientFailed", "Database", "Operation", "Outcome", "Place", "Provenance", "RollBack", "RowWrite",
    "Session", "Workload", "WriterReport",
]  # fmt: skip

Outcome = Literal["ok", "failed", "rolled back", "unknown"]
_RECONNECT_WAIT_S = 0.1
_CATCH_UP_S = 1.0


@dataclass(frozen=True, slots=True)
class Action:
    """One kind of transaction.

    Attributes:
        name: for the report.
        weight: how often it is drawn, relative to the others.
        run: does the statements of one transaction; neither commits nor rolls back.
    """

    name: str
    weight: int
    run: Callable[[Session], None]


@dataclass(frozen=True, slots=True)
class Operation:
    """One transaction as its client saw it.

    Attributes:
        thread: number of the writer.
        name: name of the action.
        invoked_s, ended_s: seconds on this process's monotonic clock.
        outcome: ``unknown`` if the connection broke during COMMIT.
        row_changes: rows changed by its statements, whatever the outcome.
        cause: the server's words when it failed.
    """

    thread: int
    name: str
    invoked_s: float
    ended_s: float
    outcome: Outcome
    row_changes: int
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin that row writes are noted with.

    Attributes:
        now_us: the clock of the row writes, in microseconds; None for one that starts with the workload.
        first_client: number of the first thread's client, for a second workload in one run.
    """

    now_us: Callable[[], int] | None = None
    first_client: int = 1


@dataclass(frozen=True, slots=True)
class WriterReport:
    """The work that the writers did.

    Attributes:
        operations: every transaction in the order in which they ended.
        row_changes: rows changed by transactions that committed.
        commits: committed transactions that changed a row at all.
        failures: transactions refused by the server (deadlock, key taken meanwhile) or cut before their COMMIT.
        rollbacks: transactions that their client undid.
        unknown: transactions of which nobody knows whether they committed.
        seconds: from start to stop.
        seed: what made the choices.
        writes: every row write that was noted, in the order in which the transactions ended.
    """

    operations: tuple[Operation, ...]
    row_changes: int
    commits: int
    failures: int
    rollbacks: int
    unknown: int
    seconds: float
    seed: int
    writes: tuple[RowWrite, ...] = ()

    def by_action(self) -> dict[str, int]:
        """Committed transactions that changed rows, by action."""
        return dict(Counter(o.name for o in self.operations if o.outcome == "ok" and o.row_changes))


@dataclass(frozen=True, slots=True)
class Place:
    """A database, and the kinds of transactions that suit it."""

    database: Database
    actions: tuple[Action, ...]


class Workload:
    """Several writer threads over one database; start once, stop once.

    Args:
        database: what to write to.
        actions: kinds of transactions.
        seed: decides what every thread draws. Interleaving, and so the outcome, is up to the servers.
        rate_per_s: row changes per second over all threads; None for as fast as it goes.
        threads: number of writers.
        limit_row_changes: stop by itself after about so many row changes.
        provenance: what row writes are noted with.
    """

    exact = False
    """True where sessions ask their actions for values that a way back can restore; see ``Session``."""

    def __init__(
        self,
        database: Database,
        actions: Sequence[Action],
        *,
        seed: int,
        rate_per_s: float | None,
        threads: int,
        limit_row_changes: int | None = None,
        provenance: Provenance = Provenance(),
    ):
        if not actions or threads < 1 or (rate_per_s is not None and rate_per_s <= 0):
            raise MigratorError(
                "a workload needs actions, at least one thread, and a rate above zero",
                where=f"{len(actions)} actions, {threads} threads, rate_per_s={rate_per_s}",
            )
        self._actions = tuple(actions)
        self._own = Place(database, self._actions)
        self._seed = seed
        self._rate_per_s = rate_per_s
        self._limit = limit_row_changes
        self._halt = threading.Event()
        self._lock = threading.Lock()
        self._operations: list[Operation] = []
        self._writes: list[RowWrite] = []
        self._transactions = count(1)
        self._now_us = provenance.now_us or self._own_clock_us
        self._first_client = provenance.first_client
        self._changed_rows = 0
        self._due_s = 0.0
        self._crash: BaseException | None = None
        self._started_s = 0.0
        self._threads = [
            threading.Thread(target=self._write, args=[number], name=f"writer-{number}", daemon=True)
            for number in range(threads)
        ]

    def start(self) -> None:
        """Start all threads; connections are made by them. Raises MigratorError if it was started before."""
        if self._started_s:
            raise MigratorError("a workload can be started only once")
        self._started_s = self._due_s = time.monotonic()
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_s: float = 60.0) -> WriterReport:
        """End every thread after its current transaction and report. May be called again.

        Raises MigratorError if a writer still waits for its server after the timeout, and whatever error other
        than the server's ended a writer.
        """
        self._halt.set()
        deadline_s = time.monotonic() + timeout_s
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(deadline_s - time.monotonic(), 0.0))
        stuck = [thread.name for thread in self._threads if thread.is_alive()]
        if stuck:
            raise MigratorError(
                "a writer does not stop",
                where=", ".join(stuck),
                cause=f"its server has not answered for {timeout_s:g} s",
                remedy="let the server answer, or kill it, and stop again",
            )
        if self._crash is not None:
            raise self._crash
        return self.report()

    def wait(self, timeout_s: float) -> bool:
        """Wait until the limit of row changes is reached; returns whether it was."""
        return self._halt.wait(timeout_s)

    def slow_down(self, rate_per_s: float) -> None:
        """Limits the writers to so many row changes per second over all threads, from now on."""
        with self._lock:
            self._rate_per_s = min(rate_per_s, self._rate_per_s or rate_per_s)

    def report(self) -> WriterReport:
        """Reports the work done so far."""
        with self._lock:
            operations = tuple(self._operations)
            writes = tuple(self._writes)
        outcomes = Counter(o.outcome for o in operations)
        ok = [o for o in operations if o.outcome == "ok"]
        return WriterReport(
            operations=operations,
            row_changes=sum(o.row_changes for o in ok),
            commits=sum(o.row_changes > 0 for o in ok),
            failures=outcomes["failed"],
            rollbacks=outcomes["rolled back"],
            unknown=outcomes["unknown"],
            seconds=time.monotonic() - self._started_s if self._started_s else 0.0,
            seed=self._seed,
            writes=writes,
        )

    def _own_clock_us(self) -> int:
        return int((time.monotonic() - self._started_s) * 1e6)

    def _write(self, number: int) -> None:
        rng = random.Random(f"{self._seed}/{number}")
        place: Place | None = None
        connection: Connection | None = None
        numbers = count(1)
        client = self._first_client + number
        try:
            while not self._halt.is_set():
                if connection is not None and place is not self._place():
                    _close(connection)
                    connection = None
                if connection is None:
                    place = self._place()
                    connection = self._connect_again(number, place)
                    continue
                assert place is not None
                action = rng.choices(place.actions, [action.weight for action in place.actions])[0]
                session = Session(
                    connection,
                    rng,
                    client=client,
                    numbers=numbers,
                    notes=Notes(client, next(self._transactions), self._now_us()),
                    database=place.database,
                    exact=self.exact,
                )
                if not self._transact(number, action, connection, session):
                    _close(connection)
                    connection = None
        except BaseException as error:  # noqa: BLE001 - kept for stop(), which raises it in the caller's thread
            self._crash = error
            self._halt.set()
        finally:
            if connection is not None:
                _close(connection)

    def _place(self) -> Place:
        """Returns where the next transaction goes; a writer that is elsewhere connects anew."""
        return self._own

    def _refused(self, database: Database, cause: str) -> None:
        """Hears of each transaction that the server didn't commit, and each failure to connect."""

    def _connect_again(self, number: int, place: Place) -> Connection | None:
        started_s = time.monotonic()
        try:
            return place.database.connect()
        except ConnectionFailed as error:
            self._refused(place.database, error.cause)
            self._note(Operation(number, "connect", started_s, time.monotonic(), "failed", 0, error.cause))
            self._halt.wait(_RECONNECT_WAIT_S)
            return None

    def _transact(self, number: int, action: Action, connection: Connection, session: Session) -> bool:
        """Run one transaction, note it, keep the rate. Returns whether the connection can be used again."""
        invoked_s = time.monotonic()
        outcome: Outcome = "failed"
        cause = ""
        usable = True
        try:
            action.run(session)
            outcome = "unknown"  # until the server has answered the COMMIT
            connection.commit()
            outcome = "ok"
        except RollBack:
            outcome = "rolled back"
            usable = _roll_back(connection)
        except ClientFailed as error:
            outcome, cause = "unknown", str(error)
            usable = _roll_back(connection)
        except (psycopg.Error, pymysql.err.Error) as error:
            cause = str(error).strip()
            usable = _roll_back(connection)
            if usable:
                outcome = "failed"  # the server itself refused: it is alive and rolled back
        writes = session.notes.end(
            self._now_us(),
            FAILED if outcome == "rolled back" else outcome,
            "rolled back by the client" if outcome == "rolled back" else cause,
        )
        if cause:
            self._refused(session.database, cause)
        self._note(
            Operation(number, action.name, invoked_s, time.monotonic(), outcome, session.row_changes, cause),
            writes,
            session.bulk_changes,
        )
        self._pace(session.row_changes - session.bulk_changes if outcome == "ok" else 0)
        return usable

    def _note(self, operation: Operation, writes: Sequence[RowWrite] = (), bulk_changes: int = 0) -> None:
        with self._lock:
            self._operations.append(operation)
            self._writes.extend(writes)
            self._changed_rows += operation.row_changes - bulk_changes
            if self._limit is not None and self._changed_rows >= self._limit:
                self._halt.set()

    def _pace(self, row_changes: int) -> None:
        """Wait until the rows changed so far are due; of time lost earlier at most a second is made up for."""
        if self._rate_per_s is None:
            return
        with self._lock:
            self._due_s += (
                max(row_changes, 1) / self._rate_per_s
            )  # 1: transactions that find nothing must not spin
            self._due_s = max(self._due_s, time.monotonic() - _CATCH_UP_S)
            wait_s = self._due_s - time.monotonic()
        if wait_s > 0:
            self._halt.wait(wait_s)


def _roll_back(connection: Connection) -> bool:
    try:
        connection.rollback()
    except (psycopg.Error, pymysql.err.Error):
        return False
    return True


def _close(connection: Connection) -> None:
    try:
        connection.close()
    except (psycopg.Error, pymysql.err.Error):
        return  # it was broken already
