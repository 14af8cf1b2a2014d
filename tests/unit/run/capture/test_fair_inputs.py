"""The queue in front of the capture loop is full by number and by bytes."""

from __future__ import annotations

import queue

import pytest

from migrator.model.event import ChangeRun, TransactionPart
from migrator.model.position import Position
from migrator.run.capture import fair_inputs
from migrator.run.capture.fair_inputs import FairInputs
from migrator.run.capture.inputs import Records, Witnessed


def records(size_bytes: int) -> Records:
    run = ChangeRun(None, [b""], size_bytes)  # type: ignore[arg-type]
    return Records([TransactionPart((1,), Position(1, ""), 0, 0, (run,), True)])


def test_large_inputs_fill_it_before_their_number_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_inputs, "MOST_BYTES", 100)
    inputs = FairInputs(maxsize=4)
    inputs.put_nowait(records(60))
    inputs.put_nowait(records(500))  # it had room: one alone may be larger
    with pytest.raises(queue.Full):
        inputs.put_nowait(Witnessed(None))
    inputs.get_nowait()
    with pytest.raises(queue.Full):
        inputs.put_nowait(records(1))
    inputs.get_nowait()
    for _ in range(4):
        inputs.put_nowait(records(1))
    with pytest.raises(queue.Full):
        inputs.put_nowait(records(1))
    for _ in range(4):
        inputs.get_nowait()
    assert inputs.empty()
