"""Targets that a dual read doesn't judge yet: those of which rows are still to come."""

from __future__ import annotations

from migrator.model.position import Position
from migrator.model.progress import Checkpoint, Filling, TableDump
from migrator.model.table import TableId
from verify.dual_read.settle import LedgerWatch
from verify.readers.snapshot import LedgerState

ITEM = TableId("public", "item")


def why(checkpoint: Checkpoint | None) -> str:
    return LedgerWatch(lambda: LedgerState(1, 1, 1, "1", checkpoint)).unfit()


def test_a_target_without_all_its_rows_is_not_judged() -> None:
    at = Position(1, "1")
    assert why(None) == "the ledger is empty: nothing was applied yet"
    undone, done = (TableDump(ITEM, done=one) for one in (False, True))
    assert why(Checkpoint(at, dumps=(undone,))) == "the dump of source table public.item is not complete"
    filling = Checkpoint(at, dumps=(done,), filling=(Filling("bill", 3, 10, 40),))
    assert why(filling) == "the target table bill is being filled"
    assert why(Checkpoint(at, dumps=(done,))) == ""
