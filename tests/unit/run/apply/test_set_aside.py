"""Rows that the target refuses go aside, exactly they: a database in memory refuses what it is told to."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any, cast

import pyarrow as pa
import pytest

from migrator.adapters.memory.target import MemoryDatabase, MemoryTarget, Row
from migrator.columnar.bad_rows import StillBad, key_texts, set_aside, stored_texts
from migrator.errors import RowRefused, TargetError
from migrator.model.limits import SET_ASIDE, ApplyLimits
from migrator.model.position import Position
from migrator.model.progress import BadRow, Checkpoint, Mapped, Parent
from migrator.model.table import TableId
from migrator.model.target import TargetColumn, TargetTable
from migrator.ports.mirror import Mirror
from migrator.ports.target import StagedRows, TargetBatch, TargetRows
from migrator.run.apply.set_aside import AsideTarget, with_rows_aside

ITEM = TargetTable(
    TableId("new", "item"),
    (
        TargetColumn("id", "bigint", "bigint", False, False, False),
        TargetColumn("name", "string", "text", True, False, False),
    ),
    ("id",),
)
BAD = "bad"
LIMITS = ApplyLimits(bad_rows=SET_ASIDE, bad_rows_per_table=5, bad_rows_per_run=8)
Pairs = list[tuple[int, str]]


def refuses(table: str, row: Row) -> str:
    return f"{row['name']} is too long" if str(row["name"]).startswith(BAD) else ""


def table(pairs: Pairs | None) -> pa.Table | None:
    if pairs is None:
        return None
    ids, names = [key for key, _ in pairs], [name for _, name in pairs]
    return pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array(names, pa.string())})


class Joins(MemoryTarget):
    """A target with joined rows, as if its mirror were what the test holds."""

    def apply(self, batch: TargetBatch) -> None:
        if batch.joined is None:
            super().apply(batch)
        else:
            rows = tuple(batch.joined(cast(Mirror, None)))
            super().apply(replace(batch, rows=(*batch.rows, *rows), joined=None))

    def fill(self, piece: Callable[[Mirror], Iterator[TargetRows]]) -> None:
        ledger = self._database.ledger
        assert ledger.checkpoint is not None
        self.apply(TargetBatch(ledger.segment + 1, ledger.checkpoint, (), joined=piece))


class Bench:
    """A database that refuses bad names, and the target that sets them aside.

    ``joined``: whether the rows are mapped inside the transaction.
    """

    def __init__(self, limits: ApplyLimits = LIMITS, joined: bool = False):
        self.database = MemoryDatabase((ITEM,), refuses=refuses)
        self.target = AsideTarget(Joins(self.database), limits)
        self.target.open(1)
        self.segment = 0
        self.joined = joined

    def apply(self, **kinds: Any) -> None:
        """The next batch, from its parts' pairs."""
        self.segment += 1
        chunk, before, after = (table(kinds.get(name)) for name in ("chunk", "before", "after"))
        doubted = kinds.get("doubted")
        unsure = None if doubted is None else pa.table({"id": pa.array(doubted, pa.int64())})
        rows = TargetRows(
            ITEM, chunk, before, after, False, doubted=unsure, emptied=kinds.get("emptied", False)
        )
        if "staged" in kinds:
            rows = replace(rows, chunk=StagedRows(("r",), 1, lambda: table(kinds["staged"])))
        place = Checkpoint(Position(self.segment, f"at {self.segment}"))
        mapped = (lambda mirror: iter((rows,))) if self.joined else None
        self.target.apply(TargetBatch(self.segment, place, () if mapped else (rows,), joined=mapped))

    def rows(self) -> dict[int, str]:
        return {key[0]: str(row["name"]) for key, row in self.database.rows.get(ITEM.id, {}).items()}

    def aside(self) -> dict[str, BadRow]:
        checkpoint = self.database.ledger.checkpoint
        return {} if checkpoint is None else {one.key[0]: one for one in checkpoint.bad_rows}


def test_a_bad_row_goes_aside_with_key_place_reason_and_row_and_all_others_go_on() -> None:
    bench = Bench()
    bench.apply(chunk=[(1, "a"), (2, "bad b"), (3, "c")])
    assert bench.rows() == {1: "a", 3: "c"}
    (row,) = bench.aside().values()
    assert (row.target, row.columns, row.key, row.position, row.segment) == (
        "item", ("id",), ("2",), "at 1", 1,
    )  # fmt: skip
    assert row.row == "id=2, name='bad b'"
    assert "bad b is too long" in row.reason
    assert [len(commit.changed[ITEM.id]) for commit in bench.database.history] == [3], (
        "one commit, no half one"
    )


