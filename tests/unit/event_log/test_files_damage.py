"""A damaged event log is an error that names the file; an undamaged one isn't."""

from __future__ import annotations

import hashlib
import json
import resource
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from migrator.adapters.event_log.files.batch_reader import FileBatchReader
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.errors import EventLogError
from migrator.model.codecs.codec import FORMAT
from tests.contract.event_log.eventlog_content import content, dump_rows, images, inserted, read


def flip(path: Path, place: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[place] ^= 1
    path.write_bytes(raw)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def written(directory: Path) -> Layout:
    writer = FileSegmentWriter(directory, 1)
    writer.append(content(1, dump_rows((1, "a")), images((1, 0, 1, 2, "b"))))
    writer.append(inserted(2, 3))
    return Layout.of(directory)


@pytest.mark.parametrize("place", [0, 1], ids=["chunk", "log"])
@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (lambda path: flip(path, 0), "SHA-256"),
        (lambda path: flip(path, 40), "SHA-256"),
        (lambda path: flip(path, -1), "SHA-256"),
        (truncate, "bytes"),
        (lambda path: path.write_bytes(b""), "0 bytes"),
        (lambda path: path.unlink(), "missing"),
    ],
    ids=["first byte", "middle", "last byte", "torn", "empty", "gone"],
)
def test_a_damaged_data_file_is_named(
    tmp_path: Path, place: int, damage: Callable[[Path], None], cause: str
) -> None:
    layout = written(tmp_path)
    path = layout.data_file(1, 1, place)
    assert read(FileBatchReader(tmp_path)).last == 2
    damage(path)
    with pytest.raises(EventLogError, match="segment 1") as caught:
        FileBatchReader(tmp_path).read(0, 10, 0)
    assert caught.value.where == str(path)
    assert cause in caught.value.cause
    assert caught.value.remedy
    assert read(FileBatchReader(tmp_path), 1).last == 2, "what lies behind can still be read"


def test_every_single_byte_of_a_manifest_counts(tmp_path: Path) -> None:
    path = written(tmp_path).manifest(1)
    whole = path.read_bytes()
    for place in range(len(whole)):
        flip(path, place)
        with pytest.raises(EventLogError, match="segment 1"):
            FileBatchReader(tmp_path).read(0, 10, 0)
        path.write_bytes(whole)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(EventLogError, match="segment 1"):
            FileBatchReader(tmp_path).read(0, 10, 0)
    path.write_bytes(whole)
    assert read(FileBatchReader(tmp_path)).last == 2


def test_a_damaged_newest_manifest_stops_the_writer(tmp_path: Path) -> None:
    path = written(tmp_path).manifest(2)
    truncate(path)
    with pytest.raises(EventLogError, match="segment 2"):
        FileSegmentWriter(tmp_path, 2)


def resealed(path: Path, edit: Callable[[dict[str, object]], object]) -> None:
    """Edits a manifest and corrects its checksum, as a newer version or another log would have written it."""
    document = json.loads(path.read_bytes().split(b"\n")[0])
    edit(document)
    line = json.dumps(document).encode()
    path.write_bytes(line + b'\n{"sha256":"' + hashlib.sha256(line).hexdigest().encode() + b'"}\n')


@pytest.mark.parametrize(
    ("edit", "after", "message"),
    [
        (lambda document: document.update(format=FORMAT + 1), 1, "newer version"),
        (lambda document: document.update(number=3), 1, "segment 3"),
        (lambda document: document.update(epoch=0), 0, "replaced"),
        (lambda document: document.pop("checkpoint"), 1, "checkpoint"),
        (lambda document: document["files"][0].update(path="../../etc/passwd"), 1, "no data file"),
        (lambda document: document["files"][0].update(rows=9), 1, "says 9"),
        (lambda document: document["files"][0]["schema"]["columns"][0].update(type="int32"), 1, "columns"),
    ],
    ids=["format", "number", "epoch", "field", "path", "rows", "schema"],
)
def test_a_manifest_that_cannot_be_true_is_refused(
    tmp_path: Path, edit: Callable[[dict[str, object]], object], after: int, message: str
) -> None:
    path = written(tmp_path).manifest(2)
    resealed(path, lambda document: None)
    assert read(FileBatchReader(tmp_path)).last == 2, "resealing alone does no harm"
    resealed(path, edit)
    with pytest.raises(EventLogError, match=message):
        FileBatchReader(tmp_path).read(after, 10, 0)


def test_edited_numbers_are_refused(tmp_path: Path) -> None:
    layout = written(tmp_path)
    layout.released.write_text("x")
    with pytest.raises(EventLogError, match="number") as caught:
        FileBatchReader(tmp_path).read(0, 10, 0)
    assert caught.value.where == str(layout.released)


def test_a_full_disk_leaves_nothing_and_the_writer_goes_on(tmp_path: Path) -> None:
    """A limit on the size of files stands in for a full disk: the same write fails, by the kernel."""
    writer = FileSegmentWriter(tmp_path, 1)
    writer.append(inserted(1, 1))
    before = sorted(tmp_path.rglob("*"))
    big = content(2, dump_rows((1, "small")), dump_rows(*((i, f"text {i}") for i in range(5000))))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(EventLogError, match="segment 2") as caught:
            writer.append(big)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert "EFBIG" in caught.value.cause
    assert sorted(tmp_path.rglob("*")) == before
    assert FileBatchReader(tmp_path).read(1, 10, 0) is None
    assert writer.append(big).number == 2
    assert read(FileBatchReader(tmp_path), 1).chunk_rows == 5001


def test_a_directory_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("in the way")
    with pytest.raises(EventLogError, match="can't be opened") as caught:
        FileSegmentWriter(tmp_path / "log", 1)
    assert str(tmp_path / "log") in caught.value.where


def test_rows_are_for_the_owner_only(tmp_path: Path) -> None:
    directory = tmp_path / "state" / "log"
    written(directory)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.rglob("*")}
    assert {modes.pop("segments"), modes.pop("data")} == {0o700}
    assert set(modes.values()) == {0o600}
    assert len(modes) >= 5
