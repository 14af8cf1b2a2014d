"""A damaged event log is set aside and captured again from the ledger, once, and never behind anybody's back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from migrator.adapters.event_log.files.batch_reader import FileBatchReader
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.places import StoredPlace, write_place
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.adapters.event_log.files.set_aside import set_damage_aside
from migrator.errors import DamageError, EventLogError, FencedError, GapError
from migrator.model.ledger import Ledger
from migrator.ports.eventlog import ReaderPlace
from migrator.run.lead.recapture import Recapture
from tests.contract.event_log.eventlog_content import inserted, read

DAMAGE = DamageError("a data file of segment 3 can't be used", where="3.parquet", cause="its SHA-256 differs")


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def log_of(directory: Path, segments: int = 4) -> Layout:
    writer = FileSegmentWriter(directory, 1)
    for number in range(1, segments + 1):
        writer.append(inserted(number, number))
    return Layout.of(directory)


DAMAGES: dict[str, Callable[[Layout, int], None]] = {
    "data": lambda layout, number: halve(layout.data_file(number, 1, 0)),
    "no data": lambda layout, number: layout.data_file(number, 1, 0).unlink(),
    "manifest": lambda layout, number: halve(layout.manifest(number)),
}


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.parametrize("number", [2, 3, 4])
def test_damage_beyond_the_ledger_is_set_aside_and_the_log_goes_on_there(
    tmp_path: Path, kind: str, number: int
) -> None:
    log = tmp_path / "eventlog"
    DAMAGES[kind](log_of(log), number)
    assert set_damage_aside(log, Ledger("m", 2, 1, None)) == str(tmp_path / "eventlog.damaged")
    assert Layout.of(tmp_path / "eventlog.damaged").numbers() == [1, 2, 3, 4], "kept to be looked at"
    FileSegmentWriter(log, 2, after=1).append(inserted(2, 2))
    assert read(FileBatchReader(log), 1).last == 2


def test_a_lost_manifest_counts_as_damage(tmp_path: Path) -> None:
    log_of(tmp_path / "eventlog").manifest(3).unlink()
    assert set_damage_aside(tmp_path / "eventlog", Ledger("m", 2, 1, None))


def test_a_sound_log_stays(tmp_path: Path) -> None:
    log = tmp_path / "eventlog"
    layout = log_of(log)
    assert set_damage_aside(log, Ledger("m", 2, 1, None)) == ""
    halve(layout.data_file(1, 1, 0))
    assert set_damage_aside(log, Ledger("m", 2, 1, None)) == "", "the target holds it: nobody reads it again"
    assert layout.numbers() == [1, 2, 3, 4]


def test_a_leader_that_slept_writes_neither_into_the_old_log_nor_into_the_new_one(tmp_path: Path) -> None:
    log = tmp_path / "eventlog"
    layout = log_of(log)
    sleeper = FileSegmentWriter(log, 1)
    halve(layout.data_file(3, 1, 0))
    set_damage_aside(log, Ledger("m", 2, 1, None))
    with pytest.raises(FencedError):
        sleeper.append(inserted(5, 5))
    assert layout.numbers() == []
    with pytest.raises(FencedError):
        FileSegmentWriter(log, 1)


def test_a_log_that_outputs_read_stays_and_so_does_a_second_damaged_one(tmp_path: Path) -> None:
    log = tmp_path / "eventlog"
    halve(log_of(log).data_file(3, 1, 0))
    (log / "readers").mkdir()
    place = log / "readers" / "a.json"
    write_place(place, StoredPlace("json:/x", False, ReaderPlace(1, 1, 1, 1, (), 0)))
    with pytest.raises(EventLogError, match="segment 3") as caught:
        set_damage_aside(log, Ledger("m", 2, 1, None))
    assert "json:/x" in caught.value.remedy
    assert not isinstance(caught.value, DamageError), "it isn't tried again"
    place.unlink()
    (tmp_path / "eventlog.damaged").mkdir()
    with pytest.raises(EventLogError, match="segment 3") as caught:
        set_damage_aside(log, Ledger("m", 2, 1, None))
    assert "second damage" in caught.value.remedy
    assert log.exists()


@pytest.mark.parametrize("kind", DAMAGES)
def test_what_lies_before_the_damage_is_read_first(tmp_path: Path, kind: str) -> None:
    DAMAGES[kind](log_of(tmp_path), 3)
    reader = FileBatchReader(tmp_path)
    assert read(reader).last == 2
    with pytest.raises(DamageError, match="segment 3"):
        reader.read(2, 1000, 0)


def test_no_transaction_is_read_by_half_because_its_rest_is_damaged(tmp_path: Path) -> None:
    writer = FileSegmentWriter(tmp_path, 1)
    for number, ends in ((1, True), (2, False), (3, True)):
        writer.append(inserted(number, number, ends=ends))
    halve(Layout.of(tmp_path).data_file(3, 1, 0))
    reader = FileBatchReader(tmp_path)
    assert read(reader).last == 1
    with pytest.raises(DamageError, match="segment 3"):
        reader.read(1, 1000, 0)


def test_damage_that_is_not_found_again_ends_the_run_the_second_time() -> None:
    recapture = Recapture(lambda ledger: "")
    assert recapture.prepare(Ledger("m", 1, 0, None)) == "", "nothing was met"
    assert recapture.met(DAMAGE)
    assert recapture.prepare(Ledger("m", 1, 0, None)) == ""
    assert not recapture.met(DAMAGE)


def test_a_gap_that_follows_is_told_as_what_it_means() -> None:
    recapture = Recapture(lambda ledger: "/state/eventlog.damaged")
    gap = GapError("the source log doesn't hold the position that is needed", cause="its slot is further")
    assert recapture.explained(gap) is gap
    recapture.met(DAMAGE)
    assert "captured again" in recapture.prepare(Ledger("m", 1, 0, None))
    told = recapture.explained(gap)
    assert "segment 3" in told.what
    assert "its slot is further" in told.cause
    assert "/state/eventlog.damaged" in told.remedy
    assert recapture.explained(DAMAGE) is DAMAGE