def test_what_the_target_had_of_the_key_is_removed_not_shown_as_if_it_were_current() -> None:
    bench = Bench()
    bench.apply(chunk=[(1, "a"), (2, "b")])
    bench.apply(before=[(2, "b")], after=[(2, "bad")])
    assert (bench.rows(), list(bench.aside())) == ({1: "a"}, ["2"])
    bench.apply(chunk=[(1, "bad too")])  # a dump again: no before row says that it was there
    assert (bench.rows(), list(bench.aside())) == ({}, ["2", "1"])


def test_a_later_version_that_fits_brings_the_key_back_and_a_delete_settles_it() -> None:
    bench = Bench()
    bench.apply(chunk=[(1, "bad"), (2, "bad"), (3, "bad"), (4, "bad")])
    bench.apply(before=[(1, "bad")], after=[(1, "good")])
    assert (bench.rows(), list(bench.aside())) == ({1: "good"}, ["2", "3", "4"])
    bench.apply(before=[(2, "bad")], after=[(2, "bad again")])
    assert bench.aside()["2"].segment == 3, "the newest version is the one that is named"
    bench.apply(before=[(3, "bad")])
    assert list(bench.aside()) == ["4", "2"]
    bench.apply(doubted=[4])
    assert list(bench.aside()) == ["2"], "a key dumped again, and gone from the source"
    bench.apply(emptied=True, after=[(9, "bad")])
    assert (bench.rows(), list(bench.aside())) == ({}, ["9"])


def test_a_bad_dump_row_under_a_newer_log_row_is_nothing_to_set_aside() -> None:
    bench = Bench()
    bench.apply(chunk=[(1, "bad"), (2, "x")], before=[(1, "bad")], after=[(1, "good")])
    assert (bench.rows(), bench.aside()) == ({1: "good", 2: "x"}, {})
    bench.apply(chunk=[(1, "good")], before=[(1, "good")], after=[(1, "bad")])
    assert (bench.rows(), list(bench.aside())) == ({2: "x"}, ["1"]), (
        "nor does the older dump row stand for it"
    )


def test_a_bad_dump_row_is_no_other_row_beside_the_insert_that_the_log_has_of_it() -> None:
    """1. a row is inserted; 2. the dump reads it; 3. it is mended: the net change of the batch is an insert."""
    bench = Bench()
    bench.apply(chunk=[(1, "bad")], after=[(1, "good")])
    assert (bench.rows(), bench.aside()) == ({1: "good"}, {})


def test_a_bad_dump_row_that_was_deleted_since_is_nothing_to_set_aside() -> None:
    """1. the dump reads a bad row; 2. it is deleted; both come in one batch."""
    bench = Bench()
    bench.apply(chunk=[(1, "bad"), (2, "good")], before=[(1, "bad")])
    assert (bench.rows(), list(bench.aside())) == ({2: "good"}, [])


def test_rows_that_executors_staged_are_brought_here_before_any_row_is_looked_for() -> None:
    bench = Bench()
    bench.apply(chunk=[(1, "bad"), (2, "bad")])

    class Drivers(MemoryTarget):
        def apply(self, batch: TargetBatch) -> None:
            assert all(not isinstance(rows.chunk, StagedRows) for rows in batch.rows)
            super().apply(batch)

    bench.target = AsideTarget(Drivers(bench.database), LIMITS)
    bench.target.open(1)
    bench.apply(staged=[(1, "good"), (2, "bad")])
    assert (bench.rows(), list(bench.aside())) == ({1: "good"}, ["2"])


def test_one_row_more_than_may_be_stops_naming_keys_and_writes_nothing() -> None:
    bench = Bench()
    bench.apply(chunk=[(key, "bad") for key in range(5)])
    with pytest.raises(TargetError, match=r"bad_rows_per_table allows: 5") as caught:
        bench.apply(chunk=[(7, "good"), (8, "bad")])
    assert "new.item" in caught.value.where
    assert "id=8" in caught.value.where
    assert "bad is too long" in caught.value.cause
    assert (bench.rows(), len(bench.aside())) == ({}, 5)
    bench.segment -= 1
    bench.apply(before=[(0, "bad")], after=[(0, "good"), (8, "bad")])  # one comes back, one goes: five again
    assert len(bench.aside()) == 5
    bench.apply(before=[(key, "bad") for key in (1, 2, 3, 4)])
    bench.apply(after=[(11, "bad"), (12, "bad")])
    with pytest.raises(TargetError, match=r"bad_rows_per_run allows: 8"):
        bench.apply(after=[(13, "bad")])
    bench.segment -= 1
    bench.target = AsideTarget(MemoryTarget(bench.database), LIMITS)
    bench.target.open(1)
    bench.apply(after=[(13, "bad")])  # another run may set aside again, the table's bound stays
    assert list(bench.aside()) == ["8", "11", "12", "13"]


