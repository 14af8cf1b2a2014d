"""A target table that somebody emptied: told from one that the source's own changes have left without rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from migrator.adapters.targets.shared.identities import Identities
from migrator.errors import TargetError
from migrator.model.codecs.codec import checkpoint_from_json, checkpoint_to_json
from migrator.model.progress import Mapped, TableDump, TableIdentity
from migrator.model.requests.request import RequestState
from migrator.ports.target import TargetBatch
from migrator.run.lead.emptied import emptied
from tests.unit.model.carried import DUMPED, T, Target, brought

EVERY: dict[str, Any] = {"a": (T,), "b": (T,), "j": (T,)}
EMPTY = "a target is empty, though the last batch that was applied to it brought rows"


def begun() -> Target:
    target = Target(None)
    target.run(**EVERY)
    return target


def removed(target: Target, name: str, last: bool = True, echo: bool = False) -> None:
    """A batch that only takes rows away, the last ones or others; ``echo``: users did, on the target's side."""
    carried = target.begin(**EVERY)
    assert target.checkpoint is not None
    gone = replace(brought(name), before=brought(name).after, after=None)
    checkpoint = replace(target.checkpoint, fed=None, awaited=(), mapped=None)
    batch = TargetBatch(1, checkpoint, () if echo else (gone,), echo=echo)
    target.apply(carried.noted(batch), set(), name if last else "")


def refused(target: Target) -> str:
    with pytest.raises(TargetError, match=EMPTY) as caught:
        target.begin(**EVERY)
    assert caught.value.where == "target table b"
    return caught.value.remedy


def test_a_target_that_was_emptied_is_refused_until_its_rows_were_asked_for() -> None:
    target = begun()
    target.run(empty=True, **EVERY)
    target.rows.discard("b")
    for _ in range(2):
        assert refused(target).startswith(
            "ask for the rows: migrator dump start --table t; then start again. Or,"
        )
    name = target.ask(T)
    target.run(empty=True, **EVERY)
    assert target.checkpoint is not None
    assert target.checkpoint.awaited == (("b", T, name),)
    target.run(empty=True, **EVERY)  # nothing has come yet, and nothing is said again
    target.checkpoint = replace(target.checkpoint, requests=(TableDump(T, chunks=1, request=name),))
    target.run(**EVERY)
    target.rows.discard("b")  # the request has begun: it doesn't bring all of them any more
    refused(target)


def test_what_a_batch_took_away_and_what_never_came_is_empty_rightly() -> None:
    """The controls."""
    target = begun()
    removed(target, "b")
    target.run(empty=True, **EVERY)
    target.run(**EVERY)
    target.rows.discard("b")
    refused(target)
    target = Target(None)
    target.run(empty=True, **EVERY)
    target.run(empty=True, **EVERY)


def test_a_target_that_was_forgotten_before_its_rows_went_has_them_asked_for() -> None:
    """A reset of one table that is killed in its middle: the next run ends it, as it says."""
    target = begun()
    assert target.checkpoint is not None
    assert target.checkpoint.fed is not None
    fed = tuple(pair for pair in target.checkpoint.fed if pair[0] != "b")
    assert fed != target.checkpoint.fed
    target.checkpoint = replace(target.checkpoint, fed=fed)
    target.rows.discard("b")
    target.run(empty=True, **EVERY)
    assert target.begun == [("b", (T,))]
    assert target.checkpoint.awaited == (("b", T, "r1.1"),)
    target.run(**EVERY)


def test_a_table_that_is_to_be_empty_is_accepted_once() -> None:
    target = begun()
    target.rows.discard("b")
    target.accepted = frozenset("b")
    target.run(empty=True, **EVERY)
    assert ("accept", "b: emptied by somebody else") in target.kept
    target.accepted = frozenset()
    target.run(empty=True, **EVERY)


def test_a_batch_that_takes_some_rows_away_leaves_the_target_one_that_has_rows() -> None:
    target = begun()
    removed(target, "b", last=False)
    target.rows.discard("b")
    refused(target)


def test_a_target_that_is_emptied_behind_the_start_is_told_by_the_next_batch_for_it() -> None:
    """The start looks once; each batch for a target looks again."""
    target = begun()
    batch = target.begin(**EVERY).noted(
        TargetBatch(1, replace(DUMPED, fed=None, mapped=None), (brought("b"),))
    )
    identities, rows = Identities(), {"a"}
    with pytest.raises(TargetError, match="replaced while we run: b"):
        identities.begun(batch, target.checkpoint, rows.intersection, "target")
    identities.begun(batch, target.checkpoint, {"b"}.intersection, "target")
    identities.wrote()
    with pytest.raises(TargetError, match="replaced while we run: b"):
        identities.begun(batch, target.checkpoint, rows.intersection, "target")
    assert identities.among_holding(["a", "b", "c"]) == ["a", "b"]


