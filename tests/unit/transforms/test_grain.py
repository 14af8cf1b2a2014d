"""From declarations and foreign keys to links, and what is refused with which words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from migrator.model.reach import Reference, entangled, linked_columns, spoken, united
from migrator.model.table import Column, TableId, TableSchema
from transforms.analysis.grain import reaches
from transforms.declared_grain import GrainProblem, value_column
from transforms.registry import Mapping

COLUMNS = {
    "customer": ("customer_id", "name", "referrer_id"),
    "orders": ("order_id", "customer_id", "clerk_id"),
    "order_line": ("order_id", "line_no", "product_id"),
    "product": ("product_id", "name"),
    "clerk": ("clerk_id", "boss_of"),
}
KEYS = {"order_line": 2}
SCHEMAS = {
    name: TableSchema(
        TableId("old", name),
        tuple(Column(one, "string" if one == "name" else "int32", False, "int") for one in columns),
        columns[: KEYS.get(name, 1)],
    )
    for name, columns in COLUMNS.items()
}


def reference(child: str, column: str, parent: str, parent_column: str) -> Reference:
    return Reference(TableId("old", child), (column,), TableId("old", parent), (parent_column,))


REFERENCES = [
    reference("orders", "customer_id", "customer", "customer_id"),
    reference("order_line", "order_id", "orders", "order_id"),
    reference("order_line", "product_id", "product", "product_id"),
    reference("customer", "referrer_id", "customer", "customer_id"),
    reference("orders", "clerk_id", "clerk", "clerk_id"),
    reference("clerk", "boss_of", "orders", "order_id"),
]


def found(*sources: str, references: list[Reference] | None = None, **declared: Any) -> Any:
    mapping = Mapping()

    parameters = ", ".join(sources)
    scope: dict[str, Any] = {}
    exec(f"def function({parameters}): ...", scope)
    mapping.target("t", key="k", **declared)(scope["function"])
    given = [one for one in REFERENCES if one.child != one.parent] if references is None else references
    return reaches(mapping["t"], SCHEMAS, given)


def walked(reach: Any) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    return [
        (node.role, reach.nodes[node.above].role, node.columns, node.above_columns)
        for node in reach.nodes[1:]
    ]


def test_foreign_keys_are_followed_from_the_grain_outwards() -> None:
    [reach] = found("orders", "customer", "order_line", "product", grain="orders.order_id")
    assert (reach.root.role, reach.grain) == ("orders", ("order_id",))
    assert walked(reach) == [
        ("order_line", "orders", ("order_id",), ("order_id",)),
        ("customer", "orders", ("customer_id",), ("customer_id",)),
        ("product", "order_line", ("product_id",), ("product_id",)),
    ]
    assert not entangled((reach,))
    assert linked_columns((reach,))[TableId("old", "order_line")] == {("order_id",), ("product_id",)}


def test_columns_of_one_table_are_one_grain_and_of_several_tables_several() -> None:
    [one] = found("order_line", grain=["order_line.order_id", "order_line.product_id"])
    assert one.grain == ("order_id", "product_id")
    both = found("customer", "orders", "product", grain=["customer.customer_id", "product.product_id"])
    assert [[node.role for node in reach.nodes] for reach in both] == [["customer", "orders"], ["product"]]


def test_equals_between_columns_is_one_grain_in_several_tables() -> None:
    [reach] = found(
        "order_line", "orders", "clerk", "product", grain=" order_line.product_id =clerk.boss_of= orders.clerk_id",
        links=["product.product_id = orders.customer_id"],
    )  # fmt: skip
    assert [reach.nodes[index].role for index in reach.roots()] == ["order_line", "clerk", "orders"]
    assert [reach.grain_of(index) for index in reach.roots()] == [
        ("product_id",),
        ("boss_of",),
        ("clerk_id",),
    ]
    assert (reach.nodes[3].role, reach.nodes[3].above) == ("product", 2)
    assert reach.shared
    assert not entangled((reach,)), "of a grain's value all rows are read, nothing is there by half"
    linked = replace(reach.nodes[3], schema=SCHEMAS["clerk"])
    assert entangled((replace(reach, nodes=(*reach.nodes, linked)),)), (
        "rows of its table come in by a link too"
    )


def test_a_shared_grain_may_have_several_columns() -> None:
    grain = ["orders.customer_id = clerk.clerk_id", "clerk.boss_of = orders.clerk_id"]
    [reach] = found("orders", "clerk", grain=grain, links=[])
    assert [reach.grain_of(index) for index in reach.roots()] == [
        ("customer_id", "clerk_id"),
        ("clerk_id", "boss_of"),
    ]


def test_a_column_may_be_named_like_a_shared_grain() -> None:
    name = "customer_id = clerk.clerk_id"
    odd = replace(
        SCHEMAS["orders"], columns=(*SCHEMAS["orders"].columns, Column(name, "int32", False, "int"))
    )
    mapping = Mapping()

    @mapping.target("t", key="k", grain=f"orders.{name}", links=[])
    def function(orders: Any) -> Any: ...

    [reach] = reaches(mapping["t"], {"orders": odd}, [])
    assert (reach.grain, reach.shared) == ((name,), False)


def test_a_hierarchy_takes_roles() -> None:
    links = ["customer.referrer_id = above.customer_id", "customer.customer_id = below.referrer_id"]
    [reach] = found(
        "customer",
        grain="customer.customer_id",
        links=links,
        roles={"above": "customer", "below": "customer"},
    )
    assert walked(reach) == [
        ("above", "customer", ("customer_id",), ("referrer_id",)),
        ("below", "customer", ("referrer_id",), ("customer_id",)),
    ]
    assert entangled((reach,))


def test_a_link_may_have_several_columns() -> None:
    [reach] = found(
        "orders", "order_line", grain="orders.order_id",
        links="order_line.order_id = orders.order_id and order_line.product_id=orders.clerk_id",
    )  # fmt: skip
    assert walked(reach) == [("order_line", "orders", ("order_id", "product_id"), ("order_id", "clerk_id"))]


def test_computed_values_stand_for_columns_in_grain_and_links() -> None:
    declared: dict[str, Any] = {
        "values": {"customer.code": len, "clerk.code": len},
        "links": ["clerk.code = customer.code"],
    }
    [reach] = found("customer", "clerk", grain="customer.code", **declared)
    code = value_column("t", "code")
    assert reach.grain == (code,)
    assert walked(reach) == [("clerk", "customer", (code,), (code,))]
    assert spoken(code) == "code"
    assert all(code in node.schema.names() for node in reach.nodes)


def test_the_mirror_holds_the_values_of_every_target() -> None:
    plain = found("customer", grain="customer.customer_id")
    with_code = found("customer", grain="customer.code", values={"customer.code": len})
    for (reach,) in united([plain, with_code]):
        assert reach.root.schema.names() == (*COLUMNS["customer"], value_column("t", "code"))


REFUSED: dict[str, tuple[tuple[str, ...], dict[str, Any], str, str]] = {
    "no link": (
        ("orders", "product"), {"grain": "orders.order_id"},
        "nothing links table product to the grain's table orders", "product.<column> = orders.<column>",
    ),
    "two ways": (
        ("orders", "clerk"), {"grain": "orders.order_id"},
        "more than one way links tables", "links=",
    ),
    "two ways declared": (
        ("orders", "clerk"),
        {"grain": "orders.order_id",
         "links": ["orders.clerk_id = clerk.clerk_id", "clerk.boss_of = orders.order_id"]},
        "more than one way links tables", "roles=",
    ),
    "unknown table": (
        ("orders",), {"grain": "order.order_id"}, "grain 'order.order_id' names no column", "table.column"
    ),
    "unknown column": (("orders",), {"grain": "orders.id"}, "grain 'orders.id' names no column", "table.column"),
    "no column": (("orders",), {"grain": []}, "grain= names no column", "table.column"),
    "grain of a stranger in several": (
        ("orders",), {"grain": "orders.order_id = clerk.clerk_id"}, "'clerk.clerk_id'", "table.column"
    ),
    "shared by itself": (
        ("orders",), {"grain": "orders.order_id = orders.clerk_id"},
        "names two columns of table orders", "roles=",
    ),
    "shared and alone": (
        ("orders", "clerk"), {"grain": ["orders.order_id = clerk.clerk_id", "clerk.boss_of"], "links": []},
        "names table clerk in two grains", "a column of every table in each text",
    ),
    "shared and of other types": (
        ("orders", "product"), {"grain": "orders.order_id = product.name", "links": []},
        "orders.order_id and product.name are of two types", "orders.shared = product.shared",
    ),
    "shared and linked": (
        ("orders", "clerk"),
        {"grain": "orders.order_id = clerk.clerk_id", "links": ["orders.clerk_id = clerk.clerk_id"]},
        "more than one way links tables", "links=[] for none",
    ),
    "unread role": (
        ("orders",), {"grain": "orders.order_id", "roles": {"boss": "clerk"}},
        "the role 'boss' names table 'clerk'", "parameters",
    ),
    "unreadable link": (
        ("orders", "clerk"), {"grain": "orders.order_id", "links": ["orders.clerk_id"]},
        "link 'orders.clerk_id' can't be read", "child.column",
    ),
    "link of a stranger": (
        ("orders", "clerk"), {"grain": "orders.order_id", "links": ["orders.clerk_id = product.product_id"]},
        "names 'product', which is neither", "roles=",
    ),
    "link of no column": (
        ("orders", "clerk"), {"grain": "orders.order_id", "links": ["orders.clerk = clerk.clerk_id"]},
        "orders has no column 'clerk'", "correct",
    ),
    "link of other types": (
        ("orders", "product"), {"grain": "orders.order_id", "links": ["orders.clerk_id = product.name"]},
        "compares int32 with string", "one type",
    ),
    "link to itself": (
        ("customer",), {"grain": "customer.customer_id", "links": ["customer.referrer_id = customer.customer_id"]},
        "links 'customer' to itself", "roles=",
    ),
    "two links in one": (
        ("orders", "clerk", "customer"),
        {"grain": "orders.order_id",
         "links": ["orders.clerk_id = clerk.clerk_id and orders.customer_id = customer.customer_id"]},
        "is more than one link", "one link for each",
    ),
    "value of a stranger": (
        ("orders",), {"grain": "orders.order_id", "values": {"clerk.code": len}},
        "the value 'clerk.code' is of no table", "table.name",
    ),
    "value named as a column": (
        ("orders",), {"grain": "orders.order_id", "values": {"orders.clerk_id": len}},
        "has the name of a column", "another name",
    ),
    "value and column": (
        ("orders", "clerk"),
        {"grain": "orders.order_id", "values": {"orders.code": len}, "links": ["orders.code = clerk.clerk_id"]},
        "compares a computed value with a column", "values=",
    ),
    "computed from a stranger": (
        ("orders",), {"grain": lambda clerk: []},
        "computed grain's parameters are no tables", "name its parameters",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_derived_is_refused_with_what_to_declare(name: str) -> None:
    sources, declared, what, remedy = REFUSED[name]
    with pytest.raises(GrainProblem) as refused:
        found(*sources, **declared)
    assert what in refused.value.what
    assert remedy in refused.value.remedy


def test_a_foreign_key_to_the_table_itself_is_another_way() -> None:
    with pytest.raises(GrainProblem) as refused:
        found("customer", grain="customer.customer_id", references=REFERENCES)
    assert "table customer with itself" in refused.value.what