def test_stop_is_the_default_and_stays_as_it_was() -> None:
    database = MemoryDatabase((ITEM,), refuses=refuses)
    target = with_rows_aside(MemoryTarget(database), ApplyLimits())
    target.open(1)
    rows = TargetRows(ITEM, table([(1, "a"), (2, "bad")]), None, None, False)
    with pytest.raises(TargetError, match=r"the target refuses a row of new\.item"):
        target.apply(TargetBatch(1, Checkpoint(Position(1, "1")), (rows,)))
    assert (database.rows, database.ledger.segment) == ({}, 0)


def test_who_stops_at_bad_rows_still_settles_those_of_a_run_before() -> None:
    bench = Bench()
    bench.apply(chunk=[(1, "bad"), (2, "bad")])
    stopping = MemoryTarget(bench.database)
    stopping.open(2)
    rows = TargetRows(ITEM, None, table([(1, "bad")]), table([(1, "good")]), False)
    stopping.apply(TargetBatch(2, Checkpoint(Position(2, "2")), (rows,)))
    assert (bench.rows(), list(bench.aside())) == ({1: "good"}, ["2"])


@pytest.mark.parametrize("key", ["7", "x"])
def test_a_refusal_of_a_row_that_is_none_of_the_batch_stops(key: str) -> None:
    class Elsewhere(MemoryTarget):
        def apply(self, batch: TargetBatch) -> None:
            raise RowRefused("refused", table="new.item", key=(key,))

    bench = Bench()
    bench.target = AsideTarget(Elsewhere(bench.database), LIMITS)
    with pytest.raises(RowRefused):
        bench.apply(chunk=[(1, "a")])


def test_two_rows_of_one_key_are_no_bad_row() -> None:
    rows = TargetRows(ITEM, None, None, table([(1, "a"), (1, "b")]), False)
    assert set_aside(rows, ("1",)) is None


def test_of_a_dump_row_and_a_log_row_that_is_new_the_log_row_is_tried() -> None:
    rows = TargetRows(ITEM, table([(1, "a")]), None, table([(1, "b")]), False)
    found = set_aside(rows, ("1",))
    assert found is not None
    assert (found.text, found.after) == (None, rows.after)
    assert found.chunk is not None
    assert found.chunk.num_rows == 0


def test_a_key_that_no_ledger_can_name_is_not_set_aside() -> None:
    table_of_texts = pa.table({"id": ["a\0", "b"], "name": ["x", "y"]})
    rows = TargetRows(ITEM, None, None, table_of_texts, False)
    assert set_aside(rows, ("a\0",)) is None
    assert set_aside(rows, ("b",)) is not None


def test_a_joined_row_goes_aside_and_the_next_try_maps_all_others_again() -> None:
    bench = Bench(joined=True)
    bench.apply(after=[(1, "a"), (2, "bad b"), (3, "bad c")])
    assert (bench.rows(), list(bench.aside())) == ({1: "a"}, ["2", "3"])
    assert bench.aside()["2"].row == "id=2, name='bad b'"
    assert bench.aside()["2"].position == "at 1"
    bench.apply(before=[(1, "a"), (3, "bad c")], after=[(1, "bad"), (3, "c")])
    assert (bench.rows(), list(bench.aside())) == ({3: "c"}, ["2", "1"])
    assert len(bench.database.history) == 2, "one commit a batch, no half one"


def test_a_joined_target_that_is_filled_anew_loses_its_records_and_gets_new_ones() -> None:
    bench = Bench(joined=True)
    bench.apply(after=[(1, "bad"), (2, "bad")])
    whole = TargetRows(ITEM, None, None, table([(1, "a"), (3, "bad")]), False, replaces=True)
    bench.target.fill(lambda mirror: iter((whole,)))
    assert (bench.rows(), list(bench.aside())) == ({1: "a"}, ["3"])
    assert bench.aside()["3"].position == "at 1", "where the last batch ended"


