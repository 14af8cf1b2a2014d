"""Answers compared: what is equal, which differences have a name, and what is simply wrong."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.errors import VerifyError
from verify.dual_read.answer import answer_of, value_of
from verify.dual_read.difference import CAUSES, cell_name, difference

NOON = datetime(2024, 7, 1, 12, tzinfo=UTC)
ID = uuid.UUID("6a3e0f5c-52f1-5c3b-9a56-0d3f4b8b7a01")

EQUAL: list[tuple[Any, Any]] = [
    (1, Decimal("1.00")),
    (1, 1.0),
    (True, 1),
    (0.1, 0.1),
    (Decimal("1E+3"), 1000),
    (2**53 + 1, Decimal(2**53 + 1)),
    (NOON, NOON.astimezone(timezone(timedelta(hours=2)))),
    (NOON.replace(tzinfo=None), NOON),
    (time(1, 2, 3), timedelta(hours=1, minutes=2, seconds=3)),
    (ID, str(ID)),
    (b"\x00\xff", memoryview(b"\x00\xff")),
    ({"b": 1, "a": [None, "x"]}, {"a": [None, "x"], "b": 1.0}),
    (None, None),
    (float("nan"), float("nan")),
]
NAMED: list[tuple[Any, Any, str]] = [
    ("", None, "null_or_empty"),
    (Decimal("1.2345"), Decimal("1.23"), "scale"),
    (Decimal("1.235"), Decimal("1.24"), "scale"),
    (0.1, Decimal("0.1000000000000000055"), "float"),
    (0.1, 0.10000000149011612, "float"),
    ("Ann", "ANN", "case"),
    ("ann", " ann  ", "space"),
    ("e\u0301", "\xe9", "unicode"),
    (NOON, NOON + timedelta(hours=5, minutes=30), "time_zone"),
    ("7", 7, "type"),
    ("2024-07-01", date(2024, 7, 1), "type"),
    ('{"a": 1}', {"a": 1}, "type"),
]
WRONG: list[tuple[Any, Any]] = [
    (2**53 + 1, 2**53),
    (Decimal("1.23"), Decimal("1.24")),
    (Decimal("1.2345"), Decimal("1.25")),
    (0.1, 0.1001),
    (float("nan"), 1.0),
    ("x", None),
    (0, None),
    ("a b", "ab"),
    ("anna", "ann"),
    (NOON, NOON + timedelta(minutes=7)),
    (NOON, NOON + timedelta(days=2)),
    (date(2024, 7, 1), date(2024, 7, 2)),
    (b"a", b"b"),
    ("7", 8),
    ({"a": 1}, {"a": 2}),
    (time(1), timedelta(hours=2)),
]


@pytest.mark.parametrize(("old", "new"), EQUAL)
def test_the_same_value_of_another_driver_is_equal(old: Any, new: Any) -> None:
    assert difference(answer_of([(old,)]), answer_of([(new,)]), "total") is None


@pytest.mark.parametrize(("old", "new", "name"), NAMED)
def test_a_named_cause_is_named(old: Any, new: Any, name: str) -> None:
    found = difference(answer_of([(old,)]), answer_of([(new,)]), "total")
    assert found is not None
    assert (found.names, found.bug) == ((name,), False)
    assert found.accepted([name])
    assert not found.accepted([other for other in CAUSES if other != name])


@pytest.mark.parametrize(("old", "new"), WRONG)
def test_anything_else_is_wrong_and_can_not_be_accepted(old: Any, new: Any) -> None:
    found = difference(answer_of([(old,)]), answer_of([(new,)]), "total")
    assert found is not None
    assert found.bug
    assert not found.accepted(list(CAUSES))


def test_every_cause_is_tried() -> None:
    assert {name for *_, name in NAMED} | {"ordering"} == set(CAUSES)


@pytest.mark.parametrize(
    ("order", "expected"), [("none", None), ("partial", (("ordering",), False)), ("total", ((), True))]
)
def test_another_order_means_what_the_order_promises(order: str, expected: object) -> None:
    found = difference(answer_of([(1,), (2,)]), answer_of([(2,), (1,)]), order)
    assert (None if found is None else (found.names, found.bug)) == expected


@pytest.mark.parametrize("order", ["none", "partial", "total"])
@pytest.mark.parametrize("new", [[(1,)], [(1,), (1,)], [(1,), (2,), (2,)], [(1,), (3,)], []])
def test_missing_extra_and_doubled_rows_are_wrong(order: str, new: list[tuple[int]]) -> None:
    found = difference(answer_of([(1,), (2,)]), answer_of(new), order)
    assert found is not None
    assert found.bug


def test_another_number_of_columns_is_wrong() -> None:
    found = difference(answer_of([(1, 2)]), answer_of([(1,)]), "none")
    assert found is not None
    assert found.bug


def test_rows_in_another_order_are_paired_before_cells_are_explained() -> None:
    old = answer_of([{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}, {"id": 3, "name": ""}])
    new = answer_of([{"id": 3, "name": None}, {"id": 1, "name": "ann"}, {"id": 2, "name": "Bob"}])
    found = difference(old, new, "none")
    assert found is not None
    assert (found.bug, found.names) == (False, ("case", "null_or_empty"))
    assert {(c.column, c.old, c.new) for c in found.cells} == {("name", "Ann", "ann"), ("name", "", None)}


def test_one_wrong_cell_among_named_ones_is_a_bug() -> None:
    found = difference(answer_of([("Ann", 1), ("x", 2)]), answer_of([("ANN", 1), ("x", 3)]), "total")
    assert found is not None
    assert (found.bug, found.names) == (True, ("case",))


CELLS = st.one_of(
    st.none(), st.integers(), st.text(max_size=5), st.booleans(), st.decimals(allow_nan=False, allow_infinity=False),
    st.floats(), st.binary(max_size=4), st.datetimes(), st.dates(), st.uuids(),
)  # fmt: skip


@given(rows=st.lists(st.tuples(CELLS, CELLS), max_size=6), chance=st.randoms(use_true_random=False))
def test_an_answer_equals_itself_in_any_order_that_has_no_meaning(rows: list[Any], chance: Any) -> None:
    shuffled = list(rows)
    chance.shuffle(shuffled)
    assert difference(answer_of(rows), answer_of(list(rows)), "total") is None
    assert difference(answer_of(rows), answer_of(shuffled), "none") is None


@given(rows=st.lists(st.tuples(CELLS, st.integers()), min_size=1, max_size=6), data=st.data())
def test_a_changed_whole_number_is_never_missed(rows: list[Any], data: Any) -> None:
    place = data.draw(st.integers(0, len(rows) - 1))
    other = [(a, b + (i == place)) for i, (a, b) in enumerate(rows)]
    for order in ("total", "partial", "none"):
        found = difference(answer_of(rows), answer_of(other), order)
        assert found is not None
        assert found.bug


@given(a=CELLS, b=CELLS)
def test_causes_do_not_depend_on_the_side(a: Any, b: Any) -> None:
    assert cell_name(value_of(a), value_of(b)) == cell_name(value_of(b), value_of(a))


def test_what_has_no_rule_is_refused_and_an_iterator_is_not_used_up() -> None:
    with pytest.raises(VerifyError, match="object can't be compared"):
        answer_of([(object(),)])
    rows = iter([1, 2])
    with pytest.raises(VerifyError, match="list_iterator"):
        answer_of(rows)
    assert list(rows) == [1, 2]
