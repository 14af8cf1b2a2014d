"""Those of many that fail alone are found, all of them and no others, at a bounded cost."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Sequence

import pyarrow as pa
import pytest

from migrator.columnar.grains import Grains, Tables
from migrator.model.progress import GrainName
from migrator.model.reach import Node, Reach
from migrator.model.table import Column, TableId, TableSchema
from migrator.run.apply.grains_aside import Narrowed
from migrator.run.apply.halving import failing


class Tries:
    """Fails where one of the bad ones is among the tried."""

    def __init__(self, bad: set[int]):
        self.bad, self.number = bad, 0

    def __call__(self, some: Sequence[int]) -> str | None:
        self.number += 1
        found = sorted(self.bad & {*some})
        return f"{found[0]} is bad" if found else None


@pytest.mark.parametrize("seed", range(40))
def test_exactly_those_that_fail_are_found_at_a_bounded_cost(seed: int) -> None:
    drawn = random.Random(seed)
    items = list(range(drawn.randint(1, 700)))
    bad = set(drawn.sample(items, drawn.randint(0, min(9, len(items)))))
    tries = Tries(bad)
    found = failing([items], tries, len(bad))
    assert dict(found) == {one: f"{one} is bad" for one in bad}
    halves = math.ceil(math.log2(len(items))) if len(items) > 1 else 0
    assert tries.number <= 1 + 2 * len(bad) * halves


def test_what_fails_for_all_ends_at_the_bound_not_after_all() -> None:
    items = list(range(100_000))
    tries = Tries(set(items))
    assert len(failing([items], tries, 100)) == 101
    assert tries.number <= 2 * 101 + 17
    unbounded = Tries(set(items[:2000]))
    failing([items[:2000]], unbounded, len(items))
    assert unbounded.number >= 2000, "the control: without the bound each costs its tries"


def test_those_that_failed_before_are_tried_apart() -> None:
    tries = Tries({3, 900})
    found = failing([[3, 900], [one for one in range(1000) if one not in (3, 900)]], tries, 10)
    assert ([one for one, _ in found], tries.number) == ([3, 900], 4)


def test_those_that_fail_together_alone_are_nobodys_fault() -> None:
    assert failing([list(range(8))], lambda some: "both" if {1, 6} <= {*some} else None, 5) == []
    assert failing([[], []], lambda some: "never", 5) == []


def test_a_half_is_looked_for_in_the_rows_of_its_whole_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each of many grains at fault would cost a look at all rows."""
    items = TableSchema(TableId("old", "item"), (Column("id", "int64", False, "bigint"),), ("id",))
    reach = Reach(("id",), (Node("item", items),))
    tables = {"item": pa.table({"id": pa.array(range(1024), pa.int64())})}
    names = Grains([reach]).of(tables)
    looked: list[int] = []
    only = Grains.only

    def counted(self: Grains, some: Tables, wanted: Collection[GrainName]) -> dict[str, pa.Table]:
        looked.append(some["item"].num_rows)
        return only(self, some, wanted)

    monkeypatch.setattr(Grains, "only", counted)
    narrowed = Narrowed(Grains([reach]), tables)

    def fails(some: Sequence[GrainName]) -> str | None:
        has = narrowed.only(some)["item"]["id"].to_pylist()
        assert [(("item.id",), (str(one),)) for one in has] == list(some), "these rows and no others"
        return "bad" if any(one % 64 == 5 for one in has) else None

    assert len(failing([names[:64], names[64:]], fails, 1000)) == 16
    assert sum(looked) <= 2 * 1024 * 13, "each level of halves looks at each row twice at most"
    assert len(looked) * 1024 > 4 * sum(looked), "the control: so many rows if all were looked at each time"