def test_more_joined_rows_than_may_be_stop_and_write_nothing() -> None:
    bench = Bench(joined=True)
    bench.apply(after=[(key, "bad") for key in range(4)])
    with pytest.raises(TargetError, match=r"bad_rows_per_table allows: 5") as caught:
        bench.apply(after=[(7, "good"), (8, "bad"), (9, "bad")])
    assert "new.item" in caught.value.where
    assert (bench.rows(), len(bench.aside())) == ({}, 4)
    bench.segment -= 1
    bench.apply(before=[(0, "bad")], after=[(0, "good"), (8, "bad"), (9, "bad")])
    assert len(bench.aside()) == 5, "one comes back and two go"


def test_a_mapping_that_maps_other_rows_the_second_time_stops() -> None:
    bench = Bench(joined=True)
    bench.apply(after=[(9, "x")])
    tries = iter((table([(1, "bad")]), table([(2, "good")])))
    with pytest.raises(RowRefused, match="refuses a row"):
        bench.target.fill(lambda mirror: iter((TargetRows(ITEM, None, None, next(tries), False),)))


def test_a_joined_row_that_is_refused_though_it_was_taken_out_stops() -> None:
    class Blames(MemoryTarget):
        def apply(self, batch: TargetBatch) -> None:
            assert batch.joined is not None
            assert list(batch.joined(cast(Mirror, None)))
            raise RowRefused("refused", table="new.item", key=("1",))

    bench = Bench(joined=True)
    bench.target = AsideTarget(Blames(bench.database), LIMITS)
    with pytest.raises(RowRefused):
        bench.apply(after=[(1, "a")])


def test_stored_values_have_the_texts_of_mapped_ones_or_none() -> None:
    kinds = {
        "n": ("bigint", "bigint", pa.int64(), 7, "7"),
        "d": ("decimal(12,2)", "numeric(12,2)", pa.decimal128(12, 2), Decimal("1.5"), "1.50"),
        "t": ("string", "character varying(9)", pa.string(), "ab  ", "ab  "),
        "b": ("binary", "bytea", pa.binary(), b"\xff\x00", "\\xff00"),
        "m": ("binary", "varbinary(9)", pa.binary(), b"\xff\x00", "0xFF00"),
        "y": ("date", "date", pa.date32(), date(2024, 2, 29), "2024-02-29"),
        "w": (
            "timestamp_ntz",
            "datetime",
            pa.timestamp("us"),
            datetime(2024, 2, 29, 1),
            "2024-02-29 01:00:00",
        ),
        "f": ("boolean", "tinyint(1)", pa.bool_(), True, "1"),
    }
    columns = tuple(TargetColumn(name, kind[0], kind[1], False, False, False) for name, kind in kinds.items())
    table_of_kinds = TargetTable(TableId("new", "kinds"), columns, ("n",))
    mapped = pa.table({name: pa.array([kind[3]], kind[2]) for name, kind in kinds.items()})
    stored = [kind[4] for kind in kinds.values()]
    assert [stored_texts(table_of_kinds, [*kinds], stored)] == key_texts(mapped, [*kinds])
    assert stored_texts(table_of_kinds, ["n"], [None]) is None
    for spark, native in (("double", "double precision"), ("string", "character(9)"), ("string", "jsonb")):
        odd = replace(table_of_kinds, columns=(TargetColumn("n", spark, native, False, False, False),))
        assert stored_texts(odd, ["n"], ["1"]) is None, "two texts may stand for one value"


def test_rows_of_a_target_that_left_the_mapping_are_forgotten_with_the_next_batch() -> None:
    bench = Bench()
    bench.apply(chunk=[(1, "bad"), (2, "good")])
    rows = TargetRows(ITEM, None, None, table([(3, "c")]), False)
    for number, left in ((2, ["1"]), (3, [])):
        mapped = Mapped("item" if left else "other", "s", "", ())
        place = Checkpoint(Position(number, str(number)), mapped=(mapped,))
        bench.target.apply(TargetBatch(number, place, (rows,)))
        assert list(bench.aside()) == left


@pytest.mark.parametrize(("stored", "came"), [("Jose ", True), ("JOSÉ", True), ("Joseph", False)])
def test_a_parent_that_a_collation_takes_for_the_one_waited_for_came(stored: str, came: bool) -> None:
    waits = BadRow("note", ("id",), ("1",), "p", 1, "r", "x", parent=Parent("item", ("name",), ("josé",)))
    after = pa.table({"id": pa.array([1], pa.int64()), "name": [stored]})
    (found,) = StillBad([waits], [TargetRows(ITEM, None, None, after, False)]).found()
    assert found.parent is not None
    assert found.parent.came is came