def test_a_target_that_a_reset_has_emptied_gets_its_rows_by_the_next_batch() -> None:
    """The ledger still says that the last batch left rows in it."""
    target = begun()
    assert target.checkpoint is not None
    kept = target.checkpoint
    without = tuple(pair for pair in kept.fed or () if pair[0] != "b")
    for fed, forgotten in ((kept.fed, False), (without, True)):
        target.checkpoint = replace(kept, fed=fed)
        target.rows = target.rows - {"b"} if forgotten else target.rows
        batch = target.begin(**EVERY).noted(
            TargetBatch(1, replace(DUMPED, fed=None, mapped=None), (brought("b"),))
        )
        identities, rows = Identities(), {"a"}
        if forgotten:
            identities.begun(batch, target.checkpoint, rows.intersection, "target")
        else:
            with pytest.raises(TargetError, match="replaced while we run: b"):
                identities.begun(batch, target.checkpoint, rows.intersection, "target")


def test_what_a_batch_brought_and_went_aside_as_a_whole_is_asked_about() -> None:
    """Orphans of any table may be taken out at a batch's end, of one that it doesn't write into, too."""
    target = begun()
    batch = target.begin(**EVERY).noted(
        TargetBatch(1, replace(DUMPED, fed=None, mapped=None), (brought("a"),))
    )
    identities = Identities()
    identities.begun(batch, target.checkpoint, target.rows.intersection, "target")
    mapped = identities.holding(batch, {"a", "b"}, {"a"}.intersection)
    assert {one.target: one.holds for one in mapped or () if one.target != "j"} == {"a": True, "b": False}


def test_where_users_write_into_targets_nothing_is_taken_for_a_loss() -> None:
    """After a switch of writes: by the cut-over's record, and by what comes back."""
    target = begun()
    target.rows.discard("b")
    refused(target)
    target.alone = False
    target.begin(**EVERY)
    target = begun()
    removed(target, "b", echo=True)
    target.begin(**EVERY)


def test_a_target_that_is_empty_rightly_may_be_written_anew_by_the_server() -> None:
    """OPTIMIZE TABLE moves the time at which MySQL made it; of one that had rows that is another one."""
    target = begun()
    target.identity_stays = False
    target.identities["b"] = TableIdentity("1", "ledger")
    target.run(**EVERY)
    target.make_again("b")
    with pytest.raises(TargetError, match="isn't the one that its rows were applied to"):
        target.begin(**EVERY)
    target.put_back("b")
    target.identities["b"] = TableIdentity("1", "ledger")
    removed(target, "b")
    target.make_again("b")
    target.begin(**EVERY)


def test_a_joined_target_that_was_emptied_is_derived_anew() -> None:
    target = begun()
    target.filled.add("j")
    target.rows.discard("j")
    target.run(empty=True, **EVERY)
    assert target.forgotten == ["j"]
    assert target.kept == [("derive anew", "j: emptied by somebody else")]
    assert [one for one in target.warnings if "somebody emptied j" in one]
    target.run(empty=True, **EVERY)
    assert target.forgotten == ["j"], "what is being filled isn't forgotten again"
    target.run(**EVERY)
    removed(target, "j")
    target.run(empty=True, **EVERY)
    assert target.forgotten == ["j"], "the control: the last batch took its rows away"


def test_a_joined_target_that_was_emptied_and_mapped_otherwise_waits_for_an_operator() -> None:
    target = begun()
    target.filled.add("j")
    target.rows.discard("j")
    target.mapped["j"] = "2"
    assert "migrator remap j" in target.refuses("j", **EVERY)
    assert target.forgotten == []


def test_a_joined_target_that_is_to_be_empty_is_accepted() -> None:
    target = begun()
    target.rows.discard("j")
    target.accepted = frozenset("j")
    target.run(empty=True, **EVERY)
    assert (target.kept, target.forgotten) == ([("accept", "j: emptied by somebody else")], [])


def test_targets_that_are_not_mapped_any_more_are_not_asked_about() -> None:
    before = [Mapped(name, "new", "", holds=True) for name in "abj"]
    asked: list[str] = []

    def holds(name: str) -> bool:
        asked.append(name)
        return False

    assert emptied(before, {"a", "b"}, holds) == {"a", "b"}
    assert asked == ["a", "b"]
    assert emptied([replace(before[1], holds=False)], {"b"}, holds) == set()


def test_the_ledger_keeps_it_and_an_older_one_says_nothing() -> None:
    target = begun()
    assert target.checkpoint is not None
    document = checkpoint_to_json(target.checkpoint)
    assert checkpoint_from_json(document) == target.checkpoint
    assert {one.target for one in target.checkpoint.mapped or () if one.holds} == {"a", "b", "j"}
    document.pop("holding")
    assert document.pop("without_rows") == []
    target.checkpoint = checkpoint_from_json(document)
    target.rows.discard("b")
    target.run(empty=True, **EVERY)


def test_a_table_beside_that_a_start_empties_has_no_rows_that_a_batch_could_miss() -> None:
    """Its request was given up when it had some; the next start asks anew."""
    target = Target(None)
    target.run(a=(T,))
    target.besides = frozenset({"b"})
    target.run(a=(T,), b=(T,))
    assert "b" in target.rows
    target.book = target.book.close("r1.1", RequestState.CANCELLED)
    target.run(a=(T,), b=(T,))
    assert len(target.begun) == 2
    target.rows.discard("b")
    with pytest.raises(TargetError, match="replaced while we run: b"):
        target.apply(TargetBatch(1, target.checkpoint or DUMPED, (brought("b"),)), set())
