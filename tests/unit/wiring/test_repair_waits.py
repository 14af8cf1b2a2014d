"""The lines that a repair says while it waits for the run: requests that are done, tables that are filled again."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from migrator.model.requests.request import DumpRequest, RequestBook, RequestState
from migrator.model.table import TableId
from migrator.wiring import parts, repair

ITEM = TableId("s", "item")
DONE = RequestState.DONE


def books() -> list[RequestBook]:
    """Two requests: nothing happens for two looks, then one is done, then the other."""
    one, two = (DumpRequest(f"r{number}", (ITEM,)) for number in (1, 2))
    begun = RequestBook((one, two))
    half = RequestBook((replace(one, state=DONE), two))
    return [begun, begun, half, RequestBook((replace(one, state=DONE), replace(two, state=DONE)))]


def test_each_step_of_the_run_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    said, looks = list[str](), books()
    now: dict[str, RequestBook] = {}

    def read() -> RequestBook:
        now["book"] = looks.pop(0) if looks else now["book"]
        return now["book"]

    def filled(_: Any) -> set[tuple[str, str]]:
        waits[0] -= 1
        return set() if waits[0] > 0 else {("summary", "")}

    waits = [6]
    targets = [SimpleNamespace(name="item", grain=None), SimpleNamespace(name="summary", grain="item.id")]
    monkeypatch.setattr(repair, "requests", lambda _: SimpleNamespace(read=read))
    monkeypatch.setattr(repair, "filled", filled)
    monkeypatch.setattr(parts, "mapping", lambda _: targets)
    monkeypatch.setattr(repair, "_POLL_S", 0.0)
    settings: Any = None
    names = [one.name() for one in books()[0].requests]
    assert [one.state for one in repair.await_repair(settings, names, 60, said.append)] == [DONE, DONE]
    assert said == [
        "waiting for the run: 0 of 2 dump requests done, summary still to be derived anew",
        "waiting for the run: 1 of 2 dump requests done, summary still to be derived anew",
        "waiting for the run: 2 of 2 dump requests done, summary still to be derived anew",
    ]
    assert repair.still(1, 2, ()) == "waiting for the run: 1 of 2 dump requests done"
