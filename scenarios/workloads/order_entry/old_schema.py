"""The old tables of order entry, and where their provenance stands."""

from __future__ import annotations

from dataclasses import dataclass

from scenarios.scenario import WorkloadSpec
from scenarios.workloads.base import Columns, Tracked
from scenarios.workloads.tables import OldTable
from verify.history.history import TrackedTable

WAREHOUSE = Tracked(
    TrackedTable("warehouse", fold=True),
    Columns("warehouse", ("w_id",), "writer", "write_no", "w_ytd"),
    Columns("depot", ("depot_id",), "client", "client_no", "turnover"),
)
DISTRICT = Tracked(
    TrackedTable("district", fold=True, numeric_key=False),
    Columns("district", ("w_id", "d_id"), "writer", "write_no", "d_ytd"),
    Columns("area", ("depot_id", "area_no"), "client", "client_no", "turnover"),
)
CUSTOMER = Tracked(
    TrackedTable("customer", fold=True, numeric_key=False),
    Columns("customer", ("w_id", "d_id", "c_id"), "writer", "write_no", "c_balance"),
    Columns("buyer", ("depot_id", "area_no", "buyer_no"), "client", "client_no", "balance"),
)
STOCK = Tracked(
    TrackedTable("stock", numeric_key=False),
    Columns("stock", ("w_id", "i_id"), "writer", "write_no", "s_quantity"),
    Columns("shelf", ("depot_id", "item_id"), "client", "client_no", "pieces"),
)
ORDERS = Tracked(
    TrackedTable("orders", numeric_key=False),
    Columns("orders", ("w_id", "d_id", "o_id"), "writer", "write_no", "o_ol_cnt"),
    Columns("sale", ("depot_id", "area_no", "sale_no"), "client", "client_no", "line_count"),
)
ORDER_LINE = Tracked(
    TrackedTable("order_line", numeric_key=False),
    Columns("order_line", ("w_id", "d_id", "o_id", "ol_number"), "writer", "write_no", "ol_quantity"),
    Columns("sale_line", ("depot_id", "area_no", "sale_no", "line_no"), "client", "client_no", "pieces"),
)
NEW_ORDER = Tracked(
    TrackedTable("new_order", numeric_key=False),
    Columns("new_order", ("w_id", "d_id", "o_id"), "writer", "write_no"),
    Columns("open_sale", ("depot_id", "area_no", "sale_no"), "client", "client_no"),
)
TRACKED = (WAREHOUSE, DISTRICT, CUSTOMER, STOCK, ORDERS, ORDER_LINE, NEW_ORDER)

DISTRICTS = 4
CUSTOMERS = 10
_STAMP = '"writer" int NOT NULL, "write_no" int NOT NULL'


@dataclass(frozen=True, slots=True)
class Size:
    """The size of the company; districts a warehouse and customers a district are fixed."""

    warehouses: int
    items: int


def size_of(spec: WorkloadSpec) -> Size:
    """``spec.keys`` items in stock over all warehouses; option ``warehouses``, 2 if not given."""
    warehouses = int(spec.options.get("warehouses", 2))
    return Size(warehouses, max(spec.keys // warehouses, 10))


def old_tables(size: Size) -> list[OldTable]:
    """All tables with the rows they begin with; there are no orders yet."""
    districts = size.warehouses * DISTRICTS
    customers, stock = districts * CUSTOMERS, size.warehouses * size.items
    after_districts = size.warehouses + districts
    return [
        OldTable(
            "warehouse",
            f'"w_id" int PRIMARY KEY, "w_name" varchar(10) NOT NULL, "w_tax" decimal(4,4) NOT NULL,'
            f' "w_ytd" bigint NOT NULL, {_STAMP}',
            "n, concat('W', n), 0.0725, 0, 0, n",
            size.warehouses,
        ),
        OldTable(
            "district",
            f'"w_id" int NOT NULL, "d_id" int NOT NULL, "d_name" varchar(10) NOT NULL, "d_ytd" bigint NOT NULL,'
            f' "d_next_o_id" int NOT NULL, {_STAMP}, PRIMARY KEY ("w_id", "d_id")',
            f"{_nth('n', DISTRICTS)}, mod(n - 1, {DISTRICTS}) + 1, concat('D', n), 0, 1, 0, n + {size.warehouses}",
            districts,
        ),
        OldTable(
            "customer",
            f'"w_id" int NOT NULL, "d_id" int NOT NULL, "c_id" int NOT NULL, "c_last" varchar(24) NOT NULL,'
            f' "c_credit" char(2) NOT NULL, "c_balance" bigint NOT NULL, "c_payment_cnt" int NOT NULL, {_STAMP},'
            ' PRIMARY KEY ("w_id", "d_id", "c_id")',
            f"{_nth('n', DISTRICTS * CUSTOMERS)}, mod({_nth('n', CUSTOMERS)} - 1, {DISTRICTS}) + 1,"
            f" mod(n - 1, {CUSTOMERS}) + 1, concat('Customer ', n), CASE WHEN mod(n, 10) = 0 THEN 'BC' ELSE 'GC' END,"
            f" 0, 0, 0, n + {after_districts}",
            customers,
        ),
        OldTable(
            "stock",
            f'"w_id" int NOT NULL, "i_id" int NOT NULL, "s_quantity" int NOT NULL, "s_order_cnt" int NOT NULL,'
            f' {_STAMP}, PRIMARY KEY ("w_id", "i_id")',
            f"{_nth('n', size.items)}, mod(n - 1, {size.items}) + 1, 50, 0, 0, n + {after_districts + customers}",
            stock,
        ),
        OldTable(
            "orders",
            f'"w_id" int NOT NULL, "d_id" int NOT NULL, "o_id" int NOT NULL, "o_c_id" int NOT NULL,'
            f' "o_carrier_id" int, "o_ol_cnt" int NOT NULL, {_STAMP}, PRIMARY KEY ("w_id", "d_id", "o_id")',
        ),
        OldTable(
            "order_line",
            f'"w_id" int NOT NULL, "d_id" int NOT NULL, "o_id" int NOT NULL, "ol_number" int NOT NULL,'
            f' "ol_i_id" int NOT NULL, "ol_quantity" int NOT NULL, "ol_amount" decimal(10,2) NOT NULL,'
            f' "ol_delivered" smallint NOT NULL, {_STAMP}, PRIMARY KEY ("w_id", "d_id", "o_id", "ol_number")',
        ),
        OldTable(
            "new_order",
            f'"w_id" int NOT NULL, "d_id" int NOT NULL, "o_id" int NOT NULL, {_STAMP},'
            ' PRIMARY KEY ("w_id", "d_id", "o_id")',
        ),
    ]


def _nth(number: str, size: int) -> str:
    """Writes the SQL for the group of ``size`` numbers that ``number`` belongs to.

    Numbers and groups count from 1. The result is a whole number on every engine.
    """
    return f"(({number} - 1 - mod({number} - 1, {size})) / {size} + 1)"
