"""An application of many pooled connections and prepared statements, which knows one address and no schema.

Functions of one name stand on both sides: a proxy switches an address, and never the SQL.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType

import psycopg

from tests.integration.cutover.two_way import TwoWay

CONNECTIONS = 24
_FIRST = 10_000
_NAP_S = 0.02
_OLD = (
    "CREATE SCHEMA app",
    "CREATE FUNCTION app.put(o int, c int) RETURNS text LANGUAGE sql AS $$"
    " INSERT INTO orders (order_id, customer_id, cents, paid) VALUES (o, 1, c, 0)"
    " ON CONFLICT (order_id) DO UPDATE SET cents = excluded.cents; SELECT 'old'::text $$",
    "CREATE FUNCTION app.cents(o int) RETURNS int LANGUAGE sql AS $$"
    " SELECT cents FROM orders WHERE order_id = o $$",
)
_NEW = (
    "CREATE SCHEMA app",
    "CREATE FUNCTION app.put(o int, c int) RETURNS text LANGUAGE sql AS $$"
    " INSERT INTO purchase VALUES (o, 1, c / 100.0, false)"
    " ON CONFLICT (purchase_id) DO UPDATE SET amount = excluded.amount; SELECT 'new'::text $$",
    "CREATE FUNCTION app.cents(o int) RETURNS int LANGUAGE sql AS $$"
    " SELECT (amount * 100)::int FROM purchase WHERE purchase_id = o $$",
)


def same_words(project: TwoWay) -> None:
    """Puts the application's functions on both sides."""
    project.old.execute(*_OLD)
    project.new.execute(*_NEW)


class Application:
    """Threads with a connection each, kept until it breaks. Each counts up the cents of orders of its own, and reads
    them: what was acknowledged may never be missing, whatever side answers.

    Attributes: ``acknowledged``: by order, the cents that were committed last; ``unknown``: those that nobody knows
    of; ``sides``: which side took each write; ``failures``: what clients saw; ``back_in_time``: reads that missed an
    acknowledged write.
    """

    def __init__(self, conninfo: str, first: int = _FIRST):
        self._conninfo, self._first = conninfo, first
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, args=(one,), daemon=True) for one in range(CONNECTIONS)
        ]
        self.acknowledged: dict[int, int] = {}
        self.unknown: dict[int, set[int]] = {}
        self.sides: list[str] = []
        self.failures: list[str] = []
        self.back_in_time: list[tuple[int, int, object]] = []

    def __enter__(self) -> Application:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=60)
            assert not thread.is_alive(), "a client hangs"

    def writes_arrive(self, side: str, number: int = 10 * CONNECTIONS) -> None:
        """Waits until so many writes in a row have arrived at a side."""
        until = time.monotonic() + 60
        while self.sides[-number:] != [side] * number:
            assert time.monotonic() < until, (side, self.sides[-5:], self.failures[-3:])
            time.sleep(0.05)

    def check(self, project: TwoWay) -> None:
        """Nothing that was acknowledged is missing on the old side, which both ways write to."""
        rows = project.old.query(f"SELECT order_id, cents FROM orders WHERE order_id >= {self._first}")
        there = dict(rows)
        lost = {
            order: (cents, there.get(order))
            for order, cents in self.acknowledged.items()
            if there.get(order) != cents and there.get(order) not in self.unknown.get(order, ())
        }
        assert lost == {}
        assert self.back_in_time == []
        assert len(self.acknowledged) >= CONNECTIONS

    def _work(self, client: int) -> None:
        connection: psycopg.Connection | None = None
        order, cents = self._first + client * 1_000, 0
        while not self._stop.is_set():
            try:
                if connection is None or connection.broken:
                    connection = psycopg.connect(self._conninfo, autocommit=True, prepare_threshold=0)
                side = self._put(connection, order, cents + 1)
                cents += 1
                self._noted(order, cents, side)
                self._read(connection, order, cents)
            except psycopg.Error as error:
                with self._lock:
                    self.failures.append(f"{type(error).__name__}: {error}")
                    self.unknown.setdefault(order, set()).add(cents + 1)
            if cents == 5:
                order, cents = order + 1, 0
            self._stop.wait(_NAP_S)
        if connection is not None:
            connection.close()

    def _put(self, connection: psycopg.Connection, order: int, cents: int) -> str:
        row = connection.execute("SELECT app.put(%s::int, %s::int)", [order, cents]).fetchone()
        assert row is not None
        return str(row[0])

    def _noted(self, order: int, cents: int, side: str) -> None:
        with self._lock:
            self.acknowledged[order] = cents
            self.sides.append(side)

    def _read(self, connection: psycopg.Connection, order: int, cents: int) -> None:
        row = connection.execute("SELECT app.cents(%s::int)", [order]).fetchone()
        found = None if row is None else row[0]
        if found != cents:
            with self._lock:
                self.back_in_time.append((order, cents, found))
