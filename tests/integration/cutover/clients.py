"""Clients that write through both schemas and fail over by themselves; what was acknowledged must be there."""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import replace
from types import TracebackType

import psycopg
import pymysql

from tests.integration.cutover.two_way import TwoWay
from tests.servers import Database

APPLICATION = "application"
_FIRST = 10_000
_NAP_S = 0.02


class NotThereError(Exception):
    """A side hasn't the row, as one that isn't open yet."""


class Clients:
    """Some threads; each inserts orders of its own and counts up its own customer's cents, one write at a time.

    A client asks one side, and the other one once it is refused. ``acknowledged``: by order, the cents that were
    committed last.
    """

    def __init__(self, project: TwoWay, number: int = 3, first: int = _FIRST):
        self._project = project
        self._databases = {"old": as_application(project.old), "new": as_application(project.new)}
        self._number, self._first = number, first
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self.acknowledged: dict[int, int] = {}
        self.unknown: dict[int, set[int]] = {}
        self.sides: list[tuple[float, str]] = []
        self.failures: list[str] = []

    def __enter__(self) -> Clients:
        for client in range(self._number):
            thread = threading.Thread(target=self._write, args=(client,), daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=30)

    def write_for(self, seconds: float) -> None:
        """Lets them write; they must have got on meanwhile."""
        before = len(self.sides)
        until = time.monotonic() + 30
        time.sleep(seconds)
        while len(self.sides) - before < 10 and time.monotonic() < until:
            time.sleep(0.1)
        assert len(self.sides) - before >= 10, f"nobody could write: {self.failures[-3:]}"

    def check(self) -> None:
        """What was acknowledged is on both sides, once, and nothing is older than it."""
        time.sleep(2)
        assert len(self.acknowledged) > 30, "few writes prove little"
        old = dict(self._project.old.query(f"SELECT order_id, cents FROM orders WHERE order_id >= {_FIRST}"))
        lost = {one: cents for one, cents in self.acknowledged.items() if old.get(one) != cents}
        certain = {
            one: cents for one, cents in lost.items() if old.get(one) not in self.unknown.get(one, set())
        }
        assert certain == {}, [
            (one, cents, old.get(one), self.unknown.get(one)) for one, cents in certain.items()
        ][:6]

    def _write(self, client: int) -> None:
        sides = itertools.cycle(("old", "new"))
        side = next(sides)
        order = self._first + client * 100_000
        cents = 0
        while not self._stop.is_set():
            fresh = cents == 0
            try:
                self._once(side, order, cents + 1, fresh)
            except (psycopg.Error, pymysql.Error, NotThereError) as error:
                with self._lock:
                    self.failures.append(f"{side}: {error}")
                    self.unknown.setdefault(order, set()).add(cents + 1)
                side = next(sides)
                time.sleep(_NAP_S)
                continue
            cents += 1
            with self._lock:
                self.acknowledged[order] = cents
                self.sides.append((time.time(), side))
            if cents == 5:
                order, cents = order + 1, 0
            time.sleep(_NAP_S)

    def _once(self, side: str, order: int, cents: int, fresh: bool) -> None:
        database = self._databases[side]
        if side == "old":
            insert = (
                f"INSERT INTO orders (order_id, customer_id, cents, paid) VALUES ({order}, 1, {cents}, 0)"
            )
            update = f"UPDATE orders SET cents = {cents} WHERE order_id = {order}"
        else:
            amount = f"{cents / 100:.2f}"
            insert = f"INSERT INTO purchase VALUES ({order}, 1, {amount}, false)"
            update = f"UPDATE purchase SET amount = {amount} WHERE purchase_id = {order}"
        connection = database.connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(insert if fresh else update)
                if cursor.rowcount != 1:
                    raise NotThereError(f"{side} has no order {order}")
        finally:
            connection.close()


def as_application(database: Database) -> Database:
    """The database with the application's login, which is made if need be."""
    if database.kind == "postgresql":
        known = database.query(f"SELECT 1 FROM pg_roles WHERE rolname = '{APPLICATION}'")
        database.execute(*([] if known else [f"CREATE ROLE {APPLICATION} LOGIN SUPERUSER"]))
    else:
        database.execute(
            f"CREATE USER IF NOT EXISTS '{APPLICATION}'@'%'",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON `{database.database}`.* TO '{APPLICATION}'@'%'",
        )
    return replace(database, user=APPLICATION)
