"""Next mappings as the ledger keeps them: from asked for to in force, and what each start makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from migrator.errors import MappingError, TargetError
from migrator.model.codecs.codec import checkpoint_from_json, checkpoint_to_json
from migrator.model.codecs.ledger_codec import besides_of, ledger_to_json, reset_to_json
from migrator.model.ledger import Ledger
from migrator.model.position import Position
from migrator.model.progress import BadRow, Checkpoint, Mapped, Phase, Remap, TableDump, TableIdentity
from migrator.model.remaps.remap import (
    beside_name,
    filling,
    in_force,
    moved,
    remap_of,
    switched,
    whole,
)
from migrator.model.requests.request import WHOLE, RequestBook, RequestState
from migrator.model.table import TableId
from migrator.run.lead.carried import Carried, LateTargets
from migrator.run.lead.remapping import Switch, SwitchingTarget, tidied
from migrator.run.progress import Progress
from transforms import Mapping

A, B = TableId("s", "a"), TableId("s", "b")
BESIDE = "t_migrator_next"
REMAP = Remap("t", BESIDE, Phase.FILLING)


def mapped(target: str, content: str) -> Mapped:
    return Mapped(target, "new", "shape", ("id",), content, "basis", TableIdentity(target, "ledger"))


FILLED = Checkpoint(
    Position(7, "7"),
    dumps=(TableDump(A, done=True), TableDump(B, done=True)),
    requests=(TableDump(A, done=True, request="r1.1"), TableDump(B, done=True, request="r1.1")),
    fed=(("t", A), ("t", B), ("u", A)),
    awaited=((BESIDE, A, "r1.1"), (BESIDE, B, "r1.1")),
    mapped=(mapped("t", "old"), mapped("u", "u"), mapped(BESIDE, "new")),
    bad_rows=tuple(BadRow(name, ("id",), ("1",), "7", 7, "why", name) for name in ("t", "u", BESIDE)),
    remaps=(REMAP,),
)


def test_the_ledger_keeps_them() -> None:
    assert checkpoint_from_json(checkpoint_to_json(FILLED)).remaps == (REMAP,)
    assert "remaps" not in checkpoint_to_json(replace(FILLED, remaps=()))


def test_names_fit_every_target_and_differ() -> None:
    assert beside_name("t") == BESIDE
    long = [beside_name(f"{'é' * 40}{end}") for end in "ab"]
    assert len(set(long)) == 2
    assert all(len(name.encode()) <= 63 and name.endswith("_migrator_next") for name in long)


@pytest.mark.parametrize(
    "lacking",
    [
        replace(FILLED, requests=FILLED.requests[:1]),
        replace(FILLED, requests=(FILLED.requests[0], replace(FILLED.requests[1], done=False))),
        replace(FILLED, requests=tuple(replace(one, request="r2.1") for one in FILLED.requests)),
        replace(FILLED, dumps=(TableDump(A, done=True), TableDump(B))),
        replace(FILLED, awaited=()),
        replace(FILLED, mapped=FILLED.mapped[:2] if FILLED.mapped else ()),
    ],
)
def test_a_table_beside_is_whole_once_all_that_it_waits_for_is_applied(lacking: Checkpoint) -> None:
    assert whole(FILLED, REMAP)
    assert not whole(lacking, REMAP)


def test_with_the_switch_all_that_is_said_of_the_table_beside_is_the_targets() -> None:
    after = switched(FILLED, REMAP)
    assert after.fed == (("t", A), ("t", B), ("u", A))
    assert after.awaited == ()
    assert {one.target: one.content for one in after.mapped or ()} == {"t": "new", "u": "u"}
    identity = next(one.identity for one in after.mapped or () if one.target == "t")
    assert identity == TableIdentity("t", "ledger"), "it is the same table"
    assert [(one.target, one.row) for one in after.bad_rows] == [("u", "u"), ("t", BESIDE)]
    assert after.remaps == (Remap("t", BESIDE, Phase.SWITCHED),)
    assert in_force(after.remaps) == {"t"}
    assert filling(after.remaps) == ()


def test_given_up_nothing_is_left_but_the_table() -> None:
    after = moved(FILLED, "t", Phase.ABORTED)
    assert after.remaps == (Remap("t", BESIDE, Phase.ABORTED),)
    assert (after.fed, after.awaited) == (FILLED.fed, ())
    assert [one.target for one in after.mapped or ()] == ["t", "u"]
    assert [one.target for one in after.bad_rows] == ["t", "u"]
    assert in_force(after.remaps) == set()
    assert moved(after, "t", None).remaps == ()


def test_a_reset_keeps_which_tables_are_ours() -> None:
    document = ledger_to_json(FILLED, "0f")
    marked = reset_to_json("begun", document)
    assert (
        besides_of(document) == besides_of(marked) == besides_of(reset_to_json("again", marked)) == [BESIDE]
    )
    assert reset_to_json("begun") == {"reset": "begun"}
    assert besides_of(None) == []


class Port:
    """The tables beside, and the ledger's checkpoint."""

    def __init__(self, checkpoint: Checkpoint):
        self.checkpoint = checkpoint
        self.done: list[str] = []

    def note(self, change: Callable[[Checkpoint], Checkpoint], epoch: int | None = None) -> bool:
        assert epoch == 3
        self.checkpoint = change(self.checkpoint)
        return True

    def make(self, target: str, beside: str) -> None:
        self.done.append(f"make {beside}")

    def drop(self, beside: str) -> None:
        self.done.append(f"drop {beside}")

    def empty(self, epoch: int, beside: str) -> None:
        self.done.append(f"empty {beside}")

    def switch(self, epoch: int, remap: Remap, written: Sequence[str], change: Any) -> None:
        self.done.append(f"switch {remap.target} {','.join(written)}")
        self.checkpoint = change(self.checkpoint)


