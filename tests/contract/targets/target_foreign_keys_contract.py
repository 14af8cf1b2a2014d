"""What every target must do where tables point at each other."""

from __future__ import annotations

import pytest

from migrator.errors import TargetError
from tests.contract.targets.target_under_test import AppliedTarget, Applier, TargetUnderTest


class TargetForeignKeysContract(AppliedTarget):
    """The tests of parents and children."""

    def test_a_parent_is_emptied_with_its_children_or_not_at_all(
        self, applier: Applier, place: TargetUnderTest
    ) -> None:
        applier.apply(
            applier.part("item", after=[(1, "a", 1)]), applier.part("note", after=[(7, 1), (8, None)])
        )
        with pytest.raises(TargetError, match="item"):
            applier.apply(applier.part("item", emptied=True))
        assert (place.rows("item"), place.rows("note")) == ([(1, "a", 1)], [(7, 1), (8, None)])
        applier.apply(
            applier.part("item", emptied=True), applier.part("note", after=[(9, None)], emptied=True)
        )
        assert (place.rows("item"), place.rows("note")) == ([], [(9, None)])

    def test_children_may_come_before_parents_while_the_dump_runs(
        self, applier: Applier, place: TargetUnderTest
    ) -> None:
        applier.apply(applier.part("note", chunk=[(1, 10)]), done=False)
        applier.apply(applier.part("item", chunk=[(10, "a", 1)]), done=True)
        assert (place.rows("note"), place.rows("item")) == ([(1, 10)], [(10, "a", 1)])

    def test_children_may_come_before_parents_while_a_dump_request_is_open(
        self, applier: Applier, place: TargetUnderTest
    ) -> None:
        applier.apply(done=True)
        applier.apply(applier.part("note", chunk=[(1, 10)]), requested=False)
        applier.apply(applier.part("item", chunk=[(10, "a", 1)]), requested=True)
        applier.apply(applier.part("item", chunk=[(10, "b", 1)]))
        assert (place.rows("note"), place.rows("item")) == ([(1, 10)], [(10, "b", 1)])

    def test_the_last_dump_request_cannot_end_with_an_orphan(
        self, applier: Applier, place: TargetUnderTest
    ) -> None:
        applier.apply(done=True)
        applier.apply(applier.part("note", chunk=[(1, 10)]), requested=False)
        with pytest.raises(TargetError, match=r"note.*item.*id='1'.*item_id='10'"):
            applier.apply()  # it was cancelled
        assert place.rows("note") == [(1, 10)]

    def test_the_dump_cannot_end_with_an_orphan(self, applier: Applier, place: TargetUnderTest) -> None:
        applier.apply(applier.part("note", chunk=[(1, 10)]), done=False)
        with pytest.raises(TargetError, match=r"note.*item.*id='1'.*item_id='10'"):
            applier.apply(applier.part("item", chunk=[(11, "a", 1)]), done=True)
        assert place.rows("item") == []

    def test_parents_and_children_change_in_one_batch(self, applier: Applier, place: TargetUnderTest) -> None:
        applier.apply(
            applier.part("note", after=[(1, 10)], strict=True),
            applier.part("item", after=[(10, "a", 1)], strict=True),
        )
        applier.apply(
            applier.part("note", before=[(1, 10)], after=[(1, 11)], strict=True),
            applier.part("item", before=[(10, "a", 1)], after=[(11, "a", 1)], strict=True),
        )
        assert (place.rows("note"), place.rows("item")) == ([(1, 11)], [(11, "a", 1)])
        applier.apply(
            applier.part("item", before=[(11, "a", 1)], strict=True),
            applier.part("note", before=[(1, 11)], strict=True),
        )
        assert place.rows("note") == place.rows("item") == []

    @pytest.mark.parametrize("change", ["orphan", "widow"])
    def test_after_the_dump_foreign_keys_hold(
        self, applier: Applier, place: TargetUnderTest, change: str
    ) -> None:
        applier.apply(applier.part("item", chunk=[(10, "a", 1)]), applier.part("note", chunk=[(1, 10)]))
        if change == "orphan":
            bad = applier.part("note", after=[(2, 99)], strict=True)
        else:
            bad = applier.part("item", before=[(10, "a", 1)], strict=True)
        with pytest.raises(TargetError, match=r"note.*(99|10)"):
            applier.apply(bad)
        assert (place.rows("note"), place.rows("item")) == ([(1, 10)], [(10, "a", 1)])
