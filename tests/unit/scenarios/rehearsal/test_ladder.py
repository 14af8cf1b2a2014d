"""What a client's step writes, and what counts as the same row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scenarios.rehearsal.ladder import Ladder, RowGone, Rows, SideRows, changes
from scenarios.rehearsal.tables import Column, ForeignKey, Table

PERSON = Table(
    "person", (Column("id", "int", nullable=False), Column("note", "text", nullable=True)), ("id",)
)
ORDER = Table(
    "order",
    (Column("id", "int", nullable=False), Column("person", "int", nullable=False)),
    ("id",),
    (),
    (ForeignKey(("person",), "person", ("id",)),),
)
ROWS = SideRows(
    postgres=True,
    tables={"person": PERSON, "order": ORDER},
    keys={"person": ("id",), "order": ("id",)},
    compared={"person": ("id",), "order": ("id", "person")},
)


class Written:
    """A cursor that keeps its statements but for locks; ``there``: whether it finds the rows to lock."""

    rowcount = 1

    def __init__(self, *, there: bool = True) -> None:
        self.statements: list[str] = []
        self._there = there

    def execute(self, statement: Any, parameters: Any = None, /) -> Any:
        if not statement.endswith(" FOR UPDATE"):
            self.statements.append(f"{statement} {list(parameters or [])}")

    def fetchall(self) -> Any:
        return [(1,)] if self._there else []

    def close(self) -> None:
        return None


def test_children_go_before_parents_and_come_after_them() -> None:
    come, go = Written(), Written()
    rows: Rows = {("order", ("1",)): ("1", "2"), ("person", ("2",)): ("2", "x")}
    assert ROWS.moved(come, {}, rows) == 2
    assert ROWS.moved(go, rows, {}) == 2
    assert [one.split('"')[1] for one in come.statements] == ["person", "order"]
    assert [one.split('"')[1] for one in go.statements] == ["order", "person"]


def test_only_columns_that_change_are_written() -> None:
    cursor = Written()
    ROWS.moved(cursor, {("person", ("2",)): ("2", "x")}, {("person", ("2",)): ("2", "y")})
    assert cursor.statements == ['UPDATE "person" SET "note" = %s WHERE "id" = %s [\'y\', \'2\']']


def test_a_step_that_changes_nothing_here_still_asks_the_fence() -> None:
    cursor = Written()
    assert ROWS.touched(cursor, {("person", ("2",)): ("2", "x")}) == 1
    assert cursor.statements == ['UPDATE "person" SET "id" = "id" WHERE "id" = %s [\'2\']']
    assert ROWS.touched(Written(), {}) == 0


def test_columns_that_nothing_carries_are_not_compared() -> None:
    assert ROWS.same(("person", ("2",)), ("2", "x"), ("2", "y"))
    assert not ROWS.same(("order", ("1",)), ("1", "2"), ("1", "3"))
    assert not ROWS.same(("order", ("1",)), ("1", "2"), None)


def test_changes_name_rows_that_came_changed_and_went() -> None:
    before: Rows = {("t", ("1",)): ("1", "a"), ("t", ("2",)): ("2", "b")}
    after: Rows = {("t", ("1",)): ("1", "c"), ("t", ("3",)): ("3", "d")}
    assert changes(before, after) == {
        ("t", ("1",)): ("1", "c"),
        ("t", ("3",)): ("3", "d"),
        ("t", ("2",)): None,
    }


def test_rows_of_several_clients_are_left_out() -> None:
    ladder = Ladder()
    ladder.add({}, {("total", ("1",)): ("1", "5"), ("person", ("2",)): ("2", "x")})
    ladder.without("new", {("total", ("1",))})
    assert ladder.places("new") == {"person": [("2",)]}


def test_a_statement_that_would_meet_no_row_is_not_taken_for_a_write() -> None:
    """No trigger of a fence fires for it: a side that a stream still changes would look open."""
    row: Rows = {("person", ("2",)): ("2", "x")}
    steps: tuple[Callable[[Written], int], ...] = (
        lambda cursor: ROWS.moved(cursor, row, {("person", ("2",)): ("2", "y")}),
        lambda cursor: ROWS.moved(cursor, row, {}),
        lambda cursor: ROWS.touched(cursor, row),
    )
    for step in steps:
        step(there := Written())
        assert len(there.statements) == 1
        with pytest.raises(RowGone):
            step(gone := Written(there=False))
        assert gone.statements == []
