"""Rules of the event log on files whose loss once went unnoticed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from migrator.adapters.event_log.files import durable
from migrator.adapters.event_log.files.batch_reader import FileBatchReader
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.places import StoredPlace, first_needed, write_place
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.errors import EventLogError, FencedError
from migrator.ports.eventlog import ReaderPlace
from tests.contract.event_log.eventlog_content import inserted, pairs, read


def test_after_a_segment_became_visible_by_half_its_writer_never_writes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1. the manifest is linked; 2. the disk refuses to say that this is durable; 3. a second attempt would
    take the next number for the same rows: a batch with all of them twice.
    """
    writer = FileSegmentWriter(tmp_path, 1)
    whole = durable.link_new

    def refused(temporary: Path, path: Path) -> bool:
        whole(temporary, path)
        raise OSError(errno.EIO, "Input/output error", str(path))

    monkeypatch.setattr(durable, "link_new", refused)
    with pytest.raises(EventLogError, match="may not survive"):
        writer.append(inserted(1, 1))
    monkeypatch.undo()
    with pytest.raises(EventLogError, match="may not survive"):
        writer.append(inserted(1, 1))
    assert [manifest.number for manifest in FileBatchReader(tmp_path).manifests(0)] == [1]
    assert pairs(read(FileBatchReader(tmp_path)).deltas[0].after) == [(1, "n1")]


def test_everything_of_a_segment_is_synced_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    before_the_name: list[str] = []
    fsync, link = os.fsync, durable.link_new

    def noted(handle: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{handle}"))
        fsync(handle)

    def named(temporary: Path, path: Path) -> bool:
        before_the_name.extend(synced)
        return link(temporary, path)

    writer = FileSegmentWriter(tmp_path, 1)
    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(durable, "link_new", named)
    writer.append(inserted(1, 1))
    names = [Path(name).name for name in before_the_name]
    assert "0000000001-1-0.parquet" in names
    assert "data" in names, "the directory's entry of the data file"
    assert len(names) == 3, "and the manifest under its temporary name"
    assert str(Layout.of(tmp_path).segments) in synced, "the name itself, afterwards"


def test_what_a_leader_that_slept_through_release_created_is_taken_back(tmp_path: Path) -> None:
    layout = Layout.of(tmp_path)
    old = FileSegmentWriter(tmp_path, 1)
    durable.raise_number(layout.released, 1)
    with pytest.raises(FencedError):
        old.append(inserted(1, 1))
    assert layout.numbers() == [], "a reader that begins there would take it for the first segment"


def test_what_another_reader_has_not_read_is_kept_and_the_newest_always(tmp_path: Path) -> None:
    layout, writer = Layout.of(tmp_path), FileSegmentWriter(tmp_path, 1)
    for number in range(1, 5):
        writer.append(inserted(number, number))
    durable.make_directory(layout.readers)
    place = layout.readers / "other.json"
    write_place(place, StoredPlace("json:/x", False, ReaderPlace(1, 1, 2, 1, ("item",), 0)))
    reader = FileBatchReader(tmp_path)
    reader.release(2)
    reader.release(4)
    needed = first_needed(layout)
    assert needed is not None
    assert layout.numbers() == list(range(needed, 5))
    place.unlink()
    reader.release_again()
    assert layout.numbers() == [4]
