"""Grains set aside, in the ledger: noted with the place, settled when they are mapped again, bounded like rows."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from migrator.adapters.memory.target import MemoryDatabase
from migrator.cli.rows.rows import chosen
from migrator.columnar.bad_rows import StillBad
from migrator.errors import RequestError, TargetError
from migrator.model.codecs.codec import FORMAT
from migrator.model.codecs.ledger_codec import ledger_from_json, ledger_to_json
from migrator.model.limits import SET_ASIDE, ApplyLimits
from migrator.model.position import Position
from migrator.model.progress import UNMAPPED, BadRow, Checkpoint, GrainName, Parent
from migrator.ports.target import TargetBatch, TargetRows
from migrator.run.apply.set_aside import AsideTarget
from migrator.run.commands.repair import wanted_of
from migrator.schema.bad_rows import dropped_in
from tests.unit.run.apply.test_set_aside import ITEM, Joins, Pairs, refuses, table

COLUMNS = ("basket.id",)
LIMITS = ApplyLimits(bad_rows=SET_ASIDE, bad_rows_per_table=3, bad_rows_per_run=5)


def grain(key: str) -> BadRow:
    """As the mapping finds it: without a place."""
    return BadRow("item", COLUMNS, (key,), "", 0, f"{UNMAPPED}no", f"basket: id={key}", grain=True)


def name(key: str) -> GrainName:
    return COLUMNS, (key,)


class Bench:
    """A joined target whose mapping fails on what it is told to."""

    def __init__(self) -> None:
        self.database = MemoryDatabase((ITEM,), refuses=refuses)
        self.target = AsideTarget(Joins(self.database), LIMITS)
        self.target.open(1)
        self.segment = 0

    def apply(self, *bad: str, again: tuple[str, ...] = (), after: Pairs = (), **kinds: Any) -> None:  # type: ignore[assignment]
        self.segment += 1
        rows = TargetRows(
            ITEM, None, None, table(list(after)), False,
            bad_rows=tuple(map(grain, bad)), grains=frozenset(map(name, again)), **kinds,
        )  # fmt: skip
        place = Checkpoint(Position(self.segment, f"at {self.segment}"))
        self.target.apply(TargetBatch(self.segment, place, (), joined=lambda mirror: iter((rows,))))

    def aside(self) -> dict[str, tuple[str, int]]:
        checkpoint = self.database.ledger.checkpoint
        found = () if checkpoint is None else checkpoint.bad_rows
        return {one.key[0]: (one.position, one.segment) for one in found}


def test_a_grain_goes_aside_with_its_place_and_is_settled_when_it_is_mapped_again() -> None:
    bench = Bench()
    bench.apply("1", "2")
    assert bench.aside() == {"1": ("at 1", 1), "2": ("at 1", 1)}
    bench.apply(after=[(1, "a"), (2, "b")])
    assert set(bench.aside()) == {"1", "2"}, "rows of these keys are of other grains"
    bench.apply("1", again=("1", "2"))
    assert bench.aside() == {"1": ("at 3", 3)}
    bench.apply(replaces=True)
    assert bench.aside() == {}


def test_what_a_target_derived_anew_makes_no_more_is_settled() -> None:
    """Of one without rows nothing is replaced: its rows come as those of a dump, at once or in pieces."""
    bench = Bench()
    bench.apply("1", after=[(2, "bad"), (3, "bad"), (4, "b")])
    assert set(bench.aside()) == {"1", "2", "3"}
    bench.apply(after=[(3, "bad"), (4, "c")])
    assert set(bench.aside()) == {"1", "2", "3"}, "a batch that doesn't name them leaves them"
    bench.apply("5", after=[(3, "bad")], anew=True)
    assert set(bench.aside()) == {"3", "5"}


def test_a_refused_row_of_the_same_target_is_another_record() -> None:
    bench = Bench()
    bench.apply("1", after=[(1, "bad"), (2, "b")])
    checkpoint = bench.database.ledger.checkpoint
    assert checkpoint is not None
    assert [(one.key, one.grain) for one in checkpoint.bad_rows] == [(("1",), True), (("1",), False)]
    bench.apply(after=[(1, "good")])
    assert bench.aside() == {"1": ("at 1", 1)}
    (left,) = bench.database.ledger.checkpoint.bad_rows  # type: ignore[union-attr]
    assert left.grain


def test_more_grains_than_may_go_aside_stop_the_run() -> None:
    bench = Bench()
    bench.apply("1", "2")
    with pytest.raises(TargetError, match="bad_rows_per_table allows: 3") as stopped:
        bench.apply("3", "4", after=[(7, "x")])
    assert "basket.id=4" in stopped.value.where
    assert set(bench.aside()) == {"1", "2"}
    assert not any(bench.database.rows.values())
    for _ in range(5):
        bench.apply("1", "2", again=("1", "2"))  # often written to, and bad all the time
    bench.apply("3", again=("1", "2"))
    bench.apply("4", again=("3",))
    bench.apply("5")
    with pytest.raises(TargetError, match="bad_rows_per_run allows: 5"):
        bench.apply("1")


def test_what_was_given_up_stays_so_where_the_very_same_is_tried_again() -> None:
    """Another grain's retry derives the whole target anew: nobody has to drop the others once more."""
    row = BadRow("item", ("id",), ("2",), "p", 1, "too long", "id=2", dropped="a test")
    long = replace(row, key=("3",), row="id=3, name='a...z'")
    held = (replace(grain("1"), dropped="a test"), grain("4"), row, long)

    def again(*rows: BadRow) -> dict[tuple[str, ...], str]:
        part = TargetRows(ITEM, None, None, None, False, replaces=True, bad_rows=rows)
        return {one.key: one.dropped for one in StillBad(held, [part]).found()}

    tried = [replace(one, dropped="", position="later", segment=7) for one in held]
    assert again(*tried) == {("1",): "a test", ("4",): "", ("2",): "a test", ("3",): ""}
    other = (replace(tried[0], row="basket: id=1, n=2"), replace(tried[2], reason="another"))
    assert again(*other) == {("1",): "", ("2",): ""}, "a later version, or another reason"
    assert again(replace(tried[0], columns=("shelf.no",))) == {("1",): ""}, "another grain"


