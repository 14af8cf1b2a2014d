"""Which rows the target has been given of which table, over any order of changes to the mapping."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.errors import MappingError
from migrator.model.codecs.codec import checkpoint_from_json, checkpoint_to_json
from migrator.model.progress import MIRROR, Filling, TableDump
from migrator.model.requests.request import Doubt, RequestState, Scope
from migrator.model.table import Column, TableSchema
from migrator.model.target import TargetColumn
from migrator.run.lead.carried import mapped_now
from tests.unit.model.carried import DUMPED, T, Target, U, V
from transforms.analysis.fingerprint import Fingerprint
from transforms.analysis.outline import VERSION
from transforms.analysis.plan import MappingKind, MappingPlan
from transforms.registry import TargetMapping


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
    assert target.forgotten == ["j"], "what a mapping of before has filled is filled anew"


def test_a_table_beside_has_its_rows_asked_for_once_and_anew_when_its_mapping_is_another() -> None:
    target = Target(None)
    target.run(a=(T,))
    target.besides = frozenset({"b"})
    assert target.begin(a=(T,), b=(T, U)).awaited == (("b", T, "r1.1"), ("b", U, "r1.1"))
    target.run(a=(T,), b=(T, U))  # as after a kill: asked for, and nothing applied
    assert target.begun == [("b", (T, U))]
    target.run(a=(T,), b=(T, U))
    assert len(target.begun) == 1
    target.mapped["b"] = "2"
    assert target.begin(a=(T,), b=(T, U)).awaited == (("b", T, "r2.1"), ("b", U, "r2.1"))
    assert target.begun == [("b", (T, U))] * 2
    target.book = target.book.close("r1.1", RequestState.DONE).close("r2.1", RequestState.CANCELLED)
    assert target.begin(a=(T,), b=(T, U)).awaited == (("b", T, "r3.1"), ("b", U, "r3.1"))


def test_a_late_target_has_its_rows_asked_for_unless_somebody_has_asked() -> None:
    target = Target(None)
    target.run(a=(T,))
    target.ask(T)
    target.ask(U, scope=Scope(predicate="k > 1"))
    target.ask(U, doubts=(Doubt("a", (("1",),)),))
    target.run(a=(T,), b=(T, U, V))
    assert target.begun == [("b", (T, U))], "V is dumped for the first time"
    target.run(a=(T,), b=(T, U, V))
    target.run(a=(T,), c=(V,))
    assert len(target.begun) == 1


def test_a_late_target_with_rows_is_refused() -> None:
    target = Target(None)
    target.run(a=(T,))
    target.rows.add("b")
    remedy = target.refuses("target table b", a=(T,), b=(T, U, V))
    assert remedy.startswith("empty the table (b); then start again")
    assert not target.begun
    target.rows.discard("b")
    target.run(a=(T,), b=(T, U, V))


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
    assert target.begin(a=(T,), b=(T,)).awaited == (("b", T, "r2.1"),)


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
    assert target.once_more(j=(T, U)) == frozenset()
    target.run(jj=(U,))
    assert target.once_more(jj=(U,), j=(T, U)) == {T}, "what was done to it meanwhile went by the mirror"
    assert target.once_more(jj=(U, T)) == {T}, "the same of one that only reads more than before"
    target.run(jj=(U,), j=(T, U))
    assert target.once_more(jj=(U,), j=(T, U)) == frozenset()


def test_a_changed_mapping_needs_all_rows_anew_and_one_that_is_put_back_none() -> None:
    target = Target(None)
    target.run(a=(T,), b=(T,))
    target.mapped["b"] = "2"
    remedy = target.refuses("target table b", a=(T,), b=(T,))
    assert (
        "ask for the rows: migrator dump start --table t; then empty the table (b); then start again"
        in remedy
    )
    assert "migrator run --accept-mapping b" in remedy
    target.run(a=(T,))
    target.mapped["b"] = "1"
    target.refuses("target table b", a=(T,), b=(T,))
    target = Target(None)
    target.run(b=(T,))
    target.mapped["b"] = "2"
    target.refuses("target table b", b=(T,))
    target.mapped["b"] = "1"
    target.run(b=(T,))


def test_a_changed_mapping_is_gone_on_with_once_its_rows_were_asked_for_and_changed_again_it_is_refused() -> (
    None
):
    target = Target(None)
    target.run(b=(T,))
    target.mapped["b"] = "2"
    name = target.ask(T)
    target.refuses("target table b", b=(T,))
    target.rows.clear()
    target.run(b=(T,))
    assert target.checkpoint is not None
    assert target.checkpoint.awaited == (("b", T, name),)
    assert checkpoint_from_json(checkpoint_to_json(target.checkpoint)).mapped == target.checkpoint.mapped
    target.checkpoint = replace(target.checkpoint, requests=(TableDump(T, chunks=1, request=name),))
    target.run(b=(T,))
    target.mapped["b"] = "3"
    target.refuses("target table b", b=(T,))


def test_a_joined_target_whose_mapping_was_changed_is_filled_anew() -> None:
    target = Target(None)
    target.run(j=(T,), jj=(T,))
    target.mapped["jj"] = "2"
    target.run(j=(T,), jj=(T,))
    assert target.forgotten == ["jj"]
    target.run(j=(T,), jj=(T,))
    assert target.forgotten == ["jj"]


def test_what_an_operator_accepts_is_noted() -> None:
    target = Target(None)
    target.run(a=(T,), b=(T,))
    target.mapped |= {"a": "2", "b": "2"}
    target.accepted = frozenset("b")
    target.refuses("target table a", a=(T,), b=(T,))
    target.accepted = frozenset("ab")
    target.run(a=(T,), b=(T,))
    target.accepted = frozenset()
    target.run(a=(T,), b=(T,))


def test_a_ledger_of_an_older_version_knows_of_no_mapping() -> None:
    target = Target(None)
    target.run(b=(T,))
    assert target.checkpoint is not None
    target.checkpoint, target.mapped["b"] = replace(target.checkpoint, mapped=None), "2"
    target.run(b=(T,))
    target.mapped["b"] = "3"
    target.refuses("target table b", b=(T,))


def test_a_column_may_go_and_one_that_comes_or_comes_back_needs_all_rows() -> None:
    target = Target(None)
    target.columns = ("k", "v")
    target.run(b=(T,))
    target.columns = ("k",)
    target.run(b=(T,))
    target.columns = ("k", "v")
    target.refuses("target table b", b=(T,))


def test_another_fingerprint_is_another_mapping_where_both_are_taken_in_one_way() -> None:
    target = Target(None)
    target.content, target.basis = "filter > 1", "Spark 4"
    target.run(b=(T,))
    target.content = "filter > 2"
    target.refuses("target table b", b=(T,))
    target.accepted = frozenset({"b"})
    target.run(b=(T,))
    target.accepted = frozenset()
    target.content, target.basis = "filter > 2, as Spark 5 says it", "Spark 5"
    target.run(b=(T,))
    target.content = ""
    target.run(b=(T,))
    target.content = "filter > 3"
    target.run(b=(T,))
    target.content = "filter > 4"
    target.refuses("target table b", b=(T,))


def outline(**parts: str) -> str:
    """An outline of these parts, of a mapping that reads t.a and t.b."""
    return json.dumps(
        {"columns": {"k": "1"}, "parts": parts, "reads": {"t.a": "1", "t.b": "1"}, "version": VERSION},
        sort_keys=True,
        separators=(",", ":"),
    )


def described(content: str, **parts: str) -> Target:
    """A target that a run has described to its ledger."""
    target = Target(None)
    target.content, target.basis, target.outline = content, "Spark 4, types 1", outline(**parts)
    target.run(b=(T,), c=(U,), j=(T,))
    return target


def test_all_targets_that_differ_are_named_at_once_and_in_what() -> None:
    target = described("1", Filter="1")
    target.content, target.outline = "2", outline(Filter="2", Join="1")
    with pytest.raises(MappingError) as caught:
        target.begin(b=(T,), c=(U,), j=(T,))
    assert caught.value.where == "target tables b, c"
    assert "of b differ: a filter, a join that wasn't there; of c differ: a filter" in caught.value.cause
    assert "--accept-mapping b --accept-mapping c --reason" in caught.value.remedy
    assert "ask for the rows: migrator dump start --table t --table u; then empty the tables (b, c);" in (
        caught.value.remedy
    )
    assert (target.kept, target.forgotten) == ([], []), "nothing is done yet"
    target.accepted = frozenset("bc")
    target.run(b=(T,), c=(U,), j=(T,))
    assert target.forgotten == ["j"]
    words = "a filter, a join that wasn't there"
    assert target.kept == [
        ("accept", f"b: {words}"),
        ("accept", f"c: {words}"),
        ("derive anew", f"j: {words}"),
    ]
    target.kept.clear()
    target.run(b=(T,), c=(U,), j=(T,))
    assert target.kept == []
    assert target.checkpoint is not None
    assert checkpoint_from_json(checkpoint_to_json(target.checkpoint)).mapped == target.checkpoint.mapped


def test_a_joined_target_is_derived_anew_only_where_somebody_asked_for_it() -> None:
    target = described("1", Filter="1")
    target.filled, target.accepted = {"j"}, frozenset("bc")
    target.content, target.outline = "2", outline(Filter="2")
    with pytest.raises(MappingError) as caught:
        target.begin(b=(T,), c=(U,), j=(T,))
    assert caught.value.where == "target table j"
    assert caught.value.remedy.startswith(
        "have j derived anew from the mirror, in one transaction: migrator remap j --reason '...'; then start again. "
    )
    assert (target.kept, target.forgotten) == ([], []), "nothing is done yet"
    target.accepted = frozenset()
    with pytest.raises(MappingError) as caught:
        target.begin(b=(T,), c=(U,), j=(T,))
    assert caught.value.where == "target tables b, c, j"
    assert (
        "migrator dump start --table t --table u; then empty the tables (b, c); have j derived anew"
        in caught.value.remedy
    )
    target.accepted = frozenset("bcj")
    target.begin(b=(T,), c=(U,), j=(T,))
    assert target.forgotten == []
    target.accepted, target.filled = frozenset("bc"), set()  # `migrator remap j`
    target.run(b=(T,), c=(U,), j=(T,))
    assert target.forgotten == ["j"]


def test_targets_that_are_refused_for_another_reason_are_named_too() -> None:
    target = described("1", Filter="1")
    target.content, target.outline = "2", outline(Filter="2")
    target.rows.add("d")
    with pytest.raises(MappingError) as caught:
        target.begin(b=(T,), d=(T,))
    assert caught.value.where == "target table b"
    assert caught.value.cause.endswith("The next start tells the same of d (added, or put back)")


def test_a_mapping_that_begins_to_read_another_column_is_another_one() -> None:
    """Its basis is another one, for that has the types of what it reads: it was let through once."""
    target = described("1", Filter="1")
    target.content, target.basis, target.outline = "2", "Spark 4, types 2", outline(Filter="2")
    with pytest.raises(MappingError, match="mapping of a target was changed") as caught:
        target.begin(b=(T,), c=(U,))
    assert "of b differ: a filter" in caught.value.cause


def test_what_cannot_be_compared_is_a_warning_by_name() -> None:
    target = described("1", Filter="1")
    target.content, target.basis = "2", "Spark 5, types 1"
    target.run(b=(T,))
    assert not target.warnings, "its outline is the same"
    target.content, target.basis, target.outline = "3", "Spark 6, types 1", outline(Filter="2")
    target.run(b=(T,))
    [warning] = target.warnings
    assert warning.startswith(
        "the mapping of b can't be compared with the one that made its rows so far: it was made"
    )
    assert "there differ: a filter" in warning
    assert [act for act, _ in target.kept] == ["uncompared"]
    target.outline = ""
    target.content, target.basis = "4", "Spark 7, types 1"
    target.run(b=(T,))
    assert len(target.warnings) == 1
    target.content, target.basis = "", ""
    target.run(b=(T,))
    assert "what its functions do can't be read" in target.warnings[0]


def test_a_target_of_another_schema_is_another_one() -> None:
    target = Target(None)
    target.run(b=(T,))
    target.schema = "elsewhere"
    target.rows.clear()
    target.refuses("target table b", b=(T,))


def plan(**changed: Any) -> MappingPlan:
    said: dict[str, Any] = {
        "name": "b",
        "key": ("k",),
        "grain": None,
        "function": lambda frame: frame,
        "sources": ("t",),
    }
    schema = TableSchema(T, (Column("k", "string", False, "text"),), ("k",))
    others: dict[str, Any] = {
        "kind": MappingKind.ROW_WISE,
        "columns": (TargetColumn("k", "string", "text", False, False, False),),
    }
    said, others = ({k: changed.get(k, v) for k, v in each.items()} for each in (said, others))
    target = TargetMapping(**said, surrogates=changed.get("surrogates", ()))
    return MappingPlan(target, schemas=changed.get("schemas", {"t": schema}), reads={}, **others)


def test_what_is_kept_of_a_mapping_changes_with_each_of_its_parts_and_not_with_its_text() -> None:
    def kept(**changed: Any) -> Any:
        content = Fingerprint(changed.get("content", ""), "Spark 4")
        return mapped_now({"b": plan(**changed)}, {"b": changed.get("place", "new")}, lambda _: content, {})

    other = TableSchema(U, (Column("k", "string", False, "text"),), ("k",))
    both = {**plan().schemas, "u": other}
    added = (*plan().columns, TargetColumn("v", "string", "text", True, False, False))
    found = [
        kept(),
        kept(kind=MappingKind.GRAIN),
        kept(key=("k", "v")),
        kept(schemas={"u": other}),
        kept(schemas=both),
        kept(surrogates=(("k", "map"),)),
        kept(columns=added),
        kept(place="elsewhere"),
        kept(content="another filter"),
    ]
    assert len({*found}) == len(found)
    assert kept(function=lambda frame: None) == kept()
    assert kept(schemas=both) == kept(schemas=dict(reversed(both.items())))
    assert kept(columns=added) == kept(columns=added[::-1])


def test_rows_that_came_by_the_log_before_the_dump_of_their_table_must_go_too() -> None:
    """1. a change of v comes by the log; 2. the target is taken out, the row deleted; 3. no dump takes it away."""
    target = Target()
    target.run(b=(V,))
    target.mapped["b"] = "2"
    assert target.refuses("target table b", b=(V,)).startswith("empty the table (b); then start again")
    target.rows.clear()
    target.run(b=(V,))


@given(
    st.lists(
        st.dictionaries(st.sampled_from(["a", "b", "j", "jj"]), st.sampled_from("12")), min_size=1, max_size=8
    )
)
def test_no_target_goes_on_after_a_batch_without_it_or_with_another_mapping(
    mappings: list[dict[str, str]],
) -> None:
    """Its rows are whole exactly if every batch since the first was mapped by it as it is, or it was filled
    anew."""
    target, whole = Target(None), None
    for mapping in mappings:
        target.forgotten.clear()
        target.mapped, names = mapping, {*mapping.items()}
        pairs: dict[str, Any] = dict.fromkeys(sorted(mapping), (T,))
        again = target.once_more(**pairs)
        try:
            target.run(**pairs)
        except MappingError:
            assert whole is not None
            assert not names <= whole
            continue
        assert target.checkpoint is not None
        filled = {*target.forgotten, *(name for name, _, _ in target.checkpoint.awaited)}
        names -= {(name, version) for name, version in names if name in filled}
        assert whole is None or names <= whole
        if whole is not None and target.forgotten:
            kept = {name for name, _ in whole if name.startswith("j")}
            assert kept or again, "nothing kept the mirror, and its rows aren't read again"
        whole = {*mapping.items()}


def test_what_is_being_filled_comes_back_and_earlier_ledgers_say_nothing_of_it() -> None:
    filling = (Filling("j", 2, 40, 90), Filling("k"))
    written = checkpoint_to_json(replace(DUMPED, filling=filling))
    assert checkpoint_from_json(written).filling == filling
    assert "filling" not in checkpoint_to_json(DUMPED)
    assert checkpoint_from_json({**checkpoint_to_json(DUMPED)}).filling == ()
    assert replace(DUMPED, filling=filling) == DUMPED, "it isn't a place in the log"
