"""Seeded concurrent writers: what an application does to its old database while it is being migrated.

A :class:`Workload` runs several threads, each with its own connection and its own seeded randomness. A thread draws an
:class:`Action` by weight, runs it as one transaction, and notes how that ended. The rate is in row changes per second
over all threads. The end of a COMMIT whose connection broke is *unknown*: it may or may not have happened.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import psycopg
import pymysql

from migrator.errors import ConnectionFailed, MigratorError

Outcome = Literal["ok", "failed", "rolled back", "unknown"]
_CONNECT_TIMEOUT_S = 5
_RECONNECT_WAIT_S = 0.1


class Cursor(Protocol):
    """What psycopg's and PyMySQL's cursors have in common (PEP 249)."""

    @property
    def rowcount(self) -> int:
        """Rows changed or found by the last statement."""

    def execute(self, statement: Any, parameters: Any = ..., /) -> Any:
        """Run one statement with ``%s`` parameters."""

    def fetchall(self) -> Any:
        """All rows of the last SELECT."""

    def close(self) -> None:
        """Give the cursor back."""


class Connection(Protocol):
    """What psycopg's and PyMySQL's connections have in common (PEP 249)."""

    def cursor(self) -> Cursor:
        """A new cursor."""

    def commit(self) -> None:
        """End the transaction and keep its changes."""

    def rollback(self) -> None:
        """End the transaction and drop its changes."""

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""


@dataclass(frozen=True, slots=True)
class Database:
    """Where a database is, on either engine.

    Attributes:
        kind: ``postgresql`` or ``mariadb``.
        schema: PostgreSQL only; a MariaDB database is its own schema.
        password: never printed.
    """

    kind: Literal["postgresql", "mariadb"]
    host: str
    port: int
    database: str
    user: str
    password: str = field(default="", repr=False)
    schema: str = "public"

    def connect(self, *, autocommit: bool = False, local_files: bool = False) -> Connection:
        """A new connection that takes double-quoted identifiers and works in UTC.

        Args:
            autocommit: whether each statement is a transaction of its own.
            local_files: let MariaDB's LOAD DATA LOCAL read files of this machine.

        Raises:
            ConnectionFailed: no server there, or it refuses the login.
        """
        try:
            if self.kind == "postgresql":
                return self.postgres(autocommit=autocommit)
            connection: Connection = pymysql.connect(
                host=self.host,
                port=self.port,
                user=self.user,
                password=self.password,
                database=self.database,
                charset="utf8mb4",
                autocommit=autocommit,
                local_infile=local_files,
                connect_timeout=_CONNECT_TIMEOUT_S,
                init_command="SET SESSION sql_mode = 'TRADITIONAL,ANSI_QUOTES', time_zone = '+00:00'",
            )
            return connection
        except (psycopg.OperationalError, pymysql.err.OperationalError) as error:
            raise ConnectionFailed(
                f"can't connect to {self.kind}",
                where=f"{self.host}:{self.port}/{self.database} as {self.user}",
                cause=str(error).strip(),
                remedy="check that the server runs and that this user may log in",
                retryable=True,
            ) from error

    def postgres(self, *, autocommit: bool = False) -> psycopg.Connection[tuple[Any, ...]]:
        """A psycopg connection; only for ``kind`` postgresql. Raises psycopg.OperationalError."""
        connection = psycopg.connect(
            host=self.host,
            port=self.port,
            dbname=self.database,
            user=self.user,
            password=self.password or None,
            autocommit=autocommit,
            connect_timeout=_CONNECT_TIMEOUT_S,
            options=f"-c search_path={self.schema} -c timezone=UTC",
        )
        return connection


class Session:
    """One thread's transaction in progress, as actions see it: statements, and the rows they changed."""

    def __init__(self, connection: Connection, rng: random.Random):
        self.rng = rng
        self.row_changes = 0
        self._connection = connection

    def change(self, statement: str, *parameters: object) -> int:
        """Run an INSERT, UPDATE or DELETE; returns and counts the rows changed."""
        cursor = self._connection.cursor()
        try:
            cursor.execute(statement, parameters)
            changed = max(cursor.rowcount, 0)
        finally:
            cursor.close()
        self.row_changes += changed
        return changed

    def rows(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Run a SELECT and return all its rows."""
        cursor = self._connection.cursor()
        try:
            cursor.execute(statement, parameters)
            return [tuple(row) for row in cursor.fetchall()]
        finally:
            cursor.close()


class RollBack(Exception):
    """Raised by an action that changes its mind: everything it did is undone."""


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
class WriterReport:
    """What the writers did.

    Attributes:
        operations: every transaction in the order in which they ended.
        row_changes: rows changed by transactions that committed.
        commits: committed transactions that changed a row at all.
        failures: transactions refused by the server (deadlock, key taken meanwhile, connection lost before COMMIT).
        rollbacks: transactions that their client undid.
        unknown: transactions of which nobody knows whether they committed.
        seconds: from start to stop.
        seed: what made the choices.
    """

    operations: tuple[Operation, ...]
    row_changes: int
    commits: int
    failures: int
    rollbacks: int
    unknown: int
    seconds: float
    seed: int

    def by_action(self) -> dict[str, int]:
        """Committed transactions that changed rows, by action."""
        return dict(Counter(o.name for o in self.operations if o.outcome == "ok" and o.row_changes))


class Workload:
    """Several writer threads over one database; start once, stop once.

    Args:
        database: what to write to.
        actions: kinds of transactions.
        seed: decides what every thread draws. Interleaving, and so the outcome, is up to the servers.
        rate_per_s: row changes per second over all threads; None for as fast as it goes.
        threads: number of writers.
        limit_row_changes: stop by itself after about so many row changes.
    """

    def __init__(
        self,
        database: Database,
        actions: Sequence[Action],
        *,
        seed: int,
        rate_per_s: float | None,
        threads: int,
        limit_row_changes: int | None = None,
    ):
        if not actions or threads < 1 or (rate_per_s is not None and rate_per_s <= 0):
            raise MigratorError(
                "a workload needs actions, at least one thread, and a rate above zero",
                where=f"{len(actions)} actions, {threads} threads, rate_per_s={rate_per_s}",
            )
        self._database = database
        self._actions = tuple(actions)
        self._seed = seed
        self._rate_per_s = rate_per_s
        self._limit = limit_row_changes
        self._halt = threading.Event()
        self._lock = threading.Lock()
        self._operations: list[Operation] = []
        self._spent_rows = 0
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
        self._started_s = time.monotonic()
        for thread in self._threads:
            thread.start()

    def stop(self) -> WriterReport:
        """End every thread after its current transaction and report. May be called again."""
        self._halt.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        if self._crash is not None:
            raise self._crash
        return self.report()

    def wait(self, timeout_s: float) -> bool:
        """Wait until the limit of row changes is reached; returns whether it was."""
        return self._halt.wait(timeout_s)

    def report(self) -> WriterReport:
        """What was done so far."""
        with self._lock:
            operations = tuple(self._operations)
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
        )

    def _write(self, number: int) -> None:
        rng = random.Random(f"{self._seed}/{number}")
        weights = [action.weight for action in self._actions]
        connection: Connection | None = None
        try:
            while not self._halt.is_set():
                if connection is None:
                    connection = self._connect_again(number)
                    continue
                action = rng.choices(self._actions, weights)[0]
                if not self._transact(number, action, connection, rng):
                    _close(connection)
                    connection = None
        except BaseException as error:  # kept for stop(), which raises it in the caller's thread
            self._crash = error
            self._halt.set()
        finally:
            if connection is not None:
                _close(connection)

    def _connect_again(self, number: int) -> Connection | None:
        started_s = time.monotonic()
        try:
            return self._database.connect()
        except ConnectionFailed as error:
            self._note(Operation(number, "connect", started_s, time.monotonic(), "failed", 0, error.cause))
            self._halt.wait(_RECONNECT_WAIT_S)
            return None

    def _transact(self, number: int, action: Action, connection: Connection, rng: random.Random) -> bool:
        """Run one transaction, note it, keep the rate. Returns whether the connection can be used again."""
        session = Session(connection, rng)
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
        except (psycopg.Error, pymysql.err.Error) as error:
            cause = str(error).strip()
            usable = _roll_back(connection)
            if usable:
                outcome = "failed"  # the server itself refused: it is alive and rolled back
        self._note(
            Operation(number, action.name, invoked_s, time.monotonic(), outcome, session.row_changes, cause)
        )
        self._pace()
        return usable

    def _note(self, operation: Operation) -> None:
        with self._lock:
            self._operations.append(operation)
            self._spent_rows += operation.row_changes
            if self._limit is not None and self._spent_rows >= self._limit:
                self._halt.set()

    def _pace(self) -> None:
        """Wait until the rows changed so far are due; time lost earlier is caught up by at most one second."""
        if self._rate_per_s is None:
            return
        now_s = time.monotonic()
        with self._lock:
            behind_s = now_s - self._started_s - self._spent_rows / self._rate_per_s
            if behind_s > 1:
                self._spent_rows += int((behind_s - 1) * self._rate_per_s)
                if self._limit is not None:
                    self._limit += int((behind_s - 1) * self._rate_per_s)
        if behind_s < 0:
            self._halt.wait(-behind_s)


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
