"""Histories of baskets of which some can't be mapped: the target has exactly the others, the ledger exactly these.

The mapping is plain Python over what Spark would get; the mirror is the state before and after each batch.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from migrator.columnar.bad_rows import StillBad
from migrator.columnar.grains import Tables
from migrator.errors import MappingError, RowUnmapped
from migrator.model.progress import BadRow
from migrator.model.reach import VALUE, Node, Reach
from migrator.model.table import Column, TableId, TableSchema
from migrator.model.target import TargetTable
from migrator.ports.mirror import JoinedTarget, Mirror, Sides
from migrator.ports.target import TargetRows
from migrator.run.apply.difference import difference
from migrator.run.apply.grains_aside import GrainsAside
from migrator.run.apply.spark_jobs import SparkJobs
from migrator.run.apply.unmapped import read_of
from transforms.analysis.plan import MappingPlan
from transforms.on_spark.pipeline import SIDE

Row = tuple[Any, ...]
BASKETS = range(1, 9)


def schema(name: str, *columns: str) -> TableSchema:
    return TableSchema(
        TableId("old", name), tuple(Column(one, "int64", True, "bigint") for one in columns), columns[:1]
    )


BASKET = schema("basket", "id", "code")
LINE = schema("line", "id", "basket", "thing")
THING = schema("thing", "id", "price")
REACH = Reach(
    ("id",),
    (
        Node("basket", BASKET),
        Node("line", LINE, 0, ("basket",), ("id",)),
        Node("thing", THING, 1, ("id",), ("thing",)),
    ),
)
TARGET = JoinedTarget(TargetTable(TableId("new", "total"), (), ("id",)), (REACH,), {})
PLAN = cast(
    MappingPlan,
    SimpleNamespace(
        target=SimpleNamespace(key=("id",), surrogates=(), name="total", where=lambda: "here"),
        reads=dict.fromkeys(("basket", "line", "thing"), ("id", "basket", "amount")),
        schemas=dict.fromkeys(("basket", "line", "thing"), SimpleNamespace(key=("id",))),
    ),
)
BAD_PRICE, NO_KEY, TWICE = 13, 0, -1
"""What no basket with such a thing, and none with such a code, can be mapped with."""


def table(shape: TableSchema, rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(shape.columns)
    return pa.table(
        [pa.array(values, pa.int64()) for values in columns], names=[one.name for one in shape.columns]
    )


def mapped(tables: Tables) -> list[Row]:
    """A row for each basket: its code and what its things cost. Raises of each bad price, linked or not."""
    prices = dict(zip(*tables["thing"].to_pydict().values(), strict=True))
    if BAD_PRICE in prices.values():
        raise ValueError("unlucky")
    found = []
    for basket, code in zip(*tables["basket"].to_pydict().values(), strict=True):
        lines = [line for line in tables["line"].to_pylist() if line["basket"] == basket]
        key = None if code == NO_KEY else basket
        rows = [(key, code, sum(prices[line["thing"]] for line in lines))]
        found += rows * (2 if code == TWICE else 1)
    return found


def both(sides: Sides) -> pa.Table:
    """As Spark would map both sides. Raises ``MappingError``."""
    try:
        rows = [(side, *row) for side, one in enumerate((sides.before, sides.after)) for row in mapped(one)]
    except ValueError as error:
        raise MappingError("the Spark job fails", cause=str(error)) from error
    columns = list(zip(*rows, strict=True)) if rows else [()] * 4
    return pa.table([pa.array(values, pa.int64()) for values in columns], names=[SIDE, "id", "code", "total"])


@dataclass
class World:
    """Source, target and ledger."""

    most: int | None = 50
    state: dict[str, dict[int, Row]] = field(default_factory=lambda: {"basket": {}, "line": {}, "thing": {}})
    target: dict[int, Row] = field(default_factory=dict)
    held: tuple[BadRow, ...] = ()
    steps: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    tries: int = 0

    def __post_init__(self) -> None:
        jobs = cast(SparkJobs, SimpleNamespace())
        plans = {"total": PLAN}
        self.aside = GrainsAside(
            cast(Any, None), plans, jobs, self.most, self.steps.append, self.words.append
        )

    def tables(self) -> dict[str, pa.Table]:
        shapes = (BASKET, LINE, THING)
        return {one.id.name: table(one, list(self.state[one.id.name].values())) for one in shapes}

    def batch(self, change: Callable[[], None]) -> None:
        """Applies a change to all three."""
        mirror = cast(Mirror, SimpleNamespace(aside=self.held, stay=lambda: None))
        before = self.tables()
        change()
        self.aside.begin()
        sides = self.aside.tried(TARGET, mirror, Sides(before, self.tables(), False))
        rows = self.aside.awaited(TARGET, mirror, sides, lambda: both(sides), both)
        gone, there = difference(rows, SIDE, ("id",))
        part = TargetRows(TARGET.table, None, gone, there, True)
        (noted,) = self.aside.noting(TARGET, [part])
        for key in gone["id"].to_pylist():
            del self.target[key]
        for row in there.to_pylist():
            assert row["id"] not in self.target, "two rows of one key"
            self.target[row["id"]] = tuple(row.values())
        self.held = StillBad(self.held, [noted]).found()

    def bad(self) -> set[int]:
        """The baskets that can't be mapped."""
        prices = {key: row[1] for key, row in self.state["thing"].items()}
        by_thing = {basket for _, basket, thing in self.state["line"].values() if prices[thing] == BAD_PRICE}
        return {
            key for key, code in self.state["basket"].values() if code in (NO_KEY, TWICE) or key in by_thing
        }

    def check(self) -> None:
        bad = self.bad()
        prices = {key: row[1] for key, row in self.state["thing"].items()}
        wanted = {
            key: (key, code, sum(prices[thing] for _, of, thing in self.state["line"].values() if of == key))
            for key, code in self.state["basket"].values()
            if key not in bad
        }
        assert self.target == wanted
        assert sorted(int(one.key[0]) for one in self.held) == sorted(bad)
        assert all(one.grain for one in self.held)


