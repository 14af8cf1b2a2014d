"""``migrator events``: what it keeps of the event log, what it refuses, and how it says so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from migrator.adapters.event_log.files.batch_reader import FileBatchReader
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.segment_reader import FileSegmentReader
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.cli import main, phases
from migrator.errors import EventLogError
from migrator.ports.eventlog import ReaderPlace
from tests.contract.event_log.eventlog_content import content, dump_rows, inserted

SERVER = 'kind = "postgresql"\ndatabase = "d"\nuser = "u"\n'


class Migration:
    """A project without servers, its event log, and ``migrator events`` in this process."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.folder, self._capsys, self._patch = folder, capsys, patch
        self.config = folder / "migration.toml"
        self.config.write_text(f'[migration]\nname = "m"\n[source]\n{SERVER}[target]\n{SERVER}')
        self.log = folder / ".migrator" / "eventlog"
        self.output = folder / "events.jsonl"
        self.writer = FileSegmentWriter(self.log, 1)

    def append(self, *orders: int) -> None:
        for order in orders:
            self.writer.append(inserted(order, order))

    def events(self, *arguments: str, output: Path | str | None = None) -> tuple[int, str]:
        """Exit code, and what was said on standard error."""
        more = ["--config", str(self.config), "--output", str(output or self.output)]
        self._patch.setattr(sys, "argv", ["migrator", "events", *more, *arguments])
        handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        try:
            with pytest.raises(SystemExit) as ended:
                main()
        finally:
            for number, handler in zip((signal.SIGINT, signal.SIGTERM), handlers, strict=True):
                signal.signal(number, handler)
        return int(ended.value.code or 0), self._capsys.readouterr().err

    def refused(self, *arguments: str, output: Path | str | None = None) -> str:
        """One clear error: its text."""
        code, said = self.events(*arguments, output=output)
        assert code == 2, said
        assert said.startswith("error: ")
        assert said.count("error: ") == 1
        assert "remedy: " in said
        assert "Traceback" not in said
        return said

    def process(self, *arguments: str, **streams: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "migrator", "events", "--config", str(self.config), *arguments]
        return subprocess.Popen(command, **{"stderr": subprocess.PIPE, **streams})  # type: ignore[call-overload, no-any-return]

    def ids(self) -> list[int]:
        return [int(json.loads(line)["after"]["id"]) for line in self.output.read_text().splitlines()]

    def kept(self) -> list[int]:
        return Layout.of(self.log).numbers()

    def places(self) -> list[Path]:
        return list((self.log / "readers").glob("*.json"))


@pytest.fixture
def migration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Migration:
    monkeypatch.setattr(phases, "SOON_S", 600.0)  # what it says on a slow machine is no part of these tests
    return Migration(tmp_path, capsys, monkeypatch)


def test_an_output_keeps_what_it_has_not_written(migration: Migration) -> None:
    assert migration.events()[0] == 0
    migration.append(1, 2, 3)
    FileBatchReader(migration.log).release(3)
    assert migration.kept() == [1, 2, 3]
    code, said = migration.events()
    assert (code, said) == (0, "wrote 3 events, up to segment 3\n")
    migration.append(4, 5)
    FileBatchReader(migration.log).release(5)
    assert migration.kept() == [3, 4, 5], "the segment it stands on stays, to be known again"
    migration.events()
    assert migration.ids() == [1, 2, 3, 4, 5]


def test_an_output_that_is_forgotten_keeps_nothing(migration: Migration) -> None:
    migration.events()
    migration.append(1, 2)
    assert migration.events("--forget")[0] == 0
    FileBatchReader(migration.log).release(2)
    assert migration.kept() == [2]
    assert "no output of this migration" in migration.refused("--forget")


def test_standard_output_gets_lines_and_keeps_nothing_afterwards(migration: Migration) -> None:
    migration.append(1, 2)
    process = migration.process(stdout=subprocess.PIPE)
    lines, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert [json.loads(line)["after"]["id"] for line in lines.splitlines()] == ["1", "2"]
    assert said.endswith(b"wrote 2 events, up to segment 2\n")
    assert migration.places() == []


