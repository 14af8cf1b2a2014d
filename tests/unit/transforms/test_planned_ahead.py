"""Standing mappings that are planned when they are needed, or before that."""

from __future__ import annotations

import threading
import time
from typing import Any, cast

import pytest

from migrator.errors import MigratorError
from transforms.on_spark.planned_ahead import PlannedAhead
from transforms.on_spark.standing import StandingMapping

_LONGEST_S = 30.0


class Planner:
    """Plans texts in place of mappings, and notes which; ``gate`` holds it."""

    def __init__(self) -> None:
        self.planned: list[str] = []
        self.begun = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self.failing: set[str] = set()

    def __call__(self, name: str) -> StandingMapping:
        self.begun.set()
        assert self.gate.wait(_LONGEST_S)
        self.planned.append(name)
        if name in self.failing:
            raise MigratorError(name)
        return cast(StandingMapping, f"plan of {name}")


def test_one_is_planned_when_it_is_asked_for_and_once() -> None:
    plan = Planner()
    found: Any = PlannedAhead(plan, ("a", "b"), rest_s=0)
    assert (list(found), len(found), "a" in found, "c" in found) == (["a", "b"], 2, True, False)
    assert plan.planned == []
    assert (found["b"], found["b"]) == ("plan of b", "plan of b")
    assert plan.planned == ["b"]
    with pytest.raises(KeyError):
        found["c"]


def test_the_others_are_planned_beside_and_who_needs_one_waits_for_it() -> None:
    plan = Planner()
    plan.gate.clear()
    found: Any = PlannedAhead(plan, ("a", "b"), rest_s=0)
    found.begin(found.__getitem__)
    assert plan.begun.wait(_LONGEST_S)
    threading.Timer(0.05, plan.gate.set).start()
    assert found["a"] == "plan of a"
    found.close()
    assert found["b"] == "plan of b"
    assert sorted(plan.planned) == ["a", "b"]


def test_who_asks_goes_before_what_is_planned_ahead() -> None:
    plan = Planner()
    plan.gate.clear()
    found: Any = PlannedAhead(plan, ("a", "b", "c", "d"), rest_s=0)
    found.begin(found.__getitem__)
    assert plan.begun.wait(_LONGEST_S)
    asks = [threading.Thread(target=found.__getitem__, args=(name,)) for name in ("d", "c")]
    for ask in asks:
        ask.start()
    while found._asking < len(asks):
        time.sleep(0.01)
    plan.gate.set()
    for ask in asks:
        ask.join(_LONGEST_S)
    assert sorted(plan.planned[:3]) == [
        "a",
        "c",
        "d",
    ]  # "b" after both, though its thread was there before them
    assert found["b"] == "plan of b"
    found.close()


def test_nothing_is_planned_ahead_until_nobody_has_asked_for_a_while() -> None:
    plan = Planner()
    found: Any = PlannedAhead(plan, ("a", "b", "c"), rest_s=3600)
    found.begin(found.__getitem__)
    assert found["b"] == "plan of b"
    found.close()
    assert plan.planned == ["b"]


def test_what_fails_beside_fails_where_it_is_needed_and_the_rest_is_planned() -> None:
    plan = Planner()
    plan.failing = {"a"}
    found: Any = PlannedAhead(plan, ("a", "b"), rest_s=0)
    done = threading.Event()

    def ask(name: str) -> None:
        if name == "b":
            done.set()
        found[name]

    found.begin(ask)
    assert done.wait(_LONGEST_S)
    with pytest.raises(MigratorError):
        found["a"]
    plan.failing = set()
    assert (found["a"], found["b"]) == ("plan of a", "plan of b")
    found.close()


def test_a_close_ends_after_the_one_that_is_being_planned() -> None:
    plan = Planner()
    plan.gate.clear()
    found: Any = PlannedAhead(plan, ("a", "b", "c"), rest_s=0)
    found.begin(found.__getitem__)
    assert plan.begun.wait(_LONGEST_S)
    closing = threading.Thread(target=found.close)
    closing.start()
    while not found._ended:
        time.sleep(0.01)
    plan.gate.set()
    closing.join(_LONGEST_S)
    assert plan.planned == ["a"]
