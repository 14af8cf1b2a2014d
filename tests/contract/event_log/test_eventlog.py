"""Both event logs keep the contract."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from migrator.adapters.event_log.files.batch_reader import FileBatchReader
from migrator.adapters.event_log.files.fresh_segments import FreshSegments
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.adapters.memory.eventlog import MemoryBatchReader, MemoryEventLog, MemorySegmentWriter
from migrator.model.segment import Manifest
from migrator.ports.eventlog import BatchReader, SegmentWriter
from tests.contract.event_log.eventlog_content import content, images, read
from tests.contract.event_log.eventlog_contract import EventLogContract
from tests.contract.event_log.eventlog_under_test import EventLogUnderTest, Step


class Files:
    def __init__(self, directory: Path, fresh: FreshSegments | None) -> None:
        self._directory = directory / "log"
        self._fresh = fresh

    def writer(self, epoch: int, after: int = 0, step: Step | None = None) -> SegmentWriter:
        return FileSegmentWriter(self._directory, epoch, after=after, fresh=self._fresh, step=step)

    def reader(self) -> BatchReader:
        return FileBatchReader(self._directory, fresh=self._fresh)

    def chunk(self, path: str) -> pa.Table:
        return pq.ParquetFile(path).read()

    def lose_manifest(self, number: int) -> None:
        Layout.of(self._directory).manifest(number).unlink()

    def lose_data(self, manifest: Manifest) -> None:
        for file in manifest.files:
            Path(file.path).unlink()


class Memory:
    def __init__(self) -> None:
        self._log = MemoryEventLog()

    def writer(self, epoch: int, after: int = 0, step: Step | None = None) -> SegmentWriter:
        return MemorySegmentWriter(self._log, epoch, after=after, step=step)

    def reader(self) -> BatchReader:
        return MemoryBatchReader(self._log)

    def chunk(self, path: str) -> pa.Table:
        return self._log.chunk(path)

    def lose_manifest(self, number: int) -> None:
        del self._log.manifests[number]

    def lose_data(self, manifest: Manifest) -> None:
        for file in manifest.files:
            del self._log.tables[file.path]


class TestFiles(EventLogContract):
    def make(self, directory: Path) -> EventLogUnderTest:
        return Files(directory, fresh=None)


class TestFilesInOneProcess(EventLogContract):
    def make(self, directory: Path) -> EventLogUnderTest:
        return Files(directory, FreshSegments())


class TestMemory(EventLogContract):
    def make(self, directory: Path) -> EventLogUnderTest:
        return Memory()


def test_a_batch_is_bounded_by_what_its_rows_take_in_memory(tmp_path: Path) -> None:
    """Not by their files: these compress to nearly nothing."""
    writer = FileSegmentWriter(tmp_path / "log", 1)
    for order in (1, 2, 3):
        writer.append(content(order, images((order, 0, 1, order, "x" * 100_000))))
    reader = FileBatchReader(tmp_path / "log", max_bytes=250_000)
    first = read(reader)
    assert sum(file.size_bytes for each in reader.manifests(0) for file in each.files) < 50_000
    assert (first.first, first.last) == (1, 2)
    assert read(reader, first.last).last == 3


def test_the_newest_applied_segments_stay_up_to_a_size_until_room_is_needed(tmp_path: Path) -> None:
    writer = FileSegmentWriter(tmp_path / "log", 1)
    for order in range(1, 7):
        writer.append(content(order, images((order, 0, 1, order, "x"))))
    sizes = [
        sum(file.stat().st_size for file in (tmp_path / "log").rglob(f"{number:010d}*"))
        for number in range(1, 7)
    ]
    reader = FileBatchReader(tmp_path / "log", keep_bytes=sum(sizes[2:5]))
    reader.release(5)
    assert [one.number for one in reader.manifests(0)] == [3, 4, 5, 6]
    reader.release_again()
    assert [one.number for one in reader.manifests(0)] == [6]


def test_nothing_stays_that_is_larger_than_what_may(tmp_path: Path) -> None:
    writer = FileSegmentWriter(tmp_path / "log", 1)
    for order in (1, 2, 3):
        writer.append(content(order, images((order, 0, 1, order, "x"))))
    reader = FileBatchReader(tmp_path / "log", keep_bytes=10)
    reader.release(3)
    assert [one.number for one in reader.manifests(0)] == [3]
