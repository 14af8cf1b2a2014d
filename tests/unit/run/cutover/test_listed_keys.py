"""Keys are listed before their batch is applied; rows without keys are known to be missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from migrator.errors import ConnectionFailed
from migrator.model.ledger import Ledger
from migrator.model.position import Position
from migrator.model.progress import Checkpoint
from migrator.model.table import TableId
from migrator.model.target import TargetTable
from migrator.ports.changed_keys import UNKNOWN_EPOCH
from migrator.ports.mirror import Mirror
from migrator.ports.target import TargetBatch, TargetRows
from migrator.run.cutover.listed_keys import ListingTarget

TABLE = TargetTable(TableId("s", "t"), (), ("id",))


class Listed:
    """The list, and the target behind it, in one order of events."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []
        self.fails = False
        self.stands_at = 7

    def claim(self, epoch: int, follows: int) -> None:
        self.events.append(("claimed", epoch, follows))

    def begin(self, epoch: int, after: int, follows: int) -> None:
        self.events.append(("begun", epoch, after, follows))

    def note(self, segment: int, table: str, keys: pa.Table) -> None:
        assert keys.column_names == ["id"]
        self.events.append(("keys", segment, table, *keys["id"].to_pylist()))

    def unknown(self, segment: int, table: str) -> None:
        self.events.append(("unknown", segment, table))

    def close(self) -> None:
        self.events.append(("closed",))

    # -- the target

    def open(self, epoch: int) -> Ledger:
        self.events.append(("taken over", epoch))
        return Ledger("m", epoch, self.stands_at, None)

    def apply(self, batch: TargetBatch) -> None:
        if self.fails:
            raise ConnectionFailed("gone", retryable=True)
        if batch.joined is not None:
            for rows in batch.joined(None):  # type: ignore[arg-type]
                self.events.append(("written", rows.table.id.name))
        self.events.append(("applied", batch.segment))

    def fill(self, piece: Callable[[Mirror], Iterator[TargetRows]]) -> None:
        for rows in piece(None):  # type: ignore[arg-type]
            self.events.append(("written", rows.table.id.name))


def rows(**parts: Any) -> TargetRows:
    return TargetRows(
        **{"table": TABLE, "chunk": None, "before": None, "after": None, "strict_inserts": False, **parts}
    )


def some(*ids: int) -> pa.Table:
    return pa.table({"name": ["x"] * len(ids), "id": pa.array(ids, pa.int64())})


@pytest.fixture
def listed() -> Listed:
    return Listed()


def target_of(listed: Listed) -> ListingTarget:
    found = ListingTarget(listed, listed, lambda: Ledger("m", 4, 7, None))  # type: ignore[arg-type]
    found.open(5)
    assert listed.events == [("claimed", 5, 4), ("taken over", 5), ("begun", 5, 7, 4)]
    listed.events.clear()
    return found


def test_what_another_leader_applied_between_look_and_take_over_is_a_gap(listed: Listed) -> None:
    """Fenced by the ledger alone, it had an epoch that this process never saw."""
    ListingTarget(listed, listed, lambda: Ledger("m", 3, 6, None)).open(5)  # type: ignore[arg-type]
    assert listed.events[-1] == ("begun", 5, 7, UNKNOWN_EPOCH)


def test_the_first_leader_follows_nobody(listed: Listed) -> None:
    listed.stands_at = 0
    ListingTarget(listed, listed, lambda: None).open(5)  # type: ignore[arg-type]
    assert listed.events[-1] == ("begun", 5, 0, 0)


def batch(*of: TargetRows, **values: Any) -> TargetBatch:
    return TargetBatch(8, Checkpoint(Position(1, "")), of, **values)


def test_keys_are_listed_before_they_are_written(listed: Listed) -> None:
    target = target_of(listed)
    joined = [rows(after=some(3))]
    target.apply(batch(rows(before=some(1), after=some(1, 2)), joined=lambda _: iter(joined)))
    assert listed.events == [
        ("keys", 8, "t", 1),
        ("keys", 8, "t", 1, 2),
        ("keys", 8, "t", 3),
        ("written", "t"),
        ("applied", 8),
    ]


def test_keys_of_a_batch_whose_outcome_is_unknown_are_listed(listed: Listed) -> None:
    target, listed.fails = target_of(listed), True
    with pytest.raises(ConnectionFailed):
        target.apply(batch(rows(after=some(1))))
    assert listed.events == [("keys", 8, "t", 1)]


@pytest.mark.parametrize(
    "parts", [{"chunk": some(1)}, {"replaces": True}, {"emptied": True}, {"doubted": some(1)}]
)
def test_rows_without_keys_are_known_to_be_missing(listed: Listed, parts: dict[str, Any]) -> None:
    target_of(listed).apply(batch(rows(**parts)))
    assert listed.events == [("unknown", 8, "t"), ("applied", 8)]


def test_so_are_rows_that_fill_a_target(listed: Listed) -> None:
    target_of(listed).fill(lambda _: iter([rows(after=some(1))]))
    assert listed.events == [("unknown", 8, "t"), ("written", "t")]


def test_a_batch_without_rows_lists_nothing(listed: Listed) -> None:
    target = target_of(listed)
    target.apply(batch(rows(after=some(), chunk=some())))
    assert listed.events == [("applied", 8)]
