"""Made-up rows: values fit their types, unique ones differ, and a type that isn't known is named."""

from __future__ import annotations

import pytest

from scenarios.database import Database
from scenarios.rehearsal import generated
from scenarios.rehearsal.rows import CannotMake, RowMaker
from scenarios.rehearsal.tables import Column, ForeignKey, Table, in_order, linked

ORDERS = Table(
    "orders",
    (
        Column("order_id", "integer", nullable=False),
        Column("state", "character varying(3)", nullable=False),
        Column("paid", "smallint", nullable=False),
        Column("note", "text", nullable=True),
        Column("kind", "order_kind", nullable=False, chosen=("a", "b")),
        Column("twice", "integer", nullable=True, written=False),
        Column("customer_id", "integer", nullable=False),
    ),
    ("order_id",),
    (("state",),),
    (ForeignKey(("customer_id",), "customer", ("customer_id",)),),
    ("CHECK (paid = ANY (ARRAY[0, 1]))",),
)


def test_the_same_seed_makes_the_same_row() -> None:
    first, second = (RowMaker(7).row(ORDERS, 3, {"customer_id": "5"}) for _ in range(2))
    assert first == second
    assert RowMaker(8).row(ORDERS, 4, {"customer_id": "5"}) != first


def test_columns_that_the_server_computes_are_left_out_and_parents_kept() -> None:
    row = RowMaker(1).row(ORDERS, 1, {"customer_id": "5"})
    assert "twice" not in row
    assert row["customer_id"] == "5"


def test_unique_values_differ_and_fit() -> None:
    rows = [RowMaker(number).row(ORDERS, number, {"customer_id": "5"}) for number in range(300)]
    for name in ("order_id", "state"):
        assert len({row[name] for row in rows}) == 300
    assert all(len(str(row["state"])) <= 3 for row in rows)
    assert {row["kind"] for row in rows} == {"a", "b"}


def test_constants_of_checks_are_drawn() -> None:
    drawn = [RowMaker(number).row(ORDERS, number, {"customer_id": "5"})["paid"] for number in range(60)]
    assert sum(one in ("0", "1") for one in drawn) > 20


def test_a_type_that_is_not_known_is_named() -> None:
    with pytest.raises(CannotMake, match="shape polygon"):
        RowMaker(1).value(Column("shape", "polygon", nullable=False), Table("odd", (), ()))
    loose = Table("odd", (Column("shape", "polygon", nullable=True),), ())
    assert RowMaker(1).row(loose, 1, {}) == {"shape": None}


def test_parents_come_first_and_circles_end() -> None:
    customer = Table("customer", (), ("customer_id",), (), (ForeignKey(("best",), "orders", ("order_id",)),))
    alone = Table("alone", (), ())
    tables = {"orders": ORDERS, "customer": Table("customer", (), ("customer_id",)), "alone": alone}
    assert in_order(tables, tables) == ["alone", "customer", "orders"]
    assert sorted(in_order({"orders": ORDERS, "customer": customer}, ("orders", "customer"))) == [
        "customer",
        "orders",
    ]


def test_a_link_of_the_mapping_names_the_parent_where_no_foreign_key_does() -> None:
    bare = Table("orders", ORDERS.columns, ("order_id",))
    for link in ("orders.customer_id = customer.customer_id", "customer.customer_id = orders.customer_id"):
        assert linked(bare, [link]).foreign_keys == (
            ForeignKey(("customer_id",), "customer", ("customer_id",)),
        )
    assert linked(ORDERS, ["orders.customer_id = other.id"]).foreign_keys == ORDERS.foreign_keys


def test_foreign_keys_that_share_a_column_name_rows_that_belong_together() -> None:
    both = (
        ForeignKey(("company",), "company", ("id",)),
        ForeignKey(("company", "line"), "contact", ("company", "line")),
    )
    names = (Column("company", "int", nullable=False), Column("line", "int", nullable=True))
    booking = Table("booking", names, (), (), both)
    known: dict[tuple[str, tuple[str, ...]], list[tuple[object, ...]]] = {
        ("company", ("id",)): [(1,), (2,), (3,)],
        ("contact", ("company", "line")): [(1, 7), (2, 7), (2, 8)],
    }
    database = Database("mariadb", "nowhere", 1, "shop", "nobody")
    found = [generated.parents(database, booking, known, number) for number in range(9)]
    assert {(one["company"], one["line"]) for one in found} == {(1, 7), (2, 7), (2, 8)}
    known["contact", ("company", "line")] = []
    assert generated.parents(database, booking, known, 1) == {"company": 1, "line": None}
