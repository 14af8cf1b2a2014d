"""Calls that take longer than their limit: given up, waited for by the next one, and never two at a time."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from migrator.errors import ConnectionFailed
from migrator.model.cutover.record import Effort, Side
from migrator.run.cutover import patient
from migrator.run.cutover.patient import PatientSide

_EFFORT = Effort(0.05)


class Slow:
    """Comparisons that end once they may."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.calls: list[int] = []

    def compare(self, since: int, effort: Effort) -> int:
        self.calls.append(since)
        assert self.may_end.wait(60)
        return since


def test_a_comparison_left_behind_is_waited_for_and_none_is_begun_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy machine each would make the others slower: none would ever come to its end in time."""
    monkeypatch.setattr(patient, "_SLOW_S", 0.05)
    slow = Slow()
    side = PatientSide(Side.OLD, SimpleNamespace(compare=slow.compare))
    for since in range(3):
        with pytest.raises(ConnectionFailed) as failed:
            side.compare(since, _EFFORT)
        assert failed.value.retryable
    assert slow.calls == [0]
    monkeypatch.setattr(patient, "_SLOW_S", 60.0)
    threading.Timer(0.1, slow.may_end.set).start()
    assert side.compare(7, _EFFORT) == 7
    assert slow.calls[0] == 0
    assert slow.calls[-1] == 7


def test_a_comparison_that_takes_longer_than_anybody_waits_comes_to_its_end_for_whoever_waits_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While everybody can write. Each one takes longer than the limit: without it none ever counts."""
    monkeypatch.setattr(patient, "_SLOW_S", 0.05)
    slow, live = Slow(), Effort(0.05, at_rest=False)
    side = PatientSide(Side.OLD, SimpleNamespace(compare=slow.compare))
    with pytest.raises(ConnectionFailed, match="a cut-over waits longer for a database"):
        side.compare(3, live)
    monkeypatch.setattr(patient, "_SLOW_S", 60.0)
    threading.Timer(0.1, slow.may_end.set).start()
    assert side.compare(7, live) == 3, "the one that was under way"
    assert slow.calls == [3], "none was made for somebody who had gone"
    assert side.compare(7, live) == 7, "one that was done before counts for nobody"


def test_a_comparison_at_rest_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one saw that began while everybody could write says nothing of what is there now."""
    monkeypatch.setattr(patient, "_SLOW_S", 0.05)
    slow = Slow()
    side = PatientSide(Side.OLD, SimpleNamespace(compare=slow.compare))
    with pytest.raises(ConnectionFailed):
        side.compare(3, Effort(0.05, at_rest=False))
    monkeypatch.setattr(patient, "_SLOW_S", 60.0)
    threading.Timer(0.1, slow.may_end.set).start()
    assert side.compare(7, Effort(0.05)) == 7
    assert slow.calls == [3, 7]


def test_what_a_comparison_raises_leaves_room_for_the_next_one() -> None:
    def fails(since: int, effort: Effort) -> int:
        raise ConnectionFailed("lost", retryable=True)

    side = PatientSide(Side.OLD, SimpleNamespace(compare=fails))
    for _ in range(2):
        with pytest.raises(ConnectionFailed, match="lost"):
            side.compare(0, _EFFORT)
