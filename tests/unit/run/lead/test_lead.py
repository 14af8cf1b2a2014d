"""A lease in doubt: nothing is written until it is sure again, and a lost one ends the run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.places import StoredPlace, write_place
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.adapters.event_log.files.set_aside import set_aside
from migrator.errors import ConnectionFailed, EventLogError, FencedError
from migrator.model.ledger import Ledger
from migrator.model.observed.observation import STANDING_BY, STARTING
from migrator.model.position import Position
from migrator.ports.eventlog import ReaderPlace, SegmentContent, SegmentWriter
from migrator.ports.leadership import Lease
from migrator.ports.source import LogReader
from migrator.ports.target import Target, TargetBatch
from migrator.run.failure import Stopping
from migrator.run.lead.lead import AppliedOnly, Lead, SureTarget, SureWriter, overtaken, stood_by
from migrator.run.progress import Progress, phase
from tests.contract.event_log.eventlog_content import content

DEADLINE_S = 20.0


class Scripted:
    """A leadership that does as it is told."""

    def __init__(self) -> None:
        self.is_sure = self.is_held = True
        self.leaders: list[str | ConnectionFailed] = []

    def acquire(self, above_epoch: int) -> Lease:
        raise AssertionError("nobody asks for it here")

    def held(self) -> bool:
        return self.is_held

    def sure(self) -> bool:
        return self.is_held and self.is_sure

    def stand_by(self, timeout_s: float) -> str:
        leads = self.leaders.pop(0)
        if isinstance(leads, ConnectionFailed):
            raise leads
        return leads

    def release(self) -> None:
        self.is_held = False


class Written:
    """Event log, target and log reader that only remember."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def append(self, content: SegmentContent) -> None:
        self.calls.append(content)

    def apply(self, batch: TargetBatch) -> None:
        self.calls.append(batch)

    def acknowledge(self, position: Position) -> None:
        self.calls.append(position)


def writers(
    scripted: Scripted, stopping: Stopping, progress: Progress
) -> Sequence[tuple[Callable[[], Any], Written]]:
    lead = Lead(scripted, stopping, progress)
    log, target = Written(), Written()
    sure_log = SureWriter(cast(SegmentWriter, log), lead)
    sure_target = SureTarget(cast(Target, target), lead)
    return (
        (lambda: sure_log.append(cast(SegmentContent, "segment")), log),
        (lambda: sure_target.apply(cast(TargetBatch, "batch")), target),
    )


@pytest.mark.parametrize("which", [0, 1], ids=["event log", "target"])
def test_nothing_is_written_in_doubt_and_all_of_it_afterwards(which: int) -> None:
    scripted, progress = Scripted(), Progress()
    write, written = writers(scripted, Stopping(), progress)[which]
    write()
    assert len(written.calls) == 1, "without doubt it doesn't wait"
    scripted.is_sure = False
    thread = threading.Thread(target=write)
    thread.start()
    deadline = threading.Event()
    while "in doubt" not in progress.snapshot().note:
        deadline.wait(0.01)
    assert len(written.calls) == 1
    scripted.is_sure = True
    thread.join(DEADLINE_S)
    assert len(written.calls) == 2
    assert progress.snapshot().note == ""


@pytest.mark.parametrize("which", [0, 1], ids=["event log", "target"])
def test_a_lost_lease_and_a_stop_in_doubt_end_it_by_name(which: int) -> None:
    scripted, stopping = Scripted(), Stopping()
    write, written = writers(scripted, stopping, Progress())[which]
    scripted.is_sure = False
    stopping.request()
    with pytest.raises(FencedError, match="in doubt"):
        write()
    scripted.is_held = False
    with pytest.raises(FencedError, match="lease was lost"):
        write()
    assert written.calls == []


def test_the_source_forgets_only_what_the_target_holds() -> None:
    reader, applied = Written(), [cast(Position | None, None)]
    only = AppliedOnly(cast(LogReader, reader), lambda: applied[0])
    only.acknowledge(Position(7, "7"))
    assert reader.calls == [], "nothing is applied"
    applied[0] = Position(5, "5")
    only.acknowledge(Position(7, "7"))
    applied[0] = Position(9, "9")
    only.acknowledge(Position(7, "7"))
    assert reader.calls == [Position(5, "5"), Position(7, "7")]


def test_a_standby_waits_through_leaders_and_cuts_and_warms_up_once() -> None:
    scripted, progress, warmed = Scripted(), Progress(), []
    cut = ConnectionFailed("gone", retryable=True)
    scripted.leaders = ["process 1 on a", cut, "process 2 on b", ""]
    assert stood_by(scripted, Stopping(), progress, lambda: warmed.append(phase(progress.snapshot())))
    assert warmed == [STANDING_BY]
    assert (progress.snapshot().note, phase(progress.snapshot())) == ("", STARTING)
    scripted.leaders = [""]
    assert not stood_by(scripted, Stopping(), progress, lambda: warmed.append("again"))
    assert len(warmed) == 1
    scripted.leaders = [ConnectionFailed("refused")]
    with pytest.raises(ConnectionFailed, match="refused"):
        stood_by(scripted, Stopping(), progress, lambda: None)


def test_an_event_log_that_another_one_overtook_is_set_aside(tmp_path: Path) -> None:
    log = tmp_path / "eventlog"
    assert not set_aside(log, Ledger("m", 1, 0, None)), "there is none"
    writer = FileSegmentWriter(log, 1)
    manifests = [writer.append(content(number)) for number in (1, 2, 3)]
    own = manifests[1].checkpoint
    foreign = manifests[0].checkpoint
    assert own != foreign
    for ledger in (Ledger("m", 2, 0, None), Ledger("m", 2, 2, own)):
        assert not set_aside(log, ledger)
    assert set_aside(log, Ledger("m", 2, 2, foreign)), "another leader's second segment was something else"
    assert not log.exists()
    writer = FileSegmentWriter(log, 3, after=2)
    writer.append(content(1))
    assert set_aside(log, Ledger("m", 4, 9, own)), "another leader went on further"
    assert Layout.of(tmp_path / "eventlog.replaced").numbers() == [3], "the one before is gone"


def test_an_event_log_that_outputs_read_is_not_set_aside(tmp_path: Path) -> None:
    log = tmp_path / "eventlog"
    FileSegmentWriter(log, 1).append(content(1))
    (log / "readers").mkdir()
    place = ReaderPlace(segment=1, order=1, epoch=1, first=1, tables=(), mark=0)
    write_place(log / "readers" / "a.json", StoredPlace("json:/x", passing=False, place=place))
    with pytest.raises(EventLogError) as caught:
        set_aside(log, Ledger("m", 2, 9, None))
    assert log.exists()
    assert caught.value.where == "json:/x"


@pytest.mark.parametrize(("seen", "expected"), [(1, False), (2, False), (3, True)])
def test_a_later_epoch_in_the_target_is_a_successor_s(seen: int, expected: bool) -> None:
    found = overtaken(2, lambda: seen)
    assert (found is not None) is expected
    assert found is None or "epoch 3, ours is 2" in found.what


def test_a_target_that_does_not_answer_names_no_successor() -> None:
    def silent() -> int:
        raise ConnectionFailed("the target can't be reached")

    assert overtaken(2, silent) is None
