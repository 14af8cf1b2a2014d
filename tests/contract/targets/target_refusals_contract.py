"""What every target says when its server refuses: locks that others hold, and ledgers of a newer version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from migrator.errors import TargetError
from migrator.ports.mirror import Mirror
from migrator.ports.target import TargetBatch, TargetRows
from tests.contract.targets.mirrored_items import change, joined
from tests.contract.targets.target_under_test import AppliedTarget, Applier, TargetUnderTest, checkpoint


@contextmanager
def renamed(place: TargetUnderTest, column: str) -> Iterator[None]:
    """The ledger lacks a column, as one of a version that keeps it elsewhere."""
    place.execute(f"ALTER TABLE {place.ledger} RENAME COLUMN {column} TO elsewhere")
    try:
        yield
    finally:
        place.execute(f"ALTER TABLE {place.ledger} RENAME COLUMN elsewhere TO {column}")


@contextmanager
def table_renamed(place: TargetUnderTest, name: str, moved: str) -> Iterator[None]:
    """A table isn't where it is looked for."""
    place.execute(f"ALTER TABLE {name} RENAME TO {moved.rpartition('.')[2]}")
    try:
        yield
    finally:
        place.execute(f"ALTER TABLE {moved} RENAME TO {name.rpartition('.')[2]}")


class TargetRefusalsContract(AppliedTarget):
    """The tests of refusals by the server that no row is to blame for."""

    @pytest.mark.parametrize("of_mirror", [False, True], ids=["ledger", "mirror"])
    def test_a_refused_lock_is_named_when_the_mirror_is_made(
        self, place: TargetUnderTest, applier: Applier, of_mirror: bool
    ) -> None:
        applier.target.prepare_mirror([joined(applier)])
        hurried = place.target(lock_wait_s=1)
        hurried.open(1)
        with place.locked(place.mirror if of_mirror else place.ledger):
            with pytest.raises(TargetError, match="busy or short of something") as refused:
                hurried.prepare_mirror([joined(applier)])
            assert refused.value.retryable
        hurried.prepare_mirror([joined(applier)])  # the control: with the lock free the same is done

    def test_a_refused_change_of_what_is_filled_is_named(
        self, place: TargetUnderTest, applier: Applier
    ) -> None:
        item = joined(applier)
        applier.target.prepare_mirror([item])

        def fill(mirror: Mirror) -> Iterator[TargetRows]:
            mirror.mark_filled(item)
            return iter(())

        applier.target.apply(TargetBatch(1, checkpoint(1), (), (change(None, None),), fill))
        with place.locked(place.mirror):
            with pytest.raises(TargetError, match="busy or short of something") as refused:
                place.forget_filled("item", lock_wait_s=1)
            assert refused.value.retryable
        moved = f"{place.history}_elsewhere"
        with table_renamed(place, place.history, moved):
            with pytest.raises(TargetError, match="record of filled targets can't be changed") as refused:
                place.forget_filled("item")
            assert not refused.value.retryable
        assert place.filled() == [("item", 1)], "an act that isn't in the history didn't happen"
        assert place.forget_filled("item"), "the control: it is changed"
        assert not place.forget_filled("item")
        assert place.filled() == []

    def test_a_newer_ledger_is_named(self, place: TargetUnderTest, applier: Applier) -> None:
        applier.apply(applier.part("item", after=[(1, "a", 1)]))
        found = place.peek()
        assert found is not None
        assert found.segment == 1, "the control: it is read"
        place.execute(f"UPDATE {place.ledger} SET format = 99")
        with pytest.raises(TargetError, match="format 99"):
            place.peek()
        with pytest.raises(TargetError, match="format 99"):
            place.target().open(2)
        with pytest.raises(TargetError, match="format 99"):
            applier.apply(applier.part("item", after=[(2, "b", 2)]))
        assert place.rows("item") == [(1, "a", 1)]

    @pytest.mark.parametrize("column", ["checkpoint", "format", "segment"])
    def test_a_ledger_with_other_columns_is_named(
        self, place: TargetUnderTest, applier: Applier, column: str
    ) -> None:
        with renamed(place, column):
            with pytest.raises(TargetError, match=f"(?s)the target refuses a query.*{column}"):
                place.peek()
            with pytest.raises(TargetError, match=f"(?s)ledger can't be used.*{column}"):
                place.target().open(2)
