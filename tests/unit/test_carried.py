"""Which rows the target has been given of which table, over any order of changes to the mapping."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.errors import MappingError
from migrator.model.codecs.codec import checkpoint_from_json, checkpoint_to_json
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.requests.request import WHOLE, Doubt, RequestBook, RequestState, Scope
from migrator.model.table import TableId
from migrator.ports.target import TargetBatch
from migrator.run.lead.carried import MIRROR, LateTargets, carry_over
from transforms.analysis.plan import MappingKind

T, U, V = (TableId("s", name) for name in "tuv")
DUMPED = Checkpoint(
    Position(7, "7"), dumps=(TableDump(T, done=True), TableDump(U, chunks=1), TableDump(V)), fed=()
)


def plans(**targets: tuple[TableId, ...]) -> dict[str, Any]:
    """Row-wise ones; those whose names begin with j are joined."""
    kinds = {True: MappingKind.GRAIN, False: MappingKind.ROW_WISE}
    return {
        name: SimpleNamespace(
            kind=kinds[name.startswith("j")],
            reaches=(),
            schemas={table.name: SimpleNamespace(id=table) for table in tables},
        )
        for name, tables in targets.items()
    }


class Target:
    """The ledger's checkpoint, which tables have rows, and which joined ones are to be filled anew."""

    def __init__(self, checkpoint: Checkpoint | None = DUMPED) -> None:
        self.checkpoint = checkpoint
        self.book = RequestBook()
        self.rows: set[str] = set()
        self.forgotten: list[str] = []

    def run(self, **targets: tuple[TableId, ...]) -> None:
        """A run with this mapping, which applies a batch."""
        carried = self.begin(**targets)
        last = self.checkpoint or DUMPED
        self.checkpoint = carried.noted(TargetBatch(1, replace(last, fed=None, awaited=()), ())).checkpoint
        self.rows |= {*targets}

    def begin(self, **targets: tuple[TableId, ...]) -> Any:
        def forget(name: str) -> bool:
            self.forgotten.append(name)
            return True

        late = LateTargets(lambda name: name in self.rows, forget)
        return carry_over(self.checkpoint, lambda: self.book, plans(**targets), late)

    def ask(self, *tables: TableId, scope: Scope = WHOLE, doubts: tuple[Doubt, ...] = ()) -> str:
        self.book = self.book.start(tables, scope, doubts)
        return self.book.requests[-1].name()

    def refuses(self, where: str, **targets: tuple[TableId, ...]) -> str:
        with pytest.raises(MappingError) as caught:
            self.begin(**targets)
        assert where in caught.value.where
        return caught.value.remedy


def test_a_first_run_and_a_ledger_of_an_older_version_take_all_targets_for_whole() -> None:
    for begun in (None, replace(DUMPED, fed=None)):
        target = Target(begun)
        target.run(a=(T,), j=(T, U))
        assert target.checkpoint is not None
        assert target.checkpoint.fed == ((MIRROR, T), (MIRROR, U), ("a", T), ("j", T), ("j", U))
        target.run(a=(T,), j=(T, U))


def test_a_target_of_a_table_that_is_not_dumped_yet_may_join() -> None:
    target = Target()
    target.run(a=(V,), j=(V,))
    assert target.forgotten == []


def test_a_late_target_is_refused_with_the_tables_that_must_be_asked_for() -> None:
    target = Target(None)
    target.run(a=(T,))
    assert (
        "empty the table (b), ask for the rows: migrator dump start --table t --table u;"
        in target.refuses("target table b", a=(T,), b=(T, U, V))
    )
    target.ask(T)
    target.refuses("target table b", a=(T,), b=(T, U))
    target.ask(U, scope=Scope(predicate="k > 1"))
    target.ask(U, doubts=(Doubt("a", (("1",),)),))
    target.refuses("target table b", a=(T,), b=(T, U))
    target.ask(U)
    target.run(a=(T,), b=(T, U))


def test_rows_of_its_own_are_refused_whatever_was_asked_for() -> None:
    target = Target(None)
    target.run(a=(T,), b=(T,))
    target.run(a=(T,))
    target.ask(T)
    assert "empty the table" in target.refuses("target table b", a=(T,), b=(T,))
    target.rows.discard("b")
    target.run(a=(T,), b=(T,))


def test_a_dump_that_was_begun_before_the_target_joined_brings_it_too_little() -> None:
    target = Target(None)
    target.run(a=(T,))
    name = target.ask(T)
    assert target.checkpoint is not None
    target.checkpoint = replace(target.checkpoint, requests=(TableDump(T, chunks=1, request=name),))
    target.refuses("target table b", a=(T,), b=(T,))


@pytest.mark.parametrize("end", [RequestState.DONE, RequestState.CANCELLED, RequestState.FAILED])
def test_a_late_target_is_whole_once_its_dump_is_done_and_not_if_that_was_given_up(end: RequestState) -> None:
    target = Target(None)
    target.run(a=(T,))
    name = target.ask(T)
    target.run(a=(T,), b=(T,))
    assert target.checkpoint is not None
    assert target.checkpoint.awaited == (("b", T, name),)
    assert checkpoint_from_json(checkpoint_to_json(target.checkpoint)).awaited == target.checkpoint.awaited
    target.checkpoint = replace(target.checkpoint, requests=(TableDump(T, chunks=1, request=name),))
    target.run(a=(T,), b=(T,))  # killed, and started again
    target.book = target.book.close(name, end, "")
    if end is not RequestState.DONE:
        target.refuses("target table b", a=(T,), b=(T,))
        return
    target.run(a=(T,), b=(T,))
    assert target.checkpoint.awaited == ()
    assert checkpoint_from_json(checkpoint_to_json(target.checkpoint)).fed == (("a", T), ("b", T))


def test_a_joined_target_needs_a_mirror_that_was_moved_all_the_time() -> None:
    target = Target(None)
    target.run(j=(T, U))
    target.run(j=(T, U), jk=(T,), jj=(U,))
    assert target.forgotten == ["jj", "jk"]
    target.run(jj=(U,))
    target.refuses("s.t", jj=(U,), j=(T, U))
    target.run(jj=(U,))
    target.refuses("s.t", jj=(U, T))  # the same of one that only reads more than before


@given(st.lists(st.sets(st.sampled_from(["a", "b", "j", "jj"])), min_size=1, max_size=8))
def test_no_target_goes_on_after_a_batch_without_it(mappings: list[set[str]]) -> None:
    """Its rows are whole exactly if every batch since the first was mapped with it, or it was filled anew."""
    target, whole = Target(None), None
    for names in mappings:
        target.forgotten.clear()
        try:
            target.run(**dict.fromkeys(sorted(names), (T,)))
        except MappingError:
            assert whole is not None
            assert not names <= whole
            continue
        assert whole is None or names <= whole | set(target.forgotten)
        if whole is not None and target.forgotten:
            assert {name for name in whole if name.startswith("j")}, "nothing kept the mirror"
        whole = set(names)
