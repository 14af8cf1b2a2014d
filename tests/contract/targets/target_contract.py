"""What every target must do. A new adapter subclasses ``TargetContract`` and says how to make one.

The tables are those of ``target_under_test``.
"""

from __future__ import annotations

import random

import pytest

from migrator.errors import FencedError, TargetError
from migrator.model.segment import Link
from migrator.ports.target import TargetBatch
from tests.contract.targets.target_bad_rows_contract import TargetBadRowsContract
from tests.contract.targets.target_deadlock_contract import TargetDeadlockContract
from tests.contract.targets.target_foreign_keys_contract import TargetForeignKeysContract
from tests.contract.targets.target_lost_contract import TargetLostContract
from tests.contract.targets.target_orphans_contract import TargetOrphansContract
from tests.contract.targets.target_refusals_contract import TargetRefusalsContract
from tests.contract.targets.target_under_test import Applier, Rows, TargetUnderTest, checkpoint


def link_to(applier: Applier, link: Link, after: Rows, segment: int = 1) -> None:
    """A batch that hangs on an event log."""
    applier.target.apply(
        TargetBatch(segment, checkpoint(segment), (applier.part("item", after=after),), link=link)
    )


class TargetContract(
    TargetForeignKeysContract,
    TargetLostContract,
    TargetDeadlockContract,
    TargetRefusalsContract,
    TargetBadRowsContract,
    TargetOrphansContract,
):
    """The tests of ledger, transaction and rows, of foreign keys, lost connections, deadlocks and refusals.

    Subclasses provide ``place``.
    """

    def test_a_new_ledger_is_empty(self, applier: Applier) -> None:
        assert (applier.ledger.segment, applier.ledger.checkpoint, applier.ledger.epoch) == (0, None, 1)

    def test_missing_tables_are_named(self, applier: Applier) -> None:
        with pytest.raises(TargetError, match=r"nowhere"):
            applier.target.tables(["item", "nowhere"])

    def test_keys_and_references_are_reflected(self, applier: Applier) -> None:
        note, item = applier.tables["note"], applier.tables["item"]
        assert (note.key, note.references) == (("id",), (item.id,))
        column = item.column("quantity")
        assert column is not None
        assert (column.spark_type, column.nullable) == ("int", True)

    def test_the_ledger_moves_with_the_rows(self, applier: Applier, place: TargetUnderTest) -> None:
        applier.apply(applier.part("item", chunk=[(1, "a", 1)]), done=False)
        applier.target.close()
        again = Applier(place, epoch=2)
        assert (again.ledger.segment, again.ledger.checkpoint) == (1, checkpoint(1, done=False))
        assert again.ledger.checkpoint is not None
        assert again.ledger.checkpoint.position.token == "token/1"
        assert place.rows("item") == [(1, "a", 1)]
        again.target.close()

    def test_a_segment_is_applied_once(self, applier: Applier, place: TargetUnderTest) -> None:
        applier.apply(applier.part("item", after=[(1, "a", 1)]))
        repeated = (applier.part("item", after=[(1, "other", 2)]),)
        applier.target.apply(TargetBatch(1, checkpoint(1), repeated))
        assert place.rows("item") == [(1, "a", 1)]

    def test_the_ledger_keeps_which_segment_it_applied(
        self, applier: Applier, place: TargetUnderTest
    ) -> None:
        link_to(applier, Link(1, "", "one"), after=[(1, "a", 1)])
        link_to(applier, Link(2, "one", "three"), after=[(2, "b", 2)], segment=3)
        again = Applier(place, epoch=2)
        assert (again.ledger.segment, again.ledger.segment_id) == (3, "three")
        link_to(again, Link(2, "one", "three"), after=[(9, "again", 9)], segment=3)
        assert place.rows("item") == [(1, "a", 1), (2, "b", 2)], "it was applied already: silently nothing"
        again.target.close()

    @pytest.mark.parametrize(
        ("segment", "link"),
        [
            (3, Link(3, "other", "x")),  # behind another second segment
            (2, Link(2, "one", "x")),  # another second segment
            (4, Link(4, "three", "x")),  # behind one that is missing
            (1, Link(1, "", "one")),  # what was applied, and something more
        ],
    )
    def test_a_batch_of_another_event_log_is_refused_by_name(
        self, applier: Applier, place: TargetUnderTest, segment: int, link: Link
    ) -> None:
        link_to(applier, Link(1, "", "one"), after=[(1, "a", 1)])
        link_to(applier, Link(2, "one", "two"), after=[(2, "b", 2)], segment=2)
        with pytest.raises(TargetError, match="doesn't stand where this run left it"):
            link_to(applier, link, after=[(9, "foreign", 9)], segment=segment)
        assert place.rows("item") == [(1, "a", 1), (2, "b", 2)]
        link_to(applier, Link(3, "two", "x"), after=[(3, "c", 3)], segment=3)
        assert len(place.rows("item")) == 3, "the control: the very next one is taken"

    def test_an_old_ledger_takes_the_next_lineage(self, applier: Applier, place: TargetUnderTest) -> None:
        applier.apply(applier.part("item", after=[(1, "a", 1)]))
        link_to(applier, Link(2, "anything", "two"), after=[(2, "b", 2)], segment=2)
        assert place.target().open(1).segment_id == "two"

    def test_a_lower_epoch_cannot_open(self, applier: Applier, place: TargetUnderTest) -> None:
        applier.target.open(5)
        late = place.target()
        with pytest.raises(FencedError, match=r"5.*4"):
            late.open(4)
        late.close()

    def test_a_zombie_writes_nothing(self, applier: Applier, place: TargetUnderTest) -> None:
        applier.apply(applier.part("item", after=[(1, "a", 1)]))
        leader = Applier(place, epoch=2)
        with pytest.raises(FencedError, match="epoch 2"):
            applier.apply(applier.part("item", after=[(1, "zombie", 9)]))
        assert place.rows("item") == [(1, "a", 1)]
        leader.apply(leader.part("item", after=[(2, "b", 2)]))
        assert place.rows("item") == [(1, "a", 1), (2, "b", 2)]
        leader.target.close()

    def test_all_or_nothing(self, applier: Applier, place: TargetUnderTest) -> None:
        good = applier.part("item", after=[(1, "a", 1)])
        bad = applier.part("person", after=[(1, "same"), (2, "same")])
        with pytest.raises(TargetError, match=r"person"):
            applier.apply(good, bad)
        assert place.rows("item") == place.rows("person") == []
        assert place.target().open(1).segment == 0
        applier.apply(good, applier.part("person", after=[(1, "same")]))
        assert (place.rows("item"), place.rows("person")) == ([(1, "a", 1)], [(1, "same")])

    def test_insert_update_delete(self, applier: Applier, place: TargetUnderTest) -> None:
        applier.apply(applier.part("item", after=[(1, "a", 1), (2, "b", None), (3, None, 3)], strict=True))
        change = applier.part(
            "item", before=[(1, "a", 1), (2, "b", None)], after=[(1, "A", 1), (4, "d", 4)], strict=True
        )
        applier.apply(change)
        assert place.rows("item") == [(1, "A", 1), (3, None, 3), (4, "d", 4)]

    def test_keys_change_and_swap(self, applier: Applier, place: TargetUnderTest) -> None:
        applier.apply(applier.part("item", after=[(1, "a", 1), (2, "b", 2), (3, "c", 3)], strict=True))
        swap = applier.part(
            "item",
            before=[(1, "a", 1), (2, "b", 2), (3, "c", 3)],
            after=[(2, "a", 1), (1, "b", 2), (30, "c", 3)],
            strict=True,
        )
        applier.apply(swap)
        assert place.rows("item") == [(1, "b", 2), (2, "a", 1), (30, "c", 3)]

    @pytest.mark.parametrize("strict", [True, False])
    def test_unique_values_swap_move_on_and_are_inherited(
        self, applier: Applier, place: TargetUnderTest, strict: bool
    ) -> None:
        first = [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")]
        applier.apply(applier.part("person", after=first, strict=strict))
        moved = applier.part(
            "person",
            before=[(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")],
            # 1 and 2 swap; 4 takes what 3 leaves, 3 something new; 6 is new and takes what 5 had, 5 goes.
            after=[(1, "b"), (2, "a"), (3, "x"), (4, "c"), (6, "e")],
            strict=strict,
        )
        applier.apply(moved)
        assert place.rows("person") == [(1, "b"), (2, "a"), (3, "x"), (4, "c"), (6, "e")]

    def test_a_dump_row_gives_way_to_the_delta(self, applier: Applier, place: TargetUnderTest) -> None:
        applier.apply(
            applier.part(
                "item",
                chunk=[(1, "dump", 1), (2, "dump", 2), (3, "dump", 3)],
                before=[(1, "dump", 1), (2, "dump", 2)],
                after=[(1, "log", 1), (4, "log", 4)],
            ),
            done=False,
        )
        assert place.rows("item") == [(1, "log", 1), (3, "dump", 3), (4, "log", 4)]

    def test_a_dump_row_takes_a_unique_value_the_delta_frees(
        self, applier: Applier, place: TargetUnderTest
    ) -> None:
        applier.apply(applier.part("person", chunk=[(1, "a")]), done=False)
        applier.apply(
            applier.part("person", chunk=[(2, "a"), (3, "c")], before=[(1, "a")], after=[(1, "b")]),
            done=False,
        )
        assert place.rows("person") == [(1, "b"), (2, "a"), (3, "c")]

    def test_a_repaired_row_may_be_new_in_the_log_of_the_same_batch(
        self, applier: Applier, place: TargetUnderTest
    ) -> None:
        applier.apply(applier.part("item", chunk=[(1, "dump", 1)], after=[(1, "log", 1)], strict=True))
        assert place.rows("item") == [(1, "log", 1)]

    def test_a_table_is_emptied_before_anything_is_written_to_it(
        self, applier: Applier, place: TargetUnderTest
    ) -> None:
        applier.apply(
            applier.part("item", after=[(n, "old", n) for n in range(1, 6)]),
            applier.part("person", after=[(1, "a"), (2, "b")]),
        )
        applier.apply(
            applier.part(
                "item",
                chunk=[(2, "again", 2), (8, "dumped", 8)],
                before=[(3, "late", 3)],
                after=[(4, "new", 4)],
                emptied=True,
            ),
            applier.part("person", after=[(9, "a")], strict=True, emptied=True),
        )
        assert place.rows("item") == [(2, "again", 2), (4, "new", 4), (8, "dumped", 8)]
        assert place.rows("person") == [(9, "a")]
        applier.apply(applier.part("item", emptied=True))
        assert (place.rows("item"), place.rows("person")) == ([], [(9, "a")])

    def test_dump_rows_may_come_again(self, applier: Applier, place: TargetUnderTest) -> None:
        for name in ("a", "b", "b"):
            applier.apply(applier.part("item", chunk=[(1, name, 1), (2, "two", 2)]), done=False)
        assert place.rows("item") == [(1, "b", 1), (2, "two", 2)]

    def test_a_strict_insert_of_an_existing_key_is_an_error(
        self, applier: Applier, place: TargetUnderTest
    ) -> None:
        applier.apply(applier.part("item", after=[(1, "a", 1), (2, "b", 2)], strict=True))
        with pytest.raises(TargetError, match=r"item.*1"):
            applier.apply(
                applier.part("item", before=[(2, "b", 2)], after=[(1, "x", 1), (2, "c", 2)], strict=True)
            )
        assert place.rows("item") == [(1, "a", 1), (2, "b", 2)]
        applier.apply(applier.part("item", after=[(1, "x", 1)], strict=False))
        assert place.rows("item") == [(1, "x", 1), (2, "b", 2)]

    @pytest.mark.parametrize("side", ["chunk", "after"])
    @pytest.mark.parametrize("stored", [[], [(7, "a", 1)]])
    def test_two_rows_of_one_key_are_an_error(
        self, applier: Applier, place: TargetUnderTest, side: str, stored: Rows
    ) -> None:
        applier.apply(applier.part("item", chunk=stored))
        twice = [(6, "x", 1), (7, "a", 1), (7, "b", 1)]
        part = applier.part("item", chunk=twice) if side == "chunk" else applier.part("item", after=twice)
        with pytest.raises(TargetError, match=r"two rows for key id=7 of .*item"):
            applier.apply(part)
        assert place.rows("item") == stored

    def test_columns_the_mapping_leaves_alone_keep_their_values(
        self, applier: Applier, place: TargetUnderTest
    ) -> None:
        applier.apply(applier.part("kept", after=[(1, "a"), (2, "b")]))
        applier.apply(applier.part("kept", before=[(1, "a")], after=[(1, "b")], strict=True))
        assert place.rows("kept") == [(1, "b", "kept"), (2, "b", "kept")]

    def test_of_doubted_rows_those_stay_that_the_batch_has(
        self, applier: Applier, place: TargetUnderTest
    ) -> None:
        rows = [(n, f"old {n}", n) for n in range(1, 8)]
        applier.apply(applier.part("item", chunk=rows), applier.part("note", chunk=[(1, 4)]))
        applier.apply(
            applier.part(
                "item",
                chunk=[(1, "dumped", 1), (2, "dumped", 2)],
                before=[(2, "old 2", 2), (3, "old 3", 3)],
                after=[(3, "logged", 3), (9, "logged", 9)],
                doubted=[1, 2, 3, 4, 5, 6, 77],
            )
        )
        assert place.rows("item") == [  # 2 vanished by the log, 5 and 6 are nowhere; a note points at 4
            (1, "dumped", 1),
            (3, "logged", 3),
            (4, "old 4", 4),
            (7, "old 7", 7),
            (9, "logged", 9),
        ]

    def test_a_doubt_decided_without_the_event_of_its_row_loses_it(
        self, applier: Applier, place: TargetUnderTest
    ) -> None:
        """The control of ``core.hold``: the same rows in one batch keep it."""
        rows: Rows = [(5, "inserted", 5)]
        applier.apply(applier.part("item", after=rows, doubted=[5]))
        assert place.rows("item") == list(rows)
        applier.apply(applier.part("item", before=rows))
        applier.apply(applier.part("item", after=rows))
        applier.apply(applier.part("item", doubted=[5]))
        assert place.rows("item") == []

    def test_doubted_rows_alone_vanish(self, applier: Applier, place: TargetUnderTest) -> None:
        applier.apply(applier.part("item", chunk=[(1, "a", 1), (2, "b", 2)]))
        applier.apply(applier.part("item", doubted=[2]))
        assert place.rows("item") == [(1, "a", 1)]

    def test_an_empty_batch_moves_the_ledger(self, applier: Applier, place: TargetUnderTest) -> None:
        applier.apply()
        applier.apply(applier.part("item", chunk=[], before=[], after=[]))
        assert place.target().open(1).segment == 2

    @pytest.mark.parametrize("seed", range(4))
    def test_random_histories_end_like_the_model(
        self, applier: Applier, place: TargetUnderTest, seed: int
    ) -> None:
        """Whole-state permutations of keys and unique values, dump rows mixed in, against a dictionary."""
        dice = random.Random(seed)
        model: dict[int, str] = {}
        for _ in range(25):
            keys = dice.sample(range(8), dice.randint(0, 7))
            wanted = dict(zip(keys, dice.sample("abcdefghij", len(keys)), strict=True))
            before = [(key, value) for key, value in model.items() if wanted.get(key) != value]
            after = [(key, value) for key, value in wanted.items() if model.get(key) != value]
            dumped = [row for row in after if row[0] not in model and dice.random() < 0.3]
            logged = [row for row in after if row not in dumped]
            strict = dice.random() < 0.5 and not dumped
            stale = [(key, "stale" + value) for key, value in before if dice.random() < 0.3]
            part = applier.part("person", chunk=dumped + stale, before=before, after=logged, strict=strict)
            applier.apply(part, done=dice.random() < 0.5)
            model = wanted
            assert place.rows("person") == sorted(model.items())