def test_a_ledger_keeps_which_records_are_grains() -> None:
    row = BadRow("item", ("id",), ("1",), "p", 1, "r", "x", parent=Parent("note", ("id",), ("2",)))
    rows = (grain("1"), row, replace(grain("2"), target="other"), replace(row, key=("2",), parent=None))
    written = json.loads(json.dumps(ledger_to_json(Checkpoint(Position(1, "p"), bad_rows=rows), "s")))
    checkpoint, _ = ledger_from_json(written)
    assert checkpoint.bad_rows == rows
    assert "grains" not in ledger_to_json(Checkpoint(Position(1, "p"), bad_rows=(row,)), "s")


def test_grains_that_are_tried_again_are_wanted_by_no_columns() -> None:
    row = BadRow("item", ("id",), ("1",), "p", 1, "r", "x")
    (wanted,) = wanted_of([row, grain("2")])
    assert (wanted.columns, wanted.ordered(("id",))) == ((), (("1",), ("2",)))
    (plain,) = wanted_of([replace(row, columns=("b", "a"), key=("2", "1"))])
    assert plain.ordered(("a", "b")) == (("1", "2"),)


def test_a_grain_waits_for_no_parent_and_none_waits_for_it() -> None:
    held = (
        grain("1"),
        BadRow("note", ("id",), ("5",), "p", 1, "r", "x", parent=Parent("item", ("id",), ("1",))),
    )
    rows = TargetRows(ITEM, None, None, table([(1, "a")]), False, grains=frozenset({name("1")}))
    (left,) = StillBad(held, [rows]).found()
    assert left.parent is not None
    assert left.parent.came, "the row that the grain brought back"


def test_a_grain_is_told_from_a_row_and_from_another_grain_of_the_same_value() -> None:
    row = BadRow("item", ("id",), ("1",), "p", 1, "r", "x")
    other = replace(grain("1"), columns=("shelf.no",))
    held = (grain("1"), row, other, grain("2"))
    document = json.dumps(ledger_to_json(Checkpoint(Position(1, "p"), bad_rows=held), "s"))

    def drop(*key: str) -> list[BadRow]:
        written, _ = dropped_in((FORMAT, document), ("item", key), "a test", "here")
        checkpoint, _ = ledger_from_json(json.loads(written))
        assert checkpoint is not None
        return [one for one in checkpoint.bad_rows if one.dropped]

    with pytest.raises(RequestError, match="several of item are set aside") as refused:
        drop("1")
    assert "basket.id=1; id=1; shelf.no=1" in refused.value.where
    words = refused.value.remedy.split("migrator rows drop item ")[1].split()
    assert [one.columns for one in drop(*words)] == [COLUMNS]
    assert [one.columns for one in drop("id=1")] == [("id",)]
    assert [one.columns for one in drop("shelf.no=1")] == [("shelf.no",)]
    assert [one.key for one in drop("2")] == [("2",)], "the only one needs no column"
    with pytest.raises(RequestError, match="no row of item"):
        drop("id=2")
    assert chosen(held, "item", ["basket.id=1"]) == [held[0]]
    assert chosen(held, "item", ["1"]) == list(held[:3]), "trying too much again does no harm"
