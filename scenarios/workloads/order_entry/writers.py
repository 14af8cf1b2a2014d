"""The transactions of order entry: new order, payment, delivery."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scenarios.database import Database
from scenarios.scenario import WorkloadSpec
from scenarios.session import RollBack, Session
from scenarios.workload import Action
from scenarios.workloads.base import Tracked
from scenarios.workloads.choice import some_key, some_keys
from scenarios.workloads.order_entry.old_schema import (
    CUSTOMER,
    CUSTOMERS,
    DISTRICT,
    DISTRICTS,
    NEW_ORDER,
    ORDER_LINE,
    ORDERS,
    STOCK,
    TRACKED,
    WAREHOUSE,
    Size,
    old_tables,
    size_of,
)
from scenarios.workloads.rows import Key, Rows, Stamp
from scenarios.workloads.tables import create_tables

_CANCELLED_PERCENT = 3


class OrderEntry:
    """New orders, payments and deliveries, as in TPC-C."""

    name = "order_entry"
    tracked: Sequence[Tracked] = TRACKED
    project = Path(__file__).parent

    def create(self, old: Database, spec: WorkloadSpec) -> None:
        """See ``old_schema``; ``spec.keys`` stock rows."""
        create_tables(old, old_tables(size_of(spec)))

    def actions(self, spec: WorkloadSpec) -> Sequence[Action]:
        """Shares near to those of TPC-C; deliveries keep up with the orders."""
        writers = _Writers(size_of(spec), spec.hot_percent)
        return [
            Action("new order", 45, writers.new_order),
            Action("payment", 43, writers.payment),
            Action("delivery", 10, writers.delivery),
        ]


class _Writers:
    def __init__(self, size: Size, hot_percent: int):
        self._size = size
        self._hot_percent = hot_percent
        self._warehouse, self._district, self._customer = (
            Rows(WAREHOUSE.old),
            Rows(DISTRICT.old),
            Rows(CUSTOMER.old),
        )
        self._stock, self._orders = Rows(STOCK.old), Rows(ORDERS.old)
        self._lines, self._open = Rows(ORDER_LINE.old), Rows(NEW_ORDER.old)

    def new_order(self, session: Session) -> None:
        """Takes the district's next number; some orders name an unknown item at the end and are undone."""
        rng = session.rng
        warehouse, district = self._some_district(session)
        [(turnover, order)] = session.rows(
            'SELECT "d_ytd", "d_next_o_id" FROM "district" WHERE "w_id" = %s AND "d_id" = %s FOR UPDATE',
            warehouse,
            district,
        )
        self._district.update(session, (warehouse, district), turnover, d_next_o_id=order + 1)
        items = some_keys(rng, self._size.items, rng.randint(2, 6), self._hot_percent)
        key = (warehouse, district, order)
        self._orders.insert(session, key, len(items), o_c_id=rng.randint(1, CUSTOMERS), o_carrier_id=None)
        self._open.insert(session, key)
        for number, item in enumerate(items, 1):
            quantity = rng.randint(1, 10)
            in_stock = _known(self._stock.lock(session, (warehouse, item)))
            left = in_stock - quantity if in_stock - quantity >= 10 else in_stock - quantity + 91
            self._stock.update(session, (warehouse, item), left, s_order_cnt=order)
            self._lines.insert(
                session,
                (*key, number),
                quantity,
                ol_i_id=item,
                ol_amount=f"{quantity * (item * 7 % 100 + 1) + 0.25:.2f}",
                ol_delivered=0,
            )
        if rng.randrange(100) < _CANCELLED_PERCENT:
            raise RollBack

    def payment(self, session: Session) -> None:
        """The same amount into warehouse, district and customer."""
        warehouse, district = self._some_district(session)
        amount = session.rng.randint(1, 5000)
        buyer = (warehouse, district, session.rng.randint(1, CUSTOMERS))
        self._raise(session, self._warehouse, warehouse, amount)
        self._raise(session, self._district, (warehouse, district), amount)
        balance = _known(self._customer.lock(session, buyer))
        self._customer.update(session, buyer, balance - amount, c_payment_cnt=session.rng.randint(1, 999))

    def delivery(self, session: Session) -> None:
        """The oldest open order of each district of a warehouse."""
        warehouse = session.rng.randint(1, self._size.warehouses)
        for district in range(1, DISTRICTS + 1):
            self._raise(session, self._district, (warehouse, district), 0)
            for (order,) in session.rows(
                'SELECT min("o_id") FROM "new_order" WHERE "w_id" = %s AND "d_id" = %s', warehouse, district
            ):
                if order is not None:
                    self._deliver(session, warehouse, district, order)

    def _deliver(self, session: Session, warehouse: int, district: int, order: int) -> None:
        key = (warehouse, district, order)
        if self._open.delete(session, key) is None:
            return
        lines = _known(self._orders.lock(session, key))
        self._orders.update(session, key, lines, o_carrier_id=session.rng.randint(1, 10))
        for number in range(1, lines + 1):
            quantity = _known(self._lines.lock(session, (*key, number)))
            self._lines.update(session, (*key, number), quantity, ol_delivered=1)

    def _raise(self, session: Session, rows: Rows, key: Key, amount: int) -> None:
        rows.update(session, key, _known(rows.lock(session, key)) + amount)

    def _some_district(self, session: Session) -> tuple[int, int]:
        rng = session.rng
        return some_key(rng, self._size.warehouses, self._hot_percent), rng.randint(1, DISTRICTS)


def _known(stamp: Stamp | None) -> int:
    """The value of a row that no transaction of this workload removes; gone after all, the client gives up."""
    if stamp is None or stamp.value is None:
        raise RollBack
    return stamp.value