def test_a_killed_stream_keeps_nothing_and_a_running_one_does(migration: Migration) -> None:
    migration.append(1, 2)
    process = migration.process("--follow", stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline()
    FileBatchReader(migration.log).release(1)
    assert migration.kept() == [1, 2]
    process.kill()
    process.communicate()
    FileBatchReader(migration.log).release(1)
    assert migration.kept() == [2]
    assert migration.places() == []


def test_a_reader_that_went_away_is_an_error_and_no_traceback(migration: Migration) -> None:
    migration.append(1)
    reading, writing = os.pipe()
    os.close(reading)
    process = migration.process(stdout=writing)
    os.close(writing)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert b"EPIPE" in said
    assert b"Traceback" not in said


def test_a_full_disk_behind_standard_output_is_named(migration: Migration) -> None:
    migration.append(1)
    with open("/dev/full", "wb") as full:
        process = migration.process(stdout=full)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert b"ENOSPC" in said
    assert b"remedy: free space" in said
    assert b"Traceback" not in said


def test_released_segments_are_an_error_and_never_a_silent_gap(migration: Migration) -> None:
    migration.append(1, 2, 3)
    FileBatchReader(migration.log).release(2)
    said = migration.refused()
    assert "segments 1 to 2 are no longer in the event log" in said
    assert "--from-segment" in said
    assert migration.places() == [], "a refused command keeps nothing"
    assert migration.events("--from-segment", "3")[0] == 0
    assert migration.ids() == [3]


def test_a_lost_manifest_is_named(migration: Migration) -> None:
    migration.append(1, 2, 3)
    Layout.of(migration.log).manifest(2).unlink()
    assert "the manifest of segment 2 is missing" in migration.refused()
    assert migration.ids() == [1]


def test_a_damaged_segment_is_refused_by_its_checksum(migration: Migration) -> None:
    migration.append(1)
    migration.writer.append(content(2, dump_rows((5, "a"))))
    path = Layout.of(migration.log).data_file(2, 1, 0)
    raw = bytearray(path.read_bytes())
    raw[40] ^= 1
    path.write_bytes(raw)
    said = migration.refused()
    assert "a data file of segment 2 can't be used" in said
    assert "SHA-256" in said
    assert migration.ids() == [1]
    raw[40] ^= 1
    path.write_bytes(raw)
    assert migration.events()[0] == 0
    assert migration.ids() == [1, 5]


def test_an_unknown_table_is_named_with_those_there_are(migration: Migration) -> None:
    migration.append(1)
    said = migration.refused("--tables", "item,itme")
    assert "--tables itme" in said
    assert "public.item" in said
    assert migration.events("--tables", "item")[0] == 0, "a refused command leaves nothing behind"
    assert migration.ids() == [1]


def test_a_segment_that_is_not_there_yet_is_named(migration: Migration) -> None:
    migration.append(1)
    assert "holds no segment 7" in migration.refused("--from-segment", "8")


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        ("none/events", "ENOENT"),
        (".", "no regular file"),
        ("/dev/null", "no regular file"),
        ("blocked", "ENOTDIR"),
    ],
)
def test_a_file_that_cant_be_written_is_named(migration: Migration, output: str, cause: str) -> None:
    migration.append(1)
    (migration.folder / "blocked").write_text("")
    path = migration.folder / output / "x" if output == "blocked" else migration.folder / output
    said = migration.refused(output=path)
    assert cause in said
    assert str(path) in said


def test_a_folder_that_cant_be_written_is_named(migration: Migration) -> None:
    migration.append(1)
    assert "ENOENT" in migration.refused("--format", "parquet", output=migration.folder / "none" / "events")
    migration.output.write_text("")
    assert "can't be opened" in migration.refused("--format", "parquet")


def test_standard_output_takes_no_parquet_and_is_not_forgotten(migration: Migration) -> None:
    assert "JSON lines only" in migration.refused("--format", "parquet", output="-")
    assert "JSON lines only" in migration.refused("--forget", output="-")


def test_two_processes_never_write_one_output(migration: Migration) -> None:
    migration.append(1)
    reader = FileSegmentReader(migration.log, f"json:{migration.output}")
    assert "another process writes this output" in migration.refused()
    reader.close()
    assert migration.events()[0] == 0


def test_a_file_that_lost_its_end_is_refused(migration: Migration) -> None:
    migration.append(1, 2)
    migration.events()
    os.truncate(migration.output, migration.output.stat().st_size - 1)
    assert "shorter than what was written" in migration.refused()


def test_a_torn_end_is_cut_off_and_said(migration: Migration) -> None:
    migration.append(1)
    migration.events()
    with migration.output.open("ab") as file:
        file.write(b'{"op":"c","ts_ms":17')
    migration.append(2)
    code, said = migration.events()
    assert code == 0
    assert "incomplete end of 20 bytes" in said
    assert migration.ids() == [1, 2]


def test_another_event_log_under_the_same_name_is_refused(migration: Migration) -> None:
    migration.append(1, 2)
    migration.events()
    (place,) = migration.places()
    os.rename(migration.log, migration.folder / "away")
    migration.writer = FileSegmentWriter(migration.log, 2)
    migration.append(1, 2, 3)
    (migration.log / "readers").mkdir()
    (migration.log / "readers" / place.name).write_bytes(
        (migration.folder / "away/readers" / place.name).read_bytes()
    )
    assert "isn't the event log that the output was written from" in migration.refused()
    assert migration.ids() == [1, 2]


def test_a_damaged_place_is_named_and_nothing_is_released(migration: Migration) -> None:
    migration.append(1)
    migration.events()
    (place,) = migration.places()
    place.write_text("{}")
    assert str(place) in migration.refused()
    migration.append(2)
    with pytest.raises(EventLogError, match="place of an output"):
        FileBatchReader(migration.log).release(2)


def test_a_place_survives_its_reader(tmp_path: Path) -> None:
    reader = FileSegmentReader(tmp_path, "json:/x/y")
    assert reader.place() is None
    place = ReaderPlace(4, 2**63 - 1, 3, 1, ("a", "ñ"), 17)
    reader.store(place)
    reader.close()
    assert FileSegmentReader(tmp_path, "json:/x/y").place() == place
    assert FileSegmentReader(tmp_path, "json:/x/z").place() is None
