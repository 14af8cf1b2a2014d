"""What a reset finds in a state folder, and what it leaves there."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.adapters.coordination.local.leadership import LocalLeadership
from migrator.adapters.event_log.files.remains import StateRemains
from migrator.adapters.event_log.files.request_store import FileRequests
from migrator.adapters.event_log.files.segment_reader import FileSegmentReader
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.errors import EventLogError
from migrator.ports.eventlog import ReaderPlace
from migrator.ports.remains import Kind


def folder(tmp_path: Path) -> Path:
    state = tmp_path / "state"
    for name in ("eventlog/segments", "eventlog.damaged", "slots/3", "spill"):
        (state / name).mkdir(parents=True)
    (state / "eventlog/segments/0000000001.json").write_text("{}")
    (state / "spark.log").write_text("started")
    (state / "progress.json").write_text("{}")
    FileRequests(state).update(lambda book: book.behind(3))
    return state


def names(state: Path) -> set[str]:
    return {path.name for path in state.iterdir()}


def test_everything_of_the_tool_goes_and_the_folder_with_it(tmp_path: Path) -> None:
    state = folder(tmp_path)
    remains = StateRemains(state, state / "reports")
    leadership = LocalLeadership(state)
    leadership.acquire(0)
    found = remains.found()
    assert [(left.kind, left.name) for left in found.left] == [
        (Kind.STATE, "eventlog"), (Kind.STATE, "eventlog.damaged"), (Kind.ASKED, "requests.json"),
    ]  # fmt: skip
    assert found.kept == ()
    remains.note("begun")
    for left in found.left:
        remains.remove([left])
        assert remains.begun() == "begun", "the note goes last"
    remains.finish()
    leadership.release()
    assert not state.exists()
    assert StateRemains(state, state / "reports").found().left == ()


def test_reports_and_what_the_tool_did_not_make_stay(tmp_path: Path) -> None:
    state = folder(tmp_path)
    (state / "reports").mkdir()
    (state / "notes.txt").write_text("mine")
    remains = StateRemains(state, state / "reports")
    found = remains.found()
    assert found.kept == ("notes.txt, which the tool didn't make", "reports of verification (reports)")
    for left in found.left:
        remains.remove([left])
    remains.finish()
    assert names(state) == {"reports", "notes.txt"}


def test_what_was_verified_of_the_old_migration_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "covered.json").write_text("{}")
    (tmp_path / "reports" / "report.html").write_text("equal")
    remains = StateRemains(tmp_path, tmp_path / "reports", "covered.json")
    (left,) = remains.found().left
    assert left.trifle, "no reason for a reset by itself"
    remains.remove([left])
    assert names(tmp_path / "reports") == {"report.html"}


def test_a_process_that_writes_an_output_refuses_and_its_output_is_told_afterwards(tmp_path: Path) -> None:
    state = folder(tmp_path)
    remains = StateRemains(state, state / "reports")
    reader = FileSegmentReader(state / "eventlog", "json:/events.json")
    reader.store(ReaderPlace(1, None, 1, 1, (), 0))
    with pytest.raises(EventLogError, match="a process reads the event log"):
        remains.found()
    reader.close()
    assert remains.found().kept == ("what `migrator events` wrote: json:/events.json; begin it anew",)


def test_an_event_log_that_nobody_wrote_proves_no_migration(tmp_path: Path) -> None:
    FileSegmentReader(tmp_path / "eventlog", "json:/events.json").close()
    (left,) = StateRemains(tmp_path, tmp_path / "reports").found().left
    assert not left.proves()
    FileSegmentWriter(tmp_path / "eventlog", 1)
    (left,) = StateRemains(tmp_path, tmp_path / "reports").found().left
    assert left.proves()


def test_a_note_stays_until_the_end_and_is_told_as_something_left(tmp_path: Path) -> None:
    remains = StateRemains(tmp_path / "state", tmp_path / "state" / "reports")
    assert remains.begun() == ""
    remains.note("begun at noon")
    remains.note("begun at two")
    assert remains.begun() == "begun at noon"
    (left,) = remains.found().left
    assert left.proves()
    assert left.kind is Kind.NOTE
    remains.finish()
    assert remains.begun() == ""
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}"])
def test_a_note_that_can_not_be_read_is_one_all_the_same(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "reset.json").write_bytes(content)
    assert "can't be read" in StateRemains(tmp_path, tmp_path / "reports").begun()


def test_a_folder_with_working_files_only_is_no_reason_for_a_reset(tmp_path: Path) -> None:
    LocalLeadership(tmp_path).acquire(0)
    (tmp_path / "spark.log").write_text("started")
    assert StateRemains(tmp_path, tmp_path / "reports").found().left == ()
