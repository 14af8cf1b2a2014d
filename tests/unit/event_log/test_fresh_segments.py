"""Rows that a batch reader gets from the writer beside it: the same, only while the files are there, bounded."""

from __future__ import annotations

import queue
from pathlib import Path

import pytest

from migrator.adapters.event_log.files.batch_reader import FileBatchReader
from migrator.adapters.event_log.files.fresh_segments import FreshSegments
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.adapters.memory.requests import MemoryRequests
from migrator.errors import DamageError
from migrator.model.limits import CaptureLimits
from migrator.model.segment import Manifest
from migrator.run.capture.attempt import Attempt
from migrator.run.capture.steps import CaptureSteps, SourcePorts
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from scenarios.simulation.clients import initial_rows
from scenarios.simulation.source import Link, SimulatedChunkReader, SimulatedLogReader, Source, Write
from scenarios.simulation.tables import REGISTER, SCHEMAS, Stored
from tests.contract.event_log.eventlog_content import content, dump_rows, images, inserted, pairs, read


def scribbled(manifest: Manifest) -> None:
    """Every data file holds something else of the same length."""
    for file in manifest.files:
        Path(file.path).write_bytes(b"?" * file.size_bytes)


def test_the_reader_beside_the_writer_doesnt_decode(tmp_path: Path) -> None:
    fresh = FreshSegments()
    written = FileSegmentWriter(tmp_path, 1, fresh=fresh).append(inserted(1, 5, 6))
    scribbled(written)
    batch = read(FileBatchReader(tmp_path, fresh=fresh))
    assert pairs(batch.deltas[0].after) == [(5, "n5"), (6, "n6")]
    with pytest.raises(DamageError, match="SHA-256"):  # as another process sees it
        FileBatchReader(tmp_path).read(0, 1000, 0)


def test_dump_rows_are_read_from_their_files(tmp_path: Path) -> None:
    fresh = FreshSegments()
    scribbled(FileSegmentWriter(tmp_path, 1, fresh=fresh).append(content(1, dump_rows((1, "a")))))
    with pytest.raises(DamageError, match="SHA-256"):
        FileBatchReader(tmp_path, fresh=fresh).read(0, 1000, 0)
    assert fresh.held_bytes() == 0


@pytest.mark.parametrize("lost", [True, False])
def test_a_file_that_isnt_there_as_it_was_written_is_missed(tmp_path: Path, lost: bool) -> None:
    fresh = FreshSegments()
    (file,) = FileSegmentWriter(tmp_path, 1, fresh=fresh).append(inserted(1, 5)).files
    if lost:
        Path(file.path).unlink()
    else:
        Path(file.path).write_bytes(b"torn")
    with pytest.raises(DamageError, match=r"missing|4 bytes"):
        FileBatchReader(tmp_path, fresh=fresh).read(0, 1000, 0)


def test_rows_are_held_up_to_a_bound_and_read_from_files_beyond(tmp_path: Path) -> None:
    one = inserted(1, 5).data[0].rows.get_total_buffer_size()
    fresh = FreshSegments(most_bytes=2 * one)
    writer, reader = FileSegmentWriter(tmp_path, 1, fresh=fresh), FileBatchReader(tmp_path, fresh=fresh)
    written = [writer.append(inserted(order, order)) for order in (1, 2, 3)]
    assert fresh.held_bytes() == 2 * one
    held = [fresh.rows(each.files[0], each.number) is not None for each in written]
    assert held == [True, True, False]
    assert [pairs(delta.after) for delta in read(reader).deltas] == [[(1, "n1"), (2, "n2"), (3, "n3")]]
    assert read(reader).last == 3, "asked again, as after a failure"
    assert reader.read(3, 1000, 0) is None
    assert fresh.held_bytes() == 0, "what was applied is forgotten"
    writer.append(inserted(4, 4))
    assert fresh.held_bytes() == one
    assert pairs(read(reader, after=3).deltas[0].after) == [(4, "n4")]


def test_a_slice_counts_as_the_buffer_that_it_keeps(tmp_path: Path) -> None:
    large = images(*((1, i, 1, i, "x" * 1000) for i in range(1000))).rows
    fresh = FreshSegments(most_bytes=large.get_total_buffer_size() // 2)
    part = inserted(1, 5).data[0]
    sliced = type(part)(part.schema, part.kind, large.slice(0, 1))
    FileSegmentWriter(tmp_path, 1, fresh=fresh).append(content(1, sliced))
    assert fresh.held_bytes() == 0


def test_a_segment_is_awaited_once_all_before_it_were_read(tmp_path: Path) -> None:
    fresh = FreshSegments()
    writer, reader = FileSegmentWriter(tmp_path, 1, fresh=fresh), FileBatchReader(tmp_path, fresh=fresh)
    writer.append(inserted(1, 1))
    assert writer.awaited(), "nobody has read at all: perhaps nobody will"
    read(reader)
    writer.append(inserted(2, 2))
    assert not writer.awaited()
    assert FileSegmentWriter(tmp_path, 1).awaited(), "of a reader elsewhere nothing is known"
    assert read(reader, after=1).last == 2
    assert writer.awaited()


def test_small_segments_wait_while_earlier_ones_werent_read(tmp_path: Path) -> None:
    fresh, limits = FreshSegments(), CaptureLimits()
    writer, reader = FileSegmentWriter(tmp_path, 1, fresh=fresh), FileBatchReader(tmp_path, fresh=fresh)
    source = Source(False, initial_rows())
    link = Link(source, 10, True, records=10)
    ports = SourcePorts(lambda: SimulatedLogReader(link), lambda: SimulatedChunkReader(link), None)
    steps = CaptureSteps(
        ports, Attempt(SCHEMAS, None, limits, "1-a"), writer, MemoryRequests(), queue.Queue(), Progress()
    )
    steps.write()
    read(reader)
    _collect_a_row(steps, source, 1000)
    assert not steps.due(0.0)
    assert steps.due(limits.linger_s)
    steps.write()
    _collect_a_row(steps, source, 1001)
    assert not steps.due(3.9 * limits.linger_s)
    assert steps.due(4 * limits.linger_s), "but no longer than that"
    assert read(reader, after=1).last == 2
    assert steps.due(limits.linger_s), "it is awaited"


def _collect_a_row(steps: CaptureSteps, source: Source, key: int) -> None:
    source.commit(1, [Write(REGISTER.id, None, (key, Stored(1, key, key)))])
    source.reveal(0)
    steps.log.read_once(Stopping())
    steps.take(steps.inputs.get_nowait())
