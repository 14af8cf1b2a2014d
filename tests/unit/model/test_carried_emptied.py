"""A target table that somebody emptied: told from one that the source's own changes have left without rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from migrator.errors import TargetError
from migrator.model.codecs.codec import checkpoint_from_json, checkpoint_to_json
from migrator.model.progress import BadRow, Mapped, TableDump
from migrator.ports.target import TargetBatch
from migrator.run.lead.emptied import emptied
from tests.unit.model.carried import T, Target, brought

EVERY: dict[str, Any] = {"a": (T,), "b": (T,), "j": (T,)}
EMPTY = "a target is empty, though the last batch that was applied to it brought rows"


def begun() -> Target:
    target = Target(None)
    target.run(**EVERY)
    return target


def removed(target: Target, name: str) -> None:
    """A batch that only takes rows away."""
    carried = target.begin(**EVERY)
    assert target.checkpoint is not None
    gone = replace(brought(name), before=brought(name).after, after=None)
    batch = TargetBatch(1, replace(target.checkpoint, fed=None, awaited=(), mapped=None), (gone,))
    target.checkpoint = carried.noted(batch).checkpoint


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
    target.rows.discard("b")
    target.run(empty=True, **EVERY)
    target.run(**EVERY)
    target.rows.discard("b")
    refused(target)
    target = Target(None)
    target.run(empty=True, **EVERY)
    target.run(empty=True, **EVERY)


def test_a_table_that_is_to_be_empty_is_accepted_once() -> None:
    target = begun()
    target.rows.discard("b")
    target.accepted = frozenset("b")
    target.run(empty=True, **EVERY)
    assert ("accept", "b: emptied by somebody else") in target.kept
    target.accepted = frozenset()
    target.run(empty=True, **EVERY)


def test_joined_targets_and_those_with_rows_aside_are_not_asked_about() -> None:
    """Rows of joined ones are made in the target; what a batch brought may have been set aside as a whole."""
    before = [Mapped(name, "new", "", holds=True) for name in "abj"]
    bad = BadRow("a", ("k",), ("1",), "", 1, "", "")
    asked: list[str] = []

    def holds(name: str) -> bool:
        asked.append(name)
        return False

    assert emptied(before, [bad], {"a", "b"}, holds) == {"b"}
    assert asked == ["b"]
    assert emptied([replace(before[1], holds=False)], [], {"b"}, holds) == set()


def test_the_ledger_keeps_it_and_an_older_one_says_nothing() -> None:
    target = begun()
    assert target.checkpoint is not None
    document = checkpoint_to_json(target.checkpoint)
    assert checkpoint_from_json(document) == target.checkpoint
    assert {one.target for one in target.checkpoint.mapped or () if one.holds} == {"a", "b", "j"}
    document.pop("holding")
    target.checkpoint = checkpoint_from_json(document)
    target.rows.discard("b")
    target.run(empty=True, **EVERY)
