"""Mapping by grains without servers sees what too fine a grain leads to, and nothing where the grain is right."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from migrator.model.reach import Reference
from migrator.model.table import Column, TableId, TableSchema
from scenarios.chaos.incident.by_grains import ByGrains, arrow
from scenarios.chaos.incident.event_log import cells
from scenarios.chaos.incident.failure import Expected, Failure, Wrong
from scenarios.chaos.incident.history import Change, History, Row, Transaction
from scenarios.chaos.incident.incident_file import Incident
from scenarios.chaos.incident.shrink import shrunk
from scenarios.chaos.incident.structure import Structure
from tests.integration.scenarios.incident.test_incident import PROJECT
from tests.unit.scenarios.incident.made_up import STRUCTURE as MANY_TYPES
from tests.unit.scenarios.incident.made_up import customer as many_values

pytestmark = [pytest.mark.spark]

CUSTOMER = TableSchema(
    TableId("public", "customer"), (Column("customer_id", "int32", False, "integer"),), ("customer_id",)
)
ORDERS = TableSchema(
    TableId("public", "orders"),
    (
        Column("order_id", "int32", False, "integer"),
        Column("customer_id", "int32", False, "integer"),
        Column("note", "string", True, "text"),
        Column("total", "decimal(12,2)", True, "numeric(12,2)"),
    ),
    ("order_id",),
)
STRUCTURE = Structure(
    "postgresql",
    "public",
    {"customer": CUSTOMER, "orders": ORDERS},
    (Reference(ORDERS.id, ("customer_id",), CUSTOMER.id, ("customer_id",)),),
)


def order(number: int, customer: int) -> Row:
    return {"order_id": str(number), "customer_id": str(customer), "note": None, "total": "1.50"}


HISTORY = History(
    {"customer": [], "orders": [order(1, 1), order(2, 2), order(3, 1)]},
    (
        Transaction(1, (Change("orders", order(2, 2), None),)),
        Transaction(2, (Change("orders", None, order(4, 1)),)),
    ),
)
SEEN = Failure((Wrong("purchase", "different", ("of_buyer",)),), 1)
FOUND = Incident(STRUCTURE, HISTORY, SEEN, {})


def mapping(folder: Path, grain: str) -> Path:
    file = folder / "mapping.py"
    shutil.copy(PROJECT / "mapping.py", file)
    file.write_text(file.read_text().replace('grain="orders.order_id"', f'grain="{grain}"'))
    return file


def test_too_fine_a_grain_shows(tmp_path: Path) -> None:
    judge = ByGrains(mapping(tmp_path, "orders.order_id"))
    found = judge.failure(STRUCTURE, HISTORY)
    assert [one.said() for one in found.wrong] == [
        "purchase, purchase_id 1: different in of_buyer",
        "purchase, purchase_id 3: different in of_buyer",
        "purchase, purchase_id 4: different in of_buyer",
    ]
    assert judge(FOUND)
    assert not judge(replace(FOUND, failure=Failure((Wrong("purchase", "missing"),), 1)))


def test_the_right_grain_shows_nothing(tmp_path: Path) -> None:
    judge = ByGrains(mapping(tmp_path, "orders.customer_id"))
    assert judge.failure(STRUCTURE, HISTORY).wrong == ()
    assert not judge(FOUND)


def test_columns_that_are_swapped_show_where_a_value_is_expected(tmp_path: Path) -> None:
    file = mapping(tmp_path, "orders.customer_id")
    right = Expected("purchase", {"purchase_id": "3"}, "buyer", "1")
    assert ByGrains(file).failure(STRUCTURE, HISTORY, [right]).wrong == ()
    file.write_text(
        file.read_text().replace('F.col("customer_id").alias("buyer")', 'F.col("order_id").alias("buyer")')
    )
    (wrong,) = ByGrains(file).failure(STRUCTURE, HISTORY, [right]).wrong
    assert wrong.said() == "purchase, purchase_id 3: unexpected in buyer"
    gone = replace(right, key={"purchase_id": "2"})
    assert ByGrains(file).failure(STRUCTURE, HISTORY, [gone]).wrong


def test_shrinking_by_grains_leaves_one_order_and_one_change(tmp_path: Path) -> None:
    judge = ByGrains(mapping(tmp_path, "orders.order_id"))
    found = shrunk(FOUND, 600, replayed=judge)
    assert found is not None
    assert len(found.history.start["orders"]) + len(found.history.changes()) == 2


def test_columns_that_another_target_needs_are_not_left_out(tmp_path: Path) -> None:
    text = [Column(name, "string", True, "text") for name in ("name", "email", "state", "born", "idle")]
    customers = replace(CUSTOMER, columns=(*CUSTOMER.columns, *text))
    whole = replace(FOUND, structure=replace(STRUCTURE, tables={"customer": customers, "orders": ORDERS}))
    found = shrunk(whole, 600, replayed=ByGrains(mapping(tmp_path, "orders.order_id")))
    assert found is not None
    assert found.structure.tables["customer"].names() == ("customer_id", "name", "email", "state", "born")
    assert len(found.history.start["orders"]) + len(found.history.changes()) == 2


def test_texts_become_the_values_they_were() -> None:
    rows = [many_values(7, "Ottoline"), {**many_values(8, "x"), "born": None, "active": "false"}]
    table = arrow(MANY_TYPES.tables["customer"], rows)
    again = cells(table, "postgresql")
    assert again[0] == {**rows[0], "seen": again[0]["seen"]}
    assert str(again[0]["seen"]).startswith("2024-05-06 07:08:09.123456")
    assert again[1]["born"] is None
