"""What every target must do with rows that it refuses for what they hold: each is named, and may be set aside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
import pytest

from migrator.errors import RowRefused, TargetError
from migrator.model.limits import SET_ASIDE, ApplyLimits
from migrator.model.progress import BadRow
from migrator.ports.target import TargetBatch, TargetRows
from migrator.run.apply.set_aside import AsideTarget
from tests.contract.targets.target_under_test import AppliedTarget, Applier, Rows, TargetUnderTest, checkpoint

LARGE = 2**40
"""A number that ``item.quantity`` doesn't hold."""


def items(applier: Applier, after: Rows, before: Rows | None = None, chunk: Rows | None = None) -> TargetRows:
    """Rows of ``item`` whose quantities may be too large for it."""

    def wide(rows: Rows) -> pa.Table:
        ids, names, numbers = ([row[place] for row in rows] for place in range(3))
        return pa.table(
            {"id": pa.array(ids, pa.int64()), "name": pa.array(names, pa.string()), "quantity": numbers}
        )

    part = applier.part("item", before=before)
    return replace(part, after=wide(after) if after else None, chunk=wide(chunk) if chunk else None)


def aside(place: TargetUnderTest) -> list[BadRow]:
    """The rows that the ledger names, as seen from outside."""
    ledger = place.peek()
    return [] if ledger is None or ledger.checkpoint is None else list(ledger.checkpoint.bad_rows)


@contextmanager
def short_names(place: TargetUnderTest) -> Iterator[None]:
    """The names in ``kept`` may have four characters."""
    place.execute("ALTER TABLE kept ADD CONSTRAINT kept_short CHECK (char_length(name) < 5)")
    try:
        yield
    finally:
        place.execute("ALTER TABLE kept DROP CONSTRAINT kept_short")


class TargetBadRowsContract(AppliedTarget):
    """The tests of rows that the target refuses for what they hold."""

    @pytest.fixture
    def setting_aside(self, applier: Applier) -> Applier:
        """The writer, which sets refused rows aside."""
        applier.target = AsideTarget(applier.target, ApplyLimits(bad_rows=SET_ASIDE, bad_rows_per_table=3))
        return applier

    def test_the_refused_row_is_known_by_its_key(self, place: TargetUnderTest, applier: Applier) -> None:
        with pytest.raises(RowRefused) as refused:
            applier.apply(items(applier, [(1, "a", 1), (2, "b", LARGE), (3, "c", 3)]))
        assert refused.value.key == ("2",)
        with short_names(place), pytest.raises(RowRefused) as refused:
            applier.apply(applier.part("kept", chunk=[(1, "a"), (2, "too long"), (3, "c")]))
        assert refused.value.key == ("2",)
        applier.apply(applier.part("person", after=[(1, "a@b")]))
        with pytest.raises(RowRefused) as refused:
            applier.apply(applier.part("person", after=[(2, "a@b")]))
        assert refused.value.key == ("2",)
        assert place.rows("item") == place.rows("kept") == []

    def test_two_rows_of_one_key_are_no_bad_row(self, place: TargetUnderTest, setting_aside: Applier) -> None:
        setting_aside.apply(setting_aside.part("person", after=[(1, "a")], strict=True))
        with pytest.raises(TargetError) as refused:
            setting_aside.apply(setting_aside.part("person", after=[(1, "b"), (2, "c")], strict=True))
        assert not isinstance(refused.value, RowRefused)
        assert (place.rows("person"), aside(place)) == ([(1, "a")], [])

    def test_bad_rows_go_aside_in_the_transaction_of_the_others(
        self, place: TargetUnderTest, setting_aside: Applier
    ) -> None:
        one = setting_aside
        one.apply(items(one, [(1, "a", 1), (2, "b", 2)]))
        with short_names(place):
            one.apply(
                items(one, [(2, "b", LARGE), (3, "c", 3), (4, "d", LARGE)], before=[(2, "b", 2)]),
                one.part("kept", chunk=[(1, "fits"), (2, "too long")]),
            )
        assert place.rows("item") == [(1, "a", 1), (3, "c", 3)], "the old row of a bad one is gone"
        assert [row[:2] for row in place.rows("kept")] == [(1, "fits")]
        assert {(row.target, row.key) for row in aside(place)} == {
            ("item", ("2",)), ("item", ("4",)), ("kept", ("2",)),
        }  # fmt: skip
        assert {(row.position, row.segment) for row in aside(place)} == {("token/2", 2)}
        assert all(row.reason for row in aside(place))
        one.apply(items(one, [(2, "b", 7)], before=[(2, "b", 2)]))
        one.apply(items(one, [], before=[(4, "d", 4)]))
        assert place.rows("item") == [(1, "a", 1), (2, "b", 7), (3, "c", 3)]
        assert [(row.target, row.key) for row in aside(place)] == [("kept", ("2",))]

    def test_of_two_rows_with_one_unique_value_one_goes_aside(
        self, place: TargetUnderTest, setting_aside: Applier
    ) -> None:
        one = setting_aside
        one.apply(one.part("person", chunk=[(1, "a@b"), (2, "c@d")]), done=False)
        one.apply(one.part("person", before=[(2, "c@d")], after=[(2, "a@b"), (3, "e@f")]))
        assert place.rows("person") == [(1, "a@b"), (3, "e@f")]
        assert [row.key for row in aside(place)] == [("2",)]
        one.apply(one.part("person", before=[(2, "a@b")], after=[(2, "g@h")]))
        assert (place.rows("person"), aside(place)) == ([(1, "a@b"), (2, "g@h"), (3, "e@f")], [])

    def test_one_more_than_may_be_stops_and_nothing_of_the_batch_is_there(
        self, place: TargetUnderTest, setting_aside: Applier
    ) -> None:
        one = setting_aside
        with pytest.raises(TargetError, match="bad_rows_per_table allows: 3"):
            one.apply(items(one, [], chunk=[(key, "x", LARGE if key < 5 else 1) for key in range(1, 9)]))
        assert (place.rows("item"), aside(place)) == ([], [])

    def test_another_leader_finds_what_is_aside_and_an_applied_batch_adds_nothing(
        self, place: TargetUnderTest, setting_aside: Applier
    ) -> None:
        one = setting_aside
        rows = items(one, [], chunk=[(1, "a", 1), (2, "b", LARGE)])
        one.apply(rows)
        one.target.apply(TargetBatch(1, checkpoint(1), (rows,)))  # applied already: nothing is done
        assert [row.key for row in aside(place)] == [("2",)]
        again = Applier(place, epoch=2)
        again.apply(
            items(again, [(2, "b", 2)], before=[(2, "b", 1)])
        )  # it stops at bad rows, and settles them
        assert (place.rows("item"), aside(place)) == ([(1, "a", 1), (2, "b", 2)], [])
        again.target.close()