def mapping(with_next: bool = True) -> Mapping:
    made = Mapping()
    made.target("t", key="id")(lambda a, b: a)
    if with_next:
        made.next("t", key="id")(lambda a, b: b)
    return made


def started(phase: Phase, declared: bool = True) -> tuple[Port, Any]:
    checkpoint = FILLED if phase is Phase.FILLING else moved(FILLED, "t", phase)
    port = Port(checkpoint)
    return port, tidied(cast(Any, port), mapping(declared), Ledger("m", 3, 7, checkpoint), 3)


def test_each_start_brings_them_as_far_as_it_goes() -> None:
    port, found = started(Phase.FILLING)
    assert port.done == [f"make {BESIDE}"], "whoever asked for it may have been killed before"
    assert [one.name for one in found.applied(mapping())] == ["t", BESIDE]
    port, found = started(Phase.SWITCHED)
    assert port.done == [f"drop {BESIDE}"]
    assert port.checkpoint.remaps == found.remaps == (Remap("t", "", Phase.IN_FORCE),)
    assert found.applied(mapping())["t"].function(1, 2) == 2
    port, found = started(Phase.IN_FORCE)
    assert port.checkpoint.remaps == (Remap("t", "", Phase.IN_FORCE),)
    for phase, declared in ((Phase.ABORTED, True), (Phase.SWITCHED, False), (Phase.IN_FORCE, False)):
        port, found = started(phase, declared)
        assert port.checkpoint.remaps == found.remaps == ()
        assert found.applied(mapping(declared))["t"].function(1, 2) == 1


def test_one_that_is_filled_and_not_declared_is_refused() -> None:
    with pytest.raises(MappingError, match="isn't declared any more") as caught:
        started(Phase.FILLING, declared=False)
    assert "migrator remap t --abort" in caught.value.remedy


def test_rows_are_asked_for_behind_all_known_requests_and_old_ones_are_given_up() -> None:
    port, found = started(Phase.FILLING)
    book = RequestBook().start((A, B), WHOLE)

    class Store:
        def update(self, change: Callable[[RequestBook], RequestBook]) -> None:
            nonlocal book
            book = change(book)

    late = found.late(LateTargets(lambda _: True, lambda _: True), Store(), [FILLED])
    assert late.besides == {BESIDE}
    late.begin(BESIDE, [A, B])
    assert port.done[-1] == f"empty {BESIDE}", "before its rows are asked for"
    assert [(one.id, one.state) for one in book.requests] == [
        ("r1", RequestState.CANCELLED),
        ("r2", RequestState.RUNNING),
    ]
    assert book.requests[-1].tables == (A, B)