def drawn_change(drawn: random.Random, state: dict[str, dict[int, Row]]) -> Callable[[], None]:
    def change() -> None:
        for _ in range(drawn.randint(1, 4)):
            basket, line, thing = drawn.choice(BASKETS), drawn.randrange(12), drawn.randrange(1, 6)
            kind = drawn.randrange(5)
            if kind == 0:
                state["basket"][basket] = (basket, drawn.choice((1, 2, 3, 4, NO_KEY, TWICE)))
            elif kind == 1:
                state["line"][line] = (line, basket, thing)
            elif kind == 2:
                state["thing"][thing] = (thing, drawn.choice((5, 6, 7, 8, BAD_PRICE)))
            elif kind == 3:
                state["line"].pop(line, None)
            else:
                state["basket"].pop(basket, None)

    return change


def begun(most: int | None = 50) -> World:
    world = World(most)

    def change() -> None:
        world.state["thing"] = {key: (key, key) for key in range(1, 6)}
        world.state["basket"] = {key: (key, 1) for key in BASKETS}
        world.state["line"] = {key: (key, key % 8 + 1, key % 5 + 1) for key in range(12)}

    world.batch(change)
    return world


@pytest.fixture(autouse=True)
def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries of grains, without Spark."""

    def failure(self: GrainsAside, plan: MappingPlan, tables: Tables, mirror: Mirror) -> str | None:
        try:
            rows = mapped(tables)
        except ValueError as error:
            return str(error)
        keys = [row[0] for row in rows]
        return "no key" if None in keys else "twice" if len({*keys}) < len(keys) else None

    monkeypatch.setattr(GrainsAside, "_failure", failure)


@pytest.mark.parametrize("seed", range(30))
def test_every_committed_state_is_the_mapping_without_the_grains_that_the_ledger_names(seed: int) -> None:
    drawn, world = random.Random(seed), begun()
    world.check()
    met = 0
    for _ in range(25):
        world.batch(drawn_change(drawn, world.state))
        world.check()
        met += bool(world.held)
    assert met > 5, "hardly any grain failed"
    assert set(world.steps) == {"joined.aside"}
    assert world.words[:2] == [
        f"looking for grains of total on which its mapping fails: try {number}" for number in (1, 2)
    ]
    assert world.words[-1] == "", "nobody looks any more"


def test_the_check_notices_what_was_aside_taken_for_rows_that_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The negative control."""
    world = begun()
    world.batch(lambda: world.state["basket"].update({3: (3, NO_KEY)}))
    monkeypatch.setattr(GrainsAside, "tried", lambda self, target, mirror, sides: sides)

    def mended() -> None:
        world.batch(lambda: world.state["basket"].update({3: (3, 2)}))
        world.check()

    with pytest.raises((AssertionError, KeyError)):
        mended()