def test_what_is_taken_out_twice_is_one_record() -> None:
    still = StillBad([])
    for reason in ("first", "second"):
        still.taken([BadRow("item", ("id",), ("1",), "p", 1, reason, "x")])
    assert [one.reason for one in still.found()] == ["second"]


def test_rows_that_wait_for_each_other_can_be_tried_again_and_no_others() -> None:
    def waits(key: str, parent: str) -> BadRow:
        return BadRow("item", ("id",), (key,), "p", 1, "r", "x", parent=Parent("item", ("id",), (parent,)))

    none = TargetRows(ITEM, None, None, None, False)
    rows = [waits("1", "2"), waits("2", "3"), waits("3", "2"), waits("4", "9"), waits("5", "5")]
    found = StillBad([], [replace(none, bad_rows=tuple(rows))]).found()
    assert [one.parent is not None and one.parent.came for one in found] == [False, True, True, False, True]


def test_keys_as_text() -> None:
    rows = pa.table({"a": [1, None], "b": ["x", "y"], "c": [b"\xff", b"ok"]})
    assert key_texts(rows, ["a", "b"]) == [("1", "x"), ("\0", "y")]
    assert key_texts(rows, ["c"]) == [("ff",), ("6f6b",)]
    beyond = pa.array([2**31 - 1, 18_750], pa.int32()).cast(pa.date32())
    for values in (pa.array([b"ok", b"\xff", b"a" * 90 + b"\xff"]), beyond):
        column = pa.table({"k": values})
        alone = [key_texts(column.slice(row, 1), ["k"])[0] for row in range(len(values))]
        assert key_texts(column, ["k"]) == alone, "a key has one text, whatever others are beside it"


def test_long_keys_of_bytes_that_differ_in_the_middle_are_two_keys() -> None:
    one, other = (b"\xff" * 40 + middle + b"\xff" * 40 for middle in (b"a", b"b"))
    assert len(set(key_texts(pa.table({"k": [one, other]}), ["k"]))) == 2


def test_a_row_without_a_whole_key_is_not_set_aside() -> None:
    """Two of them would have one record, and the delete of one would settle the other's."""
    after = pa.table({"id": pa.array([None], pa.string()), "name": ["x"]})
    rows = TargetRows(ITEM, None, None, after, False)
    assert set_aside(rows, key_texts(after, ["id"])[0]) is None
    held = BadRow("item", ("id",), ("",), "p", 1, "r", "x")
    assert StillBad([held], [rows]).found() == (held,)


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_random_batches_end_as_the_oracle_says(seed: int, joined: bool) -> None:
    """The oracle: per key, the last version; a bad one is in no table and in the records, any other the reverse."""
    drawn = random.Random(seed)
    bench = Bench(replace(LIMITS, bad_rows_per_table=99, bad_rows_per_run=9999), joined)
    source: dict[int, str] = {}
    for _ in range(12):
        net = dict(source)
        for key in drawn.sample(range(12), drawn.randint(1, 6)):
            if drawn.random() < 0.2:
                net.pop(key, None)
            else:
                net[key] = drawn.choice(["bad", "good"]) + str(drawn.randint(0, 9))
        changed = {key for key in {*source, *net} if source.get(key) != net.get(key)}
        dumped = [key for key in net if key not in changed and drawn.random() < 0.3]
        older = [
            key for key in sorted(changed & {*source}) if drawn.random() < 0.3
        ]  # read before they changed
        if joined:  # what is dumped again is on both sides of the change
            changed, dumped, older = changed | {*dumped}, [], []
        bench.apply(
            chunk=[*((key, net[key]) for key in dumped), *((key, source[key]) for key in older)],
            before=[(key, source[key]) for key in changed if key in source],
            after=[(key, net[key]) for key in changed if key in net],
        )
        source = net
        bad = {key for key, name in source.items() if name.startswith(BAD)}
        assert bench.rows() == {key: name for key, name in source.items() if key not in bad}
        assert {int(key) for key in bench.aside()} == bad
        for key in bad:
            assert bench.aside()[str(key)].row == f"id={key}, name={source[key]!r}"


def test_what_was_set_aside_of_other_tables_stays() -> None:
    held = (BadRow("note", ("id",), ("1",), "", 1, "", ""), BadRow("item", ("id",), ("1",), "", 1, "", ""))
    rows = TargetRows(ITEM, None, table([(1, "a")]), None, False)
    assert StillBad(held, [rows]).found() == held[:1]
