"""Plans of fences, surveys, notes and limits: what is refused, advised, kept and waited for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.adapters.fences.shared.notes import Noted, from_document, released, to_document
from migrator.adapters.fences.shared.session import BusyError, Limit
from migrator.errors import ConfigError, CutoverError
from migrator.model.cutover.fence import (
    Choice,
    FenceKind,
    FencePlan,
    OpenTransaction,
    Survey,
    WayRound,
)
from migrator.model.table import TableId

TABLE = TableId("public", "orders")
PLAN = FencePlan(FenceKind.TRIGGERS, (TABLE,), "ours", "gone to the new side")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"tables": ()}, "tables"),
        ({"tables": (TABLE, TABLE)}, "tables"),
        ({"message": " "}, "message"),
        ({"message": "x" * 129}, "message"),
        ({"roles": ("app",)}, "roles"),
        ({"kind": FenceKind.REVOKE}, "roles"),
        ({"kind": FenceKind.ACCOUNT_LOCK}, "roles"),
        ({"kind": FenceKind.REVOKE, "roles": ("app", "ours")}, "roles"),
    ],
)
def test_a_plan_that_can_not_be_is_refused_by_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as error:
        replace(PLAN, **changes)
    assert error.value.where == field
    assert error.value.remedy


def surveyed(*choices: Choice) -> Survey:
    return Survey((TABLE,), (), choices)


OWNER = WayRound("owner", "shop", "it owns the table")
APP = WayRound("role", "app", "it was granted the right", closed_by="app")


def test_ways_round_refuse_a_plan_until_they_are_closed_or_accepted() -> None:
    survey = surveyed(Choice(FenceKind.REVOKE, ways=(OWNER, APP)))
    plan = replace(PLAN, kind=FenceKind.REVOKE, roles=("other",))
    assert [text.partition(" passes it")[0] for text in survey.refusals(plan)] == ["owner shop", "role app"]
    closed = replace(plan, roles=("app",))
    assert [text.partition(" passes it")[0] for text in survey.refusals(closed)] == ["owner shop"]
    assert survey.refusals(replace(closed, accepted=frozenset({"owner shop"}))) == ()
    assert survey.refusals(replace(closed, accepted=frozenset({"shop"}))) != ()


def test_obstacles_and_a_login_that_could_not_write_refuse_a_plan() -> None:
    survey = surveyed(Choice(FenceKind.TRIGGERS, ("no table",), lets_us_write=False))
    assert survey.refusals(PLAN) == (
        "no table",
        "login ours couldn't write behind it: plan without a login, or another kind",
    )
    assert survey.refusals(replace(PLAN, login="")) == ("no table",)
    assert survey.refusals(replace(PLAN, kind=FenceKind.READ_ONLY)) == (
        "this engine has no fence of kind read_only",
    )


def test_the_kind_with_the_fewest_ways_that_nobody_can_close_is_advised() -> None:
    triggers = Choice(FenceKind.TRIGGERS, ways=(APP, APP))
    revoke = Choice(FenceKind.REVOKE, ways=(OWNER,))
    read_only = Choice(FenceKind.READ_ONLY, lets_us_write=False)
    assert surveyed(revoke, triggers, read_only).advised() is FenceKind.TRIGGERS
    assert surveyed(revoke, replace(triggers, obstacles=("no",)), read_only).advised() is FenceKind.REVOKE
    assert surveyed(read_only).advised() is FenceKind.READ_ONLY
    assert surveyed(replace(revoke, obstacles=("no",))).advised() is None


def test_a_kind_that_stops_roles_is_advised_where_some_are_named() -> None:
    """The plan of one that stops nobody can't be made, nor one that stops everybody and some by name."""
    triggers = Choice(FenceKind.TRIGGERS, ways=(OWNER, OWNER))
    lock = Choice(FenceKind.ACCOUNT_LOCK)
    assert surveyed(lock, triggers).advised() is FenceKind.TRIGGERS
    assert surveyed(lock, triggers).advised(("app",)) is FenceKind.ACCOUNT_LOCK
    assert surveyed(lock).advised() is FenceKind.ACCOUNT_LOCK


@given(
    st.sampled_from(FenceKind),
    st.lists(
        st.builds(TableId, st.text(max_size=5), st.text(max_size=5)), min_size=1, max_size=3, unique=True
    ),
    st.sampled_from(["", "ours", "o'ur\"s"]),
    st.frozensets(st.text(max_size=5), max_size=3),
    st.dictionaries(st.text(max_size=5), st.one_of(st.none(), st.booleans(), st.lists(st.text(max_size=3)))),
)
def test_notes_come_back_as_they_were_written(
    kind: FenceKind, tables: list[TableId], login: str, accepted: frozenset[str], before: dict[str, Any]
) -> None:
    roles = ("app",) if kind in (FenceKind.REVOKE, FenceKind.ACCOUNT_LOCK) else ()
    noted = Noted(FencePlan(kind, tuple(tables), login, "gone", roles, accepted), before)
    assert from_document(to_document(noted), "here") == noted
    assert from_document(to_document(replace(noted, epoch=7)), "here") == replace(noted, epoch=7)


def test_notes_of_a_fence_that_was_opened_keep_nothing_but_the_epoch() -> None:
    assert from_document(released(7), "here") is None


def test_notes_of_another_version_are_refused() -> None:
    document = to_document(Noted(PLAN, {})).replace('"format": 1', '"format": 2')
    with pytest.raises(CutoverError, match="another version") as error:
        from_document(document, "here")
    assert "start the version that wrote them" in error.value.remedy


HOLDER = OpenTransaction("77@1", "report", "10:00", "SELECT everything")


def test_things_are_tried_in_rounds_and_none_twice() -> None:
    tries: list[str] = []

    def attempt(thing: str) -> None:
        tries.append(thing)
        if thing == "held" and tries.count("held") < 3:
            raise BusyError

    Limit(30.0, "the fence", "here").all_of(["held", "free"], attempt, lambda left: [])
    assert tries == ["held", "free", "held", "held"]


def test_past_the_limit_the_error_names_who_is_in_the_way() -> None:
    asked: list[Sequence[str]] = []

    def held(thing: str) -> None:
        if thing == "held":
            raise BusyError

    def holders(left: Sequence[str]) -> list[OpenTransaction]:
        asked.append(left)
        return [HOLDER]

    with pytest.raises(CutoverError, match=r"waited for in vain for 0\.1 s") as error:
        Limit(0.1, "the fence", "here").all_of(["free", "held"], held, holders)
    assert asked == [["held"]]
    assert error.value.retryable
    assert "77@1 of report since 10:00: SELECT everything" in error.value.cause
