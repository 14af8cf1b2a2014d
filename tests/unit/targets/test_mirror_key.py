"""A mirror whose rows are told apart by another key than the source's table has by now is refused by name."""

from __future__ import annotations

import json

import pytest

from migrator.adapters.targets.shared.mirror.columns import refuse_another_key
from migrator.errors import TargetError
from migrator.model.ledger import Ledger
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump, dump_key
from migrator.model.table import Column, TableId, TableSchema

T = TableId("public", "t")
COLUMNS = tuple(Column(name, "int64", False, "bigint") for name in ("a", "a b", "b", "late a"))


def table(*key: str) -> TableSchema:
    return TableSchema(T, COLUMNS, key)


def ledger(*key: str, renamed: tuple[tuple[str, str], ...] = ()) -> Ledger:
    """One whose table was dumped by a key; its columns may have got other names since."""
    dumped = TableDump(T, ("9", "9"), done=True, key=dump_key(table(*key)) if key else ())
    notes = ((T, json.dumps({"renamed": renamed})),) if renamed else ()
    return Ledger("shop", 7, 1, Checkpoint(Position(3, "3"), dumps=(dumped,), notes=notes))


@pytest.mark.parametrize(
    ("before", "now"),
    [(("a",), ("b",)), (("a", "b"), ("a",)), (("a",), ("a", "b")), (("a",), ("a b",)), (("b",), ("late a",))],
)
def test_another_key_is_refused_with_both_named(before: tuple[str, ...], now: tuple[str, ...]) -> None:
    with pytest.raises(TargetError, match="by another key") as caught:
        refuse_another_key(table(*now), ledger(*before), "migrator_mirror.t")
    assert f"is ({', '.join(now)}) now" in caught.value.cause


@pytest.mark.parametrize("key", [("a",), ("a", "b"), ("a b",), ("a b", "a")])
def test_the_same_key_in_any_order_goes_on(key: tuple[str, ...]) -> None:
    refuse_another_key(table(*key), ledger(*reversed(key)), "migrator_mirror.t")
    refuse_another_key(table(*key), ledger(), "migrator_mirror.t")


def test_a_key_whose_column_got_another_name_goes_on() -> None:
    """Twice even; and not one that took the name of the key's column."""
    names = (("a", "x"), ("x", "late a"))
    refuse_another_key(table("late a"), ledger("a", renamed=names), "migrator_mirror.t")
    with pytest.raises(TargetError):
        refuse_another_key(table("b"), ledger("a", renamed=names), "migrator_mirror.t")
