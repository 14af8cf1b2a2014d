"""The rows of some grains alone: what the mirror would read for them, and nothing else."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from migrator.columnar.grains import NULL_TEXT, Grains
from migrator.model.reach import Node, Reach
from migrator.model.table import Column, TableId, TableSchema


def schema(name: str, /, **columns: str) -> TableSchema:
    parts = tuple(Column(one, kind, True, kind) for one, kind in columns.items())
    return TableSchema(TableId("old", name), parts, ("id",))


PARENT = schema("parent", id="int32", name="string")
CHILD = schema("child", id="int32", parent="int64", kind="int32")
KIND = schema("kind", id="int32", name="string")
REACH = Reach(
    ("id",),
    (
        Node("parent", PARENT),
        Node("child", CHILD, 0, ("parent",), ("id",)),
        Node("kind", KIND, 1, ("id",), ("kind",)),
    ),
)
ROWS = {
    "parent": pa.table({"id": pa.array([1, 2, 3], pa.int32()), "name": ["a", "b", "c"]}),
    "child": pa.table(
        {
            "id": pa.array([10, 11, 12, 13], pa.int32()),
            "parent": pa.array([1, 1, 2, None], pa.int64()),
            "kind": pa.array([5, 6, 6, 7], pa.int32()),
        }
    ),
    "kind": pa.table({"id": pa.array([5, 6, 7], pa.int32()), "name": ["x", "y", "z"]}),
}


def named(number: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return ("parent.id",), (str(number),)


def ids(tables: dict[str, pa.Table]) -> dict[str, list[int]]:
    return {name: rows["id"].to_pylist() for name, rows in tables.items()}


def test_the_rows_of_some_grains_and_what_is_linked_to_them() -> None:
    grains = Grains([REACH])
    assert grains.apart
    assert grains.of(ROWS) == [named(1), named(2), named(3)]
    assert ids(grains.only(ROWS, [named(1)])) == {"parent": [1], "child": [10, 11], "kind": [5, 6]}
    assert ids(grains.without(ROWS, [named(1)])) == {"parent": [2, 3], "child": [12], "kind": [6]}
    assert ids(grains.only(ROWS, [])) == {"parent": [], "child": [], "kind": []}
    assert ids(grains.without(ROWS, []))["child"] == [10, 11, 12], "NULL links nothing"
    assert grains.own(ROWS, named(2))["parent"]["name"].to_pylist() == ["b"]
    assert grains.of({"kind": ROWS["kind"]}) == []


def test_a_grain_that_tables_share_has_one_name_in_all_of_them() -> None:
    other = schema("other", id="int32", of="int32")
    reach = Reach(("id",), (Node("parent", PARENT), Node("other", other, None, ("of",))))
    rows = {
        "parent": ROWS["parent"],
        "other": pa.table({"id": pa.array([7, 8], pa.int32()), "of": pa.array([3, 4], pa.int32())}),
    }
    grains = Grains([reach])
    assert grains.of(rows) == [named(1), named(2), named(3), named(4)]
    assert ids(grains.only(rows, [named(3)])) == {"parent": [3], "other": [7]}


@pytest.mark.parametrize("seven", ["n", "\\N", "\\", "\0", "", None], ids=repr)
def test_every_text_and_none_is_another_grain(seven: str | None) -> None:
    texts = ["n", "\\N", "\\", "\0", "", None, "\\0", "\\\\"]
    grains = Grains([Reach(("name",), (Node("parent", PARENT),))])
    rows = {"parent": pa.table({"id": pa.array(range(8), pa.int32()), "name": pa.array(texts, pa.string())})}
    names = grains.of(rows)
    assert len({*names}) == len(texts), "two values have one name"
    assert not any("\0" in text for _, (text,) in names), "no ledger could have it"
    place = texts.index(seven)
    assert grains.only(rows, [names[place]])["parent"]["name"].to_pylist() == [seven]
    assert names[texts.index(None)][1] == (NULL_TEXT,)


def test_numbers_link_by_value_and_what_cannot_be_compared_stays() -> None:
    rows = dict(ROWS)
    rows["child"] = ROWS["child"].set_column(
        1, "parent", pa.array([Decimal("1.00"), Decimal("1.5"), Decimal("2"), None], pa.decimal128(5, 2))
    )
    assert ids(Grains([REACH]).only(rows, [named(1)]))["child"] == [10]
    rows["child"] = ROWS["child"].set_column(1, "parent", pa.array(["1", "1", "2", None]))
    assert ids(Grains([REACH]).only(rows, [named(1)]))["child"] == [10, 11, 12, 13], "rather too many"


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_floating_numbers_are_grains_as_spark_groups_them(kind: pa.DataType) -> None:
    values = [0.0, -0.0, float("nan"), -float("nan"), 0.1, float("inf"), -float("inf"), 1e20, None]
    grains = Grains([Reach(("kilos",), (Node("weight", schema("weight", id="int32", kilos=str(kind))),))])
    rows = {"weight": pa.table({"id": pa.array(range(9), pa.int32()), "kilos": pa.array(values, kind)})}
    assert grains.apart
    names = grains.of(rows)
    assert len(names) == len(values) - 2
    assert [ids(grains.only(rows, [one]))["weight"] for one in names[:3]] == [[0, 1], [2, 3], [4]]
    assert ids(grains.without(rows, names[:2]))["weight"] == [4, 5, 6, 7, 8]


def test_what_cannot_be_told_apart() -> None:
    assert not Grains([Reach((), (Node("parent", PARENT),), "computed")]).apart
    chain = schema("chain", id="int32", up="int32")
    above = Reach(("id",), (Node("chain", chain), Node("next", chain, 0, ("id",), ("up",))))
    assert not Grains([above]).apart, "a row of it is there for others, too"
