"""Killed and stale writers: nothing half-written counts, nothing that counts is removed."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from migrator.adapters.coordination.local.leadership import LocalLeadership
from migrator.adapters.event_log.files.batch_reader import FileBatchReader
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.errors import EventLogError, FencedError
from migrator.model.segment import FileKind
from migrator.ports.eventlog import TableData
from tests.contract.event_log.eventlog_content import WIDER, content, dump_rows, inserted, pairs, read
from tests.contract.event_log.eventlog_under_test import Crashed, crash_at

ROOT = Path(__file__).parents[3]


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / "data").iterdir())


def test_leftovers_of_a_crash_are_removed_once_their_number_is_taken(tmp_path: Path) -> None:
    with pytest.raises(Crashed):
        FileSegmentWriter(tmp_path, 1, step=crash_at("segment.data")).append(inserted(1, 1))
    writer = FileSegmentWriter(tmp_path, 2)
    assert names(tmp_path) == ["0000000001-1-0.parquet"], "its writer might only be asleep"
    writer.append(inserted(1, 2))
    with pytest.raises(EventLogError):  # the second of its tables is refused after the first was written
        writer.append(
            content(2, dump_rows((1, "a")), TableData(WIDER, FileKind.LOG, dump_rows((1, "a")).rows))
        )
    writer.append(inserted(2, 3))
    assert names(tmp_path) == ["0000000001-2-0.parquet", "0000000002-2-0.parquet"]


def test_a_manifest_that_was_never_shown_is_removed_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(Crashed):
        FileSegmentWriter(tmp_path, 1, step=crash_at("segment.synced")).append(inserted(1, 1))
    assert len(list((tmp_path / "segments").iterdir())) == 1
    FileSegmentWriter(tmp_path, 2)
    assert list((tmp_path / "segments").iterdir()) == []


def test_leftovers_below_the_newest_segment_are_removed_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(Crashed):
        FileSegmentWriter(tmp_path, 1, step=crash_at("segment.synced")).append(inserted(1, 1))
    FileSegmentWriter(tmp_path, 2).append(inserted(1, 2))
    assert len(names(tmp_path)) == 2
    FileSegmentWriter(tmp_path, 3)
    assert names(tmp_path) == ["0000000001-2-0.parquet"]


def test_a_sleeping_writers_files_stay_until_it_can_no_longer_use_them(tmp_path: Path) -> None:
    """L1 sleeps just before its manifest is created; L2 opens the log, but L1 is the first to take the number."""
    opened: list[FileSegmentWriter] = []

    def sleep(name: str) -> None:
        if name == "segment.synced":
            opened.append(FileSegmentWriter(tmp_path, 1))  # the same epoch: nothing but the number fences

    manifest = FileSegmentWriter(tmp_path, 1, step=sleep).append(inserted(1, 1))
    assert manifest.number == 1
    assert pairs(read(FileBatchReader(tmp_path)).deltas[0].after) == [(1, "n1")]
    with pytest.raises(FencedError):
        opened[0].append(inserted(1, 2))
    assert names(tmp_path) == ["0000000001-1-0.parquet"]


def test_a_higher_epoch_that_opens_meanwhile_fences_before_the_number_is_taken(tmp_path: Path) -> None:
    def sleep(name: str) -> None:
        if name == "segment.synced":
            FileSegmentWriter(tmp_path, 2)

    with pytest.raises(FencedError, match="epoch 2"):
        FileSegmentWriter(tmp_path, 1, step=sleep).append(inserted(1, 1))
    assert Layout.of(tmp_path).numbers() == []
    assert names(tmp_path) == []


def test_the_newest_manifest_fences_too(tmp_path: Path) -> None:
    FileSegmentWriter(tmp_path, 5).append(inserted(1, 1))
    Layout.of(tmp_path).epoch.unlink()
    with pytest.raises(FencedError, match="segment 1 has epoch 5"):
        FileSegmentWriter(tmp_path, 4)


def test_once_fenced_is_fenced_for_good(tmp_path: Path) -> None:
    writer = FileSegmentWriter(tmp_path, 1)
    FileSegmentWriter(tmp_path, 2)
    with pytest.raises(FencedError):
        writer.append(inserted(1, 1))
    Layout.of(tmp_path).epoch.unlink()
    with pytest.raises(FencedError):
        writer.append(inserted(1, 1))
    assert FileSegmentWriter(tmp_path, 1).append(inserted(1, 1)).number == 1


def test_a_crash_in_release_leaves_nothing_to_stumble_over(tmp_path: Path) -> None:
    writer = FileSegmentWriter(tmp_path, 1)
    for order in (1, 2, 3):
        writer.append(content(order, dump_rows((order, "x"))))
    kept = tmp_path / "data" / "0000000001-1-0.parquet"
    copy = shutil.copy(kept, tmp_path / "copy")
    FileBatchReader(tmp_path).release(1)
    os.rename(copy, kept)  # as if killed between removing the manifest and removing the data
    assert read(FileBatchReader(tmp_path), 1).last == 3
    FileSegmentWriter(tmp_path, 2)
    assert names(tmp_path) == ["0000000002-1-0.parquet", "0000000003-1-0.parquet"]


def test_data_of_a_lost_manifest_is_kept_for_repair(tmp_path: Path) -> None:
    writer = FileSegmentWriter(tmp_path, 1)
    for order in (1, 2, 3):
        writer.append(inserted(order, order))
    manifest = Layout.of(tmp_path).manifest(2)
    saved = manifest.read_bytes()
    manifest.unlink()
    FileSegmentWriter(tmp_path, 2)
    with pytest.raises(EventLogError, match="segment 2 is missing"):
        FileBatchReader(tmp_path).read(1, 10, 0)
    manifest.write_bytes(saved)
    assert read(FileBatchReader(tmp_path)).last == 3


def test_the_log_may_be_moved(tmp_path: Path) -> None:
    FileSegmentWriter(tmp_path / "old", 1).append(content(1, dump_rows((1, "x"))))
    os.rename(tmp_path / "old", tmp_path / "new")
    batch = read(FileBatchReader(tmp_path / "new"))
    assert batch.chunks[0][1] == (str(tmp_path / "new" / "data" / "0000000001-1-0.parquet"),)


def test_status_follows_a_log_that_is_being_released(tmp_path: Path) -> None:
    writer, reader = FileSegmentWriter(tmp_path, 1), FileBatchReader(tmp_path)
    for order in range(1, 7):
        writer.append(inserted(order, order))
    seen = []
    for manifest in FileBatchReader(tmp_path).manifests(0):
        seen.append(manifest.number)
        if manifest.number == 2:
            reader.release(4)
    assert seen == [1, 2, 5, 6]
    assert reader.total_bytes() == sum(path.stat().st_size for path in tmp_path.glob("*/*"))
    Layout.of(tmp_path).manifest(5).unlink()
    with pytest.raises(EventLogError, match="segment 5 is missing"):
        list(reader.manifests(4))


KILLED = """
import os, signal, sys
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from tests.contract.event_log.eventlog_content import inserted
def step(name):
    if name == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