def test_what_fails_without_any_grain_and_where_none_may_go_aside_stops() -> None:
    world = begun(most=None)
    with pytest.raises(MappingError, match="the Spark job fails"):
        world.batch(lambda: world.state["thing"].update({1: (1, BAD_PRICE)}))
    world = World()
    computed = JoinedTarget(TARGET.table, (Reach((), (Node("basket", BASKET),), "computed"),), {})
    assert not world.aside.may(computed)
    assert World().aside.may(TARGET)
    world = begun()
    world.batch(lambda: world.state["thing"].update({9: (9, BAD_PRICE)}))
    world.check()
    assert world.held == (), "no basket has it"


def test_what_is_wrong_for_all_blames_no_grain(monkeypatch: pytest.MonkeyPatch) -> None:
    world, tried = begun(), list[int]()

    def failure(self: GrainsAside, plan: MappingPlan, tables: Tables, mirror: Mirror) -> str:
        tried.append(tables["basket"].num_rows)
        return "wrong"

    monkeypatch.setattr(GrainsAside, "_failure", failure)
    with pytest.raises(MappingError, match="the Spark job fails"):
        world.batch(lambda: world.state["thing"].update({1: (1, BAD_PRICE)}))
    assert (tried, world.held) == ([0], ()), "one try, without any basket"


def test_where_all_can_be_mapped_no_grain_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of before and one of now have one key, and are no two rows of it."""
    world, tried = begun(), list[Tables]()
    monkeypatch.setattr(GrainsAside, "_failure", lambda self, plan, tables, mirror: tried.append(tables))
    world.batch(lambda: world.state["basket"].update({3: (3, 2)}))
    world.check()
    assert tried == []


def test_a_grain_aside_is_tried_again_by_who_touches_it_alone() -> None:
    """Nor is one whose transaction was undone taken for tried in the next."""
    world = begun()
    world.batch(lambda: world.state["basket"].update({3: (3, NO_KEY)}))
    mirror = cast(Mirror, SimpleNamespace(aside=world.held, stay=lambda: None))
    everything = world.tables()
    other = {**everything, "basket": table(BASKET, [(5, 1)]), "line": table(LINE, [])}
    part = TargetRows(TARGET.table, None, None, None, True)
    for undone in (False, True):
        world.aside.begin()
        if undone:
            assert (
                world.aside.tried(TARGET, mirror, Sides(everything, everything, False)).before != everything
            )
            world.aside.begin()
        sides = Sides(other, other, False)
        assert world.aside.tried(TARGET, mirror, sides) is sides
        assert [one.grains for one in world.aside.noting(TARGET, [part])] == [frozenset()]
    for parts in ([part], []):
        assert list(world.aside.noting(TARGET, parts)) == parts
        world.aside.tried(TARGET, mirror, Sides(everything, everything, False))
        assert [len(one.grains) for one in world.aside.noting(TARGET, parts)] == [1], (
            "also without other rows"
        )


def test_a_target_that_is_derived_anew_says_so_where_anything_of_it_is_aside() -> None:
    """Also refused rows, of which the mapping may make some no more."""
    world = begun()
    refused = BadRow(TARGET.table.id.name, ("id",), ("7",), "at 1", 1, "too long", "id=7")
    for held in ((), (replace(refused, target="another"),), (refused,)):
        world.aside.begin()
        mirror = cast(Mirror, SimpleNamespace(aside=held, stay=lambda: None))
        world.aside.tried_all(TARGET, mirror)
        assert [one.anew for one in world.aside.noting(TARGET, ())] == [True] * (held == (refused,))
        assert list(world.aside.noting(TARGET, ())) == [], "of the next batch nothing is said"


def test_more_than_may_go_aside_stop_by_name_and_leave_nothing() -> None:
    world = begun(most=2)
    before = dict(world.target)
    with pytest.raises(RowUnmapped, match="more grains than may be set aside: 2") as stopped:
        world.batch(lambda: world.state["basket"].update({key: (key, NO_KEY) for key in BASKETS}))
    assert "basket.id='1'; basket.id='2'; basket.id='3'" in stopped.value.where
    assert "bad_rows_per_table" in stopped.value.remedy
    assert (world.target, world.held, world.steps) == (before, (), [])


def test_a_source_row_is_shown_without_columns_that_the_mapping_does_not_read() -> None:
    rows = pa.table({"id": [1], "password": ["secret"], "amount": [2], f"{VALUE}0": ["secret"]})
    assert read_of(PLAN, "line", rows).column_names == ["id", "amount"]