def test_it_is_switched_once_it_is_whole_and_after_the_batch() -> None:
    port, found = started(Phase.FILLING)
    assert found.due(replace(FILLED, requests=())) == []
    assert found.due(FILLED) == [REMAP]
    plan = SimpleNamespace(columns=[SimpleNamespace(name="id"), SimpleNamespace(name="n")])
    found.switch(REMAP, {BESIDE: plan})
    assert port.done[-1] == "switch t id,n"
    assert remap_of(port.checkpoint, "t") == Remap("t", BESIDE, Phase.SWITCHED)
    order: list[str] = []
    target = SimpleNamespace(apply=lambda batch: order.append("applied"))
    lead = SimpleNamespace(await_sure=lambda: order.append("sure"))
    looking = SwitchingTarget(cast(Any, target), cast(Any, lead), lambda _: order.append("looked"))
    looking.apply(cast(Any, SimpleNamespace(checkpoint=FILLED)))
    assert order == ["sure", "applied", "looked"]


class Refusing(Port):
    """A target that refuses the switch."""

    error = TargetError("rows point at one that would go", retryable=False)

    def switch(self, epoch: int, remap: Remap, written: Sequence[str], change: Any) -> None:
        self.done.append("tried")
        raise self.error


def switching(port: Port) -> tuple[Switch, Progress, list[str]]:
    remapping = tidied(cast(Any, port), mapping(), Ledger("m", 3, 7, FILLED), 3)
    plan = SimpleNamespace(columns=[])
    lead = SimpleNamespace(await_sure=lambda: port.done.append("sure"))
    progress, ends = Progress(), list[str]()
    target = SimpleNamespace(close=lambda: port.done.append("closed"))
    made = Switch(
        remapping,
        cast(Any, {BESIDE: plan}),
        cast(Any, target),
        cast(Any, lead),
        progress,
        ends.append,
        lambda: ends.append("stop"),
    )
    return made, progress, ends


def test_a_switch_ends_the_attempt_and_comes_once() -> None:
    port = Port(FILLED)
    switch, progress, ends = switching(port)
    carried = Carried(FILLED.fed or (), FILLED.awaited)
    assert not switch.begin(None, carried)
    assert switch.begin(FILLED, carried)
    switch.look(FILLED)
    assert port.done[1:] == ["sure", "closed", "switch t "]
    assert ends == ["remap.switched", "stop"]
    assert progress.snapshot().warnings == ()


def test_what_the_target_refuses_for_good_is_a_warning_and_the_run_goes_on() -> None:
    port = Refusing(FILLED)
    switch, progress, ends = switching(port)
    for _ in range(2):
        switch.look(FILLED)
    assert port.done.count("tried") == 1, "the whole table was merged for it"
    assert (switch.done, ends) == (False, [])
    (warning,) = progress.snapshot().warnings
    assert "t stays as it is" in warning
    assert "rows point at one that would go" in warning
    port = Refusing(FILLED)
    port.error = TargetError("busy", retryable=True)
    switch, _, _ = switching(port)
    with pytest.raises(TargetError, match="busy"):
        switch.look(FILLED)


def test_a_refusal_of_a_mapping_says_which_function_was_taken() -> None:
    def refused() -> Carried:
        raise MappingError("changed", where="target tables t, u", cause="a filter")

    _, found = started(Phase.IN_FORCE)
    with pytest.raises(MappingError) as caught:
        found.carried(refused)
    assert "Of t the function that is declared as next was taken" in caught.value.cause
    _, found = started(Phase.FILLING)
    with pytest.raises(MappingError) as caught:
        found.carried(refused)
    assert caught.value.cause == "a filter"
