"""Looks at the new database while it is written, and judges what it saw against the old one of that moment.

The story's own writers run one transaction after the other, and after each the place in the source log is noted. A
snapshot of all new tables comes with the ledger's position, so it is known how many of the transactions it
must hold. The old database of that moment is made by doing just these transactions, drawn from the same seed,
in a copy of the old database as it was before the first. The story's oracle, which is no mapping, says what
they must give.

One writer at a time, because two would not do the same things again. The clock of both sessions is set before every
transaction: ``last_update`` columns take it.
"""

from __future__ import annotations

import random
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

import pymysql

from migrator.errors import VerifyError
from migrator.model.position import Position
from migrator.schema import MYSQL_LEDGER
from scenarios.database import Connection, Database
from scenarios.session import RollBack, Session
from scenarios.stories.cascades import show_deletes
from scenarios.stories.stories import Story
from scenarios.stories.words import Difference, Table, differences

_CLOCK = 1_900_000_000
"""Unix time of the first transaction."""
_WAIT_S = 600.0
_LEDGER = "SELECT position_order FROM {0} WHERE migration = %s"
_SNAPSHOT = {
    "postgresql": "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "mariadb": "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    "mysql": "START TRANSACTION WITH CONSISTENT SNAPSHOT",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One snapshot of the new tables.

    Attributes:
        order: of the ledger's position.
        transactions: how many of the writer's it had to hold.
        differences: between what it held and what it had to; none if the mapping is exactly in step.
    """

    order: int
    transactions: int
    differences: tuple[Difference, ...]


class OneWriter:
    """Does a story's actions one after the other, the same ones for the same seed and rows.

    Args:
        database: filled by the story.
        story: whose actions.
        seed: draws them.
        logged: whether the server logs them; a copy's needn't be.
    """

    def __init__(self, database: Database, story: Story, seed: int, *, logged: bool):
        self._database = database
        self._actions = list(story.writers.ACTIONS.values())
        self._rng = random.Random(seed)
        self._connection: Any = database.connect()
        self.done = 0
        if not logged:
            self._connection.cursor().execute("SET SESSION sql_log_bin = 0")

    def step(self) -> int:
        """One transaction; how many rows it changed. One that the server refuses is rolled back."""
        run = self._rng.choices(self._actions, [weight for weight, _ in self._actions])[0][1]
        self._connection.cursor().execute(f"SET SESSION timestamp = {_CLOCK + self.done:d}")
        session = Session(self._connection, self._rng, database=self._database)
        self.done += 1
        try:
            run(session)
        except (RollBack, pymysql.err.Error):
            self._connection.rollback()
            return 0
        self._connection.commit()
        return session.row_changes

    def close(self) -> None:
        """Ends the session."""
        self._connection.close()


class Sampler:
    """Writes, looks and judges.

    Args:
        story: the story.
        old: the old side, MariaDB or MySQL; nobody else may write to it.
        new: the new side.
        migration: whose ledger row.
        position: a place in the source log at or after everything committed.
        seed: of the writer.
        rate_per_s: transactions of the writer.
    """

    def __init__(
        self,
        story: Story,
        old: Database,
        new: Database,
        migration: str,
        position: Callable[[], Position],
        seed: int,
        rate_per_s: float = 10.0,
    ):
        self._story = story
        self._old = old
        self._new = new
        self._migration = migration
        self._position = position
        self._seed = seed
        self._pause_s = 1 / rate_per_s
        self._positions: list[int] = []
        self._columns: dict[str, Table] = {}
        self._halt = threading.Event()
        self._failure: BaseException | None = None

    def take(self, number: int) -> Iterator[Sample]:
        """Takes so many snapshots in the middle of the stream, each of another position, and judges them.

        The writer writes from the first to the last. Raises ``VerifyError`` when the target doesn't move.
        """
        self._columns = self._story.expected(self._old)  # rows of now: only the names matter
        with _copy(self._story, self._old) as copy:
            self._positions.append(self._position().order)
            writer = threading.Thread(target=self._write, name="story-writer", daemon=True)
            writer.start()
            behind = OneWriter(copy, self._story, self._seed, logged=False)
            try:
                after = self._positions[0]
                for _ in range(number):
                    found = self._sample(behind, copy, after)
                    after = found.order
                    yield found
            finally:
                self._halt.set()
                writer.join()
                behind.close()
                if self._failure is not None:
                    raise self._failure

    def _write(self) -> None:
        writer = OneWriter(self._old, self._story, self._seed, logged=True)
        try:
            while not self._halt.wait(self._pause_s):
                writer.step()
                self._positions.append(self._position().order)
        except BaseException as error:  # noqa: BLE001 - raised again by take()
            self._failure = error
            self._halt.set()
        finally:
            writer.close()

    def _sample(self, behind: OneWriter, copy: Database, after: int) -> Sample:
        order, actual = self._snapshot(after)
        self._until(lambda: self._positions[-1] >= order, "the writer's place in the log")
        # Transactions that changed nothing have the place of the one before.
        wanted = bisect_right(self._positions, order) - 1
        while behind.done < wanted:
            behind.step()
        return Sample(order, wanted, tuple(differences(self._story.expected(copy), actual)))

    def _snapshot(self, after: int) -> tuple[int, dict[str, Table]]:
        """The new tables at a position behind ``after``, in one snapshot, and that position."""
        self._until(lambda: self._ledger() > after, "the ledger")
        with closing(self._new.connect()) as session:
            session.cursor().execute(_SNAPSHOT[self._new.kind])
            return self._order(session), self._story.actual(session, self._columns)

    def _ledger(self) -> int:
        with closing(self._new.connect()) as session:
            return self._order(session)

    def _order(self, session: Connection) -> int:
        """The ledger's position, 0 while it has none."""
        cursor = session.cursor()
        ledger = "migrator.ledger" if self._new.kind == "postgresql" else MYSQL_LEDGER
        cursor.execute(_LEDGER.format(ledger), [self._migration])
        rows = cursor.fetchall()
        return int(rows[0][0]) if rows and rows[0][0] is not None else 0

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = monotonic() + _WAIT_S
        while not condition():
            if self._halt.wait(0.1):  # between two looks at the condition
                return
            if monotonic() > deadline:
                raise VerifyError(f"{what} did not move for {_WAIT_S:g} s", remedy="see the run's output")


@contextmanager
def _copy(story: Story, old: Database) -> Iterator[Database]:
    """The old database as it is now, in another one of the same server, while nobody writes."""
    copy = Database(old.kind, old.host, old.port, f"{old.database}_copy", old.user, old.password)
    owner: Any = old.connect(autocommit=True)
    cursor = owner.cursor()
    try:
        cursor.execute(f"DROP DATABASE IF EXISTS `{copy.database}`")
        cursor.execute(f"CREATE DATABASE `{copy.database}`")
        story.load(copy, extra_rows=False)
        cursor.execute("SET SESSION foreign_key_checks = 0, sql_mode = 'ANSI_QUOTES,NO_AUTO_VALUE_ON_ZERO'")
        cursor.execute("SHOW FULL TABLES WHERE Table_type = 'BASE TABLE'")
        for name, _ in cursor.fetchall():
            cursor.execute(f"DELETE FROM `{copy.database}`.`{name}`")
            cursor.execute(f"INSERT INTO `{copy.database}`.`{name}` SELECT * FROM `{old.database}`.`{name}`")
        show_deletes(copy)
        yield copy
    finally:
        cursor.execute(f"DROP DATABASE IF EXISTS `{copy.database}`")
        owner.close()
