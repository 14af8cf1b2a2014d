"""A target table that was dropped and made again, or put back: its rows aren't those that the ledger tells of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from migrator.errors import TargetError
from migrator.model.codecs.codec import checkpoint_from_json, checkpoint_to_json
from migrator.model.progress import TableDump, TableIdentity
from migrator.model.requests.request import RequestState
from tests.unit.model.carried import T, Target


def made_again(**begun: Any) -> Target:
    """A target of which table b was dropped and made again after a run."""
    target = Target(None)
    target.identities = {name: TableIdentity(name, "ledger") for name in ("a", "b", "j")}
    target.run(**{"a": (T,), "b": (T,), "j": (T,), **begun})
    target.make_again("b")
    return target


EVERY: dict[str, Any] = {"a": (T,), "b": (T,), "j": (T,)}
ANOTHER = "a target's table isn't the one that its rows were applied to"


def test_a_target_that_was_made_again_is_refused_until_its_rows_were_asked_for() -> None:
    target = made_again()
    for _ in range(2):
        with pytest.raises(TargetError, match=ANOTHER) as caught:
            target.begin(**EVERY)
        assert caught.value.where == "target table b"
        assert (
            "ask for the rows: migrator dump start --table t; then empty the table (b); then start"
            in caught.value.remedy
        )
    name = target.ask(T)
    target.run(empty=True, **EVERY)
    assert target.checkpoint is not None
    assert target.checkpoint.awaited == (("b", T, name),)
    target.run(**EVERY)  # killed, and started again
    target.checkpoint = replace(target.checkpoint, requests=(TableDump(T, chunks=1, request=name),))
    target.make_again("b")
    with pytest.raises(TargetError, match=ANOTHER):
        target.begin(**EVERY)


def test_a_target_that_was_made_again_and_has_rows_must_be_emptied_or_accepted() -> None:
    target = made_again()
    target.rows.add("b")
    name = target.ask(T)
    with pytest.raises(TargetError, match=ANOTHER):
        target.begin(**EVERY)
    target.book = target.book.close(name, RequestState.CANCELLED, "")
    target.accepted = frozenset("b")
    target.run(empty=True, **EVERY)
    target.accepted = frozenset()
    target.run(empty=True, **EVERY)
    target.make_again("b")  # rows were given to the one that was accepted, too
    with pytest.raises(TargetError, match=ANOTHER):
        target.begin(**EVERY)


def test_a_joined_target_that_was_made_again_is_filled_anew() -> None:
    target = made_again()
    target.put_back("b")
    target.make_again("j")
    target.run(**EVERY)
    assert target.forgotten == ["j"]
    target.run(**EVERY)
    assert target.forgotten == ["j"]


def test_a_target_that_was_put_back_as_a_whole_and_one_that_never_got_a_row_go_on() -> None:
    """The controls: a dump of all tables has other numbers, and the rows that its ledger tells of."""
    target = made_again()
    target.put_back("b")
    target.identities = {name: TableIdentity(f"restored {name}", "restored") for name in target.identities}
    target.run(**EVERY)
    target.make_again("b")
    target.identities["b"] = replace(target.identities["b"], ledger="restored")
    with pytest.raises(TargetError, match=ANOTHER):
        target.begin(**EVERY)
    target = Target(None)
    target.identities = {"b": TableIdentity("b", "ledger")}
    target.run(empty=True, b=(T,))
    target.make_again("b")
    target.run(empty=True, b=(T,))


def test_where_an_identity_does_not_stay_only_an_empty_table_is_another_one() -> None:
    target = made_again()
    target.identity_stays = False
    target.rows.add("b")
    target.run(**EVERY)
    target.make_again("b")
    with pytest.raises(TargetError, match=ANOTHER):
        target.begin(**EVERY)


def test_a_ledger_of_a_version_that_noted_no_identity_goes_on_and_notes_it() -> None:
    target = Target(None)
    target.run(b=(T,))
    target.identities = {"b": TableIdentity("b", "ledger")}
    target.run(empty=True, b=(T,))
    target.make_again("b")
    with pytest.raises(TargetError, match=ANOTHER):
        target.begin(b=(T,))
    assert target.checkpoint is not None
    assert checkpoint_from_json(checkpoint_to_json(target.checkpoint)).mapped == target.checkpoint.mapped
    assert target.checkpoint.mapped is not None
    assert target.checkpoint.mapped[0].written


def test_a_joined_target_that_was_made_again_needn_t_be_asked_for() -> None:
    """It has no rows of any mapping."""
    target = made_again()
    target.put_back("b")
    target.make_again("j")
    target.filled, target.mapped["j"] = {"j"}, "2"
    target.run(**EVERY)
    assert target.forgotten == ["j"]