FileSegmentWriter(sys.argv[1], 1).append(inserted(1, 1))
FileSegmentWriter(sys.argv[1], 1, step=step).append(inserted(2, 2))
"""


@pytest.mark.parametrize(
    ("step", "stored"), [("segment.data", 1), ("segment.synced", 1), ("segment.created", 2), ("never", 2)]
)
def test_a_killed_process_leaves_whole_segments(tmp_path: Path, step: str, stored: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), step], cwd=ROOT, timeout=60, check=False
    )
    assert done.returncode == (0 if step == "never" else -signal.SIGKILL)
    assert FileSegmentWriter(tmp_path, 2).append(inserted(3, 3)).number == stored + 1
    assert len(pairs(read(FileBatchReader(tmp_path)).deltas[0].after)) == stored + 1


LEADER = """
import sys
from migrator.adapters.coordination.local.leadership import LocalLeadership
leadership = LocalLeadership(sys.argv[1])
print(leadership.acquire(0).epoch, flush=True)
sys.stdin.read()
"""


def test_a_killed_leaders_place_is_free_at_once(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LEADER, str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as leader:
        assert leader.stdout is not None
        assert leader.stdout.readline().strip() == "1"
        follower = LocalLeadership(tmp_path)
        assert follower.holder().startswith(f"process {leader.pid} on ")
        with pytest.raises(FencedError, match=f"process {leader.pid} on "):
            follower.acquire(0)
        leader.kill()
        leader.wait(10)
    assert follower.holder() == ""
    assert follower.acquire(0).epoch == 2


def test_asking_who_leads_changes_nothing(tmp_path: Path) -> None:
    assert LocalLeadership(tmp_path / "state").holder() == ""
    assert list(tmp_path.iterdir()) == []
    leader = LocalLeadership(tmp_path)
    leader.acquire(0)
    assert LocalLeadership(tmp_path).holder() == leader.holder() != ""
    assert leader.held()
    leader.release()
    assert leader.holder() == ""


def test_an_onlooker_keeps_nobody_from_leading(tmp_path: Path) -> None:
    """``holder`` has the file locked for an instant; a leader that starts just then waits for it."""
    path = tmp_path / "leader.lock"
    path.touch()
    looking = os.open(path, os.O_RDWR)
    fcntl.flock(looking, fcntl.LOCK_SH)
    threading.Timer(0.02, os.close, [looking]).start()
    assert LocalLeadership(tmp_path).acquire(0).epoch == 1


def test_a_removed_state_directory_ends_the_lease(tmp_path: Path) -> None:
    leader = LocalLeadership(tmp_path / "state")
    leader.acquire(0)
    shutil.rmtree(tmp_path / "state")
    assert not leader.held()
    other = LocalLeadership(tmp_path / "state")
    other.acquire(0)
    assert other.held()
    assert not leader.held()


def test_an_edited_epoch_is_refused_and_the_lock_given_back(tmp_path: Path) -> None:
    (tmp_path / "epoch").write_text("seven")
    leader = LocalLeadership(tmp_path)
    with pytest.raises(Exception, match="epoch can't be read"):
        leader.acquire(0)
    (tmp_path / "epoch").write_text("7\n")
    assert LocalLeadership(tmp_path).acquire(0).epoch == 8
